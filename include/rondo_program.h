/**
 * @file rondo_program.h
 * The language of collective algorithms.
 *
 * A program says, chunk by chunk, what moves where and what is combined with what. The compiler makes of it what each rank's
 * blocks execute, and the verifier proves the result before it may run. The language, its rules and its words are those of GC3
 * (Cowan et al., "GC3: An Optimizing Compiler for GPU Collective Communication", 2022, sections 3 and 5), in C.
 *
 * A ring all-reduce:
 * @code
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
 * @endcode
 *
 * @par Conventions of programs
 * - Errors are sticky: the first wrong call's error and message are kept, the calls after it do nothing, and
 *   rondo_program_check() returns the error. A call with a handle of no program does nothing, and sets rondo_last_error().
 * - A program is used by one thread at a time. Functions of different programs may run at the same time.
 * - Otherwise the conventions are those of rondo.h.
 */
#ifndef RONDO_PROGRAM_H
#define RONDO_PROGRAM_H

#include "rondo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rondo_program_builder *rondo_program_t; /**< a program that is being written, or was read from a file */

/** Which of a rank's buffers a chunk is in (GC3 section 3.1, Buffers and Chunks). */
typedef enum { RONDO_BUFFER_INPUT = 0, RONDO_BUFFER_OUTPUT = 1, RONDO_BUFFER_SCRATCH = 2 } rondo_buffer_t;

/** What a program is for (GC3 section 3.2, Collective). */
typedef struct {
    const char *name;       /**< by which rondo_attr_t.program selects it: 1 to 63 letters, digits and -_. */
    const char *collective; /**< "allreduce", "reduce", "bcast", "reduce_scatter_block", "allgather", "alltoall", "gather",
                               "scatter", "scan", "exscan", "alltonext", or "custom" */
    int ranks;              /**< number of ranks */
    int chunks; /**< chunks that each block of the collective's arguments is cut into. The block is the whole buffer of an
                     allreduce, reduce, bcast, scan, exscan and alltonext, and one rank's block of the others. Ignored for
                     custom */
    int root;   /**< root of a rooted collective */
    /** 1: input and output are one buffer, as the collective's in-place form lays them out (of reduce_scatter_block, the output
     * is the first block). Such a program runs in place and out of place alike: a program never changes the user's input
     * buffer, and what it writes to an input chunk is stored in the output or, where the rank has none, in scratch. 0: two
     * buffers. */
    int in_place;
    int inputs, outputs;  /**< custom: chunks of every rank's input and output */
    const char *protocol; /**< "simple", "ll" or "ll128": what the program's connectors use where the ranks' links have it, as
                               RONDO_PROTOCOL, which wins; NULL: RONDO_PROTOCOL's, or chosen */
    const char *op; /**< the one operator of the calls that the program is for, as `rondo bench` names it; NULL: any. NULL for a
                         collective that reduces nothing */
    size_t min_bytes, max_bytes; /**< sizes of the calls that use the program unasked, within those that it is registered for;
                                      max_bytes 0: no bound */
} rondo_program_signature_t;

/** Static initializer of a rondo_program_signature_t. */
#define RONDO_PROGRAM_SIGNATURE_DEFAULT                                                                                        \
    {                                                                                                                          \
        NULL, NULL, 0, 1, 0, 0, 0, 0, NULL, NULL, 0, 0                                                                         \
    }

/** A reference to count chunks as they are now. Only the latest reference to a place may be used: once any of its chunks has
 * been overwritten the reference is stale, and using it is an error (GC3 section 3.3, GC3 Operations). */
typedef struct {
    rondo_program_t program;
    int rank;
    rondo_buffer_t buffer;
    uint32_t index, count;
    uint64_t stamp;
} rondo_chunk_t;

/**
 * Makes an empty program.
 *
 * @param program     becomes the program, to be given to rondo_program_destroy(); NULL on failure
 * @param signature   what the program is for; the strings are copied
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL or a field out of range, an unknown protocol or operator, an operator of a
 *                              collective that reduces nothing, or the collective has no in-place form
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 3.2, Collective.
 */
RONDO_API rondo_result_t rondo_program_create(rondo_program_t *program, const rondo_program_signature_t *signature);

/**
 * Tells what a program is for.
 *
 * @param program     program
 * @param signature   becomes its signature; the strings live as long as the program. chunks of one that was read from a file
 *                    are the file's
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_program_describe(rondo_program_t program, rondo_program_signature_t *signature);

/**
 * Frees a program.
 *
 * A registered program stays available on its communicators.
 *
 * @param program   program; NULL does nothing
 * @return Nothing.
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   Rondo's own.
 */
RONDO_API void rondo_program_destroy(rondo_program_t program);

