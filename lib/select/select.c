/*
 * Selection (lib/select/select.h): first a name that is given, then registered programs and the tuning table, then the rules
 * for hosts in this file and those for GPUs in lib/select/select_gpu.c. The thresholds were measured with `rondo bench` on two
 * cores.
 */
#include "lib/select/select.h"

#include "device/engine/use.h"
#include "device/reduce/reduce.h"
#include "lib/connection/slots.h"
#include "lib/select/registered_programs.h"
#include "lib/select/select_gpu.h"
#include "lib/algorithms/algorithms.h"
#include "lib/select/tuning.h"
#include "lib/base/error.h"
#include "lib/call/user_operators.h"

#include <stdio.h>
#include <string.h>

#define KIB ((size_t) 1024)

size_t rondo_call_bytes(const struct rondo_comm *comm, const struct rondo_call *call)
{
    size_t type_bytes = rondo_type_bytes(call->type), most = 0;
    if (rondo_kind_has_own_counts(call->kind))
        return 0;
    if (rondo_kind_has_blocks(call->kind))
        return call->count * type_bytes * (size_t) comm->size;
    if (!rondo_kind_has_counts(call->kind))
        return call->count * type_bytes;
    for (int rank = 0; rank < comm->size; rank++)
        most = call->receive_counts[rank] > most ? call->receive_counts[rank] : most;
    return most * type_bytes * (size_t) comm->size;
}

/* Over a network, another channel helps only if a block cannot keep up, because its slots evict those of the others from the
 * cache.
 */
#define NETWORK_CHANNEL_BYTES (8192 * KIB)
/* On GPUs a block keeps up with any network. Two channels keep a proxy thread busy. With more than eight, the data in flight
 * exceed the cache.
 */
#define NETWORK_GPU_CHANNELS  8
/* With two ranks, one step transmits as much as a ring's two steps. The ring reduces half as much per rank. That is worth the
 * second step where reducing takes longer than moving: with 8-bit types, and where one block does not keep up. */
#define NETWORK_PAIR_BYTES    (32768 * KIB)
#define NETWORK_PAIR_BYTES_F8 (1024 * KIB)

static size_t network_gpu_channels(const struct rondo_comm *comm)
{
    size_t channels = 2 * (size_t) comm->carriers;
    return channels > 0 && channels < NETWORK_GPU_CHANNELS ? channels : NETWORK_GPU_CHANNELS;
}

/* Recursive doubling sends all data log2(size) times. A ring sends them less than twice, but in 2 * (size - 1) steps. */
#define DOUBLING_BYTES_MAX (64 * KIB)

static const char *compressed_by_size(const struct rondo_comm *comm, const struct rondo_call *call)
{
    switch (call->kind) {
    case RONDO_KIND_ALLREDUCE:
        return rondo_call_bytes(comm, call) <= DOUBLING_BYTES_MAX ? "recursive-doubling" : "ring";
    case RONDO_KIND_ALLTOALL:
    case RONDO_KIND_ALLTOALLV:
    case RONDO_KIND_GATHER:
    case RONDO_KIND_SCATTER:
        return "linear";
    case RONDO_KIND_SEND_TO:
    case RONDO_KIND_RECEIVE_FROM:
        return "chain";
    default:
        return "ring";
    }
}

/* The largest size, in bytes, for one-shot. One-shot takes size - 1 messages per rank; it pays while they take less time than a
 * ring's 2 * (size - 1) steps. */
static size_t one_shot_limit(int size)
{
    return size <= 4 ? 16 * KIB : size <= 8 ? 8 * KIB : size <= 32 ? 2 * KIB : 0;
}

/* Whether recursive doubling is chosen between hosts. A step takes at least the network's latency, so for small sizes
 * log2(size) steps are faster although each sends all data. The number of a ring's steps grows with the number of hosts (of
 * ranks, if each is alone on its host), and so does the size from which the ring is faster. */
