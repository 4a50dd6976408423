/*
 * The language of collective algorithms: a program says, chunk by chunk, what moves where and what is combined with what; the
 * compiler makes of it what each rank's blocks execute, and the checker proves the result before it may run. The language, its
 * rules and its words are those of GC3 (Cowan et al., "GC3: An Optimizing Compiler for GPU Collective Communication", 2022,
 * sections 3 and 5), in C.
 *
 * A ring all-reduce:
 *
 *     rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
 *     signature.name = "my-ring", signature.collective = "allreduce", signature.ranks = n, signature.chunks = n;
 *     signature.in_place = 1;
 *     rondo_program_create(&program, &signature);
 *     for (int r = 0; r < n; r++) {
 *         rondo_chunk_t c = rondo_chunk(program, (r + 1) % n, RONDO_BUFFER_INPUT, r, 1);
 *         for (int step = 2; step <= n; step++)
 *             c = rondo_chunk_reduce(rondo_chunk(program, (r + step) % n, RONDO_BUFFER_INPUT, r, 1), c);
 *         for (int step = 1; step < n; step++)
 *             c = rondo_chunk_copy(c, (r + step) % n, RONDO_BUFFER_INPUT, r);
 *     }
 *
 * Errors are sticky: the first wrong call is kept with its message, the calls after it do nothing, and rondo_program_check
 * returns it. A program belongs to one thread at a time. Conventions are otherwise those of rondo.h.
 */
#ifndef RONDO_PROGRAM_H
#define RONDO_PROGRAM_H

#include "rondo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_program_builder *rondo_program_t;

typedef enum { RONDO_BUFFER_INPUT = 0, RONDO_BUFFER_OUTPUT = 1, RONDO_BUFFER_SCRATCH = 2 } rondo_buffer_t;

typedef struct {
    const char *name;       /* by which rondo_attr_t.program calls it; letters, digits and -_. (63 at most) */
    const char *collective; /* "allreduce", "reduce", "bcast", "reduce_scatter", "allgather", "alltoall", "gather", "scatter",
                               "scan", "exscan", "alltonext", or "custom" */
    int ranks;
    int chunks; /* into so many chunks each block of the collective's arguments is cut: the whole buffer of an all-reduce,
                   reduce, bcast, scan, exscan and alltonext; one rank's block of the others. custom: ignored */
    int root;   /* of a rooted collective */
    /* 1: input and output are one buffer, as the collective's in-place form lays them out (of reduce_scatter, the output is the
     * first block). Such a program runs in place and out of place alike: no program ever changes the user's input buffer, and
     * what it writes to an input chunk lands in the output, or, where the rank has none, in scratch. 0: two buffers. */
    int in_place;
    int inputs, outputs; /* custom: chunks of every rank's buffers */
} rondo_program_signature_t;

#define RONDO_PROGRAM_SIGNATURE_DEFAULT                                                                                        \
    {                                                                                                                          \
        NULL, NULL, 0, 1, 0, 0, 0, 0                                                                                           \
    }

/* A reference to count chunks as they are now. Only the latest one for a place may be used: once any of its chunks has been
 * overwritten, it is stale, and using it is an error (GC3 section 3.3). */
typedef struct {
    rondo_program_t program;
    int rank;
    rondo_buffer_t buffer;
    uint32_t index, count;
    uint64_t stamp;
} rondo_chunk_t;

RONDO_API rondo_result_t rondo_program_create(rondo_program_t *program, const rondo_program_signature_t *signature);
/* What the program is for; the strings live as long as it does. Of one that was read from a file, chunks as the file's. */
RONDO_API rondo_result_t rondo_program_describe(rondo_program_t program, rondo_program_signature_t *signature);
/* NULL is let pass. A registered program is kept as long as its communicator needs it. */
RONDO_API void rondo_program_destroy(rondo_program_t program);

/* The chunks that are now at [index, index + count) of a rank's buffer. RONDO_ERR_ARGUMENT (sticky) if one is uninitialized or
 * does not exist. Scratch grows with use. */