/**
 * Refers to chunks as they are now.
 *
 * @param program   program
 * @param rank      rank that has them, 0 to ranks - 1
 * @param buffer    which of its buffers; scratch grows with use
 * @param index     number of the first chunk
 * @param count     number of chunks, 1 or more
 * @return A reference. Errors are sticky (see rondo_program_check()):
 * @retval RONDO_ERR_ARGUMENT   a chunk does not exist, or nothing has been written to it yet
 * @retval RONDO_ERR_STATE      the program was read from a file
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 3.3, GC3 Operations (chunk).
 */
RONDO_API rondo_chunk_t rondo_chunk(rondo_program_t program, int rank, rondo_buffer_t buffer, size_t index, size_t count);

/**
 * Copies chunks, to the same rank or another.
 *
 * @param c        what to copy; not a stale reference
 * @param rank     rank of the copy
 * @param buffer   buffer of the copy
 * @param index    number of the copy's first chunk; the copy does not overlap c
 * @return A reference to the copy. Errors are sticky (see rondo_program_check()):
 * @retval RONDO_ERR_ARGUMENT   c is stale or of another program, or the destination does not exist or overlaps c
 * @retval RONDO_ERR_STATE      the program was read from a file
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 3.3, GC3 Operations (copy).
 */
RONDO_API rondo_chunk_t rondo_chunk_copy(rondo_chunk_t c, int rank, rondo_buffer_t buffer, size_t index);

/**
 * Combines chunks, element by element: c1 becomes c1 op c2.
 *
 * @param c1   what is changed; not a stale reference
 * @param c2   what is combined with it, of as many chunks, on the same rank or another
 * @return A reference to the new c1. Errors are sticky (see rondo_program_check()):
 * @retval RONDO_ERR_ARGUMENT   a reference is stale or of another program, or the counts differ
 * @retval RONDO_ERR_STATE      the program was read from a file
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 3.3, GC3 Operations (reduce).
 */
RONDO_API rondo_chunk_t rondo_chunk_reduce(rondo_chunk_t c1, rondo_chunk_t c2);

/**
 * Sets the channel of the copies and reductions that follow.
 *
 * A channel is one of the parallel connections between two ranks. Operations on different channels run in different blocks
 * where the device has them.
 *
 * @param program   program
 * @param channel   0 to 1023; -1: chosen by the compiler
 * @return Nothing. Errors are sticky (see rondo_program_check()):
 * @retval RONDO_ERR_ARGUMENT   channel is out of range
 * @retval RONDO_ERR_STATE      the program was read from a file
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 5.1, DSL Scheduling Directives (channel).
 */
RONDO_API void rondo_program_channel(rondo_program_t program, int channel);

/**
 * Splits each operation that follows into several, until the matching rondo_program_serialize().
 *
 * Each of them works on its part of the data, on connections of its own. Nested, the factors multiply.
 *
 * @param program   program
 * @param factor    operations that each becomes, 1 to 64
 * @return Nothing. Errors are sticky (see rondo_program_check()):
 * @retval RONDO_ERR_ARGUMENT   factor is out of range, or too deeply nested
 * @retval RONDO_ERR_STATE      the program was read from a file
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 5.1, DSL Scheduling Directives (parallelize).
 */
RONDO_API void rondo_program_parallelize(rondo_program_t program, int factor);

/**
 * Ends the latest rondo_program_parallelize().
 *
 * @param program   program
 * @return Nothing. Errors are sticky (see rondo_program_check()):
 * @retval RONDO_ERR_ARGUMENT   no rondo_program_parallelize() is open
 * @retval RONDO_ERR_STATE      the program was read from a file
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 5.1, DSL Scheduling Directives (parallelize).
 */
RONDO_API void rondo_program_serialize(rondo_program_t program);

/**
 * Adds to a custom program's precondition: what one input chunk holds at the start.
 *
 * Without it input chunk i of rank r holds data of its own, named (r, i) here and in rondo_program_require(). With it the chunk
 * holds the combination of count such data: that of another chunk (a copy which the caller has put there), or a sum. With a
 * count of 0 it holds nothing that the program may read. A later call for the same chunk replaces an earlier one.
 *
 * @param program   a program whose collective is "custom", before its first operation, or read from a file
 * @param rank      rank of the input chunk
 * @param input     number of the input chunk
 * @param count     number of data, 0 or more
 * @param ranks     count entries: r of each; copied by the call
 * @param indexes   count entries: i of each; copied by the call
 * @return Nothing. Errors are sticky (see rondo_program_check()):
 * @retval RONDO_ERR_ARGUMENT   a chunk does not exist, an argument is out of range, or the program is not custom
 * @retval RONDO_ERR_STATE      the program has operations already
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 3.2, Collective (preconditions).
 */
RONDO_API void rondo_program_assume(rondo_program_t program, int rank, size_t input, int count, const int *ranks,
                                    const size_t *indexes);

