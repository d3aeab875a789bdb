/* Long columns, a number at a time: what NumPy does in several passes over memory, done in one.
 *
 * join_keys and split_keys put (item, worker, label) into one sortable integer and take it apart again;
 * pick finds the largest probability of each row, and whether it is alone.
 */
#include "_views.h"

#include <stdint.h>

static PyObject *join_keys(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *array[4], *result = NULL;
    int worker_bits, label_bits;
    if (!PyArg_ParseTuple(args, "iiOOOO", &worker_bits, &label_bits, &array[0], &array[1], &array[2], &array[3]))
        return NULL;
    Views views = {.taken = 0};
    for (int i = 0; i < 4; i++)
        if (take(&views, array[i], i < 3 ? 4 : 8, i == 3) < 0)
            goto done;
    Py_buffer *view = views.view;
    Py_ssize_t n = view[0].len / 4;
    if (view[1].len != view[0].len || view[2].len != view[0].len || view[3].len != 8 * n || worker_bits < 0
        || label_bits < 0 || worker_bits + label_bits > 62) {
        refuse_sizes();
        goto done;
    }
    const int32_t *item = view[0].buf, *worker = view[1].buf, *label = view[2].buf;
    int64_t *key = view[3].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < n; i++)
        key[i] = ((((int64_t)item[i] << worker_bits) | worker[i]) << label_bits) | label[i];
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    release(&views);
    return result;
}

static PyObject *split_keys(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *array[4], *result = NULL;
    int worker_bits, label_bits;
    if (!PyArg_ParseTuple(args, "iiOOOO", &worker_bits, &label_bits, &array[0], &array[1], &array[2], &array[3]))
        return NULL;
    Views views = {.taken = 0};
    for (int i = 0; i < 4; i++)
        if (take(&views, array[i], i == 0 ? 8 : 4, i > 0) < 0)
            goto done;
    Py_buffer *view = views.view;
    Py_ssize_t n = view[0].len / 8;
    if (view[1].len != 4 * n || view[2].len != 4 * n || view[3].len != 4 * n || worker_bits < 0 || label_bits < 0
        || worker_bits + label_bits > 62) {
        refuse_sizes();
        goto done;
    }
    const int64_t *key = view[0].buf;
    int32_t *item = view[1].buf, *worker = view[2].buf, *label = view[3].buf;
    int64_t worker_mask = ((int64_t)1 << worker_bits) - 1, label_mask = ((int64_t)1 << label_bits) - 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < n; i++) {
        label[i] = (int32_t)(key[i] & label_mask);
        worker[i] = (int32_t)((key[i] >> label_bits) & worker_mask);
        item[i] = (int32_t)(key[i] >> (worker_bits + label_bits));
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    release(&views);
    return result;
}

/* For each row of `posterior`, the first class in the order `rank` within `tie` of the largest, and whether others are. */
static PyObject *pick(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *array[4], *result = NULL;
    double tie;
    if (!PyArg_ParseTuple(args, "dOOOO", &tie, &array[0], &array[1], &array[2], &array[3]))
        return NULL;
    Views views = {.taken = 0};
    static const Py_ssize_t size[4] = {8, 4, 4, 1};
    for (int i = 0; i < 4; i++)
        if (take(&views, array[i], size[i], i >= 2) < 0)
            goto done;
    Py_buffer *view = views.view;
    Py_ssize_t K = view[1].len / 4, n = view[3].len;
    if (K < 1 || view[0].len != 8 * n * K || view[2].len != 4 * n) {
        refuse_sizes();
        goto done;
    }
    const double *posterior = view[0].buf;
    const int32_t *rank = view[1].buf;
    int32_t *code = view[2].buf;
    unsigned char *tied = view[3].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < n; i++) {
        const double *row = posterior + i * K;
        double top = row[0];
        for (Py_ssize_t k = 1; k < K; k++)
            top = row[k] > top ? row[k] : top;
        int count = 0;
        for (Py_ssize_t k = K - 1; k >= 0; k--)
            if (row[rank[k]] >= top - tie) {
                code[i] = rank[k];
                count++;
            }
        tied[i] = count > 1;
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    release(&views);
    return result;
}

static PyMethodDef methods[] = {
    {"join_keys", join_keys, METH_VARARGS, "Put items, workers and labels into sortable keys."},
    {"split_keys", split_keys, METH_VARARGS, "Take keys apart again."},
    {"pick", pick, METH_VARARGS, "The most probable class of each row, and whether it is tied."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_columns", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__columns(void) { return PyModule_Create(&module); }