RONDO_API rondo_chunk_t rondo_chunk(rondo_program_t program, int rank, rondo_buffer_t buffer, size_t index, size_t count);
/* Copies the chunks to [index, index + c.count) there, on the same rank or another. Returns a reference to the copy. */
RONDO_API rondo_chunk_t rondo_chunk_copy(rondo_chunk_t c, int rank, rondo_buffer_t buffer, size_t index);
/* c1 = c1 op c2, element by element; returns the new c1. The counts must be equal; the ranks need not be. */
RONDO_API rondo_chunk_t rondo_chunk_reduce(rondo_chunk_t c1, rondo_chunk_t c2);

/* Of the copies and reductions that follow: which of the parallel connections between two ranks they take (0 to 1023); -1:
 * chosen by the compiler. Operations on different channels run in different blocks where the device has them. */
RONDO_API void rondo_program_channel(rondo_program_t program, int channel);
/* Until the matching rondo_program_serialize: each operation becomes `factor` operations side by side, each on its part of the
 * data and on connections of its own (GC3 section 5.1). Nested, the factors multiply. 1 to 64. */
RONDO_API void rondo_program_parallelize(rondo_program_t program, int factor);
RONDO_API void rondo_program_serialize(rondo_program_t program);

/* custom: the output chunk of a rank must end up as the combination of count input chunks, (ranks[i], indexes[i]) each; of one,
 * as a copy of it. Output chunks that nobody asks for may hold anything. */
RONDO_API void rondo_program_require(rondo_program_t program, int rank, size_t output, int count, const int *ranks,
                                     const size_t *indexes);

/* What the device must offer for a program to be accepted; 0: Rondo's defaults. */
typedef struct {
    int slots;      /* of a connector (4) */
    int blocks;     /* of a rank (64; 512 at most) */
    int concurrent; /* blocks that run at the same time when preemption is off; 0: all are preemptible */
} rondo_program_limits_t;

/* Compiles and checks: the postcondition by symbolic execution, chunks read before they are written, races between blocks,
 * deadlock with the given slots and blocks, and the device's limits. RONDO_ERR_ARGUMENT with a message that names rank, block,
 * step and chunk. limits may be NULL. */
RONDO_API rondo_result_t rondo_program_check(rondo_program_t program, const rondo_program_limits_t *limits);

/* Makes the program available on the communicator by its name, and lets calls of its collective of min_bytes to max_bytes
 * (SIZE_MAX: no bound; max 0: by name only) use it, before anything built in, the latest registered first. Collective over
 * comm, with the same program on all ranks (else RONDO_ERR_MISMATCH); checked first. The program may be destroyed after it. */
RONDO_API rondo_result_t rondo_program_register(rondo_comm_t comm, rondo_program_t program, size_t min_bytes, size_t max_bytes);

/* Runs a registered custom program as a persistent operation (see rondo.h). count: elements a chunk. */
RONDO_API rondo_result_t rondo_custom_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                           rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);

/* MSCCL's XML. text need not be terminated. RONDO_ERR_ARGUMENT with line and reason for what is not such a program. The result
 * has not been checked. */
RONDO_API rondo_result_t rondo_program_read_xml(const char *text, size_t bytes, rondo_program_t *program);
/* *text becomes a terminated string, to be given to rondo_program_text_free. What MSCCL has no word for is refused. */
RONDO_API rondo_result_t rondo_program_write_xml(rondo_program_t program, char **text);
/* The compiled program for people: every rank's blocks and instructions; or its chunk DAG in Graphviz's language. */
RONDO_API rondo_result_t rondo_program_write_listing(rondo_program_t program, char **text);
RONDO_API rondo_result_t rondo_program_write_dot(rondo_program_t program, char **text);
RONDO_API void rondo_program_text_free(char *text);

/* The program that a built-in algorithm ("hierarchical", "tree", ...) is on so many ranks, chunks as its channels. */
RONDO_API rondo_result_t rondo_program_builtin(const char *algorithm, const char *collective, int ranks, int channels, int root,
                                               rondo_program_t *program);
/* The i-th built-in algorithm and collective, both NULL behind the last. */
RONDO_API void rondo_program_builtin_name(int i, const char **algorithm, const char **collective);

#ifdef __cplusplus
}
#endif
#endif
