/**
 * @file rondo.h
 * Rondo: a collective-communication runtime in which ranks may start collectives in any order.
 *
 * @par Conventions
 * Each function below keeps these, unless its comment says otherwise.
 * - It returns RONDO_SUCCESS (0) or an error code. rondo_strerror() names a code; rondo_last_error() gives the calling
 *   thread's last message, with the values that were wrong.
 * - No function exits or aborts the process.
 * - Any thread may call any function on any runtime, at any time. An object must not be used while another thread frees it.
 * - Counts and displacements are in elements of the given datatype; sizes are in bytes.
 * - A communication buffer is memory of the runtime's device, aligned to its datatype. The host device takes any memory of the
 *   process. A CUDA device takes memory of its own GPU, managed memory, and pinned host memory.
 * - A buffer belongs to the operation from its start to its completion: a send buffer must not change, and a receive buffer
 *   must be neither read nor changed.
 * - A call that fails its argument checks sends nothing to other ranks.
 * - A handle (rondo_t, rondo_comm_t, rondo_request_t, rondo_program_t) is a number that the library checks, and not an address.
 *   In place of a handle of the right kind, NULL, any other pointer, a handle of another kind and a freed runtime's,
 *   communicator's or program's are RONDO_ERR_ARGUMENT, a freed request's RONDO_ERR_STATE, and the message names the function.
 *
 * @par Forked processes
 * In a process that was forked while its parent had a runtime, every function that takes a handle, or makes or frees one or an
 * operator, is RONDO_ERR_STATE and does nothing else: threads, connections and memory of the runtime are the parent's. The
 * child's end does not disturb the parent, and the parent's death is noticed by the other ranks while the child lives: fork
 * closes the library's sockets in the child (not in one that vfork, posix_spawn or clone makes, until it executes). A program
 * that the child executes (exec) may call any function, and so may a child of a process that had no runtime at the fork.
 *
 * @par Matching
 * Blocking and nonblocking collectives of one communicator match in call order on all of its ranks (MPI-4.1 sections 6.12 and
 * 6.14, Nonblocking Collective Operations and Correctness). Persistent collectives match at their init call, which all ranks
 * make in one order (section 6.13, Persistent Collective Operations); after that, each rank may start them in any order. A
 * send matches a receive in the order of the calls for one communicator, source and destination (section 3.5, Semantics of
 * Point-to-Point Communication). A collective with a count that all ranks give, and that is 0 (or all 0, where all ranks give
 * the counts of all), is over as soon as it is called: it waits for no other rank, and only RONDO_CHECK=1 compares it.
 */
#ifndef RONDO_H
#define RONDO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The version of the interface. The shared library's name for the loader (SONAME) is librondo.so.MAJOR.MINOR while MAJOR is 0:
 * each minor version may change the interface, and a program runs with the minor version it was linked to. From 1.0 on it is
 * librondo.so.MAJOR: a minor version then only adds, under a symbol version of its own (make/librondo.map), and a program runs
 * with each later minor version. PATCH changes no interface.
 */
#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 2
#define RONDO_VERSION_PATCH 0

#if defined(__GNUC__)
#define RONDO_API __attribute__((visibility("default")))
#else
#define RONDO_API
#endif

/** What a function returns. */
typedef enum {
    RONDO_SUCCESS = 0,
    RONDO_ERR_ARGUMENT = 1,  /**< an argument is NULL, out of range or unknown */
    RONDO_ERR_BUFFER = 2,    /**< a buffer is NULL, misaligned, overlapping, or memory of another device */
    RONDO_ERR_STATE = 3,     /**< the object is not in a state that allows the call: for example an active or a freed request */
    RONDO_ERR_MEMORY = 4,    /**< out of memory, or over the memory budget */
    RONDO_ERR_SYSTEM = 5,    /**< a system call failed */
    RONDO_ERR_BOOTSTRAP = 6, /**< ranks did not find each other, or did not prove the secret */
    RONDO_ERR_TRANSPORT = 7, /**< no transport connects two ranks, or one failed */
    RONDO_ERR_PEER = 8,      /**< a rank that the operation needs has died or left */
    RONDO_ERR_TIMEOUT = 9,   /**< stuck for longer than the timeout; the hang report has been logged */
    RONDO_ERR_MISMATCH = 10, /**< ranks disagree about a call */
    RONDO_ERR_ABORTED = 11,  /**< some rank called rondo_comm_abort() */
    RONDO_ERR_UNSUPPORTED = 12, /**< this device, build or combination of arguments does not offer it */
    RONDO_ERR_DEVICE = 13,      /**< the device reported an error */
    RONDO_ERR_INTERNAL = 14,    /**< a broken invariant of the library; please report it */
    RONDO_ERR_REVOKED = 15      /**< some rank called rondo_comm_revoke() */
} rondo_result_t;

/** Type of a buffer's elements (MPI-4.1 section 3.2.2, Message Data). A buffer is aligned as C aligns the type; a complex
 * number is two floats or doubles, real part first. A pair is a C struct of a value and an int, its index (MPI-4.1
 * section 6.9.4, MINLOC and MAXLOC), and aligned as that is. Values beyond RONDO_DATATYPE_COUNT are of rondo_type_create(). A
 * GPU moves every type. It does not combine RONDO_LONG_DOUBLE, pairs and types of rondo_type_create(), nor multiply complex
 * numbers: such a call is RONDO_ERR_UNSUPPORTED on all ranks of a communicator with a GPU. */
typedef enum {
    RONDO_INT8 = 0,
    RONDO_UINT8 = 1,
    RONDO_INT32 = 2,
    RONDO_UINT32 = 3,
    RONDO_INT64 = 4,
    RONDO_UINT64 = 5,
    RONDO_FLOAT16 = 6,     /**< IEEE 754 binary16 */
    RONDO_BFLOAT16 = 7,    /**< the upper half of a binary32 */
    RONDO_FLOAT = 8,       /**< IEEE 754 binary32 */
    RONDO_DOUBLE = 9,      /**< IEEE 754 binary64 */
    RONDO_FLOAT8E4M3 = 10, /**< OCP 8-bit: no infinities; NaN is 0x7f and 0xff */
    RONDO_FLOAT8E5M2 = 11, /**< OCP 8-bit, with infinities */
    RONDO_INT16 = 12,
    RONDO_UINT16 = 13,
    RONDO_BOOL = 14,            /**< one byte, 0 or 1: C's _Bool */
    RONDO_COMPLEX_FLOAT = 15,   /**< float _Complex */
    RONDO_COMPLEX_DOUBLE = 16,  /**< double _Complex */
    RONDO_LONG_DOUBLE = 17,     /**< long double: 80 bits in 16 bytes on x86; results have zeros in the rest */
    RONDO_FLOAT_INT = 18,       /**< struct { float value; int index; }; results have zeros in a pair's padding */
    RONDO_DOUBLE_INT = 19,      /**< struct { double value; int index; } */
    RONDO_LONG_INT = 20,        /**< struct { long value; int index; } */
    RONDO_2INT = 21,            /**< struct { int value; int index; } */
    RONDO_SHORT_INT = 22,       /**< struct { short value; int index; } */
    RONDO_LONG_DOUBLE_INT = 23, /**< struct { long double value; int index; } */
    RONDO_DATATYPE_COUNT = 24,
    RONDO_DATATYPE_NONE = 0x7fffffff /**< no type */
} rondo_datatype_t;

/** Operator of a reduction (MPI-4.1 section 6.9.2, Predefined Reduction Operations). Sums and products of integers wrap. The
 * logical operators take integers, floats and RONDO_BOOL: non-zero is true, and the result is 0 or 1. The bitwise operators
 * take integers only; RONDO_BOOL takes logical ones alone, complex numbers RONDO_SUM, RONDO_PROD and RONDO_AVG, pairs
 * RONDO_MINLOC and RONDO_MAXLOC, and a type of rondo_type_create() the operators of rondo_op_create(), which take every type
 * and have values beyond RONDO_OP_COUNT. */
typedef enum {
    RONDO_SUM = 0,
    RONDO_PROD = 1,
    RONDO_MIN = 2,
    RONDO_MAX = 3,
    RONDO_AVG = 4,     /**< the sum divided by the number of ranks; integers truncate towards zero */
    RONDO_LAND = 5,    /**< logical and */
    RONDO_LOR = 6,     /**< logical or */
    RONDO_LXOR = 7,    /**< logical exclusive or */
    RONDO_BAND = 8,    /**< bitwise and */
    RONDO_BOR = 9,     /**< bitwise or */
    RONDO_BXOR = 10,   /**< bitwise exclusive or */
    RONDO_MINLOC = 11, /**< the least value and its index; the lowest index of equal values. A NaN is less than all values */
    RONDO_MAXLOC =
        12, /**< the largest value and its index; the lowest index of equal values. A NaN is larger than all values */
    RONDO_OP_COUNT = 13,
    RONDO_OP_NONE = 0x7fffffff /**< no operator: what rondo_op_free() leaves */
} rondo_op_t;

/** What executes a runtime's operations. AUTO: a GPU where there is one, else host threads. */
typedef enum { RONDO_DEVICE_AUTO = 0, RONDO_DEVICE_HOST = 1, RONDO_DEVICE_CUDA = 2 } rondo_device_t;

/** As the send buffer: the input is in the receive buffer, in the layout that the collective's comment gives (MPI-4.1
 * section 6.2.2, Specifics for Intra-Communicator Collective Operations). */
#define RONDO_IN_PLACE ((void *) -1)

typedef struct rondo_runtime *rondo_t;         /**< one rank on one device */
typedef struct rondo_comm *rondo_comm_t;       /**< a communicator: ranks that communicate, numbered from 0 */
typedef struct rondo_request *rondo_request_t; /**< an operation that was started, or a persistent one */

/** Opaque: where the ranks of a job meet, and the secret that they prove to each other. See rondo_get_unique_id(). */
typedef struct {
    unsigned char bytes[128];
} rondo_unique_id_t;

/**
 * Names an error code.
 *
 * @param code   a rondo_result_t; any other number is "unknown error code"
 * @return A string of the library, valid for ever; never NULL.
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 9.3, Error Handling (MPI_Error_string).
 */
RONDO_API const char *rondo_strerror(int code);

/**
 * Gives the message of the calling thread's last failed call.
 *
 * The message names the function and the values that were wrong. A call that succeeds does not clear it.
 *
 * @return A string of the library, valid until the next failed call of this thread; empty if none has failed; never NULL.
 * @ranks    None: the call is local.
 * @threads  Any; each thread has a message of its own.
 * @source   Rondo's own; ncclGetLastError() of NCCL is similar.
 */
RONDO_API const char *rondo_last_error(void);

/**
 * Gives the size of a datatype's element.
 *
 * @param type    a datatype
 * @param bytes   becomes the bytes of one element
 * @retval RONDO_ERR_ARGUMENT   type is unknown, or bytes is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 5.1.5, Address and Size Functions (MPI_Type_size).
 */
RONDO_API rondo_result_t rondo_datatype_size(rondo_datatype_t type, size_t *bytes);

/* ---- types and operators of the user
 * ---------------------------------------------------------------------------------------*/

/** Bytes of the largest element that an operator combines. Larger ones may be moved. */
#define RONDO_COMBINED_BYTES_MAX 16384

/**
 * Gives the datatype of elements of so many bytes, of which the library knows the size alone.
 *
 * Every collective moves them; only operators of rondo_op_create() combine them. Types of equal size are equal, on all ranks
 * and in all processes: they are a number, and hold no memory. Buffers of them need no alignment for the library.
 *
 * @param bytes   size of an element, 1 to 2^29
 * @param type    becomes the type, for rondo_type_free(); RONDO_DATATYPE_NONE on failure
 * @retval RONDO_ERR_ARGUMENT   bytes is out of range, or type is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 5.1.2, Datatype Constructors (MPI_Type_contiguous).
 */
RONDO_API rondo_result_t rondo_type_create(size_t bytes, rondo_datatype_t *type);

/**
 * Frees a datatype of rondo_type_create().
 *
 * Operations that use it are not disturbed.
 *
 * @param type   the type; becomes RONDO_DATATYPE_NONE
 * @retval RONDO_ERR_ARGUMENT   type is NULL, or *type is not of rondo_type_create()
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 5.1.9, Commit and Free (MPI_Type_free).
 */
RONDO_API rondo_result_t rondo_type_free(rondo_datatype_t *type);

