/* The parts of the scenario (test/injection/scenario.h), and their table. Buffers are there before a part begins, so that the
 * part itself allocates nothing. */
#include "test/injection/scenario.h"

#include "rondo_program.h"
#include "test/injection/buffers.h"
#include "test/injection/planted.h"
#include "test/injection/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))
#define T      RONDO_INT32

static void part_life(UNUSED struct rank_record *record, UNUSED int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    allreduce(world, SMALL);
}

static void part_blocking(struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    static const size_t counts[RANKS] = {10, 20, 30}, displacements[RANKS] = {0, 10, 30};
    const size_t own[RANKS] = {counts[rank], counts[rank], counts[rank]};
    const size_t own_displacements[RANKS] = {0, counts[rank], 2 * counts[rank]};
    TRY(world, rondo_barrier(world));
    allreduce(world, SMALL);
    if (record->failed_step != 0)
        return;
    fill(in, 3 * SMALL);
    TRY(world, rondo_reduce(in, out, SMALL, T, RONDO_SUM, 1, world));
    if (rank == 1)
        expect(out, SMALL, 3, 3000);
    fill(out, SMALL);
    TRY(world, rondo_bcast(out, SMALL, T, 2, world));
    expect(out, SMALL, 1, 2000);
    TRY(world, rondo_reduce_scatter_block(in, out, SMALL, T, RONDO_SUM, world));
    expect(out, SMALL, 3, 3000 + 3 * SMALL * rank);
    TRY(world, rondo_allgather(in, out, SMALL, T, world));
    for (int r = 0; r < RANKS; r++)
        expect(out + r * SMALL, SMALL, 1, 1000 * r);
    TRY(world, rondo_allgatherv(in, counts[rank], out, counts, displacements, T, world));
    for (int r = 0; r < RANKS; r++)
        expect(out + displacements[r], counts[r], 1, 1000 * r);
    TRY(world, rondo_alltoall(in, out, SMALL, T, world));
    for (int r = 0; r < RANKS; r++)
        expect(out + r * SMALL, SMALL, 1, 1000 * r + SMALL * rank);
    TRY(world, rondo_alltoallv(in, counts, displacements, out, own, own_displacements, T, world));
    for (int r = 0; r < RANKS; r++)
        expect(out + own_displacements[r], own[r], 1, 1000 * r + (int32_t) displacements[rank]);
    TRY(world, rondo_gatherv(in, counts[rank], out, counts, displacements, T, 1, world));
    for (int r = 0; rank == 1 && r < RANKS; r++)
        expect(out + displacements[r], counts[r], 1, 1000 * r);
    TRY(world, rondo_scatterv(in, counts, displacements, out, counts[rank], T, 2, world));
    expect(out, counts[rank], 1, 2000 + (int32_t) displacements[rank]);
    expect_copied(buffers_put(out, in, BUFFER_BYTES)); /* in place, and of different sizes */
    TRY(world, rondo_reduce_scatter(RONDO_IN_PLACE, out, counts, T, RONDO_SUM, world));
    expect(out, counts[rank], 3, 3000 + 3 * (int32_t) displacements[rank]);
    TRY(world, rondo_gather(in, out, SMALL, T, 0, world));
    for (int r = 0; r < RANKS && rank == 0; r++)
        expect(out + r * SMALL, SMALL, 1, 1000 * r);
    TRY(world, rondo_scatter(in, out, SMALL, T, 2, world));
    expect(out, SMALL, 1, 2000 + SMALL * rank);
    TRY(world, rondo_scan(in, out, SMALL, T, RONDO_SUM, world));
    expect(out, SMALL, rank + 1, rank == 0 ? 0 : rank == 1 ? 1000 : 3000);
    TRY(world, rondo_exscan(in, out, SMALL, T, RONDO_SUM, world));
    if (rank > 0)
        expect(out, SMALL, rank, rank == 1 ? 0 : 1000);
    TRY(world, rondo_alltonext(in, out, SMALL, T, world));
    if (rank > 0)
        expect(out, SMALL, 1, 1000 * (rank - 1));
    TRY(world, rondo_barrier(world));
}

