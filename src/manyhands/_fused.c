/* The fused E and M step of every model whose answer depends on (worker, truth, label) alone.
 *
 * One read of the annotations does both steps. Annotations are sorted by item and packed as
 * code = worker * K + label, the number of a row of K doubles: row `code` of the table holds
 * log p(label | truth) over the truths, row `code` of the counts receives the item's posterior.
 *
 * Items go through in blocks of 64, in the loops of _pass.h, which is compiled once for each instruction set. The posterior
 * exists for one block at a time unless the caller asks for it.
 *
 * No fused multiply-add and no reassociation (see setup.py), and one order of sums: every instruction set gives the same
 * bits. Threads are the caller's: a call works on a range of items and releases the GIL.
 */
#include "_views.h"

#include "_elementary.h"

#include <stdlib.h>

#define BLOCK 64 /* items */

#define MOST_CLASSES 32768
#define STRIP 16 /* doubles of a row that are held in registers at a time */

typedef double V4 __attribute__((vector_size(32)));
typedef double V2 __attribute__((vector_size(16)));
typedef int64_t I4 __attribute__((vector_size(32)));
typedef int64_t I2 __attribute__((vector_size(16)));

typedef struct {
    const int32_t *code;     /* (n_annotations,) worker * K + label */
    const int64_t *start;    /* (n_items + 1,) */
    const double *table;     /* (n_workers * K, K) log p(label | truth), truth last */
    const double *log_prior; /* (K,) */
    const double *offset;    /* (n_items, K) added to the prior, or NULL */
    double *counts;          /* (n_workers * K, K) added to */
    double *totals;          /* (K,) added to */
    double *posterior;       /* (n_items, K) written, or NULL */
    int64_t first, last;     /* the items to go through */
} Pass;

/* One copy of the pass for each instruction set. Compile with -DNO_CLONES for the portable one alone. */
#if defined(__x86_64__) && !defined(NO_CLONES)
#define HAS_CLONES 1
#define TARGET __attribute__((target("avx512f")))
#define LANES 8
#define NAMED(x) x##_avx512f
#include "_pass.h"
#define TARGET __attribute__((target("avx2")))
#define LANES 4
#define NAMED(x) x##_avx2
#include "_pass.h"
#endif
#define TARGET
#define LANES 2 /* SSE2 and NEON */
#define NAMED(x) x##_portable
#include "_pass.h"

/* The copies, best first, and the one in use. */
typedef struct {
    const char *name;
    double (*run)(const Pass *pass, int K, double *space);
    void (*exp_all)(const double *x, double *y, Py_ssize_t n);
    void (*log_all)(const double *x, double *y, Py_ssize_t n);
    void (*gammaln_all)(const double *x, double *y, Py_ssize_t n);
    void (*digamma_all)(const double *x, double *y, Py_ssize_t n);
    void (*trigamma_all)(const double *x, double *y, Py_ssize_t n);
} Clone;

#define CLONE(set)                                                                                         \
    run_for_##set, exp_all_##set, log_all_##set, gammaln_all_##set, digamma_all_##set, trigamma_all_##set

static const Clone clones[] = {
#ifdef HAS_CLONES
    {"avx512f", CLONE(avx512f)},
    {"avx2", CLONE(avx2)},
#endif
    {"default", CLONE(portable)},
};
static const Clone *in_use;

static int is_supported(const Clone *clone)
{
#ifdef HAS_CLONES
    if (clone->run == run_for_avx512f)
        return __builtin_cpu_supports("avx512f") != 0;
    if (clone->run == run_for_avx2)
        return __builtin_cpu_supports("avx2") != 0;
#endif
    return clone->run == run_for_portable;
}

/* Vote shares take the place of posteriors: how EM starts, and all there is to a majority vote. */
typedef struct {
    const int32_t *label; /* (n_annotations,) */
    const int64_t *start; /* (n_items + 1,) */
    const int32_t *code;  /* (n_annotations,), or NULL where no counts are wanted */
    double *counts;       /* (n_workers * K, K) added to, or NULL */
    double *totals;       /* (K,) added to */
    double *share;        /* (n_items, K) written, or NULL */
} Votes;