static int doubles(const struct rondo_comm *comm, size_t bytes)
{
    size_t around = (size_t) (comm->topology.locals > 1 ? comm->topology.nodes : comm->size);
    size_t limit = around * 8 * KIB;
    return rondo_is_wide(comm) && comm->topology.nodes > 1 && bytes <= (limit < 512 * KIB ? limit : 512 * KIB);
}

/* Whether recursive doubling is chosen on one host. A slot takes a transfer from core to core, and one-shot takes size - 1 of
 * them, each with all data. The time of a few bytes does not depend on their number. But every step of doubling waits for a
 * peer that must be running. Measured with 4, 8 and 16 ranks; and with 48 and 128, for which one-shot is never chosen and whose
 * ring has far more such steps. */
static int doubles_on_host(const struct rondo_comm *comm, size_t bytes)
{
    const size_t size = (size_t) comm->size;
    if (!comm->same_host || comm->gpus_only)
        return 0;
    if (one_shot_limit(comm->size) == 0)
        return bytes <= DOUBLING_BYTES_MAX;
    return !comm->runtime->oversubscribed && size >= 4 && (size & (size - 1)) == 0 && bytes * size >= 4 * KIB &&
           bytes <= 16 * KIB;
}

/* Whether one rank's writing for all others to read is chosen for messages of so many bytes. With two ranks it is the same as a
 * message. A broadcast's cost hardly grows with the ranks; where all write, each reads from all, as in one-shot, but writes
 * once. Where ranks share cores, all wait for all with every slot, so that one slot each is the most that pays. */
#define MULTICAST_BCAST_BYTES_MAX (16 * KIB)
/* A scatter's receivers read one part of the slot each. It pays in tiny slots, and where several parts share a cache line. */
static size_t multicast_scatter_limit(const struct rondo_comm *comm)
{
    const size_t shared = (size_t) comm->size * RONDO_CACHE_LINE / 2;
    return shared > RONDO_TINY_BYTES_MAX ? shared : RONDO_TINY_BYTES_MAX;
}

static int multicasts(const struct rondo_comm *comm, enum rondo_kind kind, size_t bytes)
{
    if (!comm->multicast || comm->size <= 2)
        return 0;
    if (kind == RONDO_KIND_BCAST)
        return bytes <= MULTICAST_BCAST_BYTES_MAX;
    if (kind == RONDO_KIND_SCATTER) /* a slot has a part for each rank */
        return bytes <= multicast_scatter_limit(comm) && bytes <= comm->runtime->settings.slot_bytes;
    return bytes <= one_shot_limit(comm->size) && comm->size <= RONDO_REDUCE_SOURCES_MAX &&
           (!comm->runtime->oversubscribed || bytes <= RONDO_MULTICAST_BYTES_MAX);
}

/* The largest reduce whose root takes from every rank itself. Where each rank has a core of one host, a ring's ranks all work
 * at a time, and from one tiny slot on that pays. */
static size_t linear_reduce_limit(const struct rondo_comm *comm)
{
    const int side_by_side = comm->same_host && comm->hosts_only && comm->size > 2 && !comm->runtime->oversubscribed;
    return side_by_side ? RONDO_TINY_BYTES_MAX : one_shot_limit(comm->size);
}

/* Ranks up to which each may have connectors to all others in both directions, which one block uses. */
#define ALL_PEERS_MAX ((RONDO_PROGRAM_ENDS_MAX + 1) / 2)

static int is_float8(rondo_datatype_t type)
{
    return type == RONDO_FLOAT8E4M3 || type == RONDO_FLOAT8E5M2;
}

