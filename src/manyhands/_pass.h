/* The fused E and M step for one instruction set; _fused.c includes this file once for each of them.
 *
 * Before it is included: TARGET (the attribute that allows the instructions), LANES (doubles in the widest vector:
 * 2, 4 or 8) and NAMED(x) (the name x of this instruction set).
 *
 * A block of BLOCK items goes through five short loops: gather (add the table's rows of each item's labels to its
 * prior), subtract each item's largest score, exponentiate, sum, scatter (add each item's posterior to the count rows
 * of its labels). Scores stand item by item. With two classes they stand class by class, and one exponential for each
 * item is enough, because the larger score gives exp(0).
 *
 * Sums are taken in an order that does not depend on LANES, without fused multiply-add (see setup.py): all instruction
 * sets give the same bits, and so does the plain path in kernels.py, which takes them in the same order.
 */

#define SAME static inline __attribute__((always_inline)) TARGET

/* Part of a row, at most STRIP = 16 doubles wide, that stays in registers. Members have names: an array of vectors would
   be kept in memory. What is left of the width below LANES goes by its binary digits. */
typedef double NAMED(Wide) __attribute__((vector_size(8 * LANES)));
typedef struct {
    NAMED(Wide) w0, w1, w2, w3, w4, w5, w6, w7;
    V4 four;
    V2 two;
    double one;
} NAMED(Strip);

#define WHOLE(i) (width / LANES > i)
#define EACH_WIDE(operation)                                                                             \
    if (WHOLE(0)) operation(w0, 0);                                                                      \
    if (WHOLE(1)) operation(w1, 1);                                                                      \
    if (WHOLE(2)) operation(w2, 2);                                                                      \
    if (WHOLE(3)) operation(w3, 3);                                                                      \
    if (WHOLE(4)) operation(w4, 4);                                                                      \
    if (WHOLE(5)) operation(w5, 5);                                                                      \
    if (WHOLE(6)) operation(w6, 6);                                                                      \
    if (WHOLE(7)) operation(w7, 7);
#define HAS_FOUR (LANES > 4 && width & 4)
#define AT_FOUR (width & ~7)
#define HAS_TWO (LANES > 2 && width & 2)
#define AT_TWO (width & ~3)
#define LOAD_WIDE(member, i) memcpy(&strip->member, from + i * LANES, 8 * LANES)
#define STORE_WIDE(member, i) memcpy(to + i * LANES, &strip->member, 8 * LANES)
#define ADD_WIDE(member, i) strip->member += more->member

SAME void NAMED(load)(NAMED(Strip) *strip, const double *from, const int width)
{
    EACH_WIDE(LOAD_WIDE)
    if (HAS_FOUR) memcpy(&strip->four, from + AT_FOUR, 32);
    if (HAS_TWO) memcpy(&strip->two, from + AT_TWO, 16);
    if (width & 1) strip->one = from[width - 1];
}

SAME void NAMED(store)(const NAMED(Strip) *strip, double *to, const int width)
{
    EACH_WIDE(STORE_WIDE)
    if (HAS_FOUR) memcpy(to + AT_FOUR, &strip->four, 32);
    if (HAS_TWO) memcpy(to + AT_TWO, &strip->two, 16);
    if (width & 1) to[width - 1] = strip->one;
}

SAME void NAMED(add)(NAMED(Strip) *strip, const NAMED(Strip) *more, const int width)
{
    EACH_WIDE(ADD_WIDE)
    if (HAS_FOUR) strip->four += more->four;
    if (HAS_TWO) strip->two += more->two;
    if (width & 1) strip->one += more->one;
}

/* sum[0 .. width - 1] += the table's rows of all labels from begin to end, in the columns from `column` on. The rows of the
   counts that the block will add to are fetched meanwhile. */
SAME void NAMED(add_strip)(const Pass *pass, int64_t begin, int64_t end, int K, int column, const int width, double *sum)
{
    NAMED(Strip) total, label;
    const int32_t *code = pass->code;
    const double *table = pass->table + column, *counts = pass->counts + column;
    NAMED(load)(&total, sum + column, width);
    for (int64_t a = begin; a < end; a++) {
        int64_t at = (int64_t)code[a] * K;
        NAMED(load)(&label, table + at, width);
        for (int line = 0; line < width && K >= 8; line += 8) /* small tables are in the cache anyhow */
            __builtin_prefetch(counts + at + line, 1);
        NAMED(add)(&total, &label, width);
    }
    NAMED(store)(&total, sum + column, width);
}

