/* Long columns, a number at a time: what NumPy does in several passes over memory, done in one.
 *
 * mark and look_up turn integers from a small range into codes; join_keys and split_keys put (item, worker,
 * label) into one sortable integer and take it apart again; pick finds the largest probability of each row,
 * and whether it is alone; code_text, order_text and crc_text number and sort the texts of a column, and compute
 * the CRC-32 of each. Kinds, lengths and whatever could lead out of bounds are checked.
 */
#include "_text_codes.h"
#include "_text_crc.h"
#include "_text_order.h"

/* Loops that read or write integers of either width are written once. */
#define FOR_EITHER_WIDTH(LOOP) \
    LOOP(32, int32_t, uint32_t) \
    LOOP(64, int64_t, uint64_t)

#define STRETCH 4096 /* values between two looks at whether all have been met */

/* mark_##: note which of the numbers low .. low + size - 1 occur, until all of them have; -1 if others do.
   look_up_##: replace each value by table[value - low]; returns the smallest code, or -2 if values lie outside. */
#define RECODE(WIDTH, INT, UNSIGNED)                                                                              \
    static Py_ssize_t mark_##WIDTH(const INT *value, Py_ssize_t n, int64_t low, char *present, Py_ssize_t size)   \
    {                                                                                                             \
        Py_ssize_t met = 0;                                                                                       \
        for (Py_ssize_t begin = 0; begin < n && met < size; begin += STRETCH) {                                   \
            Py_ssize_t end = n - begin < STRETCH ? n : begin + STRETCH;                                           \
            for (Py_ssize_t i = begin; i < end; i++) {                                                            \
                uint64_t at = (uint64_t)value[i] - (uint64_t)low;                                                 \
                if (at >= (uint64_t)size)                                                                         \
                    return -1;                                                                                    \
                met += !present[at];                                                                              \
                present[at] = 1;                                                                                  \
            }                                                                                                     \
        }                                                                                                         \
        return met;                                                                                               \
    }                                                                                                             \
    static int32_t look_up_##WIDTH(const INT *value, Py_ssize_t n, int64_t low, const int32_t *table,             \
                                   Py_ssize_t size, int32_t *code)                                                \
    {                                                                                                             \
        int32_t least = 0;                                                                                        \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                      \
            uint64_t at = (uint64_t)value[i] - (uint64_t)low;                                                     \
            if (at >= (uint64_t)size)                                                                             \
                return -2;                                                                                        \
            code[i] = table[at];                                                                                  \
            least = code[i] < least ? code[i] : least;                                                            \
        }                                                                                                         \
        return least;                                                                                             \
    }
FOR_EITHER_WIDTH(RECODE)

static PyObject *mark(PyObject *self, PyObject *args)
{
    (void)self;
    enum { VALUES, PRESENT };
    static const Wanted wanted[] = {{INT32_OR_64, 0}, {BOOL, WRITTEN}};
    Views views;
    long long low;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "L", &low) < 0)
        return NULL;
    const Py_buffer *view = views.view;
    Py_ssize_t n = length_of(&view[VALUES]), size = length_of(&view[PRESENT]), met;
    Py_BEGIN_ALLOW_THREADS
    memset(view[PRESENT].buf, 0, (size_t)size);
    met = view[VALUES].itemsize == 4 ? mark_32(view[VALUES].buf, n, low, view[PRESENT].buf, size)
                                     : mark_64(view[VALUES].buf, n, low, view[PRESENT].buf, size);
    Py_END_ALLOW_THREADS
    return met < 0 ? refuse_sizes(&views) : release(&views, PyLong_FromSsize_t(met));
}

static PyObject *look_up(PyObject *self, PyObject *args)
{
    (void)self;
    enum { VALUES, TABLE, CODES };
    static const Wanted wanted[] = {{INT32_OR_64, 0}, {INT32, 0}, {INT32, WRITTEN}};
    Views views;
    long long low;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "L", &low) < 0)
        return NULL;
    const Py_buffer *view = views.view;
    Py_ssize_t n = length_of(&view[VALUES]), size = length_of(&view[TABLE]);
    if (length_of(&view[CODES]) != n)
        return refuse_sizes(&views);
    int32_t least;
    Py_BEGIN_ALLOW_THREADS
    least = view[VALUES].itemsize == 4 ? look_up_32(view[VALUES].buf, n, low, view[TABLE].buf, size, view[CODES].buf)
                                       : look_up_64(view[VALUES].buf, n, low, view[TABLE].buf, size, view[CODES].buf);
    Py_END_ALLOW_THREADS
    return least < -1 ? refuse_sizes(&views) : release(&views, PyBool_FromLong(least == 0));
}