static const char *by_size(const struct rondo_comm *comm, const struct rondo_call *call, int direct)
{
    size_t bytes = rondo_call_bytes(comm, call), per_rank = bytes / (size_t) comm->size;
    int apart = comm->topology.nodes > 1 && comm->topology.locals > 1; /* several ranks on each of several hosts */
    const char *around = apart ? "hierarchical" : "ring";
    int use_direct = direct && bytes > 16 * KIB && comm->size <= RONDO_REDUCE_SOURCES_MAX;
    switch (call->kind) {
    case RONDO_KIND_ALLREDUCE:
        if (comm->size == 2 && rondo_is_wide(comm) && !comm->same_host)
            return bytes <= (is_float8(call->type) ? NETWORK_PAIR_BYTES_F8 : NETWORK_PAIR_BYTES) ? "allpairs" : "twoshot";
        return doubles_on_host(comm, bytes)          ? "recursive-doubling"
               : multicasts(comm, call->kind, bytes) ? "multicast"
               : bytes <= one_shot_limit(comm->size) ? "allpairs"
               : doubles(comm, bytes)                ? "recursive-doubling"
               : use_direct                          ? "direct"
                                                     : around;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
        return per_rank <= one_shot_limit(comm->size)       ? "allpairs"
               : use_direct && call->send != RONDO_IN_PLACE ? "direct"
                                                            : around;
    case RONDO_KIND_REDUCE_SCATTER:
        return per_rank <= one_shot_limit(comm->size) && call->send != RONDO_IN_PLACE ? "allpairs" : "ring";
    case RONDO_KIND_ALLGATHER:
        return multicasts(comm, call->kind, per_rank)   ? "multicast"
               : per_rank <= one_shot_limit(comm->size) ? "allpairs"
               : use_direct                             ? "direct"
                                                        : around;
    case RONDO_KIND_ALLGATHERV:
        return multicasts(comm, call->kind, per_rank)   ? "multicast"
               : per_rank <= one_shot_limit(comm->size) ? "allpairs"
                                                        : "ring";
    case RONDO_KIND_BCAST:
        return multicasts(comm, call->kind, bytes)   ? "multicast"
               : bytes <= one_shot_limit(comm->size) ? "linear"
               : use_direct                          ? "direct"
                                                     : around;
    case RONDO_KIND_REDUCE:
        return bytes <= linear_reduce_limit(comm) ? "linear" : "ring";
    case RONDO_KIND_ALLTOALL:
        return use_direct && call->send != RONDO_IN_PLACE ? "direct"
               : apart && comm->size > RONDO_REDUCE_SOURCES_MAX && comm->topology.nodes + comm->topology.locals <= ALL_PEERS_MAX
                   ? "hierarchical" /* a rank has fewer connectors than there are ranks */
               : comm->size > ALL_PEERS_MAX ? "bruck"
                                            : "linear";
    case RONDO_KIND_SCATTER:
        return multicasts(comm, call->kind, (size_t) comm->size * rondo_slice_op_bytes(per_rank)) ? "multicast"
               : comm->size > ALL_PEERS_MAX                                                       ? "binomial"
                                                                                                  : "linear";
    case RONDO_KIND_GATHER:
        return comm->size > ALL_PEERS_MAX ? "binomial" : "linear";
    case RONDO_KIND_ALLTOALLV:
    case RONDO_KIND_ALLTOALLW:
    case RONDO_KIND_GATHERV:
    case RONDO_KIND_SCATTERV:
        return "linear";
    case RONDO_KIND_NEIGHBOR_ALLGATHER:
    case RONDO_KIND_NEIGHBOR_ALLGATHERV:
    case RONDO_KIND_NEIGHBOR_ALLTOALL:
    case RONDO_KIND_NEIGHBOR_ALLTOALLV:
    case RONDO_KIND_NEIGHBOR_ALLTOALLW:
        return "neighbors";
    case RONDO_KIND_BARRIER:
        return multicasts(comm, call->kind, 0) ? "multicast" : comm->size > ALL_PEERS_MAX ? "bruck" : "allpairs";
    default:
        return "chain";
    }
}

size_t rondo_message_bytes(const struct rondo_comm *comm, const struct rondo_call *call)
{
    size_t bytes = rondo_call_bytes(comm, call);
    if (rondo_kind_has_own_counts(call->kind))
        return SIZE_MAX;
    return rondo_kind_has_blocks(call->kind) || rondo_kind_has_counts(call->kind) ? bytes / (size_t) comm->size : bytes;
}