/**
 * Adds to a custom program's postcondition: what one output chunk must be.
 *
 * The chunk must end up as the combination of count data of input chunks; of one, as a copy of it. Output chunks without a
 * requirement may hold anything. A program needs one requirement at least. A later call for the same chunk replaces an earlier
 * one.
 *
 * @param program   a program whose collective is "custom"
 * @param rank      rank of the output chunk
 * @param output    number of the output chunk
 * @param count     number of input chunks, 1 or more
 * @param ranks     count entries: rank of each input chunk; copied by the call
 * @param indexes   count entries: number of each input chunk; copied by the call
 * @return Nothing. Errors are sticky (see rondo_program_check()):
 * @retval RONDO_ERR_ARGUMENT   a chunk does not exist, an argument is out of range, or the program is not custom
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 3.2, Collective (custom collectives).
 */
RONDO_API void rondo_program_require(rondo_program_t program, int rank, size_t output, int count, const int *ranks,
                                     const size_t *indexes);

/** What the device must offer for a program to be accepted; 0: Rondo's defaults. */
typedef struct {
    int slots;      /**< slots of a connector (4) */
    int blocks;     /**< blocks of a rank (64; 512 at most) */
    int concurrent; /**< blocks that run at the same time when preemption is off; 0: all are preemptible */
} rondo_program_limits_t;

/**
 * Compiles and proves a program.
 *
 * Checks, by symbolic execution, that it computes the collective's result; that no chunk is read before it is written; that no
 * two blocks race; that it cannot deadlock with the given slots and blocks; and that it keeps the device's limits.
 *
 * @param program   program
 * @param limits    what the device offers; NULL: Rondo's defaults
 * @return RONDO_SUCCESS, the first error of the calls that made the program, or one of these:
 * @retval RONDO_ERR_ARGUMENT      the program is wrong; the message names rank, block, step and chunk. Or a limit is out of
 *                                 range
 * @retval RONDO_ERR_UNSUPPORTED   the program needs more than an engine's program can hold
 * @retval RONDO_ERR_MEMORY        out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 3.2, Collective (postconditions), and 4, Lowering GC3 Programs.
 */
RONDO_API rondo_result_t rondo_program_check(rondo_program_t program, const rondo_program_limits_t *limits);

/**
 * Makes a program available on a communicator, after checking it.
 *
 * Calls select it by its name (rondo_attr_t.program, RONDO_ALGORITHM). Calls of its collective whose size is in the given
 * range, and in the program's own, use it before anything built in, the latest registered first.
 *
 * @param comm        communicator of as many ranks as the program has
 * @param program     program, equal on all ranks; it may be destroyed after the call
 * @param min_bytes   smallest size of a call, in bytes as `rondo bench` counts them
 * @param max_bytes   largest size; SIZE_MAX: no bound; 0: by name only
 * @return RONDO_SUCCESS, an error of rondo_program_check(), or one of these:
 * @retval RONDO_ERR_ARGUMENT   comm or program is NULL, the number of ranks differs, or min_bytes is above max_bytes
 * @retval RONDO_ERR_STATE      comm has a program of that name and collective already
 * @retval RONDO_ERR_MISMATCH   ranks give different programs or sizes, or call different functions
 * @retval RONDO_ERR_PEER       a rank of comm has died or left
 * @retval RONDO_ERR_TIMEOUT    a rank of comm has not called for RONDO_TIMEOUT seconds
 * @ranks    Collective: all ranks of comm call it, in one order among the registrations of comm.
 * @threads  Any, in an order that is the same on all ranks.
 * @source   Rondo's own; GC3 section 6, GC3 Runtime (programs selected by size).
 */
RONDO_API rondo_result_t rondo_program_register(rondo_comm_t comm, rondo_program_t program, size_t min_bytes, size_t max_bytes);

/**
 * Runs a registered custom program.
 *
 * It has been proved when it was registered. Input chunk i is elements i * count and on of send, output chunk i those of recv.
 * What send holds is the caller's promise: rondo_program_assume() says what the program counts on.
 *
 * @param program   name of the program
 * @param send      the program's input: inputs * count elements
 * @param recv      the program's output: outputs * count elements, which do not overlap send
 * @param count     elements of one chunk, equal on all ranks
 * @param type      datatype of the elements
 * @param op        operator of the program's reductions; not RONDO_AVG
 * @param comm      communicator with which the program is registered
 * @forms
 * @retval RONDO_ERR_ARGUMENT      program is NULL, or attr names another one
 * @retval RONDO_ERR_UNSUPPORTED   no custom program of that name is registered with comm
 * @ranks    All ranks of comm, with equal program, count, type and op.
 * @source   GC3 section 7.4, Custom Collectives; MPI-4.1 section 6.13, Persistent Collective Operations.
 */
