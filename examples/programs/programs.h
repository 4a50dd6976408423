/*
 * What the examples of GC3's programs share: ranks on hosts, rings of ranks, and the short names of the language that the paper
 * uses. Relies on rondo_program.h alone.
 */
#ifndef EXAMPLES_PROGRAMS_H
#define EXAMPLES_PROGRAMS_H

#include <rondo_program.h>
#include <stddef.h>

#define IN      RONDO_BUFFER_INPUT
#define OUT     RONDO_BUFFER_OUTPUT
#define SCRATCH RONDO_BUFFER_SCRATCH

/* Ranks on hosts: rank (n, g) is n * group + g. */
struct place {
    rondo_program_t program;
    int hosts, group, ranks;
};

/* count ranks: first, first + stride, ... */
struct ring {
    const struct place *place;
    int first, stride, count;
};

static inline rondo_chunk_t chunk(const struct place *p, int rank, rondo_buffer_t buffer, int index, int count)
{
    return rondo_chunk(p->program, rank, buffer, (size_t) index, (size_t) count);
}

static inline rondo_chunk_t copy(rondo_chunk_t c, int rank, rondo_buffer_t buffer, int index)
{
    return rondo_chunk_copy(c, rank, buffer, (size_t) index);
}

/* The rank at place i of the ring, around its end. */
static inline int ring_rank(const struct ring *r, int i)
{
    return r->first + i % r->count * r->stride;
}

/* GC3 figure 3b: chunks [offset + i * count, + count) of the inputs end combined at rank i of the ring. */
void reduce_scatter(const struct ring *ring, int offset, int count);
/* GC3 figure 3b: rank i of the ring gives chunks [offset + i * count, + count) of the buffer to all of the ring. */
void all_gather(const struct ring *ring, rondo_buffer_t buffer, int offset, int count);

/* The programs, a file each. */
void ring_all_reduce(const struct place *p);
void ring_channels(const struct place *p);
void ring_reduce_scatter(const struct place *p);
void ring_all_gather(const struct place *p);
void all_pairs(const struct place *p);
void hierarchical(const struct place *p);
void hierarchical_parallel(const struct place *p);
void recursive_doubling(const struct place *p);
void recursive_halving(const struct place *p);
void tree(const struct place *p);
void one_step_all_to_all(const struct place *p);
void two_step_all_to_all(const struct place *p);
void all_to_next(const struct place *p);

#endif
