/* A small generator of random numbers (splitmix64), so that a seed gives the same run everywhere. */
#ifndef EXAMPLES_RANDOM_H
#define EXAMPLES_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In [-1, 1). */
static inline float random_symmetric(uint64_t *state)
{
    return (float) (random_next(state) >> 40) * 0x1p-23f - 1.0f;
}

static inline void random_shuffle(int *values, int count, uint64_t *state)
{
    for (int i = count - 1; i > 0; i--) {
        const int j = (int) (random_next(state) % ((uint64_t) i + 1));
        const int value = values[i];
        values[i] = values[j];
        values[j] = value;
    }
}

#endif
