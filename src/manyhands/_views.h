/* Arguments from Python, for the C modules of this package: some numbers, then views of arrays. */
#ifndef MANYHANDS_VIEWS_H
#define MANYHANDS_VIEWS_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#define MOST_VIEWS 8

typedef enum { INT32, INT64, INT32_OR_64, FLOAT64, BOOL, BYTES } Kind;
enum { WRITTEN = 1, MAY_BE_NONE = 2 };

/* What a function wants in the place of each of its arrays. */
typedef struct {
    Kind kind;
    int flags;
} Wanted;

/* C-contiguous views of the caller's arrays; None gives a view of nothing, whose obj is NULL. */
typedef struct {
    Py_buffer view[MOST_VIEWS];
    int taken;
} Views;

/* Native integers of 4 or 8 bytes have several letters: which of them NumPy uses depends on the platform. */
static inline int is_of_kind(const Py_buffer *view, Kind kind)
{
    const char *format = view->format ? view->format : "B";
    format += *format == '@' || *format == '=';
    if (!*format || format[1])
        return 0;
    int is_integer = strchr("ilq", *format) != NULL;
    switch (kind) {
    case INT32: return is_integer && view->itemsize == 4;
    case INT64: return is_integer && view->itemsize == 8;
    case INT32_OR_64: return is_integer && (view->itemsize == 4 || view->itemsize == 8);
    case FLOAT64: return *format == 'd' && view->itemsize == 8;
    case BOOL: return *format == '?' && view->itemsize == 1;
    case BYTES: return *format == 'B' && view->itemsize == 1;
    }
    return 0;
}

/* Give the views back; hands `result` on, so that a function can end with it. */
static inline PyObject *release(Views *views, PyObject *result)
{
    for (int i = 0; i < views->taken; i++)
        if (views->view[i].obj)
            PyBuffer_Release(&views->view[i]);
    return result;
}

static inline int take(Views *views, PyObject *object, Wanted wanted)
{
    static const char *const name[] = {"int32", "int64", "int32 or int64", "float64", "bool", "uint8"};
    Py_buffer *view = &views->view[views->taken];
    memset(view, 0, sizeof *view);
    if (object == Py_None && wanted.flags & MAY_BE_NONE) {
        views->taken++;
        return 0;
    }
    if (object != Py_None) {
        int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (wanted.flags & WRITTEN ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(object, view, flags) < 0)
            return -1;
        views->taken++;
        if (is_of_kind(view, wanted.kind))
            return 0;
    }
    PyErr_Format(PyExc_TypeError, "array %d must be an array of %s", (int)(view - views->view), name[wanted.kind]);
    return -1;
}

/* Read the arguments: numbers, one for each letter of `format`, to the addresses that follow; then `n` arrays. */
static inline int take_arguments(Views *views, PyObject *args, const Wanted *wanted, int n, const char *format, ...)
{
    views->taken = 0;
    Py_ssize_t n_numbers = (Py_ssize_t)strlen(format);
    if (PyTuple_Size(args) != n_numbers + n) {
        PyErr_Format(PyExc_TypeError, "%zd numbers and %d arrays are needed", n_numbers, n);
        return -1;
    }
    PyObject *numbers = PyTuple_GetSlice(args, 0, n_numbers);
    if (!numbers)
        return -1;
    va_list addresses;
    va_start(addresses, format);
    int understood = PyArg_VaParse(numbers, format, addresses);
    va_end(addresses);
    Py_DECREF(numbers);
    for (int i = 0; understood && i < n; i++)
        understood = take(views, PyTuple_GetItem(args, n_numbers + i), wanted[i]) == 0;
    if (understood)
        return 0;
    release(views, NULL);
    return -1;
}

#define N_OF(array) ((int)(sizeof(array) / sizeof *(array)))

static inline Py_ssize_t length_of(const Py_buffer *view) { return view->obj ? view->len / view->itemsize : 0; }

/* Whether the view is that of n rows of K entries; by division, since a product might not fit. */
static inline int is_table(const Py_buffer *view, Py_ssize_t n, Py_ssize_t K)
{
    return length_of(view) % K == 0 && length_of(view) / K == n;
}

static inline PyObject *refuse_sizes(Views *views)
{
    PyErr_SetString(PyExc_ValueError, "the arrays do not fit together");
    return release(views, NULL);
}

#endif