static void part_large(struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    allreduce(world, LARGE);
    if (record->failed_step != 0)
        return;
    fill(in, RANKS * LARGE);
    TRY(world, rondo_alltoall(in, out, LARGE, T, world));
    for (int r = 0; r < RANKS; r++)
        expect(out + r * LARGE, LARGE, 1, 1000 * r + LARGE * rank);
    TRY(world, rondo_allgather(in, out, LARGE, T, world));
    for (int r = 0; r < RANKS; r++)
        expect(out + r * LARGE, LARGE, 1, 1000 * r);
    TRY(world, rondo_barrier(world));
}

/* Waits for all count requests, whatever becomes of them. */
static void wait_all(rondo_comm_t comm, rondo_request_t *requests, int count)
{
    for (int i = 0; i < count; i++) {
        char what[64];
        snprintf(what, sizeof(what), "rondo_wait of request %d", i);
        step_begin(what);
        step_end(comm, rondo_wait(requests[i]));
    }
}

static void part_nonblocking(struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    rondo_request_t requests[6];
    int started = 0;
    fill(in, 3 * SMALL);
#define START(call)                                                                                                            \
    do {                                                                                                                       \
        step_begin(#call);                                                                                                     \
        if (!step_end(world, (call))) {                                                                                        \
            wait_all(world, requests, started);                                                                                \
            return;                                                                                                            \
        }                                                                                                                      \
        started++;                                                                                                             \
    } while (0)
    START(rondo_iallreduce(in, out, SMALL, T, RONDO_SUM, world, &requests[0]));
    START(rondo_iallgather(in, out + 1000, SMALL, T, world, &requests[1]));
    START(rondo_ibarrier(world, &requests[2]));
    START(rondo_ialltoall(in, out + 2000, SMALL, T, world, &requests[3]));
    START(rondo_ireduce(in, out + 3000, SMALL, T, RONDO_MAX, 0, world, &requests[4]));
    START(rondo_iscan(in, out + 4000, SMALL, T, RONDO_SUM, world, &requests[5]));
    wait_all(world, requests, started);
    if (record->failed_step != 0)
        return;
    expect(out, SMALL, 3, 3000);
    for (int r = 0; r < RANKS; r++) {
        expect(out + 1000 + r * SMALL, SMALL, 1, 1000 * r);
        expect(out + 2000 + r * SMALL, SMALL, 1, 1000 * r + SMALL * rank);
    }
    if (rank == 0)
        expect(out + 3000, SMALL, 1, 2000);
    expect(out + 4000, SMALL, rank + 1, rank == 0 ? 0 : rank == 1 ? 1000 : 3000);
    TRY(world, rondo_barrier(world));
}

static void part_persistent(struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    rondo_request_t requests[3];
    rondo_attr_t attributes = RONDO_ATTR_DEFAULT;
    attributes.priority = 1;
    fill(in, 3 * SMALL);
    TRY(world, rondo_allreduce_init(in, out, SMALL, T, RONDO_SUM, world, NULL, &requests[0]));
    TRY(world, rondo_alltoall_init(in, out + 1000, SMALL, T, world, &attributes, &requests[1]));
    TRY(world, rondo_bcast_init(more, SMALL, T, 1, world, NULL, &requests[2]));
    for (int round = 0; round < 2; round++) {
        fill(more, SMALL);
        for (int i = 0; i < 3; i++) {
            step_begin("rondo_start");
            if (!step_end(world, rondo_start(requests[(i + rank) % 3]))) {
                for (int k = 0; k < i; k++)
                    rondo_wait(requests[(k + rank) % 3]);
                return;
            }
        }
        wait_all(world, requests, 3);
        if (record->failed_step != 0)
            return;
        expect(out, SMALL, 3, 3000);
        for (int r = 0; r < RANKS; r++)
            expect(out + 1000 + r * SMALL, SMALL, 1, 1000 * r + SMALL * rank);
        expect(more, SMALL, 1, 1000);
        TRY(world, rondo_barrier(world));
    }
    LOCAL(rondo_request_free(&requests[1]));
    TRY(world, rondo_barrier(world));
}

static void part_communicators(struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    rondo_comm_t copy = NULL, half = NULL, rest = NULL, pair = NULL, ring = NULL;
    const int last = 2;
    TRY(world, rondo_comm_dup(world, &copy));
    allreduce(copy, SMALL);
    if (record->failed_step != 0)
        return;
    TRY(world, rondo_comm_split(world, rank == 1, -rank, &half));
    fill(in, SMALL);
    TRY(half, rondo_allreduce(in, out, SMALL, T, RONDO_SUM, half));
    if (rank == 1)
        expect(out, SMALL, 1, 1000);
    else
        expect(out, SMALL, 2, 2000);
    LOCAL(rondo_comm_free(&half));
    TRY(world, rondo_barrier(world));
    const int next = (rank + 1) % RANKS, previous = (rank + RANKS - 1) % RANKS;
    TRY(world, rondo_graph_create(world, 1, &previous, 1, &next, &ring));
    TRY(ring, rondo_neighbor_allgather(in, out, SMALL, T, ring));
    expect(out, SMALL, 1, 1000 * previous);
    TRY(world, rondo_barrier(world));
    LOCAL(rondo_comm_free(&ring));
    if (rank != last) {
        step_begin("rondo_comm_shrink");
        if (!step_end(world, rondo_comm_shrink(copy, &last, 1, &rest))) {
            rondo_comm_abort(world, 1); /* the excluded rank takes no part, and cannot know */
            return;
        }
        TRY(rest, rondo_barrier(rest));
        step_begin("rondo_comm_create_group");
        if (!step_end(world, rondo_comm_create_group(copy, (const int[]){1, 0}, 2, 4, &pair))) {
            rondo_comm_abort(world, 1);
            return;
        }
        TRY(pair, rondo_barrier(pair));
    }
    TRY(world, rondo_barrier(world));
}

/* Three times, because the third agreement drops what is kept of the first. */
static void part_agreement(UNUSED struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    rondo_comm_t rest = NULL;
    for (int round = 0; round < 3; round++) {
        int flag = 7 ^ 1 << rank % 2;
        TRY(world, rondo_comm_agree(world, &flag));
        if (flag != 4)
            step_wrong("agreed on %d", flag);
    }
    TRY(world, rondo_comm_shrink(world, NULL, RONDO_SHRINK_FAILED, &rest)); /* without a rank that has failed */
    LOCAL(rondo_comm_free(&rest));
    TRY(world, rondo_barrier(world));
}

static void use_grown(rondo_t grown)
{
    rondo_comm_t all = NULL;
    LOCAL(rondo_comm_world(grown, &all));
    allreduce(all, SMALL);
}

/* The ranks meet anew, in a job of its own. If that fails, what they have is as good as before. */
static void part_growing(struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    rondo_unique_id_t id;
    rondo_t grown = NULL;
    config.connect_timeout = steps.connect_timeout;
    if (rank == 0)
        LOCAL(rondo_get_unique_id(&id));
    TRY(world, rondo_comm_grow(world, RANKS, rank == 0 ? &id : NULL, &config, &grown));
    use_grown(grown);
    step_begin("rondo_finalize of the grown job");
    if (rondo_finalize(grown) != RONDO_SUCCESS)
        step_wrong("%s", rondo_last_error());
    if (record->failed_step != 0) {
        steps.failed_comm = world; /* the other one is freed */
        rondo_comm_abort(world, 1);
        return;
    }
    TRY(world, rondo_barrier(world));
}

static void part_memory(UNUSED struct rank_record *record, UNUSED int rank, rondo_t runtime, rondo_comm_t world)
{
    void *memory = NULL;
    LOCAL(rondo_alloc(runtime, 2 * SMALL * sizeof(int32_t), &memory));
    int32_t *buffer = memory;
    TRY(world, rondo_comm_register(world, buffer, 2 * SMALL * sizeof(int32_t)));
    fill(buffer, SMALL);
    TRY(world, rondo_allreduce(buffer, buffer + SMALL, SMALL, T, RONDO_SUM, world));
    expect(buffer + SMALL, SMALL, 3, 3000);
    fill(buffer, SMALL);
    TRY(world, rondo_bcast(buffer, SMALL, T, 0, world));
    expect(buffer, SMALL, 1, 0);
    TRY(world, rondo_barrier(world));
    LOCAL(rondo_comm_deregister(world, buffer));
    TRY(world, rondo_barrier(world));
    LOCAL(rondo_free(runtime, memory));
    TRY(world, rondo_barrier(world));
}

static void part_messages(struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    const int next = (rank + 1) % RANKS, previous = (rank + RANKS - 1) % RANKS;
    rondo_request_t requests[2];
    fill(in, LARGE);
    LOCAL(rondo_group_start(world));
    step_begin("rondo_send in a group");
    int sent = step_end(world, rondo_send(in, SMALL, T, next, world));
    step_begin("rondo_recv in a group");
    int received = step_end(world, rondo_recv(out, SMALL, T, previous, world));
    TRY(world, rondo_group_end(world));
    if (!sent || !received)
        return;
    expect(out, SMALL, 1, 1000 * previous);
    TRY(world, rondo_irecv(out, LARGE, T, previous, world, &requests[0]));
    step_begin("rondo_isend");
    int started = step_end(world, rondo_isend(in, LARGE, T, next, world, &requests[1]));
    wait_all(world, requests, started ? 2 : 1);
    if (record->failed_step != 0)
        return;
    expect(out, LARGE, 1, 1000 * previous);
    TRY(world, rondo_barrier(world));
}

/* Rank r gathers all ranks' chunk r, adds them up, and gives the sum to all. */
static rondo_result_t make_program(rondo_program_t *program)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    signature.name = "two-steps";
    signature.collective = "allreduce";
    signature.ranks = signature.chunks = RANKS;
    signature.in_place = 1;
    rondo_result_t result = rondo_program_create(program, &signature);
    if (result != RONDO_SUCCESS)
        return result;
    rondo_program_t p = *program;
    for (int r = 0; r < RANKS; r++)
        for (int from = 0; from < RANKS; from++)
            if (from != r)
                rondo_chunk_copy(rondo_chunk(p, from, RONDO_BUFFER_INPUT, (size_t) r, 1), r, RONDO_BUFFER_SCRATCH,
                                 (size_t) from);
    for (int r = 0; r < RANKS; r++) {
        rondo_chunk_t sum = rondo_chunk(p, r, RONDO_BUFFER_INPUT, (size_t) r, 1);
        for (int from = 0; from < RANKS; from++)
            if (from != r)
                sum = rondo_chunk_reduce(sum, rondo_chunk(p, r, RONDO_BUFFER_SCRATCH, (size_t) from, 1));
        for (int to = 0; to < RANKS; to++)
            if (to != r)
                rondo_chunk_copy(sum, to, RONDO_BUFFER_OUTPUT, (size_t) r);
    }
    result = rondo_program_check(p, NULL);
    if (result != RONDO_SUCCESS)
        rondo_program_destroy(p);
    return result;
}

