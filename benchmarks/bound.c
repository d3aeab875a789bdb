/* The least an EM pass can do: read each label's row of the table, and add a row to its counts. */
#include <stdint.h>

void gather_scatter(int K, int64_t first, int64_t last, const int32_t *code, const double *table, double *counts,
                    double *sums)
{
    double row[64];
    for (int k = 0; k < K; k++)
        row[k] = 0.0;
#define BOUND(N)                                              \
    for (int64_t a = first; a < last; a++) {                  \
        const double *from = table + (int64_t)code[a] * N;    \
        double *to = counts + (int64_t)code[a] * N;           \
        for (int k = 0; k < N; k++) {                         \
            row[k] += from[k];                                \
            to[k] += 1.0;                                     \
        }                                                     \
    }
    if (K == 2) {
        BOUND(2)
    } else if (K == 8) {
        BOUND(8)
    } else {
        BOUND(K)
    }
    for (int k = 0; k < K; k++)
        sums[k] = row[k];
}