/* the counts' rows of all labels from begin to end += posterior, in the columns from `column` on */
SAME void NAMED(count_strip)(const Pass *pass, int64_t begin, int64_t end, int K, int column, const int width,
                             const double *posterior)
{
    NAMED(Strip) share, count;
    const int32_t *code = pass->code;
    double *counts = pass->counts + column; /* read once: for all the compiler knows, counts might overwrite it */
    NAMED(load)(&share, posterior + column, width);
    for (int64_t a = begin; a < end; a++) {
        double *at = counts + (int64_t)code[a] * K;
        NAMED(load)(&count, at, width);
        NAMED(add)(&count, &share, width);
        NAMED(store)(&count, at, width);
    }
}

/* Do something to all K columns: at once where K is a small constant, otherwise in strips. */
#define IN_STRIPS(function, last)                                               \
    if (__builtin_constant_p(K) && K <= STRIP) {                                \
        function(pass, begin, end, K, 0, K, last);                              \
    } else {                                                                    \
        int column = 0;                                                         \
        for (; column + STRIP <= K; column += STRIP)                            \
            function(pass, begin, end, K, column, STRIP, last);                 \
        if (K & 8) function(pass, begin, end, K, column, 8, last), column += 8; \
        if (K & 4) function(pass, begin, end, K, column, 4, last), column += 4; \
        if (K & 2) function(pass, begin, end, K, column, 2, last), column += 2; \
        if (K & 1) function(pass, begin, end, K, column, 1, last);              \
    }

SAME void NAMED(add_labels)(const Pass *pass, int64_t begin, int64_t end, const int K, double *sum)
{
    IN_STRIPS(NAMED(add_strip), sum)
}

SAME void NAMED(count_labels)(const Pass *pass, int64_t begin, int64_t end, const int K, const double *posterior)
{
    IN_STRIPS(NAMED(count_strip), posterior)
}

/* Log scores of the items first .. first + n - 1: score[b * K + k]. */
SAME void NAMED(gather)(const Pass *pass, int64_t first, int n, const int K, double *score)
{
    for (int b = 0; b < n; b++) {
        double *row = score + (int64_t)b * K;
        int64_t item = first + b;
        for (int k = 0; k < K; k++)
            row[k] = 0.0;
        NAMED(add_labels)(pass, pass->start[item], pass->start[item + 1], K, row);
        for (int k = 0; k < K; k++)
            row[k] += pass->log_prior[k];
        if (pass->offset)
            for (int k = 0; k < K; k++)
                row[k] += pass->offset[item * K + k];
    }
}

/* The larger number in each lane. */
SAME V2 NAMED(larger)(V2 a, V2 b)
{
    I2 first = a > b;
    return (V2)(((I2)a & first) | ((I2)b & ~first));
}

SAME V2 NAMED(pair)(const double *from)
{
    V2 pair;
    memcpy(&pair, from, 16);
    return pair;
}

/* The largest of K numbers. */
SAME double NAMED(largest)(const double *row, const int K)
{
    if (K == 1)
        return row[0];
#if LANES > 2
    if (K >= 4) {
        V4 top, more;
        memcpy(&top, row, 32);
        for (int k = 4; k < K; k += 4) { /* the last four may have been seen: a maximum does not mind */
            memcpy(&more, row + (k + 4 <= K ? k : K - 4), 32);
            I4 first = top > more;
            top = (V4)(((I4)top & first) | ((I4)more & ~first));
        }
        V2 half = NAMED(larger)((V2){top[0], top[1]}, (V2){top[2], top[3]});
        return half[0] > half[1] ? half[0] : half[1];
    }
#endif
    V2 top = NAMED(pair)(row);
    for (int k = 2; k < K; k += 2)
        top = NAMED(larger)(top, NAMED(pair)(row + (k + 2 <= K ? k : K - 2)));
    return top[0] > top[1] ? top[0] : top[1];
}

/* The sum of K numbers, always by four partial sums: of the numbers k, k + 4, k + 8 ... */
SAME double NAMED(sum)(const double *row, const int K)
{
    V2 low = {0.0, 0.0}, high = {0.0, 0.0};
    int k = 0;
    for (; k + 4 <= K; k += 4) {
        low += NAMED(pair)(row + k);
        high += NAMED(pair)(row + k + 2);
    }
    if (K & 2)
        low += NAMED(pair)(row + k), k += 2;
    if (K & 2 && K & 1)
        high += (V2){row[k], 0.0};
    else if (K & 1)
        low += (V2){row[k], 0.0};
    low += high;
    return low[0] + low[1];
}