/**
 * An operator of the user: inout[i] = in[i] op inout[i] for each i below count (MPI-4.1 section 6.9.5, User-Defined Reduction
 * Operations). in is the contribution of lower ranks.
 *
 * It must be associative, must not call the library, and may be called by any thread of the process, the library's own
 * included, by several at once, and with any part of the elements. in and inout do not overlap, and are aligned as C aligns
 * objects of that size, up to 16 bytes.
 *
 * @param in         elements that it must not change
 * @param inout      elements that it replaces
 * @param count      number of elements, at least 1
 * @param type       the call's datatype
 * @param argument   of rondo_op_create_with(); NULL of rondo_op_create()
 */
typedef void rondo_op_function_t(const void *in, void *inout, size_t count, rondo_datatype_t type, void *argument);

/**
 * Makes an operator of a function, for any collective that has one. Operators of the user run on host devices.
 *
 * The result is a0 op a1 op ... op an-1, the contributions in the order of ranks if commutative is 0, with any association, and
 * the same bits on every rank that gets it. Each rank gives an operator that it has made itself, with equal commutative; which
 * function that is the library does not compare. In one collective, all ranks use such an operator or none does. With
 * commutative 0, programs that were registered with the communicator (rondo_program.h) are not used, and an algorithm that is
 * asked for and does not keep the order is RONDO_ERR_UNSUPPORTED.
 *
 * @param function      the function
 * @param commutative   1: a op b is b op a, and the library may combine in any order; 0: in the order of ranks
 * @param op            becomes the operator, for rondo_op_free(); RONDO_OP_NONE on failure
 * @retval RONDO_ERR_ARGUMENT   function or op is NULL, or commutative is neither 0 nor 1
 * @retval RONDO_ERR_MEMORY     out of memory, or 65536 operators exist
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 6.9.5, User-Defined Reduction Operations (MPI_Op_create).
 */
RONDO_API rondo_result_t rondo_op_create(rondo_op_function_t *function, int commutative, rondo_op_t *op);

/**
 * As rondo_op_create(), of a function with an argument.
 *
 * @param function      the function
 * @param argument      given to each call of the function. What it points to must live until the operator has been freed, all
 *                      operations with it have completed, and all persistent ones have been freed
 * @param commutative   as in rondo_op_create()
 * @param op            becomes the operator
 * @retval RONDO_ERR_ARGUMENT   function or op is NULL, or commutative is neither 0 nor 1
 * @retval RONDO_ERR_MEMORY     out of memory, or 65536 operators exist
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own; MPI_Op_create_c() of MPI has no argument.
 */
RONDO_API rondo_result_t rondo_op_create_with(rondo_op_function_t *function, void *argument, int commutative, rondo_op_t *op);

/**
 * Frees an operator of rondo_op_create() or rondo_op_create_with().
 *
 * Calls with it are RONDO_ERR_ARGUMENT from then on. Operations that were made before, persistent ones included, go on to use
 * its function.
 *
 * @param op   the operator; becomes RONDO_OP_NONE
 * @retval RONDO_ERR_ARGUMENT   op is NULL, or *op is none, was freed before, or is built in
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 6.9.5, User-Defined Reduction Operations (MPI_Op_free).
 */
RONDO_API rondo_result_t rondo_op_free(rondo_op_t *op);

/**
 * Tells whether an operator is commutative.
 *
 * @param op            an operator
 * @param commutative   becomes 1 or 0; built-in operators are commutative
 * @retval RONDO_ERR_ARGUMENT   op is unknown or was freed, or commutative is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 6.9.5, User-Defined Reduction Operations (MPI_Op_commutative).
 */
RONDO_API rondo_result_t rondo_op_commutative(rondo_op_t op, int *commutative);

/* ---- runtime --------------------------------------------------------------------------------------------------------------*/

/** How a runtime is made. A field that is left at its value in RONDO_CONFIG_DEFAULT is taken from the environment, else it is
 * the default that `rondo info` prints; an empty text counts as left. A field may have the values that its variable may
 * have (rondo_environment_describe()). The scheduling fields (check to residency_us) must be equal on all ranks. */
typedef struct {
    int rank, size; /**< 0 to size - 1, and the number of ranks; -1: from the environment. Set both or none */
    const rondo_unique_id_t *unique_id; /**< where the ranks meet, unique_ids of them; NULL: as the environment says */
    rondo_device_t device;              /**< what executes the operations */
    int device_index;                   /**< number of the GPU; -1: by the rank on its host */
    const char *transports;             /**< comma-separated names in order of preference; NULL: all */
    const char *host_id;                /**< ranks with different ids do not share memory; NULL: this host's */
    double timeout;                     /**< seconds until a stuck operation is reported and fails; 0: never; -1: environment */
    int check;                          /**< 1: every call is compared across ranks; 0: not; -1: environment */
    int preempt;           /**< 0: a stuck operation is never preempted (for comparison only); 1: it is; -1: environment */
    int blocks;            /**< blocks that the daemon runs; 0: by the device's cores; -1: environment */
    int stream_blocks;     /**< largest number of blocks of one operation on a stream; 0: chosen; -1: environment */
    int sm;                /**< most multiprocessors of a GPU to take; 0: copy engines where they can; -1: environment */
    const char *order;     /**< order of the task table: "fifo" or "priority"; NULL: environment */
    const char *spin;      /**< how the spin budgets are chosen: "fixed", "adaptive" or "profile"; NULL: environment */
    int64_t spin_initial;  /**< nanoseconds that a wait of the table's first task may take; 0: by the device; -1: environment */
    int spin_decay;        /**< percentage of a task's time that the next task of the table is granted; -1: environment */
    int spin_boost;        /**< factor by which a successful primitive multiplies its task's time; -1: environment */
    int64_t spin_cap;      /**< most nanoseconds that progress raises a task's time to; 0: by the device; -1: environment */
    int64_t quit_idle_us;  /**< microseconds without work after which the daemon quits; -1: environment */
    int64_t quit_stuck_us; /**< microseconds without progress after which the daemon quits; -1: environment */
    int64_t residency_us;  /**< microseconds after which the daemon quits in any case; -1: environment */
    int64_t memory_budget; /**< bytes of connector memory that this rank may reserve; -1: environment */
    double connect_timeout; /**< seconds to wait until all ranks are connected; -1: environment */
    int unique_ids;         /**< ids at unique_id, 1 to size and at most 4,096, the same and in the same order on all ranks: the
                             * ranks are shared out among their roots in contiguous shares, so that none takes in all */
} rondo_config_t;

/** Static initializer of a rondo_config_t. */
#define RONDO_CONFIG_DEFAULT                                                                                                   \
    {                                                                                                                          \
        -1, -1, NULL, RONDO_DEVICE_AUTO, -1, NULL, NULL, -1.0, -1, -1, -1, -1, -1, NULL, NULL, -1, -1, -1, -1, -1, -1, -1, -1, \
            -1.0, 1                                                                                                            \
    }

/**
 * Makes a runtime: one rank on one device.
 *
 * Blocks until all ranks of the job are connected. A process may hold several runtimes, for example one a thread or one a GPU.
 *
 * @param rt       becomes the runtime, to be given to rondo_finalize(); NULL on failure
 * @param config   see rondo_config_t; it and its strings are read by the call alone. NULL: everything from the environment
 * @retval RONDO_ERR_ARGUMENT      a field or an environment variable is out of range, or rt is NULL
 * @retval RONDO_ERR_BOOTSTRAP     not all ranks connected within connect_timeout (the message names the missing ranks), or one
 *                                 did not prove the secret
 * @retval RONDO_ERR_TRANSPORT     a transport that was asked for is not usable, or none connects two ranks
 * @retval RONDO_ERR_UNSUPPORTED   RONDO_DEVICE_CUDA without a GPU, or a build without CUDA
 * @retval RONDO_ERR_MEMORY        out of memory
 * @retval RONDO_ERR_SYSTEM        a system call failed
 * @retval RONDO_ERR_DEVICE        the GPU reported an error
 * @retval RONDO_ERR_STATE         this process was forked while its parent had a runtime
 * @ranks    Collective: all ranks of the job call it, with equal size and scheduling fields. It succeeds on all or on none: a
 *           rank that cannot go on tells the others why, who then fail with its error code and rank.
 * @threads  Any; each rank in a thread of its own if one process holds several ranks, because the call blocks.
 * @source   MPI-4.1 section 11.2, The World Model (MPI_Init); ncclCommInitRank() of NCCL.
 */
RONDO_API rondo_result_t rondo_init(rondo_t *rt, const rondo_config_t *config);

/**
 * Ends a runtime.
 *
 * Frees its requests, communicators and memory. Ranks whose world communicator has not failed wait for each other, so that no
 * rank leaves while another needs it, for at most RONDO_TIMEOUT seconds if that is set. After a
 * failure no rank waits for another, but for two seconds to be heard when it says that it leaves.
 *
 * @param rt   the runtime; if the call succeeds, it and the handles of its communicators and requests stand for nothing
 * @retval RONDO_ERR_ARGUMENT   rt is NULL, or has been finalized
 * @retval RONDO_ERR_STATE      an operation on a communicator that has not failed has not completed; the runtime stays as it is
 * @ranks    Collective over the job, unless the world communicator has failed.
 * @threads  Any; no other thread may use the runtime during the call or after it.
 * @source   MPI-4.1 section 11.2, The World Model (MPI_Finalize).
 */
RONDO_API rondo_result_t rondo_finalize(rondo_t rt);

/**
 * Makes a meeting place for one job in this process, and writes its id.
 *
 * Give the id to all ranks of the job by any private means: it holds a secret. A thread of the library serves the meeting
 * place, and ends when all ranks have left. If RONDO_ROOT is set, its host is the address that the other hosts use.
 *
 * @param id   becomes the id, for rondo_config_t.unique_id together with rank and size
 * @retval RONDO_ERR_ARGUMENT   id is NULL, or an environment variable does not parse
 * @retval RONDO_ERR_SYSTEM     a socket or thread could not be made
 * @retval RONDO_ERR_STATE      this process was forked while its parent had a runtime
 * @ranks    One process calls it; the ranks are given the id.
 * @threads  Any.
 * @source   ncclGetUniqueId() of NCCL.
 */
RONDO_API rondo_result_t rondo_get_unique_id(rondo_unique_id_t *id);

/**
 * Tells which kind of device the runtime is on.
 *
 * @param rt       runtime
 * @param device   becomes RONDO_DEVICE_HOST or RONDO_DEVICE_CUDA
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_device(rondo_t rt, rondo_device_t *device);

/**
 * Tells which GPU the runtime is on.
 *
 * @param rt      runtime
 * @param index   becomes the GPU's number as CUDA counts in this process; -1 on the host device
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   ncclCommCuDevice() of NCCL.
 */
RONDO_API rondo_result_t rondo_device_index(rondo_t rt, int *index);

/**
 * Allocates memory of the device that transports can access directly.
 *
 * @param rt       runtime
 * @param bytes    size of the memory
 * @param memory   becomes its address, aligned to 64 bytes or more; NULL on failure
 * @retval RONDO_ERR_ARGUMENT   rt or memory is NULL, or bytes is more than an object can have
 * @retval RONDO_ERR_MEMORY     out of memory: more than the machine's memory and swap have, or than a limit of the process (of
 *                              its address space, or on the host device of file sizes) allows
 * @retval RONDO_ERR_SYSTEM     a system call failed
 * @retval RONDO_ERR_DEVICE     the GPU reported an error
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 9.2, Memory Allocation (MPI_Alloc_mem); ncclMemAlloc() of NCCL.
 */
RONDO_API rondo_result_t rondo_alloc(rondo_t rt, size_t bytes, void **memory);

/**
 * Frees memory of rondo_alloc().
 *
 * No operation may use the memory any more, and it must not be registered (rondo_comm_deregister()).
 *
 * @param rt       the runtime that allocated it
 * @param memory   what rondo_alloc() gave; NULL does nothing
 * @retval RONDO_ERR_ARGUMENT   rt is NULL
 * @retval RONDO_ERR_BUFFER     memory is not from rondo_alloc() on this runtime
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 9.2, Memory Allocation (MPI_Free_mem).
 */
RONDO_API rondo_result_t rondo_free(rondo_t rt, void *memory);

/**
 * Waits until the device is idle, as cudaDeviceSynchronize() does.
 *
 * On the host device it waits until the daemon has quit. Operations that were started but cannot finish yet do not delay it:
 * the daemon is preempted and leaves.
 *
 * @param rt   runtime
 * @retval RONDO_ERR_ARGUMENT   rt is NULL
 * @retval RONDO_ERR_DEVICE     the GPU reported an error
 * @ranks    None: the call is local, and does not wait for other ranks.
 * @threads  Any.
 * @source   DFCCL section 4.4, Voluntary Quitting and Event-driven Starting; cudaDeviceSynchronize() of CUDA.
 */