size_t rondo_multicast_bytes(const struct rondo_comm *comm, const struct rondo_call *call,
                             const struct rondo_algorithm *algorithm)
{
    const size_t message = rondo_message_bytes(comm, call), size = (size_t) comm->size;
    if (algorithm->multicast != RONDO_MULTICAST_PARTS)
        return message;
    return size * rondo_slice_op_bytes(algorithm->even ? message / size : message);
}

size_t rondo_element_slot(const struct rondo_comm *comm, const struct rondo_call *call, const struct rondo_algorithm *algorithm)
{
    const int parts = algorithm->multicast == RONDO_MULTICAST_PARTS || !rondo_algorithm_single(algorithm);
    return rondo_slice_op_bytes(rondo_type_bytes(call->type)) * (parts ? (size_t) comm->size : 1);
}

/* Whether the call combines by an operator of the user: of elements of any size, and maybe in the order of ranks. */
static int is_users(const struct rondo_call *call)
{
    return rondo_kind_reduces(call->kind) && rondo_op_is_user(call->op);
}

/* Whether a slot holds what it must. */
static int holds_elements(const struct rondo_comm *comm, const struct rondo_call *call, const struct rondo_algorithm *algorithm)
{
    const size_t slot = comm->runtime->settings.slot_bytes,
                 most = algorithm->multicast && slot > RONDO_MULTICAST_BYTES_MAX ? RONDO_MULTICAST_BYTES_MAX : slot;
    return rondo_element_slot(comm, call, algorithm) <= most;
}

/* Whether a block has a connector to, or from, each other rank. */
static int needs_all_peers(const struct rondo_algorithm *algorithm, enum rondo_kind kind)
{
    return algorithm->direct || (algorithm->compose == rondo_compose_all_pairs && kind == RONDO_KIND_BARRIER);
}

const char *rondo_misfit(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                         const struct rondo_algorithm *algorithm)
{
    int reduces_all = algorithm->reduces_all || (call->kind == RONDO_KIND_REDUCE && algorithm->build == rondo_build_linear);
    if (algorithm->build == rondo_build_local)
        return "it is for a communicator of one rank";
    if (call->rate != 0 && !(algorithm->compresses >> call->kind & 1))
        return "it does not compress";
    if (call->feedback && algorithm->adapt == rondo_adapt_ring_hop)
        return "it keeps no residuals to feed back";
    if (needs_all_peers(algorithm, call->kind) && comm->size > ALL_PEERS_MAX)
        return "these are more ranks than a block has connectors to";
    if (reduces_all && comm->size > RONDO_REDUCE_SOURCES_MAX && call->kind != RONDO_KIND_BARRIER)
        return "these are more ranks than it folds at a time";
    if (algorithm->several_hosts && (comm->topology.nodes < 2 || comm->topology.locals < 2))
        return "it needs several hosts with equally many ranks, more than one, each";
    if (algorithm->multicast == RONDO_MULTICAST_PARTS &&
        comm->runtime->settings.slot_bytes < (size_t) comm->size * RONDO_SLICE_OP_ALIGNMENT)
        return "a slot does not hold a part for each rank";
    if (algorithm->even && call->count % (size_t) comm->size != 0)
        return "its ranks' parts would not be equally long";
    if (algorithm->multicast && !comm->multicast)
        return "it needs ranks on host devices of one host, that share memory";
    if (rondo_algorithm_blocks(algorithm, call->kind, comm->size) + (algorithm->keepers > 0) >
        (int) rondo_lane_contexts(comm->runtime))
        return "these are more ranks than a program has blocks here";
    if (algorithm->direct && !direct)
        return "it needs buffers that all ranks can reach (rondo_alloc, rondo_comm_register)";
    if (call->send == RONDO_IN_PLACE && algorithm->direct &&
        (call->kind == RONDO_KIND_ALLTOALL || call->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK))
        return "it does not run this collective in place";
    /* The same holds if the result overlaps this rank's own block of the input. The pairwise algorithm reads and writes it
     * once. */
    if (call->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK && (algorithm->separate >> call->kind & 1) && !algorithm->blocks_a_peer &&
        comm->size > 1 && call->send != RONDO_IN_PLACE &&
        (const char *) call->recv ==
            (const char *) call->send + (size_t) comm->rank * call->count * rondo_type_bytes(call->type))
        return "it does not run this collective in place";
    if ((algorithm->separate >> call->kind & 1) && call->send == RONDO_IN_PLACE)
        return "it does not run this collective in place";
    if ((algorithm->powers >> call->kind & 1) && (comm->size & (comm->size - 1)) != 0)
        return "it needs a power of two of ranks";
    if (is_users(call) && rondo_op_is_ordered(call->op) && !(algorithm->ordered >> call->kind & 1))
        return "it does not combine in the order of ranks";
    if (is_users(call) && !holds_elements(comm, call, algorithm))
        return "its slots do not hold an element of the type for each chunk";
    if (algorithm->registered != NULL)
        return rondo_program_misfit(comm, call, algorithm->registered);
    return NULL;
}

