/* Medians, and orders that differ from rank to rank. See tools/bench/bench.h. */
#include "tools/bench/bench.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

double bench_median(const double *values, int count)
{
    double sorted[BENCH_MEDIAN_MOST];
    memcpy(sorted, values, (size_t) count * sizeof(sorted[0]));
    qsort(sorted, (size_t) count, sizeof(sorted[0]), ascending);
    return count % 2 == 1 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

void bench_shuffle(int *order, int count, uint64_t *state)
{
    for (int i = count - 1; i > 0; i--) {
        int other = (int) (next_random(state) % (uint64_t) (i + 1)), retained = order[i];
        order[i] = order[other];
        order[other] = retained;
    }
}