RONDO_API rondo_result_t rondo_device_synchronize(rondo_t rt);

/** Counts since rondo_init(), of this rank. */
typedef struct {
    uint64_t submitted, completed;         /**< operations given to the device, and those of them that have completed */
    uint64_t preemptions;                  /**< tasks left unfinished because a wait exceeded its budget */
    uint64_t context_loads, context_saves; /**< of tasks' positions, by the daemon's blocks */
    uint64_t daemon_starts, daemon_quits;  /**< runs of the daemon */
    uint64_t primitives;                   /**< slices of instructions that were executed */
    uint64_t bytes_sent;                   /**< payload bytes put into connectors, after compression */
    uint64_t bytes_saved;                  /**< bytes that bytes_sent would be larger without compression */
    uint64_t memory_reserved;              /**< bytes of connector memory in use */
    uint64_t memory_allocated;             /**< bytes of rondo_alloc() in use */
    uint64_t memory_budget;                /**< most that memory_reserved can become */
    uint64_t spin_ns;                      /**< nanoseconds that blocks have waited for tasks which they then left */
    uint64_t stream_blocks;                /**< blocks of the kernels that were launched on a GPU's streams */
} rondo_stats_t;

/**
 * Reads the runtime's counts.
 *
 * The counts of a running operation may be read while they change.
 *
 * @param rt      runtime
 * @param stats   becomes the counts
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @retval RONDO_ERR_DEVICE     the GPU reported an error
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own; the counts of preemptions and contexts are those of DFCCL section 6.2, Workload-independent
 *           Overheads.
 */
RONDO_API rondo_result_t rondo_get_stats(rondo_t rt, rondo_stats_t *stats);

/**
 * Names a function that threads call again and again while they wait in the library.
 *
 * A thread that waits in rondo_wait(), rondo_waitall(), rondo_group_end() or a blocking operation calls it every millisecond or
 * more often, as long as it waits; an operation that completes at once calls it never. It is for a program that has to serve
 * something else meanwhile, such as another communication library whose messages the other ranks wait for. The function must
 * return soon, and must not call the library.
 *
 * @param rt         runtime
 * @param fn         the function; NULL: none. Replaces the one before, which may still be running when the call returns
 * @param argument   what the function is called with
 * @retval RONDO_ERR_ARGUMENT   rt is NULL
 * @ranks    None: the call is local.
 * @threads  Any, before other threads use the runtime. The function is called on each thread that waits, on several at a time.
 * @source   Rondo's own; the progress callbacks of MPI libraries are similar.
 */
RONDO_API rondo_result_t rondo_wait_callback(rondo_t rt, void (*fn)(void *argument), void *argument);

/**
 * Writes what all ranks are doing.
 *
 * The report names each operation that is active on any rank, the ranks that have started it, those that have not, and the
 * rank that each waits for; without preemption also a circular wait. It stops and ends nothing. It takes milliseconds; two
 * seconds if a rank does not answer, which the report then names.
 *
 * @param rt      runtime
 * @param text    becomes the report, a string that is cut if it is longer
 * @param bytes   size of text, at least 1
 * @retval RONDO_ERR_ARGUMENT   rt or text is NULL, or bytes is 0
 * @retval RONDO_ERR_TIMEOUT    the lowest rank that is not gone, which collects the report, has not answered for five seconds
 * @retval RONDO_ERR_PEER       this rank has lost its connection to the others
 * @ranks    None need call anything: threads of the library answer.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_report(rondo_t rt, char *text, size_t bytes);

/* ---- communicators --------------------------------------------------------------------------------------------------------*/

/**
 * Gives the communicator of all ranks of the job.
 *
 * @param rt     runtime
 * @param comm   becomes the communicator, which belongs to the runtime and must not be freed
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 7.2.4, Predefined Intra-Communicators (MPI_COMM_WORLD).
 */
RONDO_API rondo_result_t rondo_comm_world(rondo_t rt, rondo_comm_t *comm);

/**
 * Gives this rank's number in a communicator.
 *
 * @param comm   communicator
 * @param rank   becomes the number, 0 to size - 1
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 7.4.1, Communicator Accessors (MPI_Comm_rank).
 */
RONDO_API rondo_result_t rondo_comm_rank(rondo_comm_t comm, int *rank);

/**
 * Gives the number of a communicator's ranks.
 *
 * @param comm   communicator
 * @param size   becomes the number of ranks
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPI-4.1 section 7.4.1, Communicator Accessors (MPI_Comm_size).
 */
RONDO_API rondo_result_t rondo_comm_size(rondo_comm_t comm, int *size);

/**
 * Gives the number by which logs and reports name a communicator.
 *
 * @param comm   communicator
 * @param id     becomes the number: equal on all ranks of comm, and different from that of any other communicator of the
 *               runtime; 0 is the world
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_comm_id(rondo_comm_t comm, uint64_t *id);

/**
 * Makes communicators of the ranks that give equal colors.
 *
 * @param comm     communicator to split
 * @param color    ranks with equal colors come together; below 0: this rank gets none
 * @param key      ranks are ordered by key, then by their rank in comm
 * @param result   becomes the communicator; NULL if color is below 0 and on failure
 * @retval RONDO_ERR_ARGUMENT   comm or result is NULL
 * @retval RONDO_ERR_MEMORY     out of memory, or over the memory budget
 * @retval RONDO_ERR_PEER       a rank of comm has died or left
 * @retval RONDO_ERR_TIMEOUT    a rank of comm has not called for RONDO_TIMEOUT seconds
 * @retval RONDO_ERR_MISMATCH   a rank of comm called another function
 * @retval RONDO_ERR_ABORTED    comm was aborted
 * @ranks    Collective: all ranks of comm call it, in one order among the calls that make communicators of comm.
 * @threads  Any, in an order that is the same on all ranks.
 * @source   MPI-4.1 section 7.4.2, Communicator Constructors (MPI_Comm_split).
 */
RONDO_API rondo_result_t rondo_comm_split(rondo_comm_t comm, int color, int key, rondo_comm_t *result);

/**
 * Makes a communicator of the same ranks.
 *
 * Its collectives match apart from those of comm. It inherits comm's compression.
 *
 * @param comm     communicator
 * @param result   becomes the copy; NULL on failure
 * @retval RONDO_ERR_ARGUMENT   comm or result is NULL
 * @retval RONDO_ERR_MEMORY     out of memory, or over the memory budget
 * @retval RONDO_ERR_PEER       a rank of comm has died or left
 * @retval RONDO_ERR_TIMEOUT    a rank of comm has not called for RONDO_TIMEOUT seconds
 * @retval RONDO_ERR_MISMATCH   a rank of comm called another function
 * @retval RONDO_ERR_ABORTED    comm was aborted
 * @ranks    Collective: all ranks of comm call it, in one order among the calls that make communicators of comm.
 * @threads  Any, in an order that is the same on all ranks.
 * @source   MPI-4.1 section 7.4.2, Communicator Constructors (MPI_Comm_dup).
 */
RONDO_API rondo_result_t rondo_comm_dup(rondo_comm_t comm, rondo_comm_t *result);

/** Of rondo_comm_shrink(): the ranks agree on who has failed, and those are excluded. */
#define RONDO_SHRINK_FAILED (-1)

/**
 * Makes a communicator of the ranks that remain when some are excluded.
 *
 * It works on a communicator that has failed, was aborted or was revoked too, as long as the ranks that remain are alive. They
 * keep comm's order. With RONDO_SHRINK_FAILED it leaves out the ranks that have died or left, also those that do so during the
 * call; either all ranks that remain get the communicator, or none does. A rank that dies later than the agreement on that is a
 * rank of the new communicator, which then has failed.
 *
 * @param comm       communicator
 * @param excluded   count ranks of comm; may be NULL if count is 0; NULL with RONDO_SHRINK_FAILED
 * @param count      number of excluded ranks, 0 to size - 1, or RONDO_SHRINK_FAILED
 * @param result     becomes the communicator; NULL on failure
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL, an entry is no rank of comm or the calling one, or count is out of range
 * @retval RONDO_ERR_MEMORY     out of memory, or over the memory budget
 * @retval RONDO_ERR_PEER       a rank that should remain has died or left
 * @retval RONDO_ERR_TIMEOUT    a rank that should remain has not called for RONDO_TIMEOUT seconds
 * @ranks    Collective over the ranks that remain, which all name the same excluded ranks. The excluded ranks call nothing.
 *           With RONDO_SHRINK_FAILED, collective over the ranks that are alive, in one order among such calls and those of
 *           rondo_comm_agree().
 * @threads  Any, in an order that is the same on all ranks that remain.
 * @source   MPI_Comm_shrink of User-Level Failure Mitigation; ncclCommShrink() of NCCL.
 */
RONDO_API rondo_result_t rondo_comm_shrink(rondo_comm_t comm, const int *excluded, int count, rondo_comm_t *result);

/**
 * Takes in ranks that start later: makes a job of the ranks of a communicator and of new ones.
 *
 * The ranks of comm keep their numbers. The new ones have the numbers from comm's size on, and call rondo_init() with the id,
 * their rank and size in its config. All get a runtime, whose world communicator has all ranks. comm and its runtime stay as
 * they are, and are freed or used on. A size that is comm's makes a job without new ranks. After failures, grow the
 * communicator that rondo_comm_shrink() has made.
 *
 * Between hosts the id, which holds a secret, travels encrypted to the other ranks only if RONDO_ENCRYPT is 1.
 *
 * @param comm     communicator of the old ranks
 * @param size     number of ranks of the new job, at least comm's; equal on all ranks
 * @param id       of rondo_get_unique_id(), on one rank of comm, any; NULL on all others. It makes one job: where the call
 *                 fails it is of no use any more, and new ranks that wait with it fail when the connect timeout ends
 * @param config   as for rondo_init(), but rank, size, unique_id and unique_ids are not read; with RONDO_DEVICE_AUTO and no
 *                 device_index the runtime is on the device of comm's. NULL: everything else from the environment
 * @param grown    becomes the runtime, to be given to rondo_finalize(); NULL on failure
 * @retval RONDO_ERR_ARGUMENT   comm or grown is NULL, size is less than comm's, or config is wrong
 * @retval RONDO_ERR_MISMATCH   no rank gives an id, or several do, or the sizes differ; or a rank of comm called another
 *                              function
 * @retval RONDO_ERR_BOOTSTRAP  not all ranks, old and new, have joined within the connect timeout
 * @retval RONDO_ERR_PEER       a rank of comm has died or left; also any other code with which comm has failed
 * @retval RONDO_ERR_TIMEOUT    a rank of comm has not called for RONDO_TIMEOUT seconds
 * @retval RONDO_ERR_MEMORY     out of memory
 * @ranks    Collective: all ranks of comm call it, in one order among the calls that make communicators of comm, and each new
 *           rank calls rondo_init(), as which it also fails on all or on none.
 * @threads  Any, in an order that is the same on all ranks.
 * @source   ncclCommGrow() of NCCL, which makes a communicator.
 */
RONDO_API rondo_result_t rondo_comm_grow(rondo_comm_t comm, int size, const rondo_unique_id_t *id, const rondo_config_t *config,
                                         rondo_t *grown);

/**
 * Makes a communicator of some ranks of another, which alone call it.
 *
 * Rank i of the new communicator is ranks[i] of comm. Operations of comm go on meanwhile. It inherits comm's compression.
 *
 * @param comm     communicator
 * @param ranks    count different ranks of comm, the calling one among them
 * @param count    number of members, 1 to the size of comm
 * @param tag      not negative; tells apart what several threads of a rank make of comm at one time
 * @param result   becomes the communicator; NULL on failure
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL, an entry is no rank of comm or is listed twice, the calling rank is not
 *                              listed, or count or tag is out of range
 * @retval RONDO_ERR_MEMORY     out of memory, or over the memory budget
 * @retval RONDO_ERR_PEER       a member has died or left
 * @retval RONDO_ERR_TIMEOUT    a member has not called for RONDO_TIMEOUT seconds
 * @retval RONDO_ERR_MISMATCH   two members that call it with one tag give lists that differ, also if only in order, and whose
 *                              smallest rank is the same
 * @retval RONDO_ERR_ABORTED    comm was aborted
 * @ranks    Collective over the members, which give equal lists and tags. The other ranks of comm call nothing.
 *           A call that fails on a member counts on all: a member that makes it later gets the failure, and its next one is
 *           the next of all.
 * @threads  Any; calls with one tag and a member in common are made in one order on all of their members.
 * @source   MPI-4.1 section 7.4.2, Communicator Constructors (MPI_Comm_create_group, whose group's order is the list's).
 */