/* The algorithm if no name is given: a program registered for the size, else the tuning table's. NULL if neither has one. */
static const struct rondo_algorithm *ruled(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                                           struct rondo_choice *choice)
{
    size_t bytes = rondo_call_bytes(comm, call);
    for (const struct rondo_registered *program = rondo_program_next(comm, NULL); program != NULL;
         program = rondo_program_next(comm, program))
        if ((program->algorithm.kinds >> call->kind & 1) && program->max_bytes > 0 && bytes >= program->min_bytes &&
            bytes <= program->max_bytes && rondo_misfit(comm, call, direct, &program->algorithm) == NULL) {
            choice->why = "registered for the size";
            return &program->algorithm;
        }
    const struct rondo_tuning_row *row = rondo_tuning_find(comm->runtime->settings.tuning, call->kind, comm->size, bytes);
    const struct rondo_algorithm *tuned = row != NULL ? rondo_algorithm_find(row->algorithm, call->kind) : NULL;
    if (tuned != NULL && rondo_misfit(comm, call, direct, tuned) == NULL) {
        choice->why = "tuned";
        choice->tuned = row;
        return tuned;
    }
    return NULL;
}

/* The algorithm for an operator of the user that the one chosen by size cannot run. All of these keep the order of ranks. NULL:
 * none can. */
static const struct rondo_algorithm *for_operator(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                                                  struct rondo_choice *choice)
{
    static const char *const names[] = {"direct", "twoshot", "allpairs", "recursive-doubling", "linear", "chain"};
    choice->why = "for the operator";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct rondo_algorithm *algorithm = rondo_algorithm_find(names[i], call->kind);
        if (algorithm != NULL && rondo_misfit(comm, call, direct, algorithm) == NULL)
            return algorithm;
    }
    return NULL;
}

/* The algorithm by the rules that are compiled in. */
static const struct rondo_algorithm *by_rule(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                                             struct rondo_choice *choice)
{
    const struct rondo_algorithm *algorithm = ruled(comm, call, direct, choice);
    if (algorithm != NULL)
        return algorithm;
    choice->why = "by size";
    algorithm =
        rondo_algorithm_find(call->rate != 0 ? compressed_by_size(comm, call) : by_size(comm, call, direct), call->kind);
    return is_users(call) && rondo_misfit(comm, call, direct, algorithm) != NULL ? for_operator(comm, call, direct, choice)
                                                                                 : algorithm;
}

/* Appends a name to a list that is cut where it gets too long. */
static void list(char *text, size_t bytes, const char *name)
{
    size_t at = strlen(text);
    snprintf(text + at, bytes - at, "%s%s", at > 0 ? ", " : "", name);
}