static rondo_result_t read_back(rondo_program_t program, rondo_program_t *copy)
{
    char *text = NULL;
    rondo_result_t result = rondo_program_write_xml(program, &text);
    if (result == RONDO_SUCCESS)
        result = rondo_program_read_xml(text, strlen(text), copy);
    rondo_program_text_free(text);
    return result;
}

static rondo_result_t list(rondo_program_t program)
{
    char *text = NULL;
    rondo_result_t result = rondo_program_write_listing(program, &text);
    rondo_program_text_free(text);
    text = NULL;
    if (result == RONDO_SUCCESS)
        result = rondo_program_write_dot(program, &text);
    rondo_program_text_free(text);
    return result;
}

static void run_program(rondo_comm_t world, rondo_program_t program)
{
    rondo_request_t request;
    rondo_attr_t attributes = RONDO_ATTR_DEFAULT;
    attributes.program = "two-steps";
    TRY(world, rondo_program_register(world, program, 0, 0));
    fill(in, 3 * SMALL);
    TRY(world, rondo_allreduce_init(in, out, 3 * SMALL, T, RONDO_SUM, world, &attributes, &request));
    TRY(world, rondo_start(request));
    TRY(world, rondo_wait(request));
    expect(out, 3 * SMALL, 3, 3000);
    TRY(world, rondo_barrier(world));
}