RONDO_API rondo_result_t rondo_comm_create_group(rondo_comm_t comm, const int *ranks, int count, int tag, rondo_comm_t *result);

/**
 * Makes a communicator of the same ranks with a graph, for neighbourhood collectives.
 *
 * The rank has an edge from each of its sources and one to each of its destinations, in the order of the lists, which is that
 * of the blocks. The n-th edge from a rank to another is the n-th in both lists. A rank may name itself, and a rank several
 * times. Ranks keep their numbers. A copy by rondo_comm_dup() has the graph, too.
 *
 * @param comm          communicator
 * @param indegree      number of sources, 0 to 127
 * @param sources       indegree ranks of comm; may be NULL if there are none
 * @param outdegree     number of destinations, 0 to 127
 * @param destinations  outdegree ranks of comm; may be NULL if there are none
 * @param result        becomes the communicator; NULL on failure
 * @retval RONDO_ERR_ARGUMENT   comm, a list or result is NULL, a degree is out of range, or an entry is no rank of comm
 * @retval RONDO_ERR_MEMORY     out of memory on some rank, or over the memory budget
 * @retval RONDO_ERR_MISMATCH   some rank names a destination that does not name it as a source, or the other way round, or not
 *                              as often; or a rank of comm called another function
 * @retval RONDO_ERR_PEER       a rank of comm has died or left
 * @retval RONDO_ERR_TIMEOUT    a rank of comm has not called for RONDO_TIMEOUT seconds
 * @retval RONDO_ERR_ABORTED    comm was aborted
 * @ranks    Collective: all ranks of comm call it, in one order among the calls that make communicators of comm.
 * @threads  Any, in an order that is the same on all ranks.
 * @source   MPI-4.1 section 8.5.4, Distributed Graph Constructor (MPI_Dist_graph_create_adjacent, without weights).
 */
RONDO_API rondo_result_t rondo_graph_create(rondo_comm_t comm, int indegree, const int *sources, int outdegree,
                                            const int *destinations, rondo_comm_t *result);

/**
 * Makes a communicator whose ranks are the points of a grid, for neighbourhood collectives.
 *
 * Ranks lie in the grid in row-major order: the last dimension's neighbours have adjacent numbers. Ranks keep their numbers.
 * Sources and destinations are, for each dimension, the neighbour in the negative and the one in the positive direction. At the
 * ends of a dimension that is not periodic there is none, and its block is not moved.
 *
 * @param comm      communicator
 * @param ndims     number of dimensions, 0 to 63
 * @param dims      ndims entries: ranks in each dimension, equal on all ranks; their product is at most the size of comm
 * @param periods   ndims entries, equal on all ranks: not 0 where the ends of the dimension are neighbours
 * @param result    becomes the communicator; NULL on failure, and on ranks of comm that are beyond the grid
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL, ndims or an entry of dims is out of range, or the grid has too many points
 * @retval RONDO_ERR_MEMORY     out of memory on some rank, or over the memory budget
 * @retval RONDO_ERR_MISMATCH   ranks give different dims or periods, or a rank of comm called another function
 * @retval RONDO_ERR_PEER       a rank of comm has died or left
 * @retval RONDO_ERR_TIMEOUT    a rank of comm has not called for RONDO_TIMEOUT seconds
 * @retval RONDO_ERR_ABORTED    comm was aborted
 * @ranks    Collective: all ranks of comm call it, in one order among the calls that make communicators of comm.
 * @threads  Any, in an order that is the same on all ranks.
 * @source   MPI-4.1 section 8.5.1, Cartesian Constructor (MPI_Cart_create, without reordering).
 */
RONDO_API rondo_result_t rondo_cart_create(rondo_comm_t comm, int ndims, const int *dims, const int *periods,
                                           rondo_comm_t *result);

/**
 * Tells whether a communicator has failed and whether it has work left.
 *
 * The call does not wait for any operation.
 *
 * @param comm      communicator
 * @param failure   becomes RONDO_SUCCESS, or the code that ended the communicator's operations, with its message in
 *                  rondo_last_error(); may be NULL
 * @param idle      becomes 1 if no operation that was called on comm so far, also on a stream, has anything left to do, else
 *                  0; launches of CUDA graphs are not counted; may be NULL
 * @retval RONDO_ERR_ARGUMENT   comm is NULL
 * @retval RONDO_ERR_DEVICE     the GPU's memory cannot be read, so that it is not known whether comm is idle
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   ncclCommGetAsyncError() of NCCL.
 */
RONDO_API rondo_result_t rondo_comm_status(rondo_comm_t comm, rondo_result_t *failure, int *idle);

/**
 * Frees a communicator and its inactive requests.
 *
 * @param comm   the communicator, which becomes NULL
 * @retval RONDO_ERR_ARGUMENT   comm or *comm is NULL
 * @retval RONDO_ERR_STATE      *comm is the world, a request of it is active, or an operation on a stream has not been
 *                              executed
 * @retval RONDO_ERR_DEVICE     the GPU's memory cannot be read, so that it is not known whether one has; *comm stays
 * @ranks    None: the call is local. Each rank frees its own handle.
 * @threads  Any; no other thread may use the communicator during the call or after it.
 * @source   MPI-4.1 section 7.4.3, Communicator Destructors (MPI_Comm_free), which is collective.
 */
RONDO_API rondo_result_t rondo_comm_free(rondo_comm_t *comm);

/**
 * Ends every operation of a communicator with RONDO_ERR_ABORTED, on all of its ranks.
 *
 * The process goes on. Later calls on the communicator fail in the same way; rondo_comm_shrink() makes a usable one.
 *
 * @param comm   communicator
 * @param code   a number for the error message on all ranks
 * @retval RONDO_ERR_ARGUMENT   comm is NULL
 * @ranks    None need call anything: one rank's call is enough.
 * @threads  Any, also while other threads wait for operations of comm.
 * @source   MPI-4.1 section 11.4, Common Elements of Both Process Models (MPI_Abort, which may end processes); ncclCommAbort()
 *           of NCCL.
 */
RONDO_API rondo_result_t rondo_comm_abort(rondo_comm_t comm, int code);

/**
 * Makes every operation of a communicator fail with RONDO_ERR_REVOKED on all of its ranks, those under way and later ones.
 *
 * A rank that has learned of a failure calls it, so that ranks that wait for others, but not for the failed one, go on as well.
 * rondo_comm_agree(), rondo_comm_shrink() and the calls about failed ranks work on. A rank on which the communicator has failed
 * before keeps the earlier failure.
 *
 * @param comm   communicator
 * @retval RONDO_ERR_ARGUMENT   comm is NULL
 * @ranks    None need call anything: one rank's call is enough. It reaches all ranks, or those learn that the caller has died,
 *           which fails the communicator, too.
 * @threads  Any, also while other threads wait for operations of comm.
 * @source   MPIX_Comm_revoke of User-Level Failure Mitigation; ncclCommRevoke() of NCCL.
 */
RONDO_API rondo_result_t rondo_comm_revoke(rondo_comm_t comm);

/**
 * Agrees on an integer among the ranks that are alive, with one outcome on all of them although ranks die meanwhile.
 *
 * It works on a communicator that has failed, was aborted or was revoked, too: this is how an application makes the outcome of
 * an operation uniform that has succeeded on some ranks and failed on others. All ranks that return RONDO_SUCCESS or
 * RONDO_ERR_PEER with an outcome return the same of the two, and the same flag, also those that die afterwards.
 *
 * @param comm   communicator
 * @param flag   in: this rank's value; out: the bitwise AND of the values of all ranks that are alive, and maybe of some that
 *               have died during the call; set with RONDO_SUCCESS, and with RONDO_ERR_PEER unless this rank is cut off
 * @retval RONDO_ERR_ARGUMENT      comm or flag is NULL
 * @retval RONDO_ERR_PEER          a rank is known to have died or left, which not all ranks had acknowledged by
 *                                 rondo_comm_acknowledge_failed(); or this rank has lost its connection to all others
 * @retval RONDO_ERR_TIMEOUT       not all ranks that are alive have called for RONDO_TIMEOUT seconds; others may agree later
 * @retval RONDO_ERR_MEMORY        out of memory; the others take this rank for dead
 * @retval RONDO_ERR_UNSUPPORTED   comm has more ranks than a control message has room for (millions)
 * @ranks    Collective over the ranks that are alive, in one order among the calls of it and of rondo_comm_shrink() with
 *           RONDO_SHRINK_FAILED.
 * @threads  Any, in an order that is the same on all ranks.
 * @source   MPIX_Comm_agree of User-Level Failure Mitigation.
 */
RONDO_API rondo_result_t rondo_comm_agree(rondo_comm_t comm, int *flag);

/**
 * Tells which ranks of a communicator this rank knows to have died or left.
 *
 * Other ranks may know of more or fewer at the same time; rondo_comm_agree() and rondo_comm_shrink() make it the same.
 *
 * @param comm    communicator
 * @param ranks   becomes the failed ranks, in ascending order; room for as many as comm has ranks; may be NULL
 * @param count   becomes their number
 * @retval RONDO_ERR_ARGUMENT   comm or count is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPIX_Comm_get_failed of User-Level Failure Mitigation.
 */
RONDO_API rondo_result_t rondo_comm_get_failed(rondo_comm_t comm, int *ranks, int *count);

/**
 * Acknowledges that ranks have failed: rondo_comm_agree() does not return RONDO_ERR_PEER because of them any more, once all
 * ranks have acknowledged them.
 *
 * @param comm    communicator
 * @param ranks   count ranks of those that rondo_comm_get_failed() has told; may be NULL if count is 0
 * @param count   their number
 * @retval RONDO_ERR_ARGUMENT   comm is NULL, count is out of range, ranks is NULL, or an entry is no failed rank; then none is
 *                              acknowledged
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   MPIX_Comm_ack_failed of User-Level Failure Mitigation.
 */
RONDO_API rondo_result_t rondo_comm_acknowledge_failed(rondo_comm_t comm, const int *ranks, int count);

/**
 * Opens a buffer to direct access by the other ranks of a communicator.
 *
 * Where not all ranks can be given access, the call succeeds and changes nothing. Once registered, either all ranks or none
 * pass buffers inside registered ranges to one call; with RONDO_SM=0 at the same offset of their ranges on all ranks.
 * Persistent operations open their buffers themselves.
 *
 * @param comm    communicator
 * @param buf     start of the buffer; on a CUDA device memory of cudaMalloc() or rondo_alloc(), between processes on the host
 *                device memory of rondo_alloc()
 * @param bytes   size of the buffer; may differ between ranks
 * @retval RONDO_ERR_ARGUMENT   comm is NULL, or bytes is more than an object can have
 * @retval RONDO_ERR_BUFFER     buf is NULL with bytes above 0, the range wraps around the address space, not all of it is
 * memory of this process (host device), or it is memory of another device
 * @retval RONDO_ERR_MEMORY     out of memory
 * @retval RONDO_ERR_PEER       a rank of comm has died or left
 * @retval RONDO_ERR_TIMEOUT    a rank of comm has not called for RONDO_TIMEOUT seconds
 * @retval RONDO_ERR_MISMATCH   a rank of comm called another function
 * @ranks    Collective: all ranks of comm call it, in one order among the registrations of comm. Between processes it
 *           succeeds or fails on all.
 * @threads  Any, in an order that is the same on all ranks.
 * @source   ncclCommWindowRegister() of NCCL; MPI-4.1 section 12.2.1, Window Creation (MPI_Win_create).
 */
RONDO_API rondo_result_t rondo_comm_register(rondo_comm_t comm, void *buf, size_t bytes);

/**
 * Ends the registration of a buffer.
 *
 * No operation may use the buffer by direct access any more, on any rank.
 *
 * @param comm   communicator
 * @param buf    the start that was given to rondo_comm_register()
 * @retval RONDO_ERR_ARGUMENT   comm is NULL
 * @retval RONDO_ERR_BUFFER     buf is not registered on comm
 * @ranks    None is waited for, but all ranks of comm do it at the same place among their calls.
 * @threads  Any.
 * @source   ncclCommWindowDeregister() of NCCL.
 */
RONDO_API rondo_result_t rondo_comm_deregister(rondo_comm_t comm, void *buf);

/** Compression of a communicator's calls. Values travel as a fixed-rate ZFP stream, so results are no longer exact, but all
 * ranks get the same bits: the rank that knew a value exactly keeps what the others read. That holds for a broadcast's root,
 * whose buffer changes, and for a rank's own part of an all-gather. Compression applies to float16, bfloat16, float and double;
 * to RONDO_SUM, RONDO_AVG, RONDO_MIN and RONDO_MAX of allreduce, reduce and reduce_scatter_block; to the data of bcast,
 * allgather, allgatherv, alltoall, alltoallv, gather and scatter; and, between host devices, to messages.
 * docs/guide/compression.md has the bounds of the error. */