/* Do something to each of the K numbers of a row, LANES at a time. */
#define IN_PLACE(operation)                                    \
    int k = 0;                                                 \
    for (; k + LANES <= K; k += LANES) {                       \
        NAMED(Wide) wide;                                      \
        memcpy(&wide, row + k, 8 * LANES);                     \
        wide = wide operation number;                          \
        memcpy(row + k, &wide, 8 * LANES);                     \
    }                                                          \
    for (; k < K; k++)                                         \
        row[k] = row[k] operation number;

SAME void NAMED(subtract)(double *row, const int K, double number)
{
    IN_PLACE(-)
}

SAME void NAMED(multiply)(double *row, const int K, double number)
{
    IN_PLACE(*)
}

/* sum[k] += row[k] for each of the K numbers, LANES at a time. */
SAME void NAMED(add_row)(double *sum, const int K, const double *row)
{
    int k = 0;
    for (; k + LANES <= K; k += LANES) {
        NAMED(Wide) wide, more;
        memcpy(&wide, sum + k, 8 * LANES);
        memcpy(&more, row + k, 8 * LANES);
        wide += more;
        memcpy(sum + k, &wide, 8 * LANES);
    }
    for (; k < K; k++)
        sum[k] += row[k];
}

/* Turn scores into unnormalised posteriors in place; leave each item's maximum and normaliser behind. */
SAME void NAMED(exponentiate)(int n, const int K, double *score, double *top, double *sum)
{
    for (int b = 0; b < n; b++) {
        double *row = score + (int64_t)b * K;
        top[b] = NAMED(largest)(row, K);
        NAMED(subtract)(row, K, top[b]);
    }
    for (int64_t i = 0; i < (int64_t)BLOCK * K; i++)
        score[i] = exp_of_negative(score[i]);
    for (int b = 0; b < n; b++)
        sum[b] = NAMED(sum)(score + (int64_t)b * K, K);
}

/* Add each item's posterior to the rows of its labels. */
SAME void NAMED(scatter)(const Pass *pass, int64_t first, int n, const int K, double *score, const double *scale,
                         double *totals)
{
    for (int b = 0; b < n; b++) {
        double *row = score + (int64_t)b * K;
        int64_t item = first + b;
        int64_t begin = pass->start[item], end = pass->start[item + 1];
        NAMED(multiply)(row, K, scale[b]);
        if (pass->posterior)
            memcpy(pass->posterior + item * K, row, sizeof(double) * (size_t)K);
        if (begin == end)
            continue; /* no labels, no evidence */
        NAMED(add_row)(totals, K, row);
        NAMED(count_labels)(pass, begin, end, K, row);
    }
}

/* Sum over labelled items of log p(labels) = top + log(normaliser). Eight products of eight normalisers, each in [1, K],
   are one logarithm: MOST_CLASSES^64 = 2^960 is a double. */
SAME double NAMED(block_evidence)(const Pass *pass, int64_t first, int n, double *top, double *sum)
{
    for (int b = 0; b < n; b++)
        if (pass->start[first + b] == pass->start[first + b + 1])
            top[b] = 0.0, sum[b] = 1.0;
    for (int b = n; b < BLOCK; b++)
        top[b] = 0.0, sum[b] = 1.0;
    double tops[8] = {0.0}, product[8];
    for (int l = 0; l < 8; l++)
        product[l] = 1.0;
    for (int b = 0; b < BLOCK; b += 8)
        for (int l = 0; l < 8; l++) {
            tops[l] += top[b + l];
            product[l] *= sum[b + l];
        }
    double total = 0.0, all = 1.0;
    for (int l = 0; l < 8; l++) {
        total += tops[l];
        all *= product[l];
    }
    return total + log_of(all);
}

/* `score` has room for BLOCK + 1 rows. The last one holds the totals: those of another thread may be on the same cache
   line as pass->totals. */
SAME double NAMED(run)(const Pass *pass, const int K, double *score)
{
    double *totals = score + (int64_t)BLOCK * K;
    double top[BLOCK], sum[BLOCK], scale[BLOCK], evidence = 0.0;
    for (int64_t i = 0; i < (int64_t)BLOCK * K; i++)
        score[i] = 0.0; /* in the last block some items are missing */
    for (int b = 0; b < BLOCK; b++)
        sum[b] = 1.0;
    memcpy(totals, pass->totals, sizeof(double) * (size_t)K);
    for (int64_t first = pass->first; first < pass->last; first += BLOCK) {
        int n = pass->last - first < BLOCK ? (int)(pass->last - first) : BLOCK;
        NAMED(gather)(pass, first, n, K, score);
        NAMED(exponentiate)(n, K, score, top, sum);
        for (int b = 0; b < BLOCK; b++)
            scale[b] = 1.0 / sum[b];
        NAMED(scatter)(pass, first, n, K, score, scale, totals);
        evidence += NAMED(block_evidence)(pass, first, n, top, sum);
    }
    memcpy(pass->totals, totals, sizeof(double) * (size_t)K);
    return evidence;
}

