/* The fused E and M step of every model whose answer depends on (worker, truth, label) alone.
 *
 * One read of the annotations does both steps. Annotations are sorted by item and packed as
 * code = worker * K + label, the number of a row of K doubles: row `code` of the table holds
 * log p(label | truth) over the truths, row `code` of the counts receives the item's posterior.
 *
 * Items go through in blocks: gather and add the rows, then max, exp and normalise over the whole
 * block (truth by truth, so that the compiler vectorises over items), then scatter. The posterior
 * exists for one block at a time unless the caller asks for it.
 *
 * No fused multiply-add and no reassociation (see setup.py), so every instruction set gives the
 * same bits. Threads are the caller's: a call works on a range of items and releases the GIL.
 */
#include "_views.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK 64 /* items; 8^64 is still a double, so the evidence of a block is one logarithm */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__)
#define VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR_CLONES
#endif

/* GCC and Clang; for other compilers there is the plain path, since vectors below are an extension of these two. */
#define INLINE static inline __attribute__((always_inline))

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

/* exp(x) for x <= 0 within 1 ulp: x = n log 2 + r, a polynomial in r, and n put into the exponent.
   Free of branches, so that loops over it vectorise. Below -708 the result is 0. */
INLINE double exp_of_negative(double x)
{
    const double to_integer = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    double bounded = x < -708.0 ? -708.0 : x;
    double shifted = bounded * 1.4426950408889634074 + to_integer;
    double n = shifted - to_integer;
    double r = (bounded - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 479001600.0; /* Taylor to r^12: |r| <= log(2)/2, so the rest is below 2e-16 */
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits, power;
    memcpy(&power, &shifted, sizeof power);
    memcpy(&bits, &p, sizeof bits);
    bits += power << 52; /* the low bits of `shifted` are n */
    double result;
    memcpy(&result, &bits, sizeof result);
    return x < -708.0 ? 0.0 : result;
}

/* K < 16 doubles as at most four vectors, one for each binary digit of K: a row stays in registers. */
typedef double V8 __attribute__((vector_size(64)));
typedef double V4 __attribute__((vector_size(32)));
typedef double V2 __attribute__((vector_size(16)));
typedef struct {
    V8 eight;
    V4 four;
    V2 two;
    double one;
} Row;

INLINE void load_row(Row *row, const double *from, const int K)
{
    if (K & 8) memcpy(&row->eight, from, 64);
    if (K & 4) memcpy(&row->four, from + (K & 8), 32);
    if (K & 2) memcpy(&row->two, from + (K & 12), 16);
    if (K & 1) row->one = from[K & 14];
}

INLINE void add_row(Row *row, const Row *more, const int K)
{
    if (K & 8) row->eight += more->eight;
    if (K & 4) row->four += more->four;
    if (K & 2) row->two += more->two;
    if (K & 1) row->one += more->one;
}

INLINE void store_row(const Row *row, double *to, const int K)
{
    if (K & 8) memcpy(to, &row->eight, 64);
    if (K & 4) memcpy(to + (K & 8), &row->four, 32);
    if (K & 2) memcpy(to + (K & 12), &row->two, 16);
    if (K & 1) to[K & 14] = row->one;
}

/* sum += the table's rows of all labels from begin to end */
INLINE void add_labels(const Pass *pass, int64_t begin, int64_t end, const int K, double *sum)
{
    if (K < 16) {
        Row total, label;
        load_row(&total, sum, K);
        for (int64_t a = begin; a < end; a++) {
            load_row(&label, pass->table + (int64_t)pass->code[a] * K, K);
            add_row(&total, &label, K);
        }
        store_row(&total, sum, K);
    } else {
        for (int64_t a = begin; a < end; a++) {
            const double *label = pass->table + (int64_t)pass->code[a] * K;
            for (int k = 0; k < K; k++)
                sum[k] += label[k];
        }
    }
}

/* the counts' rows of all labels from begin to end += posterior */
INLINE void count_labels(const Pass *pass, int64_t begin, int64_t end, const int K, const double *posterior)
{
    if (K < 16) {
        Row share, count;
        load_row(&share, posterior, K);
        for (int64_t a = begin; a < end; a++) {
            double *at = pass->counts + (int64_t)pass->code[a] * K;
            load_row(&count, at, K);
            add_row(&count, &share, K);
            store_row(&count, at, K);
        }
    } else {
        for (int64_t a = begin; a < end; a++) {
            double *at = pass->counts + (int64_t)pass->code[a] * K;
            for (int k = 0; k < K; k++)
                at[k] += posterior[k];
        }
    }
}

/* Log scores of the items first .. first + n - 1, truth by truth: score[k * BLOCK + b]. */
INLINE void gather(const Pass *pass, int64_t first, int n, const int K, double *score, double *row)
{
    for (int b = 0; b < n; b++) {
        int64_t item = first + b;
        for (int k = 0; k < K; k++)
            row[k] = pass->log_prior[k];
        if (pass->offset)
            for (int k = 0; k < K; k++)
                row[k] += pass->offset[item * K + k];
        add_labels(pass, pass->start[item], pass->start[item + 1], K, row);
        for (int k = 0; k < K; k++)
            score[k * BLOCK + b] = row[k];
    }
}

/* Turn scores into posteriors in place; leave each item's maximum and normaliser behind. */
INLINE void normalise(const int K, double *score, double *top, double *sum)
{
    for (int b = 0; b < BLOCK; b++)
        top[b] = score[b];
    for (int k = 1; k < K; k++)
        for (int b = 0; b < BLOCK; b++)
            top[b] = score[k * BLOCK + b] > top[b] ? score[k * BLOCK + b] : top[b];
    for (int b = 0; b < BLOCK; b++)
        sum[b] = 0.0;
    for (int k = 0; k < K; k++)
        for (int b = 0; b < BLOCK; b++) {
            score[k * BLOCK + b] = exp_of_negative(score[k * BLOCK + b] - top[b]);
            sum[b] += score[k * BLOCK + b];
        }
    double scale[BLOCK];
    for (int b = 0; b < BLOCK; b++)
        scale[b] = 1.0 / sum[b];
    for (int k = 0; k < K; k++)
        for (int b = 0; b < BLOCK; b++)
            score[k * BLOCK + b] *= scale[b];
}

/* Add each item's posterior to the rows of its labels. */
INLINE void scatter(const Pass *pass, int64_t first, int n, const int K, const double *score, double *row)
{
    for (int b = 0; b < n; b++) {
        int64_t item = first + b;
        int64_t begin = pass->start[item], end = pass->start[item + 1];
        for (int k = 0; k < K; k++)
            row[k] = score[k * BLOCK + b];
        if (pass->posterior)
            for (int k = 0; k < K; k++)
                pass->posterior[item * K + k] = row[k];
        if (begin == end)
            continue; /* no labels, no evidence */
        for (int k = 0; k < K; k++)
            pass->totals[k] += row[k];
        count_labels(pass, begin, end, K, row);
    }
}

/* Sum over labelled items of log p(labels); normalisers lie in [1, K], so a short product is safe. */
INLINE double block_evidence(const Pass *pass, int64_t first, int n, const double *top, const double *sum)
{
    double total = 0.0, product = 1.0;
    for (int b = 0; b < n; b++) {
        if (pass->start[first + b] == pass->start[first + b + 1])
            continue;
        total += top[b];
        product *= sum[b];
        if (product > 1e250) {
            total += log(product);
            product = 1.0;
        }
    }
    return total + log(product);
}

INLINE double run(const Pass *pass, const int K, double *score, double *row)
{
    double top[BLOCK], sum[BLOCK], evidence = 0.0;
    memset(score, 0, sizeof(double) * BLOCK * (size_t)K);
    for (int64_t first = pass->first; first < pass->last; first += BLOCK) {
        int n = pass->last - first < BLOCK ? (int)(pass->last - first) : BLOCK;
        gather(pass, first, n, K, score, row);
        normalise(K, score, top, sum);
        scatter(pass, first, n, K, score, row);
        evidence += block_evidence(pass, first, n, top, sum);
    }
    return evidence;
}

#define SPECIALISED(K)                                              \
    VECTOR_CLONES static double run_##K(const Pass *pass)           \
    {                                                               \
        double score[BLOCK * K], row[K];                            \
        return run(pass, K, score, row);                            \
    }
SPECIALISED(2)
SPECIALISED(3)
SPECIALISED(4)
SPECIALISED(5)
SPECIALISED(6)
SPECIALISED(7)
SPECIALISED(8)
SPECIALISED(10)

VECTOR_CLONES static double run_any(const Pass *pass, int K, double *space)
{
    return run(pass, K, space, space + (size_t)BLOCK * K);
}

static double run_for(const Pass *pass, int K, double *space)
{
    switch (K) {
    case 2: return run_2(pass);
    case 3: return run_3(pass);
    case 4: return run_4(pass);
    case 5: return run_5(pass);
    case 6: return run_6(pass);
    case 7: return run_7(pass);
    case 8: return run_8(pass);
    case 10: return run_10(pass);
    default: return run_any(pass, K, space);
    }
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
            count_labels(&counts, begin, end, K, row);
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
    if (!is_range(K, first, last, &view[START], length_of(&view[CODE])) || !is_table_by_worker(&view[TABLE], K)
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
    evidence = run_for(&pass, K, space);
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

static PyMethodDef methods[] = {
    {"em_pass", em_pass, METH_VARARGS, "One fused E and M step over a range of items; returns the evidence."},
    {"vote_pass", vote_pass, METH_VARARGS, "Vote shares and the counts they imply, over a range of items."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fused", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__fused(void) { return PyModule_Create(&module); }