INLINE void count_votes(const Votes *votes, int64_t first, int64_t last, const int K, double *row)
{
    Pass counts = {.code = votes->code, .counts = votes->counts};
    for (int64_t item = first; item < last; item++) {
        int64_t begin = votes->start[item], end = votes->start[item + 1];
        double one = 1.0 / (double)(end - begin);
        for (int k = 0; k < K; k++)
            row[k] = 0.0;
        for (int64_t a = begin; a < end; a++)
            row[votes->label[a]] += 1.0;
        for (int k = 0; k < K && begin < end; k++) {
            row[k] *= one;
            votes->totals[k] += row[k];
        }
        if (votes->share)
            for (int k = 0; k < K; k++)
                votes->share[item * K + k] = row[k];
        if (votes->counts)
            count_labels_portable(&counts, begin, end, K, row);
    }
}

static void count_votes_for(const Votes *votes, int64_t first, int64_t last, int K, double *row)
{
    switch (K) {
    case 2: count_votes(votes, first, last, 2, row); break;
    case 3: count_votes(votes, first, last, 3, row); break;
    case 4: count_votes(votes, first, last, 4, row); break;
    case 8: count_votes(votes, first, last, 8, row); break;
    default: count_votes(votes, first, last, K, row);
    }
}

/* Python side ------------------------------------------------------------------------------
 *
 * Kinds and lengths of all arrays are checked, and that the range of items lies within the annotations.
 * That `start` ascends in between and that codes and labels are in range is the caller's promise: to
 * check it would be another read of the data. `Annotations` and `pack` keep it. */

/* Whether there are K classes, and the items first .. last - 1 have annotations first to last. */
static int is_range(int K, int64_t first, int64_t last, const Py_buffer *start, Py_ssize_t n_annotations)
{
    if (K < 1 || first < 0 || first > last || last > length_of(start) - 1)
        return 0;
    const int64_t *at = start->buf;
    return 0 <= at[first] && at[first] <= at[last] && at[last] <= n_annotations;
}

/* Whether the view is that of a table of K rows of K entries for each worker, however many there are. */
static int is_table_by_worker(const Py_buffer *view, int K)
{
    return length_of(view) % K == 0 && length_of(view) / K % K == 0;
}

static PyObject *em_pass(PyObject *self, PyObject *args)
{
    (void)self;
    enum { CODE, START, TABLE, LOG_PRIOR, OFFSET, COUNTS, TOTALS, POSTERIOR };
    static const Wanted wanted[] = {
        {INT32, 0}, {INT64, 0}, {FLOAT64, 0}, {FLOAT64, 0}, {FLOAT64, MAY_BE_NONE},
        {FLOAT64, WRITTEN}, {FLOAT64, WRITTEN}, {FLOAT64, WRITTEN | MAY_BE_NONE},
    };
    Views views;
    int K;
    long long first, last;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "iLL", &K, &first, &last) < 0)
        return NULL;
    const Py_buffer *view = views.view;
    Py_ssize_t items = length_of(&view[START]) - 1;
    if (!is_range(K, first, last, &view[START], length_of(&view[CODE])) || K > MOST_CLASSES
        || !is_table_by_worker(&view[TABLE], K)
        || view[COUNTS].len != view[TABLE].len || !is_table(&view[LOG_PRIOR], 1, K) || !is_table(&view[TOTALS], 1, K)
        || (view[OFFSET].obj && !is_table(&view[OFFSET], items, K))
        || (view[POSTERIOR].obj && !is_table(&view[POSTERIOR], items, K)))
        return refuse_sizes(&views);
    double *space = malloc(sizeof(double) * (BLOCK + 1) * (size_t)K), evidence;
    if (!space)
        return release(&views, PyErr_NoMemory());
    Pass pass = {view[CODE].buf, view[START].buf, view[TABLE].buf, view[LOG_PRIOR].buf, view[OFFSET].buf,
                 view[COUNTS].buf, view[TOTALS].buf, view[POSTERIOR].buf, first, last};
    Py_BEGIN_ALLOW_THREADS
    evidence = in_use->run(&pass, K, space);
    Py_END_ALLOW_THREADS
    free(space);
    return release(&views, PyFloat_FromDouble(evidence));
}