/* Two classes: score[b] of the first and score[BLOCK + b] of the second become posteriors. */
SAME void NAMED(normalise_two)(double *score, double *top, double *sum)
{
    for (int b = 0; b < BLOCK; b++) {
        double x = score[b], y = score[BLOCK + b];
        double high = x > y ? x : y, low = x > y ? y : x;
        double other = exp_of_negative(low - high), total = 1.0 + other, scale = 1.0 / total;
        top[b] = high;
        sum[b] = total;
        other *= scale;
        score[b] = x > y ? scale : other;
        score[BLOCK + b] = x > y ? other : scale;
    }
}

SAME double NAMED(run_two)(const Pass *pass)
{
    double score[2 * BLOCK] = {0.0}, top[BLOCK], sum[BLOCK], evidence = 0.0;
    V2 prior = NAMED(pair)(pass->log_prior), totals = NAMED(pair)(pass->totals);
    for (int64_t first = pass->first; first < pass->last; first += BLOCK) {
        int n = pass->last - first < BLOCK ? (int)(pass->last - first) : BLOCK;
        for (int b = 0; b < n; b++) {
            double row[2] = {0.0, 0.0};
            NAMED(add_strip)(pass, pass->start[first + b], pass->start[first + b + 1], 2, 0, 2, row);
            V2 sums = NAMED(pair)(row) + prior;
            if (pass->offset)
                sums += NAMED(pair)(pass->offset + 2 * (first + b));
            score[b] = sums[0];
            score[BLOCK + b] = sums[1];
        }
        NAMED(normalise_two)(score, top, sum);
        for (int b = 0; b < n; b++) {
            int64_t begin = pass->start[first + b], end = pass->start[first + b + 1];
            double row[2] = {score[b], score[BLOCK + b]};
            if (pass->posterior)
                memcpy(pass->posterior + 2 * (first + b), row, 16);
            if (begin < end)
                totals += NAMED(pair)(row);
            NAMED(count_strip)(pass, begin, end, 2, 0, 2, row);
        }
        evidence += NAMED(block_evidence)(pass, first, n, top, sum);
    }
    memcpy(pass->totals, &totals, 16);
    return evidence;
}

/* A copy of the loops for each small K, in which rows stay in registers. */
#define SPECIALISED(K)                                             \
    TARGET static double NAMED(run_##K)(const Pass *pass)          \
    {                                                              \
        double score[(BLOCK + 1) * K] __attribute__((aligned(64)));      \
        return NAMED(run)(pass, K, score);                         \
    }
SPECIALISED(3)
SPECIALISED(4)
SPECIALISED(5)
SPECIALISED(6)
SPECIALISED(7)
SPECIALISED(8)
SPECIALISED(10)
SPECIALISED(16)

TARGET static double NAMED(run_for)(const Pass *pass, int K, double *space)
{
    switch (K) {
    case 2: return NAMED(run_two)(pass);
    case 3: return NAMED(run_3)(pass);
    case 4: return NAMED(run_4)(pass);
    case 5: return NAMED(run_5)(pass);
    case 6: return NAMED(run_6)(pass);
    case 7: return NAMED(run_7)(pass);
    case 8: return NAMED(run_8)(pass);
    case 10: return NAMED(run_10)(pass);
    case 16: return NAMED(run_16)(pass);
    default: return NAMED(run)(pass, K, space);
    }
}

TARGET static void NAMED(exp_all)(const double *x, double *y, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        y[i] = exp_of(x[i]);
}

TARGET static void NAMED(log_all)(const double *x, double *y, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        y[i] = log_of(x[i]);
}

TARGET static void NAMED(gammaln_all)(const double *x, double *y, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        y[i] = gammaln_of(x[i]);
}

TARGET static void NAMED(digamma_all)(const double *x, double *y, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        y[i] = digamma_of(x[i]);
}

TARGET static void NAMED(trigamma_all)(const double *x, double *y, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        y[i] = trigamma_of(x[i]);
}

#undef SAME
#undef WHOLE
#undef EACH_WIDE
#undef HAS_FOUR
#undef AT_FOUR
#undef HAS_TWO
#undef AT_TWO
#undef LOAD_WIDE
#undef STORE_WIDE
#undef ADD_WIDE
#undef IN_STRIPS
#undef IN_PLACE
#undef SPECIALISED
#undef TARGET
#undef LANES
#undef NAMED