/* RONDO_ALGORITHM must be built in, or be registered with the communicator by the time of a call: registering is collective, so
 * that all its ranks judge alike. */
static rondo_result_t check_name(const struct rondo_comm *comm, const char *name)
{
    char names[512] = "";
    int count;
    const struct rondo_algorithm *table = rondo_algorithm_table(&count);
    for (const struct rondo_registered *p = rondo_program_next(comm, NULL); p != NULL; p = rondo_program_next(comm, p))
        if (strcmp(p->algorithm.name, name) == 0)
            return RONDO_SUCCESS;
    for (int i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0)
            return RONDO_SUCCESS;
        if (i == 0 || strcmp(table[i].name, table[i - 1].name) != 0)
            list(names, sizeof(names), table[i].name);
    }
    for (const struct rondo_registered *p = rondo_program_next(comm, NULL); p != NULL; p = rondo_program_next(comm, p))
        list(names, sizeof(names), p->algorithm.name);
    return rondo_fail(
        RONDO_ERR_ARGUMENT,
        "RONDO_ALGORITHM=\"%s\" is not allowed: it must be a program that is registered with the communicator, or "
        "one of these: %s",
        name, names);
}

/* An algorithm that the call demands is used, or the call fails. One that the settings name is used where it can run the call.
 */
static rondo_result_t choose(const struct rondo_comm *comm, const struct rondo_call *call, int direct, const char *insisted,
                             struct rondo_choice *choice)
{
    const char *wanted = insisted != NULL ? insisted : comm->runtime->settings.algorithm;
    int alone = comm->size == 1 && call->kind != RONDO_KIND_SEND_TO && call->kind != RONDO_KIND_RECEIVE_FROM &&
                !rondo_kind_is_neighborhood(call->kind);
    const struct rondo_algorithm *algorithm = NULL;
    if (*wanted != '\0' && (algorithm = rondo_program_named(comm, wanted, call->kind)) == NULL)
        algorithm = rondo_algorithm_find(wanted, call->kind);
    choice->why = insisted != NULL ? "asked for" : "by RONDO_ALGORITHM";
    if (insisted == NULL && *wanted != '\0' && algorithm == NULL) {
        rondo_result_t status = check_name(comm, wanted);
        if (status != RONDO_SUCCESS)
            return status;
    }
    if (insisted != NULL && algorithm == NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "there is no algorithm '%s' for %s", insisted, rondo_kind_name(call->kind));
    if (alone) {
        int programmed = algorithm != NULL && algorithm->registered != NULL;
        choice->algorithm = programmed ? algorithm : rondo_algorithm_find("local", call->kind);
        choice->why = "one rank";
        return RONDO_SUCCESS;
    }
    const char *why = algorithm != NULL ? rondo_misfit(comm, call, direct, algorithm) : NULL;
    if (insisted != NULL && why != NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "algorithm '%s' cannot run %s on %d ranks: %s", insisted,
                          rondo_kind_name(call->kind), comm->size, why);
    choice->algorithm = algorithm == NULL || why != NULL ? by_rule(comm, call, direct, choice) : algorithm;
    if (choice->algorithm != NULL &&
        (choice->algorithm->build == rondo_build_linear || needs_all_peers(choice->algorithm, call->kind)) &&
        (why = rondo_misfit(comm, call, direct, choice->algorithm)) != NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "algorithm '%s' cannot run %s on %d ranks: %s", choice->algorithm->name,
                          rondo_kind_name(call->kind), comm->size, why);
    if (choice->algorithm == NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "%s: no algorithm combines elements of %zu bytes by operator %#x on %d ranks",
                          rondo_kind_name(call->kind), rondo_type_bytes(call->type), (unsigned) call->op, comm->size);
    return RONDO_SUCCESS;
}

/* A direct write waits for the receiver's address, which takes one message more than a slot does. */
#define DIRECT_WRITE_BYTES_MIN (512 * KIB)