static PyObject *vote_pass(PyObject *self, PyObject *args)
{
    (void)self;
    enum { LABEL, START, CODE, COUNTS, TOTALS, SHARE };
    static const Wanted wanted[] = {
        {INT32, 0}, {INT64, 0}, {INT32, MAY_BE_NONE},
        {FLOAT64, WRITTEN | MAY_BE_NONE}, {FLOAT64, WRITTEN}, {FLOAT64, WRITTEN | MAY_BE_NONE},
    };
    Views views;
    int K;
    long long first, last;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "iLL", &K, &first, &last) < 0)
        return NULL;
    const Py_buffer *view = views.view;
    Py_ssize_t items = length_of(&view[START]) - 1, labels = length_of(&view[LABEL]);
    int counts_too = view[COUNTS].obj != NULL;
    if (!is_range(K, first, last, &view[START], labels) || !is_table(&view[TOTALS], 1, K)
        || (view[SHARE].obj && !is_table(&view[SHARE], items, K)) || counts_too != (view[CODE].obj != NULL)
        || (counts_too && (length_of(&view[CODE]) != labels || !is_table_by_worker(&view[COUNTS], K)
                           || (labels && !view[COUNTS].len))))
        return refuse_sizes(&views);
    double *row = malloc(sizeof(double) * (size_t)K);
    if (!row)
        return release(&views, PyErr_NoMemory());
    Votes votes = {view[LABEL].buf, view[START].buf, view[CODE].buf, view[COUNTS].buf, view[TOTALS].buf,
                   view[SHARE].buf};
    Py_BEGIN_ALLOW_THREADS
    count_votes_for(&votes, first, last, K, row);
    Py_END_ALLOW_THREADS
    free(row);
    return release(&views, Py_NewRef(Py_None));
}

/* function(x, y): y = function of each number of x; y may be x */
static PyObject *map_all(PyObject *args, void (*function)(const double *, double *, Py_ssize_t))
{
    enum { X, Y };
    static const Wanted wanted[] = {{FLOAT64, 0}, {FLOAT64, WRITTEN}};
    Views views;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "") < 0)
        return NULL;
    const Py_buffer *view = views.view;
    if (view[X].len != view[Y].len)
        return refuse_sizes(&views);
    Py_BEGIN_ALLOW_THREADS
    function(view[X].buf, view[Y].buf, length_of(&view[X]));
    Py_END_ALLOW_THREADS
    return release(&views, Py_NewRef(Py_None));
}

static PyObject *exp_each(PyObject *self, PyObject *args) { return (void)self, map_all(args, in_use->exp_all); }

static PyObject *log_each(PyObject *self, PyObject *args) { return (void)self, map_all(args, in_use->log_all); }

static PyObject *gammaln_each(PyObject *self, PyObject *args) { return (void)self, map_all(args, in_use->gammaln_all); }

static PyObject *digamma_each(PyObject *self, PyObject *args) { return (void)self, map_all(args, in_use->digamma_all); }

static PyObject *trigamma_each(PyObject *self, PyObject *args)
{
    return (void)self, map_all(args, in_use->trigamma_all);
}

/* The names of the instruction sets that this build has and this CPU supports, best first. */
static PyObject *instruction_sets(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && i < N_OF(clones); i++) {
        PyObject *name = is_supported(&clones[i]) ? PyUnicode_FromString(clones[i].name) : Py_NewRef(Py_None);
        if (!name || (name != Py_None && PyList_Append(names, name) < 0))
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *instruction_set(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    return PyUnicode_FromString(in_use->name);
}

static PyObject *use(PyObject *self, PyObject *args)
{
    (void)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    for (size_t i = 0; i < N_OF(clones); i++)
        if (!strcmp(clones[i].name, name) && is_supported(&clones[i])) {
            in_use = &clones[i];
            return Py_NewRef(Py_None);
        }
    return PyErr_Format(PyExc_ValueError, "no instruction set %s here", name);
}

static PyMethodDef methods[] = {
    {"em_pass", em_pass, METH_VARARGS, "One fused E and M step over a range of items; returns the evidence."},
    {"vote_pass", vote_pass, METH_VARARGS, "Vote shares and the counts they imply, over a range of items."},
    {"exp", exp_each, METH_VARARGS, "exp of each number of an array, written to another one."},
    {"log", log_each, METH_VARARGS, "log of each number of an array, written to another one."},
    {"gammaln", gammaln_each, METH_VARARGS, "Log gamma of each number of an array, written to another one."},
    {"digamma", digamma_each, METH_VARARGS, "Digamma of each number of an array, written to another one."},
    {"trigamma", trigamma_each, METH_VARARGS, "Trigamma of each number of an array, written to another one."},
    {"instruction_sets", instruction_sets, METH_NOARGS, "Names of the instruction sets that can be used, best first."},
    {"instruction_set", instruction_set, METH_NOARGS, "Name of the instruction set in use."},
    {"use", use, METH_VARARGS, "Use the instruction set of this name from now on."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fused", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__fused(void)
{
#ifdef HAS_CLONES
    __builtin_cpu_init();
#endif
    for (in_use = clones; !is_supported(in_use);)
        in_use++;
    return PyModule_Create(&module);
}