static void part_program(UNUSED struct rank_record *record, UNUSED int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    rondo_program_t program = NULL, copy = NULL;
    LOCAL(make_program(&program));
    step_begin("read_back and list");
    if ((read_back(program, &copy) != RONDO_SUCCESS && read_back(program, &copy) != RONDO_SUCCESS) ||
        (list(program) != RONDO_SUCCESS && list(program) != RONDO_SUCCESS))
        step_wrong("it fails again: %s", rondo_last_error());
    else
        run_program(world, copy);
    rondo_program_destroy(copy);
    rondo_program_destroy(program);
}

static void count_call(void *argument, rondo_result_t result)
{
    *(rondo_result_t *) argument = result;
}

/* Asks this rank for the state of all ranks, as a program outside of the job would. What fails is that program's alone: system
 * calls that do not fail on purpose. */
static void ask_for_state(void)
{
    static _Thread_local char answer[4000];
    static const char request[] = "state\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {3, 0};
    const int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "rondo-inspection.%ld.0", (long) getpid());
    const long fd = syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const long bytes = (long) offsetof(struct sockaddr_un, sun_path) + 1 + length;
    step_begin("asking for the state");
    if (fd < 0)
        return;
    setsockopt((int) fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (syscall(SYS_connect, fd, &address, bytes) == 0 &&
        syscall(SYS_sendto, fd, request, sizeof(request) - 1, MSG_NOSIGNAL, NULL, 0) > 0)
        while (syscall(SYS_recvfrom, fd, answer, sizeof(answer), 0, NULL, NULL) > 0)
            ;
    syscall(SYS_close, fd);
}

