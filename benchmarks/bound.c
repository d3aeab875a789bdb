/* The least an EM pass can do: read each label's row of the table, and add a row to its counts.
 *
 * Two forms; the faster one is the bound. `label_by_label` reads and adds for each label in turn. `block_by_block`
 * reads the rows of 64 items and then adds to theirs, as the pass has to, since an item's posterior needs all its labels.
 */
#include <stdint.h>

#define BLOCK 64
#define MOST 64 /* classes */
#define INLINE static inline __attribute__((always_inline))

INLINE void labels(const int K, int64_t first, int64_t last, const int32_t *code, const int64_t *start,
                   const double *table, double *counts, double *sums)
{
    double row[MOST] = {0.0};
    for (int64_t a = start[first]; a < start[last]; a++) {
        const double *from = table + (int64_t)code[a] * K;
        double *to = counts + (int64_t)code[a] * K;
        for (int k = 0; k < K; k++) {
            row[k] += from[k];
            to[k] += 1.0;
        }
    }
    for (int k = 0; k < K; k++)
        sums[k] = row[k];
}

INLINE void blocks(const int K, int64_t first, int64_t last, const int32_t *code, const int64_t *start,
                   const double *table, double *counts, double *sums)
{
    double score[BLOCK * MOST];
    for (int64_t block = first; block < last; block += BLOCK) {
        int n = last - block < BLOCK ? (int)(last - block) : BLOCK;
        for (int b = 0; b < n; b++) {
            double row[MOST] = {0.0};
            for (int64_t a = start[block + b], end = start[block + b + 1]; a < end; a++)
                for (int k = 0; k < K; k++)
                    row[k] += table[(int64_t)code[a] * K + k];
            for (int k = 0; k < K; k++)
                score[b * K + k] = row[k];
        }
        for (int b = 0; b < n; b++)
            for (int64_t a = start[block + b], end = start[block + b + 1]; a < end; a++)
                for (int k = 0; k < K; k++)
                    counts[(int64_t)code[a] * K + k] += score[b * K + k];
    }
    sums[0] = score[0];
}

#define FORM(name, form)                                                                                              \
    void name(int K, int64_t first, int64_t last, const int32_t *restrict code, const int64_t *restrict start,         \
              const double *restrict table, double *restrict counts, double *restrict sums)                            \
    {                                                                                                                  \
        switch (K) {                                                                                                   \
        case 2: form(2, first, last, code, start, table, counts, sums); break;                                         \
        case 3: form(3, first, last, code, start, table, counts, sums); break;                                         \
        case 4: form(4, first, last, code, start, table, counts, sums); break;                                         \
        case 5: form(5, first, last, code, start, table, counts, sums); break;                                         \
        case 8: form(8, first, last, code, start, table, counts, sums); break;                                         \
        case 16: form(16, first, last, code, start, table, counts, sums); break;                                       \
        case 50: form(50, first, last, code, start, table, counts, sums); break;                                       \
        default: form(K, first, last, code, start, table, counts, sums);                                               \
        }                                                                                                              \
    }
FORM(label_by_label, labels)
FORM(block_by_block, blocks)