typedef struct {
    int rate;           /**< bits a value, 4 to 32 (double: to 64; float16, bfloat16: to 16); 0: no compression */
    size_t smallest;    /**< bytes of a call, as `rondo bench` counts them, below which it is not compressed */
    int error_feedback; /**< 1: sums and averages add what was lost of this rank's data: a persistent request's by its last
                           start, any other call's by the last one with equal buffers, count, operator and root */
} rondo_compression_t;
/** Static initializer of a rondo_compression_t: no compression. */
#define RONDO_COMPRESSION_DEFAULT                                                                                              \
    {                                                                                                                          \
        0, 0, 0                                                                                                                \
    }

/**
 * Compresses the calls that are made on a communicator from here on.
 *
 * It applies where type, operator and collective allow it; other calls are not compressed, and alltoallv only by rondo_attr_t.
 * Communicators that are made of this one inherit it. The world's is that of RONDO_COMPRESS, RONDO_COMPRESS_MIN and
 * RONDO_COMPRESS_FEEDBACK. For calls that are fed back, the communicator has as much memory as their data in floats (of double:
 * doubles), for at most 256 pairs of buffers.
 *
 * @param comm          communicator
 * @param compression   what to apply; it is copied. NULL: no compression
 * @retval RONDO_ERR_ARGUMENT   comm is NULL, or the rate is neither 0 nor 4 to 64
 * @ranks    All ranks of comm call it with equal values, at the same place among their calls on comm. None is waited for.
 * @threads  Any; not beside another call on comm.
 * @source   Rondo's own (docs/guide/compression.md).
 */
RONDO_API rondo_result_t rondo_comm_set_compression(rondo_comm_t comm, const rondo_compression_t *compression);

/**
 * Reads the compression of a communicator.
 *
 * @param comm          communicator
 * @param compression   becomes what applies to the next call
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_comm_get_compression(rondo_comm_t comm, rondo_compression_t *compression);

/**
 * Sets the priority of the calls that are made on a communicator from here on.
 *
 * It is that of blocking and non-blocking calls and of messages; persistent operations have that of their rondo_attr_t, and
 * stream-ordered ones that of their stream. It counts under the order "priority" of rondo_config_t. Operations on the
 * communicator that are under way may get it, too. Communicators that are made of this one inherit it.
 *
 * @param comm       communicator
 * @param priority   higher ones run first; 0 at the beginning
 * @retval RONDO_ERR_ARGUMENT   comm is NULL
 * @ranks    All ranks of comm call it with equal values, at the same place among their calls on comm. None is waited for.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_comm_set_priority(rondo_comm_t comm, int priority);

/**
 * Reads the priority of a communicator's calls.
 *
 * @param comm       communicator
 * @param priority   becomes what applies to the next call
 * @retval RONDO_ERR_ARGUMENT   an argument is NULL
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API rondo_result_t rondo_comm_get_priority(rondo_comm_t comm, int *priority);

/* ---- requests -------------------------------------------------------------------------------------------------------------*/

/** Attributes of a persistent operation. Equal on all ranks. */
typedef struct {
    int priority;        /**< under the order "priority" higher ones run first, and lower ones are left for them at the end of a
                            slice; 0 by default */
    int compress_rate;   /**< bits a value; 0: as the communicator says; RONDO_COMPRESS_NEVER: no compression */
    const char *program; /**< algorithm or program name; NULL: chosen */
    int error_feedback;  /**< 1: compressed sums and averages add what was lost of this rank's data to its next start's */
} rondo_attr_t;
/** For rondo_attr_t.compress_rate. */
#define RONDO_COMPRESS_NEVER (-1)
/** Static initializer of a rondo_attr_t. */
#define RONDO_ATTR_DEFAULT                                                                                                     \
    {                                                                                                                          \
        0, 0, NULL, 0                                                                                                          \
    }

/**
 * Starts an inactive persistent operation.
 *
 * It neither blocks nor communicates with other ranks. The operation uses the arguments of its init call. An error of the
 * operation itself is returned by the call that completes it.
 *
 * @param request   an inactive persistent request
 * @retval RONDO_ERR_ARGUMENT   request is NULL
 * @retval RONDO_ERR_STATE      the request is active, freed, not persistent, or not yet executed on its stream
 * @retval RONDO_ERR_BUFFER     a buffer that other ranks access directly has been freed since the init call
 * @retval RONDO_ERR_DEVICE     the GPU does not say whether the request can be started; the communicator has failed
 * @ranks    Each rank starts its persistent operations in any order. The operation completes once all of its ranks have
 *           started it.
 * @threads  Any.
 * @source   MPI-4.1 section 3.9, Persistent Communication Requests, and 6.13, Persistent Collective Operations (MPI_Start);
 *           DFCCL section 3.2, APIs of DFCCL (run).
 */
RONDO_API rondo_result_t rondo_start(rondo_request_t request);

/**
 * Starts several inactive persistent operations.
 *
 * None is started if one of them is not in a state that allows it.
 *
 * @param count      number of requests
 * @param requests   count different inactive persistent requests
 * @retval RONDO_ERR_ARGUMENT   count is below 0, or requests or an entry is NULL
 * @retval RONDO_ERR_STATE      as rondo_start(), or a request is given twice; those before the second are started then
 * @retval RONDO_ERR_BUFFER     as rondo_start()
 * @retval RONDO_ERR_DEVICE     as rondo_start()
 * @ranks    As rondo_start().
 * @threads  Any.
 * @source   MPI-4.1 section 3.9, Persistent Communication Requests (MPI_Startall).
 */
RONDO_API rondo_result_t rondo_startall(int count, rondo_request_t *requests);

/**
 * Starts an inactive persistent operation in the order of a CUDA stream.
 *
 * The operation begins when the stream's work before it is done, and the stream's work after it waits for it. The request
 * needs no rondo_wait(). Captured into a CUDA graph, each launch of the graph is a start; the request must outlive the graph.
 *
 * @param request   an inactive persistent request
 * @param stream    a cudaStream_t of the runtime's GPU
 * @retval RONDO_ERR_ARGUMENT      request is NULL, or stream is not a stream of the runtime's GPU
 * @retval RONDO_ERR_STATE         the request is active, freed or not persistent
 * @retval RONDO_ERR_BUFFER        a buffer that other ranks access directly has been freed since the init call
 * @retval RONDO_ERR_UNSUPPORTED   the host device has no streams
 * @retval RONDO_ERR_MEMORY        out of memory
 * @retval RONDO_ERR_DEVICE        the GPU reported an error
 * @ranks    As rondo_start(); streams may differ in order from rank to rank.
 * @threads  Any.
 * @source   Rondo's own; the semantics of a stream are those of NCCL's collectives.
 */
RONDO_API rondo_result_t rondo_start_on_stream(rondo_request_t request, void *stream);

/**
 * Tells whether a request is complete.
 *
 * If it is, a nonblocking request is freed, and a persistent one becomes inactive and can be started again. The calling thread
 * may execute part of the device's work. On an inactive request *done becomes 1.
 *
 * @param request   a request
 * @param done      becomes 1 if the request is complete, else 0
 * @return RONDO_SUCCESS, the operation's own error once it is complete (see the collective's errors), or one of these:
 * @retval RONDO_ERR_ARGUMENT   request or done is NULL
 * @retval RONDO_ERR_STATE      the request has been freed
 * @ranks    None: the call is local, and does not block.
 * @threads  Any; one thread at a time completes a request.
 * @source   MPI-4.1 section 3.7.3, Communication Completion (MPI_Test).
 */
RONDO_API rondo_result_t rondo_test(rondo_request_t request, int *done);

/**
 * Waits until a request is complete.
 *
 * A nonblocking request is freed; a persistent one becomes inactive and can be started again. An inactive request is complete
 * at once. The calling thread may execute the device's work meanwhile.
 *
 * @param request   a request
 * @return RONDO_SUCCESS, the operation's own error (see the collective's errors), or one of these:
 * @retval RONDO_ERR_ARGUMENT   request is NULL
 * @retval RONDO_ERR_STATE      the request has been freed
 * @ranks    The operation's ranks must start it, else the call waits until RONDO_TIMEOUT, or for ever without one.
 * @threads  Any; one thread at a time completes a request. Not from a callback.
 * @source   MPI-4.1 section 3.7.3, Communication Completion (MPI_Wait).
 */
RONDO_API rondo_result_t rondo_wait(rondo_request_t request);

/**
 * Waits until all requests are complete.
 *
 * @param count      number of entries
 * @param requests   count requests; entries that are NULL are skipped. Entries of nonblocking requests become NULL
 * @return RONDO_SUCCESS, the first error of an operation (all are waited for nevertheless), or one of these:
 * @retval RONDO_ERR_ARGUMENT   count is below 0, or requests is NULL
 * @retval RONDO_ERR_STATE      a request has been freed
 * @ranks    As rondo_wait().
 * @threads  Any; one thread at a time completes a request. Not from a callback.
 * @source   MPI-4.1 section 3.7.5, Multiple Completions (MPI_Waitall).
 */
RONDO_API rondo_result_t rondo_waitall(int count, rondo_request_t *requests);

/**
 * Frees an inactive request.
 *
 * @param request   the request, which becomes NULL
 * @retval RONDO_ERR_ARGUMENT   request or *request is NULL
 * @retval RONDO_ERR_STATE      the request is active or has been freed
 * @ranks    None: the call is local.
 * @threads  Any; no other thread may use the request during the call or after it.
 * @source   MPI-4.1 section 3.7.3, Communication Completion (MPI_Request_free, which also takes active requests).
 */
RONDO_API rondo_result_t rondo_request_free(rondo_request_t *request);

/**
 * Sets a function to be called once, when a request's operation completes.
 *
 * The operation is the current one, or the next if the request is inactive. If the current one is complete already, the
 * function is called at once by the calling thread, else by a thread of the library. It may start operations; it must not wait
 * for any. The request must be waited for or tested all the same.
 *
 * @param request   a request
 * @param fn        called as fn(arg, result), where result is the operation's own result
 * @param arg       passed to fn as it is
 * @retval RONDO_ERR_ARGUMENT   request or fn is NULL
 * @retval RONDO_ERR_STATE      the request has been freed
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   DFCCL section 3.2, APIs of DFCCL (the callback of a run).
 */
RONDO_API rondo_result_t rondo_request_callback(rondo_request_t request, void (*fn)(void *arg, rondo_result_t result),
                                                void *arg);

/* ---- collectives ----------------------------------------------------------------------------------------------------------*/

/**
 * @page forms Four forms of each operation
 *
 * Each operation X comes in four forms with one meaning.
 * - rondo_X(): blocks until the operation is complete on this rank.
 * - rondo_iX(): returns a request at once, for rondo_wait() or rondo_test().
 * - rondo_X_init(): makes a persistent request, for rondo_start() any number of times.
 * - rondo_X_on_stream(): enqueues the operation on a CUDA stream and returns. Captured into a CUDA graph, each launch of the
 *   graph is a call, which matches those of the other ranks in the order of execution. Communicator and buffers must outlive
 *   the graph. No two members of a captured group may be collectives, or messages to or from one peer, unless all members are
 *   of one such kind.
 *
 * @par Arguments of the forms
 * - attr: attributes, equal on all ranks; read by the call alone. NULL: RONDO_ATTR_DEFAULT
 * - request: becomes the request; NULL on failure
 * - stream: a cudaStream_t of the runtime's GPU
 *
 * @par Errors of every operation
 * - RONDO_ERR_ARGUMENT: a communicator that is none, a NULL request, an unknown type or operator, an operator that the type
 * does not have, a root or peer that is no rank of the communicator, or a count that is too large
 * - RONDO_ERR_BUFFER: a buffer is NULL for a count above 0, misaligned, memory of another device, overlaps the other buffer,
 *   or is RONDO_IN_PLACE where that is not allowed
 * - RONDO_ERR_MISMATCH: with RONDO_CHECK=1 (and at an init call): the ranks' calls differ; the message names both calls
 * - RONDO_ERR_PEER: a rank of the communicator has died or left
 * - RONDO_ERR_TIMEOUT: stuck for more than RONDO_TIMEOUT seconds; the communicator has failed
 * - RONDO_ERR_ABORTED: rondo_comm_abort() was called on some rank
 * - RONDO_ERR_REVOKED: rondo_comm_revoke() was called on some rank
 * - RONDO_ERR_TRANSPORT: no transport connects two ranks, or one failed
 * - RONDO_ERR_MEMORY: this rank, or another one, is out of memory or over its memory budget
 * - RONDO_ERR_UNSUPPORTED: a stream on the host device, or an algorithm, program or compression that does not fit the call
 * - RONDO_ERR_DEVICE: the GPU reported an error
 *
 * The i form and the on_stream form return the errors of their arguments; errors of the operation itself are returned by
 * rondo_wait() and rondo_test(), and for streams by rondo_comm_status(). RONDO_ERR_ARGUMENT, RONDO_ERR_BUFFER, RONDO_ERR_STATE
 * and RONDO_ERR_UNSUPPORTED are found before anything is done, and concern the calling rank alone. Any other failure on one
 * rank fails the communicator: a rank that has its result keeps it, the operations of all others end with that code, and each
 * later operation on the communicator fails with it on every rank; rondo_last_error() then names the rank and its reason.
 * Exceptions, after which the communicator is as before: RONDO_ERR_MISMATCH found by a comparison of the calls, and an init
 * over the memory budget (on all ranks, for a collective).
 *
 * @par Threads of every operation
 * Any. Calls on one communicator match in call order, so threads that share a communicator must agree on the order.
 */