/* A report of all ranks, the state of all, a callback, and a synchronization. */
static void part_observing(UNUSED struct rank_record *record, UNUSED int rank, rondo_t runtime, rondo_comm_t world)
{
    static _Thread_local char text[4000];
    rondo_request_t request;
    rondo_result_t called = RONDO_ERR_INTERNAL;
    rondo_stats_t statistics;
    TRY(world, rondo_barrier(world));
    ASK(world, rondo_report(runtime, text, sizeof(text)));
    ask_for_state();
    TRY(world, rondo_barrier(world));
    fill(in, SMALL);
    TRY(world, rondo_iallreduce(in, out, SMALL, T, RONDO_SUM, world, &request));
    step_begin("rondo_request_callback");
    int set = step_end(world, rondo_request_callback(request, count_call, &called));
    TRY(world, rondo_wait(request));
    expect(out, SMALL, 3, 3000);
    if (set && called != RONDO_SUCCESS)
        step_wrong("the callback had %d", (int) called);
    LOCAL(rondo_device_synchronize(runtime));
    LOCAL(rondo_get_stats(runtime, &statistics));
    TRY(world, rondo_barrier(world));
}

static void part_compression(UNUSED struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    static float from[4096], to[4096];
    rondo_attr_t attributes = RONDO_ATTR_DEFAULT;
    rondo_request_t request;
    attributes.compress_rate = 16;
    for (int i = 0; i < 4096; i++)
        from[i] = (float) (rank + 1);
    TRY(world, rondo_allreduce_init(from, to, 4096, RONDO_FLOAT, RONDO_SUM, world, &attributes, &request));
    TRY(world, rondo_start(request));
    TRY(world, rondo_wait(request));
    for (int i = 0; i < 4096; i++)
        if (to[i] < 5.9F || to[i] > 6.1F) {
            step_wrong("element %d is %g, not 6", i, (double) to[i]);
            break;
        }
    TRY(world, rondo_barrier(world));
}