/* join_##: write the keys, and say whether they ascend already. Codes below 2^bits are the caller's promise;
   larger ones give other keys, and nothing worse. */
#define KEYS(WIDTH, INT, UNSIGNED)                                                                                \
    static int join_##WIDTH(const int32_t *item, const int32_t *worker, const int32_t *label, Py_ssize_t n,       \
                            int worker_bits, int label_bits, INT *key)                                            \
    {                                                                                                             \
        int descends = 0;                                                                                         \
        for (Py_ssize_t i = 0; i < n; i++)                                                                        \
            key[i] = (INT)((((((UNSIGNED)item[i] << worker_bits) | (UNSIGNED)worker[i]) << label_bits))           \
                           | (UNSIGNED)label[i]);                                                                 \
        for (Py_ssize_t i = 1; i < n && !descends; i++)                                                           \
            descends = key[i] < key[i - 1];                                                                       \
        return !descends;                                                                                         \
    }                                                                                                             \
    static void split_##WIDTH(const INT *key, Py_ssize_t n, int worker_bits, int label_bits, int32_t *item,       \
                              int32_t *worker, int32_t *label)                                                    \
    {                                                                                                             \
        INT worker_mask = (INT)(((UNSIGNED)1 << worker_bits) - 1), label_mask = (INT)(((UNSIGNED)1 << label_bits) - 1); \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                      \
            label[i] = (int32_t)(key[i] & label_mask);                                                            \
            worker[i] = (int32_t)((key[i] >> label_bits) & worker_mask);                                          \
            item[i] = (int32_t)(key[i] >> (worker_bits + label_bits));                                            \
        }                                                                                                         \
    }
FOR_EITHER_WIDTH(KEYS)

/* Whether workers and labels of these widths leave room in the key, and the columns are as long as it. */
static int is_key(const Py_buffer *key, const Py_buffer *column, int worker_bits, int label_bits)
{
    return 0 <= worker_bits && worker_bits <= 31 && 0 <= label_bits && label_bits <= 31
        && worker_bits + label_bits < 8 * (int)key->itemsize - 1 && length_of(&column[0]) == length_of(key)
        && length_of(&column[1]) == length_of(key) && length_of(&column[2]) == length_of(key);
}

static PyObject *join_keys(PyObject *self, PyObject *args)
{
    (void)self;
    enum { ITEM, WORKER, LABEL, KEY };
    static const Wanted wanted[] = {{INT32, 0}, {INT32, 0}, {INT32, 0}, {INT32_OR_64, WRITTEN}};
    Views views;
    int worker_bits, label_bits, ascend;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "ii", &worker_bits, &label_bits) < 0)
        return NULL;
    const Py_buffer *view = views.view;
    if (!is_key(&view[KEY], &view[ITEM], worker_bits, label_bits))
        return refuse_sizes(&views);
    const int32_t *item = view[ITEM].buf, *worker = view[WORKER].buf, *label = view[LABEL].buf;
    Py_ssize_t n = length_of(&view[KEY]);
    Py_BEGIN_ALLOW_THREADS
    ascend = view[KEY].itemsize == 4 ? join_32(item, worker, label, n, worker_bits, label_bits, view[KEY].buf)
                                     : join_64(item, worker, label, n, worker_bits, label_bits, view[KEY].buf);
    Py_END_ALLOW_THREADS
    return release(&views, PyBool_FromLong(ascend));
}

