/* Views of the caller's arrays, for the C modules of this package. */
#ifndef MANYHANDS_VIEWS_H
#define MANYHANDS_VIEWS_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define MOST_VIEWS 8

/* C-contiguous views of the caller's arrays; None gives a view of nothing. */
typedef struct {
    Py_buffer view[MOST_VIEWS];
    int taken;
} Views;

static inline int take(Views *views, PyObject *object, Py_ssize_t item_size, int writable)
{
    Py_buffer *view = &views->view[views->taken];
    view->obj = NULL;
    view->buf = NULL;
    view->len = 0;
    if (object != Py_None) {
        if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) < 0)
            return -1;
        if (view->itemsize != item_size) {
            PyErr_Format(PyExc_TypeError, "array %d must have items of %zd bytes", views->taken, item_size);
            PyBuffer_Release(view);
            return -1;
        }
    }
    views->taken++;
    return 0;
}

static inline void release(Views *views)
{
    for (int i = 0; i < views->taken; i++)
        if (views->view[i].obj)
            PyBuffer_Release(&views->view[i]);
}

static inline int refuse_sizes(void)
{
    PyErr_SetString(PyExc_ValueError, "the arrays do not fit together");
    return -1;
}

#endif