int rondo_writes_directly_by(const struct rondo_comm *comm, const struct rondo_call *call, int streamed,
                             const struct rondo_choice *choice)
{
    const uint32_t kinds =
        choice->algorithm->direct_writes | (comm->size == 2 ? choice->algorithm->direct_writes_between_two : 0);
    return comm->direct_writes && (streamed || !comm->gpus_only) && choice->protocol == RONDO_PROTOCOL_SIMPLE &&
           (kinds >> call->kind & 1) && rondo_message_bytes(comm, call) >= DIRECT_WRITE_BYTES_MIN;
}

/* Collectives that move data and reduce none. */
#define MOVES                                                                                                                  \
    (1u << RONDO_KIND_BCAST | 1u << RONDO_KIND_ALLGATHER | 1u << RONDO_KIND_ALLGATHERV | 1u << RONDO_KIND_ALLTOALL |           \
     1u << RONDO_KIND_ALLTOALLV | 1u << RONDO_KIND_ALLTOALLW | 1u << RONDO_KIND_GATHER | 1u << RONDO_KIND_GATHERV |            \
     1u << RONDO_KIND_SCATTER | 1u << RONDO_KIND_SCATTERV | 1u << RONDO_KIND_ALLTONEXT | 1u << RONDO_KIND_SEND_TO |            \
     1u << RONDO_KIND_RECEIVE_FROM)

int rondo_copies_once(const struct rondo_comm *comm, const struct rondo_call *call, const struct rondo_choice *choice)
{
    const int large = choice->protocol == RONDO_PROTOCOL_SIMPLE;
    const int small = choice->protocol == RONDO_PROTOCOL_SMALL && comm->single_copy == RONDO_PEER_SINGLE_COPY_ALWAYS;
    return comm->single_copy != RONDO_PEER_SLOTS_ONLY && (large || small) &&
           ((MOVES >> call->kind & 1) || rondo_kind_is_neighborhood(call->kind));
}

/* Bytes of an element for LL slots, which are short where one primitive receives from many ranks. */
#define LOW_LATENCY_ELEMENT 64