static PyObject *split_keys(PyObject *self, PyObject *args)
{
    (void)self;
    enum { KEY, ITEM, WORKER, LABEL };
    static const Wanted wanted[] = {{INT32_OR_64, 0}, {INT32, WRITTEN}, {INT32, WRITTEN}, {INT32, WRITTEN}};
    Views views;
    int worker_bits, label_bits;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "ii", &worker_bits, &label_bits) < 0)
        return NULL;
    const Py_buffer *view = views.view;
    if (!is_key(&view[KEY], &view[ITEM], worker_bits, label_bits))
        return refuse_sizes(&views);
    int32_t *item = view[ITEM].buf, *worker = view[WORKER].buf, *label = view[LABEL].buf;
    Py_ssize_t n = length_of(&view[KEY]);
    Py_BEGIN_ALLOW_THREADS
    if (view[KEY].itemsize == 4)
        split_32(view[KEY].buf, n, worker_bits, label_bits, item, worker, label);
    else
        split_64(view[KEY].buf, n, worker_bits, label_bits, item, worker, label);
    Py_END_ALLOW_THREADS
    return release(&views, Py_NewRef(Py_None));
}

static int is_rank(const int32_t *rank, Py_ssize_t K)
{
    for (Py_ssize_t k = 0; k < K; k++)
        if (rank[k] < 0 || rank[k] >= K)
            return 0;
    return K > 0;
}

/* For each row of `posterior`, the first class in the order `rank` within `tie` of the largest, and whether others are. */
static PyObject *pick(PyObject *self, PyObject *args)
{
    (void)self;
    enum { POSTERIOR, RANK, CODE, TIED };
    static const Wanted wanted[] = {{FLOAT64, 0}, {INT32, 0}, {INT32, WRITTEN}, {BOOL, WRITTEN}};
    Views views;
    double tie;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "d", &tie) < 0)
        return NULL;
    const Py_buffer *view = views.view;
    Py_ssize_t K = length_of(&view[RANK]), n = length_of(&view[TIED]);
    if (!is_rank(view[RANK].buf, K) || !is_table(&view[POSTERIOR], n, K) || length_of(&view[CODE]) != n)
        return refuse_sizes(&views);
    const double *posterior = view[POSTERIOR].buf;
    const int32_t *rank = view[RANK].buf;
    int32_t *code = view[CODE].buf;
    unsigned char *tied = view[TIED].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < n; i++) {
        const double *row = posterior + i * K;
        double top = row[0];
        Py_ssize_t best = 0, near = 0;
        for (Py_ssize_t k = 1; k < K; k++)
            if (row[k] > top) {
                top = row[k];
                best = k;
            }
        for (Py_ssize_t k = 0; k < K; k++)
            near += row[k] >= top - tie;
        if (near != 1) { /* a tie, or a row of NaN: the order decides */
            Py_ssize_t k = 0;
            while (k < K - 1 && !(row[rank[k]] >= top - tie))
                k++;
            best = near ? rank[k] : rank[0];
        }
        code[i] = (int32_t)best;
        tied[i] = near > 1;
    }
    Py_END_ALLOW_THREADS
    return release(&views, Py_NewRef(Py_None));
}

/* The end of all functions on text: what they found, -1 for another layout than string views, or an error. */
static PyObject *hand_back(Views *views, Chunks *chunks, Outcome outcome, Py_ssize_t n)
{
    release_chunks(chunks);
    switch (outcome) {
    case CODED: return release(views, PyLong_FromSsize_t(n));
    case OTHER_LAYOUT: return release(views, PyLong_FromLong(-1));
    case OUT_OF_MEMORY: return release(views, PyErr_NoMemory());
    case TOO_MANY: PyErr_SetString(PyExc_OverflowError, "more distinct texts than 32-bit codes"); break;
    case BROKEN: return refuse_sizes(views);
    }
    return release(views, NULL);
}

/* Codes of the texts that a capsule streams, in order of appearance, and the first row of each. */
static PyObject *code_text(PyObject *self, PyObject *args)
{
    (void)self;
    enum { CODES, FIRST };
    static const Wanted wanted[] = {{INT32, WRITTEN}, {INT64, WRITTEN}};
    Views views;
    PyObject *capsule;
    unsigned long long seed;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "OK", &capsule, &seed) < 0)
        return NULL;
    Py_ssize_t n = length_of(&views.view[CODES]);
    if (length_of(&views.view[FIRST]) != n)
        return refuse_sizes(&views);
    ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (!stream)
        return release(&views, NULL);
    Chunks chunks = {0};
    Table table = {.mask = 511, .seed = seed};
    Outcome outcome = take_chunks(stream, n, &chunks);
    Py_BEGIN_ALLOW_THREADS
    if (outcome == CODED)
        outcome = code_chunks(&table, &chunks, views.view[CODES].buf, views.view[FIRST].buf);
    free(table.slot);
    free(table.known);
    Py_END_ALLOW_THREADS
    return hand_back(&views, &chunks, outcome, table.n);
}