/**
 * Combines the data of all ranks, and gives every rank the result.
 *
 * recv[i] becomes the combination by op of the ranks' send[i], for each i below count.
 *
 * @param send   count elements; RONDO_IN_PLACE (on any rank): the input is in recv
 * @param recv   count elements, which do not overlap send
 * @param count  elements, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param op     an operator that the type has (rondo_op_t)
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count, type and op.
 * @source MPI-4.1 section 6.9.6, All-Reduce.
 */
/**@{*/
RONDO_API rondo_result_t rondo_allreduce(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                         rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iallreduce(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                          rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allreduce_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                              rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allreduce_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                   rondo_op_t op, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Combines the data of all ranks, and gives the root the result.
 *
 * recv[i] of root becomes the combination by op of the ranks' send[i], for each i below count.
 *
 * @param send   count elements; RONDO_IN_PLACE at root only: the input is in recv
 * @param recv   count elements at root, which do not overlap send; ignored elsewhere
 * @param count  elements, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param op     an operator that the type has (rondo_op_t)
 * @param root   rank that receives the result
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count, type, op and root.
 * @source MPI-4.1 section 6.9.1, Reduce.
 */
/**@{*/
RONDO_API rondo_result_t rondo_reduce(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                      int root, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ireduce(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                       int root, rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                           int root, rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                rondo_op_t op, int root, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Copies the root's data to all ranks (broadcast).
 *
 * @param buf    count elements: the input at root, the output elsewhere
 * @param count  elements, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param root   rank that has the data
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count, type and root.
 * @source MPI-4.1 section 6.4, Broadcast.
 */
/**@{*/
RONDO_API rondo_result_t rondo_bcast(void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ibcast(void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm,
                                      rondo_request_t *request);
RONDO_API rondo_result_t rondo_bcast_init(void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm,
                                          const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_bcast_on_stream(void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm,
                                               void *stream);
/**@}*/

/**
 * Combines blocks of all ranks, and gives each rank one combined block.
 *
 * send holds size blocks of recvcount elements. Block r, combined over all ranks, becomes recv of rank r.
 *
 * @param send       size * recvcount elements; RONDO_IN_PLACE (on any rank): the input is in recv
 * @param recv       recvcount elements. In place it holds size * recvcount elements, and the result is its first block. Else
 *                   it does not overlap send, except that it may be this rank's own block of send, as in NCCL
 * @param recvcount  elements of one block, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param op     an operator that the type has (rondo_op_t)
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal recvcount, type and op.
 * @source MPI-4.1 section 6.10.1, MPI_REDUCE_SCATTER_BLOCK.
 */
/**@{*/
RONDO_API rondo_result_t rondo_reduce_scatter_block(const void *send, void *recv, size_t recvcount, rondo_datatype_t type,
                                                    rondo_op_t op, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ireduce_scatter_block(const void *send, void *recv, size_t recvcount, rondo_datatype_t type,
                                                     rondo_op_t op, rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_scatter_block_init(const void *send, void *recv, size_t recvcount, rondo_datatype_t type,
                                                         rondo_op_t op, rondo_comm_t comm, const rondo_attr_t *attr,
                                                         rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_scatter_block_on_stream(const void *send, void *recv, size_t recvcount,
                                                              rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm,
                                                              void *stream);
/**@}*/

/**
 * Combines blocks of different sizes of all ranks, and gives each rank one combined block.
 *
 * send holds a block of recvcounts[r] elements for each rank r, one after the other. Block r, combined over all ranks, becomes
 * recv of rank r. With equal counts it is rondo_reduce_scatter_block(), and messages and traces say so.
 *
 * @param send        as many elements as all counts together; RONDO_IN_PLACE (on all ranks): the input is in recv
 * @param recv        recvcounts[rank] elements, which do not overlap send. In place it holds as many elements as all counts
 *                    together, and the result is at its beginning; what the rest holds then is not said
 * @param recvcounts  size entries: elements of each rank's block; equal on all ranks. Copied by the call
 * @param type   datatype of the elements
 * @param op     operator; RONDO_BAND, RONDO_BOR and RONDO_BXOR need an integer type
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal recvcounts, type and op.
 * @source MPI-4.1 section 6.10.2, MPI_REDUCE_SCATTER.
 */
/**@{*/
RONDO_API rondo_result_t rondo_reduce_scatter(const void *send, void *recv, const size_t *recvcounts, rondo_datatype_t type,
                                              rondo_op_t op, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ireduce_scatter(const void *send, void *recv, const size_t *recvcounts, rondo_datatype_t type,
                                               rondo_op_t op, rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_scatter_init(const void *send, void *recv, const size_t *recvcounts,
                                                   rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm,
                                                   const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_scatter_on_stream(const void *send, void *recv, const size_t *recvcounts,
                                                        rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Gives every rank the data of all ranks.
 *
 * recv holds size blocks of sendcount elements; block r becomes rank r's send.
 *
 * @param send       sendcount elements; RONDO_IN_PLACE (on any rank): the input is this rank's block of recv
 * @param recv       size * sendcount elements, which do not overlap send
 * @param sendcount  elements of one block, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal sendcount and type.
 * @source MPI-4.1 section 6.7, Gather-to-all (MPI_ALLGATHER).
 */
/**@{*/
RONDO_API rondo_result_t rondo_allgather(const void *send, void *recv, size_t sendcount, rondo_datatype_t type,
                                         rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iallgather(const void *send, void *recv, size_t sendcount, rondo_datatype_t type,
                                          rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allgather_init(const void *send, void *recv, size_t sendcount, rondo_datatype_t type,
                                              rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allgather_on_stream(const void *send, void *recv, size_t sendcount, rondo_datatype_t type,
                                                   rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Gives every rank the data of all ranks, in blocks of different sizes.
 *
 * counts[r] elements of rank r are stored at recv + displs[r].
 *
 * @param send       sendcount elements; RONDO_IN_PLACE (on any rank): the input is this rank's block of recv
 * @param sendcount  elements of send, equal to counts[rank]; ignored in place
 * @param recv       the blocks, which overlap neither each other nor send
 * @param counts     size entries: elements of each rank; equal on all ranks. Copied by the call
 * @param displs     size entries: elements from recv to each block; may differ between ranks. Copied by the call
 * @param type   datatype of the elements
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal counts and type.
 * @source MPI-4.1 section 6.7, Gather-to-all (MPI_ALLGATHERV).
 */
/**@{*/
RONDO_API rondo_result_t rondo_allgatherv(const void *send, size_t sendcount, void *recv, const size_t *counts,
                                          const size_t *displs, rondo_datatype_t type, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iallgatherv(const void *send, size_t sendcount, void *recv, const size_t *counts,
                                           const size_t *displs, rondo_datatype_t type, rondo_comm_t comm,
                                           rondo_request_t *request);
RONDO_API rondo_result_t rondo_allgatherv_init(const void *send, size_t sendcount, void *recv, const size_t *counts,
                                               const size_t *displs, rondo_datatype_t type, rondo_comm_t comm,
                                               const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allgatherv_on_stream(const void *send, size_t sendcount, void *recv, const size_t *counts,
                                                    const size_t *displs, rondo_datatype_t type, rondo_comm_t comm,
                                                    void *stream);
/**@}*/

/**
 * Sends a block from each rank to each rank.
 *
 * send and recv hold size blocks of count_per_rank elements. Block d of rank s's send becomes block s of rank d's recv.
 *
 * @param send            size * count_per_rank elements; RONDO_IN_PLACE (on all ranks): the input is in recv
 * @param recv            size * count_per_rank elements, which do not overlap send
 * @param count_per_rank  elements of one block, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count_per_rank and type.
 * @source MPI-4.1 section 6.8, All-to-All Scatter/Gather (MPI_ALLTOALL).
 */
/**@{*/
RONDO_API rondo_result_t rondo_alltoall(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                        rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ialltoall(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                         rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoall_init(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                             rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoall_on_stream(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                                  rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Sends a block from each rank to each rank, in blocks of different sizes.
 *
 * scounts[d] elements at send + sdispls[d] go to rank d. rcounts[s] elements from rank s are stored at recv + rdispls[s].
 *
 * @param send     the blocks to send, which may overlap each other; RONDO_IN_PLACE (on all ranks): what recv holds is sent, the
 *                 block of each rank to that rank, and rank s sends as much as it receives from this rank
 * @param scounts  size entries: elements for each rank; ignored in place, as sdispls is. Copied by the call
 * @param sdispls  size entries: elements from send to each block. Copied by the call
 * @param recv     the blocks to receive, which overlap neither each other nor send
 * @param rcounts  size entries: elements from each rank; rcounts[s] equals rank s's scounts for this rank. Copied by the call
 * @param rdispls  size entries: elements from recv to each block. Copied by the call
 * @param type   datatype of the elements
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal type.
 * @source MPI-4.1 section 6.8, All-to-All Scatter/Gather (MPI_ALLTOALLV).
 */
/**@{*/
RONDO_API rondo_result_t rondo_alltoallv(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                         const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                         rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ialltoallv(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                          const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                          rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoallv_init(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                              const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                              rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoallv_on_stream(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                                   const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                                   rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Sends a block from each rank to each rank, in blocks of different sizes and types.
 *
 * scounts[d] elements of stypes[d] at sdispls[d] bytes from send go to rank d. rcounts[s] elements of rtypes[s] from rank s are
 * stored at rdispls[s] bytes from recv. Bytes are moved as they are: neither buffer nor displacements need be aligned.
 *
 * @param send     the blocks to send, which may overlap each other; RONDO_IN_PLACE (on all ranks): what recv holds is sent, the
 *                 block of each rank to that rank
 * @param scounts  size entries: elements for each rank; ignored in place, as sdispls and stypes are. Copied by the call
 * @param sdispls  size entries: bytes from send to each block. Copied by the call
 * @param stypes   size entries: datatype of each block. Copied by the call
 * @param recv     the blocks to receive, which overlap neither each other nor send
 * @param rcounts  size entries: elements from each rank, as many bytes as rank s sends to this rank. Copied by the call
 * @param rdispls  size entries: bytes from recv to each block. Copied by the call
 * @param rtypes   size entries: datatype of each block. Copied by the call
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm.
 * @source MPI-4.1 section 6.8, All-to-All Scatter/Gather (MPI_ALLTOALLW).
 */
/**@{*/
RONDO_API rondo_result_t rondo_alltoallw(const void *send, const size_t *scounts, const size_t *sdispls,
                                         const rondo_datatype_t *stypes, void *recv, const size_t *rcounts,
                                         const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ialltoallw(const void *send, const size_t *scounts, const size_t *sdispls,
                                          const rondo_datatype_t *stypes, void *recv, const size_t *rcounts,
                                          const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm,
                                          rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoallw_init(const void *send, const size_t *scounts, const size_t *sdispls,
                                              const rondo_datatype_t *stypes, void *recv, const size_t *rcounts,
                                              const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm,
                                              const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoallw_on_stream(const void *send, const size_t *scounts, const size_t *sdispls,
                                                   const rondo_datatype_t *stypes, void *recv, const size_t *rcounts,
                                                   const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm,
                                                   void *stream);
/**@}*/

/**
 * Collects a block of each rank at the root.
 *
 * recv of root holds size blocks of count_per_rank elements; block r becomes rank r's send.
 *
 * @param send            count_per_rank elements; RONDO_IN_PLACE at root only: its block is in recv
 * @param recv            size * count_per_rank elements at root, which do not overlap send; ignored elsewhere
 * @param count_per_rank  elements of one block, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param root            rank that receives the blocks
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count_per_rank, type and root.
 * @source MPI-4.1 section 6.5, Gather.
 */
/**@{*/
RONDO_API rondo_result_t rondo_gather(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                      rondo_comm_t comm);
RONDO_API rondo_result_t rondo_igather(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                       rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_gather_init(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                           rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_gather_on_stream(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                                int root, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Collects a block of each rank at the root, in blocks of different sizes.
 *
 * recvcounts[r] elements of rank r are stored at recv + displs[r] of root.
 *
 * @param send        sendcount elements; RONDO_IN_PLACE at root only: its block is in recv
 * @param sendcount   elements of send, equal to root's recvcounts for this rank; ignored in place
 * @param recv        the blocks at root, which overlap neither each other nor send; ignored elsewhere
 * @param recvcounts  size entries at root: elements of each rank. Copied by the call; ignored elsewhere
 * @param displs      size entries at root: elements from recv to each block. Copied by the call; ignored elsewhere
 * @param type   datatype of the elements
 * @param root        rank that receives the blocks
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal type and root.
 * @source MPI-4.1 section 6.5, Gather (MPI_GATHERV).
 */
/**@{*/
RONDO_API rondo_result_t rondo_gatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                       const size_t *displs, rondo_datatype_t type, int root, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_igatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                        const size_t *displs, rondo_datatype_t type, int root, rondo_comm_t comm,
                                        rondo_request_t *request);
RONDO_API rondo_result_t rondo_gatherv_init(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                            const size_t *displs, rondo_datatype_t type, int root, rondo_comm_t comm,
                                            const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_gatherv_on_stream(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                                 const size_t *displs, rondo_datatype_t type, int root, rondo_comm_t comm,
                                                 void *stream);
/**@}*/

/**
 * Sends a block of the root's data to each rank.
 *
 * send of root holds size blocks of count_per_rank elements; block r becomes recv of rank r.
 *
 * @param send            size * count_per_rank elements at root; ignored elsewhere
 * @param recv            count_per_rank elements, which do not overlap send; RONDO_IN_PLACE at root only: its block stays in
 *                        send
 * @param count_per_rank  elements of one block, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param root            rank that has the blocks
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count_per_rank, type and root.
 * @source MPI-4.1 section 6.6, Scatter.
 */
/**@{*/
RONDO_API rondo_result_t rondo_scatter(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                       rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iscatter(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                        rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scatter_init(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                            int root, rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scatter_on_stream(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                                 int root, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Sends a block of the root's data to each rank, in blocks of different sizes.
 *
 * sendcounts[r] elements at send + displs[r] of root become recv of rank r.
 *
 * @param send        the blocks at root, which may overlap each other; ignored elsewhere
 * @param sendcounts  size entries at root: elements for each rank. Copied by the call; ignored elsewhere
 * @param displs      size entries at root: elements from send to each block. Copied by the call; ignored elsewhere
 * @param recv        recvcount elements, which do not overlap send; RONDO_IN_PLACE at root only: its block stays in send
 * @param recvcount   elements of recv, equal to root's sendcounts for this rank; ignored in place
 * @param type   datatype of the elements
 * @param root        rank that has the data
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal type and root.
 * @source MPI-4.1 section 6.6, Scatter (MPI_SCATTERV).
 */
/**@{*/
RONDO_API rondo_result_t rondo_scatterv(const void *send, const size_t *sendcounts, const size_t *displs, void *recv,
                                        size_t recvcount, rondo_datatype_t type, int root, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iscatterv(const void *send, const size_t *sendcounts, const size_t *displs, void *recv,
                                         size_t recvcount, rondo_datatype_t type, int root, rondo_comm_t comm,
                                         rondo_request_t *request);
RONDO_API rondo_result_t rondo_scatterv_init(const void *send, const size_t *sendcounts, const size_t *displs, void *recv,
                                             size_t recvcount, rondo_datatype_t type, int root, rondo_comm_t comm,
                                             const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scatterv_on_stream(const void *send, const size_t *sendcounts, const size_t *displs, void *recv,
                                                  size_t recvcount, rondo_datatype_t type, int root, rondo_comm_t comm,
                                                  void *stream);
/**@}*/

/**
 * Completes on a rank only after all ranks have called it.
 *
 * The persistent form counts starts: it completes once all ranks have started it.
 *
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm.
 * @source MPI-4.1 section 6.3, Barrier Synchronization.
 */
/**@{*/
RONDO_API rondo_result_t rondo_barrier(rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ibarrier(rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_barrier_init(rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_barrier_on_stream(rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Combines the data of the ranks up to and with this one (inclusive prefix reduction).
 *
 * recv[i] of rank r becomes the combination by op of send[i] of ranks 0 to r, for each i below count.
 *
 * @param send   count elements; RONDO_IN_PLACE (on any rank): the input is in recv
 * @param recv   count elements, which do not overlap send
 * @param count  elements, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param op     an operator that the type has; not RONDO_AVG, whose divisor would differ from rank to rank
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count, type and op.
 * @source MPI-4.1 section 6.11.1, Inclusive Scan.
 */
/**@{*/
RONDO_API rondo_result_t rondo_scan(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                    rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iscan(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                     rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scan_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                         rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scan_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                              rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Combines the data of the ranks before this one (exclusive prefix reduction).
 *
 * recv[i] of rank r becomes the combination by op of send[i] of ranks 0 to r - 1, for each i below count. recv of rank 0 is
 * not changed.
 *
 * @param send   count elements; RONDO_IN_PLACE (on any rank): the input is in recv
 * @param recv   count elements, which do not overlap send; not used at rank 0 unless in place
 * @param count  elements, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param op     an operator that the type has; not RONDO_AVG, whose divisor would differ from rank to rank
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count, type and op.
 * @source MPI-4.1 section 6.11.2, Exclusive Scan.
 */
/**@{*/
RONDO_API rondo_result_t rondo_exscan(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                      rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iexscan(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                       rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_exscan_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                           rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_exscan_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                rondo_op_t op, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Sends each rank's data to the next rank.
 *
 * send of rank r becomes recv of rank r + 1. recv of rank 0 is not changed, and send of the last rank is not read.
 *
 * @param send   count elements; ignored at the last rank. RONDO_IN_PLACE is not allowed
 * @param recv   count elements, which do not overlap send; ignored at rank 0
 * @param count  elements, equal on all ranks; 0 is allowed
 * @param type   datatype of the elements
 * @param comm   communicator
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal count and type.
 * @source GC3 section 7.4, AllToNext.
 */
/**@{*/
RONDO_API rondo_result_t rondo_alltonext(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ialltonext(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_comm_t comm,
                                          rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltonext_init(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                              rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltonext_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                   rondo_comm_t comm, void *stream);
/**@}*/

/* ---- neighbourhoods -------------------------------------------------------------------------------------------------------*/

/**
 * Gives the data of each rank to its destinations.
 *
 * recv holds a block of count elements for each source; the l-th becomes the l-th source's send. Of a grid the sources and
 * destinations are, for each dimension, the neighbour in the negative and the one in the positive direction; the block of one
 * that is missing is not changed.
 *
 * @param send   count elements; RONDO_IN_PLACE is not allowed
 * @param recv   a block for each source, which do not overlap send
 * @param count  elements of one block, equal at both ends of each edge; 0 is allowed
 * @param type   datatype of the elements
 * @param comm   a communicator of rondo_graph_create() or rondo_cart_create(), or a copy of one
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal type. A rank
 *         waits for its neighbours alone.
 * @source MPI-4.1 section 8.6, Neighborhood Collective Communication (MPI_NEIGHBOR_ALLGATHER).
 */
/**@{*/
RONDO_API rondo_result_t rondo_neighbor_allgather(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                  rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ineighbor_allgather(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                   rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_allgather_init(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                       rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_allgather_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                            rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Gives the data of each rank to its destinations, in blocks of different sizes.
 *
 * recvcounts[l] elements of the l-th source are stored at recv + displs[l].
 *
 * @param send        sendcount elements; RONDO_IN_PLACE is not allowed
 * @param sendcount   elements of send, equal to the count that each destination has for it
 * @param recv        the blocks, which overlap neither each other nor send
 * @param recvcounts  an entry for each source: its elements. Copied by the call
 * @param displs      an entry for each source: elements from recv to its block. Copied by the call
 * @param type   datatype of the elements
 * @param comm   a communicator with a graph, as for rondo_neighbor_allgather()
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal type. A rank
 *         waits for its neighbours alone.
 * @source MPI-4.1 section 8.6, Neighborhood Collective Communication (MPI_NEIGHBOR_ALLGATHERV).
 */
/**@{*/
RONDO_API rondo_result_t rondo_neighbor_allgatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                                   const size_t *displs, rondo_datatype_t type, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ineighbor_allgatherv(const void *send, size_t sendcount, void *recv, const size_t *recvcounts,
                                                    const size_t *displs, rondo_datatype_t type, rondo_comm_t comm,
                                                    rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_allgatherv_init(const void *send, size_t sendcount, void *recv,
                                                        const size_t *recvcounts, const size_t *displs, rondo_datatype_t type,
                                                        rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_allgatherv_on_stream(const void *send, size_t sendcount, void *recv,
                                                             const size_t *recvcounts, const size_t *displs,
                                                             rondo_datatype_t type, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Sends a block to each destination, and receives one from each source.
 *
 * send holds a block of count elements for each destination, recv one for each source. The k-th block goes along the k-th edge,
 * and becomes the block of recv that is that edge's at its other end: of several edges from one rank to another the n-th there,
 * too. What a rank of a grid sends in the negative direction of a dimension its neighbour receives as from the positive one,
 * also where both neighbours are one rank, or the rank itself.
 *
 * @param send   a block for each destination; RONDO_IN_PLACE is not allowed
 * @param recv   a block for each source, which do not overlap send
 * @param count  elements of one block, equal at both ends of each edge; 0 is allowed
 * @param type   datatype of the elements
 * @param comm   a communicator with a graph, as for rondo_neighbor_allgather()
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal type. A rank
 *         waits for its neighbours alone.
 * @source MPI-4.1 section 8.6, Neighborhood Collective Communication (MPI_NEIGHBOR_ALLTOALL).
 */
/**@{*/
RONDO_API rondo_result_t rondo_neighbor_alltoall(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                 rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ineighbor_alltoall(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                  rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_alltoall_init(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                      rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_alltoall_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                           rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Sends a block to each destination, and receives one from each source, in blocks of different sizes.
 *
 * As rondo_neighbor_alltoall(), with scounts[k] elements at send + sdispls[k] and rcounts[l] elements at recv + rdispls[l].
 *
 * @param send     the blocks to send, which may overlap each other; RONDO_IN_PLACE is not allowed
 * @param scounts  an entry for each destination: elements. Copied by the call
 * @param sdispls  an entry for each destination: elements from send to its block. Copied by the call
 * @param recv     the blocks to receive, which overlap neither each other nor send
 * @param rcounts  an entry for each source: elements, equal to its scounts for the edge. Copied by the call
 * @param rdispls  an entry for each source: elements from recv to its block. Copied by the call
 * @param type   datatype of the elements
 * @param comm   a communicator with a graph, as for rondo_neighbor_allgather()
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm, with equal type. A rank
 *         waits for its neighbours alone.
 * @source MPI-4.1 section 8.6, Neighborhood Collective Communication (MPI_NEIGHBOR_ALLTOALLV).
 */
/**@{*/
RONDO_API rondo_result_t rondo_neighbor_alltoallv(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                                  const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                                  rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ineighbor_alltoallv(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                                   const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                                   rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_alltoallv_init(const void *send, const size_t *scounts, const size_t *sdispls,
                                                       void *recv, const size_t *rcounts, const size_t *rdispls,
                                                       rondo_datatype_t type, rondo_comm_t comm, const rondo_attr_t *attr,
                                                       rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_alltoallv_on_stream(const void *send, const size_t *scounts, const size_t *sdispls,
                                                            void *recv, const size_t *rcounts, const size_t *rdispls,
                                                            rondo_datatype_t type, rondo_comm_t comm, void *stream);
/**@}*/

/**
 * Sends a block to each destination, and receives one from each source, in blocks of different sizes and types.
 *
 * As rondo_neighbor_alltoallv(), with a datatype for each block and displacements in bytes, as rondo_alltoallw() has them.
 *
 * @param send     the blocks to send, which may overlap each other; RONDO_IN_PLACE is not allowed
 * @param scounts  an entry for each destination: elements. Copied by the call
 * @param sdispls  an entry for each destination: bytes from send to its block. Copied by the call
 * @param stypes   an entry for each destination: datatype. Copied by the call
 * @param recv     the blocks to receive, which overlap neither each other nor send
 * @param rcounts  an entry for each source: elements, as many bytes as it sends along the edge. Copied by the call
 * @param rdispls  an entry for each source: bytes from recv to its block. Copied by the call
 * @param rtypes   an entry for each source: datatype. Copied by the call
 * @param comm   a communicator with a graph, as for rondo_neighbor_allgather()
 * @forms
 * @ranks  All ranks of comm call it, in one order among the collectives of comm. A rank waits for its neighbours alone.
 * @source MPI-4.1 section 8.6, Neighborhood Collective Communication (MPI_NEIGHBOR_ALLTOALLW).
 */
/**@{*/
RONDO_API rondo_result_t rondo_neighbor_alltoallw(const void *send, const size_t *scounts, const size_t *sdispls,
                                                  const rondo_datatype_t *stypes, void *recv, const size_t *rcounts,
                                                  const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ineighbor_alltoallw(const void *send, const size_t *scounts, const size_t *sdispls,
                                                   const rondo_datatype_t *stypes, void *recv, const size_t *rcounts,
                                                   const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm,
                                                   rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_alltoallw_init(const void *send, const size_t *scounts, const size_t *sdispls,
                                                       const rondo_datatype_t *stypes, void *recv, const size_t *rcounts,
                                                       const size_t *rdispls, const rondo_datatype_t *rtypes, rondo_comm_t comm,
                                                       const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_neighbor_alltoallw_on_stream(const void *send, const size_t *scounts, const size_t *sdispls,
                                                            const rondo_datatype_t *stypes, void *recv, const size_t *rcounts,
                                                            const size_t *rdispls, const rondo_datatype_t *rtypes,
                                                            rondo_comm_t comm, void *stream);
/**@}*/

/* ---- point to point -------------------------------------------------------------------------------------------------------*/

/**
 * Sends data to one rank.
 *
 * Messages to one rank of a communicator are received in the order of their calls, and wait for no collective. A send may wait
 * until its receive begins: two ranks that both send and then receive do so in a group (rondo_group_start()), or nonblocking.
 *
 * @param buf    count elements
 * @param count  elements, equal to the receiver's; 0 is allowed
 * @param type   datatype of the elements, equal to the receiver's
 * @param dest   rank of comm to send to; it may be this rank
 * @param comm   communicator
 * @forms
 * @ranks  dest calls recv with equal count and type; the n-th send to it matches its n-th receive from here. Persistent
 *         messages match by their init calls. Other ranks call nothing.
 * @source MPI-4.1 section 3.2, Blocking Send and Receive Operations, and 3.5, Semantics of Point-to-Point Communication.
 */
/**@{*/
RONDO_API rondo_result_t rondo_send(const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_isend(const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm,
                                     rondo_request_t *request);
RONDO_API rondo_result_t rondo_send_init(const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm,
                                         const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_send_on_stream(const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm,
                                              void *stream);
/**@}*/

/**
 * Receives data from one rank.
 *
 * @param buf     count elements
 * @param count   elements, equal to the sender's; 0 is allowed
 * @param type    datatype of the elements, equal to the sender's
 * @param source  rank of comm to receive from; it may be this rank
 * @param comm   communicator
 * @forms
 * @ranks  source calls send with equal count and type; its n-th send to here matches the n-th receive from it. Persistent
 *         messages match by their init calls. Other ranks call nothing.
 * @source MPI-4.1 section 3.2, Blocking Send and Receive Operations, and 3.5, Semantics of Point-to-Point Communication.
 */
/**@{*/
RONDO_API rondo_result_t rondo_recv(void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_irecv(void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm,
                                     rondo_request_t *request);
RONDO_API rondo_result_t rondo_recv_init(void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm,
                                         const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_recv_on_stream(void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm,
                                              void *stream);
/**@}*/

/**
 * Opens a group: operations that are started together.
 *
 * Until rondo_group_end(), blocking, nonblocking and on_stream operations that this thread calls on comm are only collected.
 * Groups on one communicator do not nest.
 *
 * @param comm   communicator
 * @retval RONDO_ERR_ARGUMENT   comm is NULL
 * @retval RONDO_ERR_STATE      a group is open on comm, of this thread or another
 * @ranks    None: the call is local. A group of sends and receives needs the matching calls of the other ranks, in a group or
 *           not.
 * @threads  Any; the same thread ends the group, and other threads call nothing on comm meanwhile.
 * @source   ncclGroupStart() of NCCL.
 */
RONDO_API rondo_result_t rondo_group_start(rondo_comm_t comm);

/**
 * Starts the operations of a group together, and then waits for the blocking ones.
 *
 * @param comm   communicator
 * @return RONDO_SUCCESS, the first error of a blocking operation of the group, or one of these:
 * @retval RONDO_ERR_ARGUMENT   comm is NULL
 * @retval RONDO_ERR_STATE      this thread has no group open on comm
 * @ranks    The operations' ranks must call them too, else the call waits until RONDO_TIMEOUT, or for ever without one.
 * @threads  The one that opened the group.
 * @source   ncclGroupEnd() of NCCL.
 */
RONDO_API rondo_result_t rondo_group_end(rondo_comm_t comm);

/* ---- the environment as data ----------------------------------------------------------------------------------------------*/

/** What the value of an environment variable is. */
typedef enum {
    RONDO_VARIABLE_INTEGER = 0, /**< decimal digits, after a minus if least is below 0: least to most, or one of words */
    RONDO_VARIABLE_SIZE = 1,    /**< bytes: decimal digits and at most one of K, M, G (powers of 1024): least to most */
    RONDO_VARIABLE_REAL = 2,    /**< decimal digits, perhaps a point and more of them: least to most */
    RONDO_VARIABLE_CHOICE = 3,  /**< one of words */
    RONDO_VARIABLE_LIST = 4,    /**< some of words, each once, separated by commas; any names if there are no words */
    RONDO_VARIABLE_TEXT = 5,    /**< any text of least to most bytes without control characters */
    RONDO_VARIABLE_PATH = 6,    /**< a path of least to most bytes without control characters */
    RONDO_VARIABLE_ADDRESS = 7, /**< host or host:port; an IPv6 address stands in brackets; the port is least to most */
    RONDO_VARIABLE_SIGNAL = 8   /**< one of words, with or without SIG before it, or a number from least to most */
} rondo_variable_kind_t;

/** An environment variable that the library reads. Later versions may add fields at the end. */
typedef struct rondo_variable {
    const char *topic;          /**< what it belongs to; variables of one topic follow each other */
    const char *name;           /**< RONDO_X */
    const char *fallback;       /**< its value where it is unset or empty; "" where there is none */
    const char *meaning;        /**< one line, with the unit */
    rondo_variable_kind_t kind; /**< what its value is */
    const char *unit;           /**< what is counted, such as "seconds"; "" where nothing is */
    double least, most;         /**< the bounds of kind; 0 where it has none */
    const char *words;          /**< the words of kind, separated by commas; "" where there are none */
} rondo_variable_t;

/**
 * Describes an environment variable.
 *
 * The library reads the variables when a runtime starts, and no others beside those of launchers. A value that its description
 * does not allow makes rondo_init() and rondo_get_unique_id() fail with RONDO_ERR_ARGUMENT. Names that begin with RONDO_X_ are
 * reserved for builds and tests, and never read.
 *
 * @param index   0 for the first; each number below that of the first NULL has one
 * @return The description, a constant of the library; NULL if index is negative or there are no more.
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API const rondo_variable_t *rondo_environment_describe(int index);

/* ---- the collectives as data ----------------------------------------------------------------------------------------------*/

/** Which ranks of a communicator use a buffer of a collective. */
typedef enum {
    RONDO_RANKS_NONE = 0,      /**< none: the collective has no such argument */
    RONDO_RANKS_ALL = 1,       /**< all ranks */
    RONDO_RANKS_ROOT = 2,      /**< the root alone */
    RONDO_RANKS_NOT_FIRST = 3, /**< all ranks but rank 0 */
    RONDO_RANKS_NOT_LAST = 4   /**< all ranks but rank size - 1 */
} rondo_ranks_t;

/** How many elements a buffer of a collective has. */
typedef enum {
    RONDO_EXTENT_BLOCK = 0,  /**< one block: count elements */
    RONDO_EXTENT_BLOCKS = 1, /**< one block for each rank: size * count elements */
    RONDO_EXTENT_COUNTS = 2, /**< one block for each rank, as long and where the arrays of counts and displacements say */
    RONDO_EXTENT_CHUNKS = 3  /**< the chunks that a custom program's signature gives, of count elements each */
} rondo_extent_t;

/** How a collective's input and output may be one memory (MPI-4.1 section 6.2.2). */
typedef enum {
    RONDO_PLACEMENT_APART = 0,        /**< never: send and recv do not overlap */
    RONDO_PLACEMENT_SEND = 1,         /**< send may be RONDO_IN_PLACE, on any rank */
    RONDO_PLACEMENT_SEND_AT_ROOT = 2, /**< send may be RONDO_IN_PLACE, at root */
    RONDO_PLACEMENT_RECV_AT_ROOT = 3, /**< recv may be RONDO_IN_PLACE, at root */
    RONDO_PLACEMENT_SHARED = 4        /**< always: there is one buffer */
} rondo_placement_t;

/** What the output of rank r holds. Block s is the s-th of an output of RONDO_EXTENT_BLOCKS or RONDO_EXTENT_COUNTS. */
typedef enum {
    RONDO_POSTCONDITION_NOTHING = 0,       /**< there is no output */
    RONDO_POSTCONDITION_REDUCED = 1,       /**< the inputs of all ranks, combined */
    RONDO_POSTCONDITION_REDUCED_BLOCK = 2, /**< block r of the inputs of all ranks, combined */
    RONDO_POSTCONDITION_PREFIX = 3,        /**< the inputs of ranks 0 to r, combined */
    RONDO_POSTCONDITION_PREFIX_BEFORE = 4, /**< the inputs of ranks 0 to r - 1, combined */
    RONDO_POSTCONDITION_CONCATENATED = 5,  /**< block s: the input of rank s */
    RONDO_POSTCONDITION_TRANSPOSED = 6,    /**< block s: block r of the input of rank s */
    RONDO_POSTCONDITION_ROOT = 7,          /**< the input of root */
    RONDO_POSTCONDITION_ROOT_BLOCK = 8,    /**< block r of the input of root */
    RONDO_POSTCONDITION_PREVIOUS = 9,      /**< the input of rank r - 1 */
    RONDO_POSTCONDITION_PEER = 10,         /**< the input of the peer */
    RONDO_POSTCONDITION_REQUIRED = 11      /**< what rondo_program_require() says of a custom program */
} rondo_postcondition_t;

/** A collective, or a message's send or receive, as data. Later versions may add fields at the end. */
typedef struct {
    const char *name;            /**< X of rondo_X(), and the name in messages, files and `rondo bench`; "custom" */
    int reduces;                 /**< it has an operator */
    int rooted;                  /**< it has a root */
    int point_to_point;          /**< it has a peer instead of all ranks of the communicator */
    rondo_ranks_t send_ranks;    /**< ranks that give data; of RONDO_PLACEMENT_SHARED in the one buffer */
    rondo_extent_t send_extent;  /**< elements of the input */
    rondo_ranks_t recv_ranks;    /**< ranks that are given data */
    rondo_extent_t recv_extent;  /**< elements of the output */
    rondo_placement_t placement; /**< its in-place form */
    int own_block;               /**< in place, the shorter buffer is this rank's block of the longer one; 0: its beginning */
    rondo_postcondition_t postcondition; /**< what the output holds */
    /** Factor between the size divided by the time and what each link carries, as nccl-tests define bus bandwidth: this times
     * (ranks - 1) / ranks; 0: the factor is 1. */
    int bus_factor;
    /** Its blocks are those of this rank's neighbours in the communicator's graph, not of all ranks: of its destinations in the
     * input, and of its sources in the output. "Rank s" of postcondition is the s-th source. */
    int neighborhood;
} rondo_collective_t;

/**
 * Describes a collective.
 *
 * The numbers are those of this version of the library. A program that needs one collective looks for its name.
 *
 * @param index   0 for the first; each number below that of the first NULL has one
 * @return The description, a constant of the library; NULL if index is negative or there are no more.
 * @ranks    None: the call is local.
 * @threads  Any.
 * @source   Rondo's own.
 */
RONDO_API const rondo_collective_t *rondo_collective_describe(int index);

#ifdef __cplusplus
}
#endif
#endif