/**@{*/
RONDO_API rondo_result_t rondo_program_run(const char *program, const void *send, void *recv, size_t count,
                                           rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iprogram_run(const char *program, const void *send, void *recv, size_t count,
                                            rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_program_run_init(const char *program, const void *send, void *recv, size_t count,
                                                rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm,
                                                const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_program_run_on_stream(const char *program, const void *send, void *recv, size_t count,
                                                     rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Reads a program in MSCCL's XML.
 *
 * The result has not been checked: see rondo_program_check(). A file whose coll is "custom" does not say what it computes:
 * rondo_program_assume() and rondo_program_require() do. Its inputs and outputs are the most i_chunks and o_chunks of a rank.
 * proto, redop, minBytes and maxBytes become fields of the signature. Of a file with outofplace="0", calls with two buffers do
 * not use the program. Any other attribute means what it means to MSCCL, or is refused with its value.
 *
 * @param text      the file's content, which need not be terminated
 * @param bytes     its size
 * @param program   becomes the program, to be given to rondo_program_destroy(); NULL on failure
 * @retval RONDO_ERR_ARGUMENT   the text is not such a program; the message has the line and the reason. Or an argument is NULL
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   The schema of MSCCL's algorithms, as msccl-tools writes it.
 */
RONDO_API rondo_result_t rondo_program_read_xml(const char *text, size_t bytes, rondo_program_t *program);

/**
 * Writes a compiled program as MSCCL's XML.
 *
 * @param program   program
 * @param text      becomes a terminated string, to be given to rondo_program_text_free(); NULL on failure
 * @return RONDO_SUCCESS, an error of rondo_program_check(), or one of these:
 * @retval RONDO_ERR_ARGUMENT      an argument is NULL
 * @retval RONDO_ERR_UNSUPPORTED   MSCCL's schema has no word for the collective or an instruction
 * @retval RONDO_ERR_MEMORY        out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   The schema of MSCCL's algorithms, as msccl-tools reads it.
 */
RONDO_API rondo_result_t rondo_program_write_xml(rondo_program_t program, char **text);

/**
 * Writes a compiled program for people: every rank's blocks and instructions.
 *
 * @param program   program
 * @param text      becomes a terminated string, to be given to rondo_program_text_free(); NULL on failure
 * @return RONDO_SUCCESS, an error of rondo_program_check(), or one of these:
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_program_write_listing(rondo_program_t program, char **text);

/**
 * Writes a program's chunk DAG in the language of Graphviz.
 *
 * @param program   program
 * @param text      becomes a terminated string, to be given to rondo_program_text_free(); NULL on failure
 * @return RONDO_SUCCESS, an error of rondo_program_check(), or one of these:
 * @retval RONDO_ERR_ARGUMENT      an argument is NULL
 * @retval RONDO_ERR_UNSUPPORTED   the program was read from a file, which has its schedule and no DAG
 * @retval RONDO_ERR_MEMORY        out of memory
 * @ranks    None: the call is local.
 * @threads  Any; one thread at a time for one program.
 * @source   GC3 section 4.1, Tracing (the chunk DAG).
 */
RONDO_API rondo_result_t rondo_program_write_dot(rondo_program_t program, char **text);

/**
 * Frees a string of rondo_program_write_xml(), rondo_program_write_listing() or rondo_program_write_dot().
 *
 * @param text   string; NULL does nothing
 * @return Nothing.
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API void rondo_program_text_free(char *text);

/**
 * Gives the program that a built-in algorithm is.
 *
 * @param algorithm    name of the algorithm, for example "hierarchical" or "tree"
 * @param collective   name of the collective, for example "allreduce"
 * @param ranks        number of ranks, 2 or more
 * @param channels     parallel connections between two ranks, 1 to 64
 * @param root         root of a rooted collective
 * @param program      becomes the program, to be given to rondo_program_destroy(); NULL on failure. It has as many chunks as
 *                     its channels need
 * @retval RONDO_ERR_ARGUMENT      a NULL, or a number out of range
 * @retval RONDO_ERR_UNSUPPORTED   there is no such program for the collective
 * @retval RONDO_ERR_MEMORY        out of memory
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_program_builtin(const char *algorithm, const char *collective, int ranks, int channels, int root,
                                               rondo_program_t *program);

/**
 * Lists the built-in programs.
 *
 * @param i            0, 1, 2, ...
 * @param algorithm    becomes the algorithm's name for rondo_program_builtin(); NULL behind the last one
 * @param collective   becomes the collective's name; NULL behind the last one
 * @return Nothing.
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API void rondo_program_builtin_name(int i, const char **algorithm, const char **collective);

#ifdef __cplusplus
}
#endif
#endif