static rondo_result_t select_all(const struct rondo_comm *comm, const struct rondo_call *call, int direct, int streamed,
                                 const char *name, struct rondo_choice *choice)
{
    const struct rondo_settings *settings = &comm->runtime->settings;
    choice->tuned = NULL;
    choice->measured = 0;
    int asked = name != NULL || *settings->algorithm != '\0' || *settings->protocol != '\0' || settings->wanted_channels > 0;
    int measured = comm->size > 1 && call->rate == 0 && !comm->networked && comm->gpus_only;
    if (!asked && measured && ruled(comm, call, direct, choice) == NULL &&
        rondo_select_gpu(comm, call, direct, streamed, choice)) {
        choice->why = "as measured on GPUs";
        choice->measured = 1;
        return RONDO_SUCCESS;
    }
    rondo_result_t status = choose(comm, call, direct, name, choice);
    if (status != RONDO_SUCCESS)
        return status;

    size_t message = rondo_message_bytes(comm, call);
    /* LL only if it is asked for: on the host device, polling the cache line that the sender is writing moves that line between
     * the cores more often than polling a separate tail does. */
    /* Never over a network, which transmits whole slots: the proxy would have to inspect the data to know that a slot is full.
     */
    const struct rondo_registered *registered = choice->algorithm->registered;
    const char *protocol = *settings->protocol != '\0'                          ? settings->protocol
                           : choice->tuned != NULL                              ? choice->tuned->protocol
                           : registered != NULL && registered->protocol != NULL ? registered->protocol
                                                                                : "";
    const int multicast = choice->algorithm->multicast, plain = !choice->algorithm->direct && !multicast;
    const int short_elements = rondo_type_bytes(call->type) <= LOW_LATENCY_ELEMENT;
    int low_latency = strcmp(protocol, "ll") == 0 && plain && !comm->networked && short_elements;
    int lines = strcmp(protocol, "ll128") == 0 && plain && comm->linked;
    int tma = strcmp(protocol, "tma") == 0 && plain && comm->tma;
    /* Where each rank has connectors to very many, small slots bound their memory. Small messages by recursive doubling on one
     * host go through slots of their size as well; larger ones are faster in one slot each. */
    int many = rondo_kind_has_own_counts(call->kind) && comm->size > ALL_PEERS_MAX && call->rate == 0;
    const int quick = choice->algorithm->low_latency;
    const int doubles = choice->algorithm->build == rondo_build_doubling && comm->same_host && comm->hosts_only;
    int small = (quick && many) || ((quick || doubles) && message <= RONDO_SMALL_BYTES_MAX);
    int tiny = quick && small && message <= RONDO_TINY_BYTES_MAX && !comm->networked && comm->hosts_only;
    choice->protocol = call->rate != 0 && choice->algorithm->build != rondo_build_local ? RONDO_PROTOCOL_COMPRESSED
                       : low_latency                                                    ? RONDO_PROTOCOL_LL
                       : lines                                                          ? RONDO_PROTOCOL_LL128
                       : tma                                                            ? RONDO_PROTOCOL_TMA
                       : multicast && rondo_multicast_bytes(comm, call, choice->algorithm) <= RONDO_TINY_BYTES_MAX
                           ? RONDO_PROTOCOL_MULTICAST_TINY
                       : multicast ? RONDO_PROTOCOL_MULTICAST
                       : tiny      ? RONDO_PROTOCOL_TINY
                       : small     ? RONDO_PROTOCOL_SMALL
                                   : RONDO_PROTOCOL_SIMPLE;

    size_t channel_bytes = call->rate != 0 && comm->gpus_only ? 64 * KIB /* a block compresses more slowly than it moves data */
                           : rondo_is_wide(comm) && call->rate == 0 ? NETWORK_CHANNEL_BYTES
                                                                    : 256 * KIB;
    size_t channels = message / channel_bytes;
    int single = (choice->algorithm->compose == rondo_compose_all_pairs && !comm->gpus_only) ||
                 choice->algorithm->build == rondo_build_local || choice->algorithm->multicast ||
                 call->kind == RONDO_KIND_BARRIER;
    if (settings->wanted_channels > 0)
        channels = settings->wanted_channels;
    else if (choice->tuned != NULL && choice->tuned->channels > 0)
        channels = (size_t) choice->tuned->channels;
    if (single || channels < 1 || rondo_kind_has_own_counts(call->kind) || rondo_call_lies_across(call))
        channels = 1;
    if (choice->algorithm->registered != NULL)
        channels = 1; /* it says itself what it does side by side */
    size_t most = settings->channels, blocks = (size_t) rondo_algorithm_blocks(choice->algorithm, call->kind, comm->size);
    if (blocks > 1 || choice->algorithm->keepers > 0) {
        const size_t limit = streamed ? settings->stream_blocks : 0, contexts = rondo_lane_contexts(comm->runtime),
                     room = limit > 0 && limit < contexts ? limit : contexts;
        most = (size_t) rondo_algorithm_channels(choice->algorithm, call->kind, comm->size, (int) room);
    } else if (comm->gpus_only) {
        most = (size_t) rondo_select_gpu_blocks(comm, streamed, call->rate != 0);
    }
    if (comm->networked && comm->gpus_only && call->rate == 0 && settings->wanted_channels == 0) {
        const size_t transmitted = network_gpu_channels(comm);
        most = transmitted < most ? transmitted : most;
    }
    choice->channels = (int) (channels < most ? channels : most);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_select(const struct rondo_comm *comm, const struct rondo_call *call, int direct, int streamed,
                            const char *name, struct rondo_choice *choice)
{
    rondo_result_t status = select_all(comm, call, direct, streamed, name, choice);
    choice->direct_writes = status == RONDO_SUCCESS && rondo_writes_directly_by(comm, call, streamed, choice);
    choice->single_copy = status == RONDO_SUCCESS && rondo_copies_once(comm, call, choice);
    return status;
}