/* Operations on a stream. A stream's operations have ended when the stream has, but say nothing of it: the barrier does. */
#define ON_STREAM(call)                                                                                                        \
    do {                                                                                                                       \
        step_begin(#call);                                                                                                     \
        if (!step_end(world, (call)))                                                                                          \
            return;                                                                                                            \
    } while (0)

static void part_stream(UNUSED struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)
{
    void *stream = operation_stream;
    rondo_request_t request;
    fill(in, LARGE);
    fill(more, LARGE);
    ON_STREAM(rondo_allreduce_on_stream(in, out, SMALL, T, RONDO_SUM, world, stream));
    ON_STREAM(rondo_allgather_on_stream(in, out + 1000, SMALL, T, world, stream));
    ON_STREAM(rondo_bcast_on_stream(more, LARGE, T, 1, world, stream));
    step_begin("cudaStreamSynchronize");
    expect_copied(buffers_synchronize());
    TRY(world, rondo_barrier(world));
    expect(out, SMALL, 3, 3000);
    for (int r = 0; r < RANKS; r++)
        expect(out + 1000 + r * SMALL, SMALL, 1, 1000 * r);
    expect(more, LARGE, 1, 1000);
    TRY(world, rondo_alltoall_init(in, out, SMALL, T, world, NULL, &request));
    for (int round = 0; round < 2; round++) {
        ON_STREAM(rondo_start_on_stream(request, stream));
        step_begin("cudaStreamSynchronize");
        expect_copied(buffers_synchronize());
        TRY(world, rondo_barrier(world));
        for (int r = 0; r < RANKS; r++)
            expect(out + r * SMALL, SMALL, 1, 1000 * r + SMALL * rank);
    }
    LOCAL(rondo_request_free(&request));
    TRY(world, rondo_barrier(world));
}

#define ENVIRONMENT(...)                                                                                                       \
    (const char *const[])                                                                                                      \
    {                                                                                                                          \
        __VA_ARGS__ NULL                                                                                                       \
    }
#define PROCESSES "RONDO_TRANSPORTS", "shm"

/* Ranks as threads, and as processes, of which one GPU runs them all. */
#define THREADS(name, environment, whole, body)                                                                                \
    {                                                                                                                          \
        name, environment, whole, 0, body, ON_GPU_THREADS                                                                      \
    }
#define GPU_PROCESSES(name, environment, whole, body)                                                                          \
    {                                                                                                                          \
        name, environment, whole, 0, body, ON_GPU_PROCESSES                                                                    \
    }

/* Parts with a planted bug, which run only if they are named. */
#define PLANTED(bug)                                                                                                           \
    static void part_planted_##bug(UNUSED struct rank_record *record, int rank, UNUSED rondo_t runtime, rondo_comm_t world)    \
    {                                                                                                                          \
        TRY(world, planted_##bug(world, rank, out));                                                                           \
        expect(out, 1, 0, 3);                                                                                                  \
        TRY(world, rondo_barrier(world));                                                                                      \
    }
PLANTED(unchecked)
PLANTED(leak)
PLANTED(silence)
PLANTED(wrong)
PLANTED(cuda)

const struct part parts[] = {
    {"life", ENVIRONMENT(PROCESSES, ), 1, 0, part_life, ON_HOST},
    {"life-tcp", ENVIRONMENT(PROCESSES, "RONDO_ROOT", A_ROOT, "RONDO_SECRET", "open sesame", "RONDO_CHECK", "1", ), 1, 0,
     part_life, ON_HOST},
    {"life-roots", ENVIRONMENT(PROCESSES, "RONDO_ROOT", TWO_ROOTS, "RONDO_SECRET", "open sesame", ), 1, 0, part_life, ON_HOST},
    {"life-id", ENVIRONMENT("id", "1", ), 1, 0, part_life, ON_HOST},
    {"life-ids", ENVIRONMENT("id", "2", ), 1, 0, part_life, ON_HOST},
    {"life-hosts", ENVIRONMENT("RONDO_TRANSPORTS", "shm,ucx", ), 1, 1, part_life, ON_HOST},
    {"life-programs", ENVIRONMENT(PROCESSES, "RONDO_PROGRAMS", "test/injection/programs", ), 1, 0, part_life, ON_HOST},
    {"trace", ENVIRONMENT(PROCESSES, "RONDO_TRACE", A_FILE, ), 1, 0, part_life, ON_HOST},
    {"blocking", ENVIRONMENT(PROCESSES, ), 0, 0, part_blocking, ON_HOST},
    {"blocking-check", ENVIRONMENT(PROCESSES, "RONDO_CHECK", "1", ), 0, 0, part_blocking, ON_HOST},
    {"blocking-hosts", ENVIRONMENT("RONDO_TRANSPORTS", "shm,ucx", ), 0, 1, part_blocking, ON_HOST},
    {"large", ENVIRONMENT(PROCESSES, ), 0, 0, part_large, ON_HOST},
    {"large-hosts", ENVIRONMENT("RONDO_TRANSPORTS", "shm,ucx", ), 0, 1, part_large, ON_HOST},
    {"large-once", ENVIRONMENT(PROCESSES, "RONDO_SINGLE_COPY", "cma", ), 0, 0, part_large, ON_HOST},
    {"nonblocking", ENVIRONMENT(PROCESSES, "RONDO_CHECK", "1", ), 0, 0, part_nonblocking, ON_HOST},
    {"persistent", ENVIRONMENT(PROCESSES, ), 0, 0, part_persistent, ON_HOST},
    {"persistent-hosts", ENVIRONMENT("RONDO_TRANSPORTS", "shm,ucx", ), 0, 1, part_persistent, ON_HOST},
    {"communicators", ENVIRONMENT(PROCESSES, ), 0, 0, part_communicators, ON_HOST},
    {"agreement", ENVIRONMENT(PROCESSES, ), 0, 0, part_agreement, ON_HOST},
    /* a root to which no rank comes ends after 2 s */
    {"growing", ENVIRONMENT(PROCESSES, "RONDO_CONNECT_TIMEOUT", "2", ), 0, 0, part_growing, ON_HOST},
    {"memory", ENVIRONMENT(PROCESSES, ), 0, 0, part_memory, ON_HOST},
    {"messages", ENVIRONMENT(PROCESSES, ), 0, 0, part_messages, ON_HOST},
    {"messages-hosts", ENVIRONMENT("RONDO_TRANSPORTS", "shm,ucx", ), 0, 1, part_messages, ON_HOST},
    {"program", ENVIRONMENT(PROCESSES, ), 0, 0, part_program, ON_HOST},
    {"observing", ENVIRONMENT(PROCESSES, "RONDO_METRICS", A_FILE, "RONDO_FLIGHT_RECORDER", A_FILE, ), 0, 0, part_observing,
     ON_HOST},
    {"compression", ENVIRONMENT(PROCESSES, ), 0, 0, part_compression, ON_HOST},
    THREADS("gpu-life", ENVIRONMENT(), 1, part_life),
    THREADS("gpu-trace", ENVIRONMENT("RONDO_TRACE", A_FILE, ), 1, part_life),
    THREADS("gpu-blocking", ENVIRONMENT(), 0, part_blocking),
    THREADS("gpu-large", ENVIRONMENT(), 0, part_large),
    THREADS("gpu-nonblocking", ENVIRONMENT("RONDO_CHECK", "1", ), 0, part_nonblocking),
    THREADS("gpu-persistent", ENVIRONMENT(), 0, part_persistent),
    THREADS("gpu-stream", ENVIRONMENT(), 0, part_stream),
    THREADS("gpu-communicators", ENVIRONMENT(), 0, part_communicators),
    THREADS("gpu-memory", ENVIRONMENT(), 0, part_memory),
    THREADS("gpu-messages", ENVIRONMENT(), 0, part_messages),
    THREADS("gpu-program", ENVIRONMENT(), 0, part_program),
    THREADS("gpu-observing", ENVIRONMENT(), 0, part_observing),
    GPU_PROCESSES("gpu-processes", ENVIRONMENT(), 1, part_large),
    GPU_PROCESSES("gpu-processes-memory", ENVIRONMENT(), 0, part_memory),
    {"planted-unchecked", ENVIRONMENT(PROCESSES, ), 0, 0, part_planted_unchecked, ON_HOST},
    {"planted-leak", ENVIRONMENT(PROCESSES, ), 0, 0, part_planted_leak, ON_HOST},
    {"planted-silence", ENVIRONMENT(PROCESSES, ), 0, 0, part_planted_silence, ON_HOST},
    {"planted-wrong", ENVIRONMENT(PROCESSES, ), 0, 0, part_planted_wrong, ON_HOST},
    {"planted-leak-threads", ENVIRONMENT(), 0, 0, part_planted_leak, ON_HOST_THREADS},
    {"planted-cuda", ENVIRONMENT(PROCESSES, ), 0, 0, part_planted_cuda, ON_HOST},
};
const int part_count = sizeof(parts) / sizeof(parts[0]);
