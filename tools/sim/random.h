/* Random numbers of the simulator: xoshiro256++, seeded by counter, so that each round has a stream of its own. */
#ifndef RONDO_TOOLS_SIM_RANDOM_H
#define RONDO_TOOLS_SIM_RANDOM_H

#include <math.h>
#include <stdint.h>

struct sim_random {
    uint64_t s[4];
};

static inline uint64_t sim_mix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline struct sim_random sim_random_seed(uint64_t seed, uint64_t stream)
{
    struct sim_random random;
    uint64_t state = seed;
    state = sim_mix(&state) ^ stream;
    for (int i = 0; i < 4; i++)
        random.s[i] = sim_mix(&state);
    return random;
}

static inline uint64_t sim_random_next(struct sim_random *random)
{
    uint64_t *s = random->s, sum = s[0] + s[3];
    uint64_t result = ((sum << 23) | (sum >> 41)) + s[0], shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* In (0, 1]. */
static inline double sim_random_unit(struct sim_random *random)
{
    return (double) ((sim_random_next(random) >> 11) + 1) * 0x1p-53;
}

/* How many times in a row something of probability p does not happen before it does. log_miss: log1p(-p), less than 0. */
static inline uint64_t sim_random_misses(struct sim_random *random, double log_miss)
{
    if (log_miss == 0)
        return UINT64_MAX; /* it never does */
    double misses = floor(log(sim_random_unit(random)) / log_miss);
    return misses >= 0x1p63 ? UINT64_MAX : (uint64_t) misses;
}

#endif