/* Codes of texts that stand one after the other in bytes, in order of appearance, and the first row of each. */
static PyObject *code_joined_text(PyObject *self, PyObject *args)
{
    (void)self;
    enum { DATA, LENGTHS, CODES, FIRST };
    static const Wanted wanted[] = {{BYTES, 0}, {INT64, 0}, {INT32, WRITTEN}, {INT64, WRITTEN}};
    Views views;
    unsigned long long seed;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "K", &seed) < 0)
        return NULL;
    Py_ssize_t n = length_of(&views.view[CODES]);
    if (length_of(&views.view[FIRST]) != n || length_of(&views.view[LENGTHS]) != n)
        return refuse_sizes(&views);
    Chunks none = {0};
    Table table = {.mask = 511, .seed = seed};
    Outcome outcome;
    Py_BEGIN_ALLOW_THREADS
    outcome = code_joined(&table, views.view[DATA].buf, length_of(&views.view[DATA]), views.view[LENGTHS].buf, n,
                          views.view[CODES].buf, views.view[FIRST].buf);
    free(table.slot);
    free(table.known);
    Py_END_ALLOW_THREADS
    return hand_back(&views, &none, outcome, table.n);
}

/* The rows of the texts that a capsule streams, none of them null, in the order of their bytes. */
static PyObject *order_text(PyObject *self, PyObject *args)
{
    (void)self;
    static const Wanted wanted[] = {{INT32, WRITTEN}};
    Views views;
    PyObject *capsule;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "O", &capsule) < 0)
        return NULL;
    Py_ssize_t n = length_of(&views.view[0]);
    ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (!stream)
        return release(&views, NULL);
    Chunks chunks = {0};
    Outcome outcome = take_chunks(stream, n, &chunks);
    Py_BEGIN_ALLOW_THREADS
    if (outcome == CODED)
        outcome = order_chunks(&chunks, n, views.view[0].buf);
    Py_END_ALLOW_THREADS
    return hand_back(&views, &chunks, outcome, n);
}

/* The CRC-32 of the texts that a capsule streams, none of them null. */
static PyObject *crc_text(PyObject *self, PyObject *args)
{
    (void)self;
    static const Wanted wanted[] = {{INT32, WRITTEN}};
    Views views;
    PyObject *capsule;
    if (take_arguments(&views, args, wanted, N_OF(wanted), "O", &capsule) < 0)
        return NULL;
    Py_ssize_t n = length_of(&views.view[0]);
    ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (!stream)
        return release(&views, NULL);
    Chunks chunks = {0};
    Outcome outcome = take_chunks(stream, n, &chunks);
    Py_BEGIN_ALLOW_THREADS
    if (outcome == CODED)
        outcome = crc_chunks(&chunks, views.view[0].buf);
    Py_END_ALLOW_THREADS
    return hand_back(&views, &chunks, outcome, n);
}

static PyMethodDef methods[] = {
    {"mark", mark, METH_VARARGS, "Note which integers of a range occur; returns how many were met."},
    {"look_up", look_up, METH_VARARGS, "Replace integers of a range by codes; returns whether all have one."},
    {"join_keys", join_keys, METH_VARARGS, "Put items, workers and labels into sortable keys; returns whether they ascend."},
    {"split_keys", split_keys, METH_VARARGS, "Take keys apart again."},
    {"pick", pick, METH_VARARGS, "The most probable class of each row, and whether it is tied."},
    {"code_text", code_text, METH_VARARGS, "Number the distinct texts of a column; returns how many there are."},
    {"code_joined_text", code_joined_text, METH_VARARGS, "Number the distinct texts in joined bytes."},
    {"order_text", order_text, METH_VARARGS, "The rows of a column of texts in the order of their bytes."},
    {"crc_text", crc_text, METH_VARARGS, "The CRC-32 of each text of a column."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_columns", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__columns(void) { return PyModule_Create(&module); }
