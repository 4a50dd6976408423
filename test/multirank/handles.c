/*
 * Handles that stand for nothing: NULL, any other pointer, a freed object's, an object's of another kind, and every handle in a
 * forked process. Each public function refuses them with the right code and its own name, follows no pointer, and harms no
 * other rank. test/test_arguments.py compares the table with the functions of the headers.
 */
#include "test/multirank/ranks.h"

#include "rondo_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long ranks = 2;
static const char *scenario = "all";

/* Arguments that would be right, if the handle were. */
static int64_t input[64], output[64];
static size_t counts[64], displacements[64];
static rondo_datatype_t types[64];
static rondo_request_t made_request;
static rondo_comm_t made_comm;
static rondo_t made_runtime;
static char *made_text;

#define T RONDO_INT64
#define S RONDO_SUM
#define R &made_request

static void nothing(void *argument, rondo_result_t result)
{
    (void) argument;
    (void) result;
}

/* X(name, arguments): each function that takes a handle, by the kind of the handle, which is h. */
#define FORMS(X, name, ...)                                                                                                    \
    X(rondo_##name, __VA_ARGS__, h)                                                                                            \
    X(rondo_i##name, __VA_ARGS__, h, R)                                                                                        \
    X(rondo_##name##_init, __VA_ARGS__, h, NULL, R) X(rondo_##name##_on_stream, __VA_ARGS__, h, NULL)
#define COMM_CALLS(X)                                                                                                          \
    FORMS(X, allreduce, input, output, 1, T, S)                                                                                \
    FORMS(X, reduce, input, output, 1, T, S, 0)                                                                                \
    FORMS(X, bcast, input, 1, T, 0)                                                                                            \
    FORMS(X, reduce_scatter_block, input, output, 1, T, S)                                                                     \
    FORMS(X, allgather, input, output, 1, T)                                                                                   \
    FORMS(X, allgatherv, input, 0, output, counts, displacements, T)                                                           \
    FORMS(X, alltoall, input, output, 1, T)                                                                                    \
    FORMS(X, alltoallv, input, counts, displacements, output, counts, displacements, T)                                        \
    FORMS(X, alltoallw, input, counts, displacements, types, output, counts, displacements, types)                             \
    FORMS(X, reduce_scatter, input, output, counts, T, S)                                                                      \
    FORMS(X, gather, input, output, 1, T, 0)                                                                                   \
    FORMS(X, gatherv, input, 0, output, counts, displacements, T, 0)                                                           \
    FORMS(X, scatter, input, output, 1, T, 0)                                                                                  \
    FORMS(X, scatterv, input, counts, displacements, output, 0, T, 0)                                                          \
    X(rondo_barrier, h)                                                                                                        \
    X(rondo_ibarrier, h, R)                                                                                                    \
    X(rondo_barrier_init, h, NULL, R)                                                                                          \
    X(rondo_barrier_on_stream, h, NULL)                                                                                        \
    FORMS(X, scan, input, output, 1, T, S)                                                                                     \
    FORMS(X, exscan, input, output, 1, T, S)                                                                                   \
    FORMS(X, alltonext, input, output, 1, T)                                                                                   \
    FORMS(X, neighbor_allgather, input, output, 1, T)                                                                          \
    FORMS(X, neighbor_allgatherv, input, 0, output, counts, displacements, T)                                                  \
    FORMS(X, neighbor_alltoall, input, output, 1, T)                                                                           \
    FORMS(X, neighbor_alltoallv, input, counts, displacements, output, counts, displacements, T)                               \
    FORMS(X, neighbor_alltoallw, input, counts, displacements, types, output, counts, displacements, types)                    \
    FORMS(X, send, input, 1, T, 0)                                                                                             \
    FORMS(X, recv, input, 1, T, 0)                                                                                             \
    X(rondo_group_start, h)                                                                                                    \
    X(rondo_group_end, h)                                                                                                      \
    X(rondo_comm_rank, h, &(int){0})                                                                                           \
    X(rondo_comm_size, h, &(int){0})                                                                                           \
    X(rondo_comm_id, h, &(uint64_t){0})                                                                                        \
    X(rondo_comm_split, h, 0, 0, &made_comm)                                                                                   \
    X(rondo_comm_dup, h, &made_comm)                                                                                           \
    X(rondo_comm_shrink, h, NULL, 0, &made_comm)                                                                               \
    X(rondo_comm_grow, h, 0, NULL, NULL, &made_runtime)                                                                        \
    X(rondo_comm_create_group, h, &(int){0}, 1, 0, &made_comm)                                                                 \
    X(rondo_graph_create, h, 0, NULL, 0, NULL, &made_comm)                                                                     \
    X(rondo_cart_create, h, 0, NULL, NULL, &made_comm)                                                                         \
    X(rondo_comm_status, h, NULL, NULL)                                                                                        \
    X(rondo_comm_free, &h)                                                                                                     \
    X(rondo_comm_abort, h, 7)                                                                                                  \
    X(rondo_comm_revoke, h)                                                                                                    \
    X(rondo_comm_agree, h, &(int){0})                                                                                          \
    X(rondo_comm_get_failed, h, NULL, &(int){0})                                                                               \
    X(rondo_comm_acknowledge_failed, h, NULL, 0)                                                                               \
    X(rondo_comm_register, h, input, sizeof(input))                                                                            \
    X(rondo_comm_deregister, h, input)                                                                                         \
    X(rondo_comm_set_compression, h, NULL)                                                                                     \
    X(rondo_comm_get_compression, h, &(rondo_compression_t){0})                                                                \
    X(rondo_comm_set_priority, h, 1)                                                                                           \
    X(rondo_comm_get_priority, h, &(int){0})                                                                                   \
    X(rondo_program_register, h, NULL, 0, 0)                                                                                   \
    FORMS(X, program_run, "none", input, output, 1, T, S)
#define RUNTIME_CALLS(X)                                                                                                       \
    X(rondo_finalize, h)                                                                                                       \
    X(rondo_device, h, &(rondo_device_t){0})                                                                                   \
    X(rondo_device_index, h, &(int){0})                                                                                        \
    X(rondo_wait_callback, h, NULL, NULL)                                                                                      \
    X(rondo_alloc, h, 64, &(void *){0})                                                                                        \
    X(rondo_free, h, input)                                                                                                    \
    X(rondo_comm_world, h, &made_comm)                                                                                         \
    X(rondo_device_synchronize, h)                                                                                             \
    X(rondo_get_stats, h, &(rondo_stats_t){0})                                                                                 \
    X(rondo_report, h, (char[64]){0}, 64)
#define REQUEST_CALLS(X)                                                                                                       \
    X(rondo_start, h)                                                                                                          \
    X(rondo_startall, 1, &h)                                                                                                   \
    X(rondo_start_on_stream, h, NULL)                                                                                          \
    X(rondo_test, h, &(int){0})                                                                                                \
    X(rondo_wait, h)                                                                                                           \
    X(rondo_waitall, 1, &h)                                                                                                    \
    X(rondo_request_free, &h)                                                                                                  \
    X(rondo_request_callback, h, nothing, NULL)

#define PROGRAM_CALLS(X)                                                                                                       \
    X(rondo_program_describe, h, &(rondo_program_signature_t){0})                                                              \
    X(rondo_program_check, h, NULL)                                                                                            \
    X(rondo_program_write_xml, h, &made_text)                                                                                  \
    X(rondo_program_write_listing, h, &made_text)                                                                              \
    X(rondo_program_write_dot, h, &made_text)
/* Those that return no result: the message tells. */
#define LANGUAGE_CALLS(X)                                                                                                      \
    X(rondo_program_destroy, h)                                                                                                \
    X(rondo_chunk, h, 0, RONDO_BUFFER_INPUT, 0, 1)                                                                             \
    X(rondo_chunk_copy, (rondo_chunk_t){h, 0, RONDO_BUFFER_INPUT, 0, 1, 1}, 0, RONDO_BUFFER_OUTPUT, 0)                         \
    X(rondo_chunk_reduce, (rondo_chunk_t){h, 0, RONDO_BUFFER_INPUT, 0, 1, 1},                                                  \
      (rondo_chunk_t){h, 0, RONDO_BUFFER_INPUT, 0, 1, 1})                                                                      \
    X(rondo_program_channel, h, 1)                                                                                             \
    X(rondo_program_parallelize, h, 2)                                                                                         \
    X(rondo_program_serialize, h)                                                                                              \
    X(rondo_program_assume, h, 0, 0, 1, &(int){0}, &(size_t){0})                                                               \
    X(rondo_program_require, h, 0, 0, 1, &(int){0}, &(size_t){0})
/* Those without a handle that a forked process may not call. */
#define OTHER_CALLS(X)                                                                                                         \
    X(rondo_init, &(rondo_t){0}, &(rondo_config_t) RONDO_CONFIG_DEFAULT)                                                       \
    X(rondo_get_unique_id, &(rondo_unique_id_t){{0}})                                                                          \
    X(rondo_op_create, combine, 1, &(rondo_op_t){0})                                                                           \
    X(rondo_op_create_with, combine, NULL, 1, &(rondo_op_t){0})                                                                \
    X(rondo_op_free, &(rondo_op_t){S})                                                                                         \
    X(rondo_op_commutative, S, &(int){0})                                                                                      \
    X(rondo_program_create, &(rondo_program_t){0}, &signature)                                                                 \
    X(rondo_program_read_xml, "<algo/>", 7, &(rondo_program_t){0})                                                             \
    X(rondo_program_builtin, "ring", "allreduce", 2, 1, 0, &(rondo_program_t){0})

static const rondo_program_signature_t signature = {
    .name = "copy", .collective = "custom", .ranks = 1, .chunks = 1, .inputs = 1, .outputs = 1};

static void combine(const void *in, void *inout, size_t count, rondo_datatype_t type, void *argument)
{
    (void) in, (void) inout, (void) count, (void) type, (void) argument;
}

#define DEFINE(kind, name, ...)                                                                                                \
    static rondo_result_t call_##name(void *handle)                                                                            \
    {                                                                                                                          \
        kind h = handle;                                                                                                       \
        rondo_result_t result = name(__VA_ARGS__);                                                                             \
        return h == (kind) handle ? result : RONDO_ERR_INTERNAL; /* a refused call changes nothing */                          \
    }
#define DEFINE_COMM(name, ...)    DEFINE(rondo_comm_t, name, __VA_ARGS__)
#define DEFINE_RUNTIME(name, ...) DEFINE(rondo_t, name, __VA_ARGS__)
#define DEFINE_REQUEST(name, ...) DEFINE(rondo_request_t, name, __VA_ARGS__)
#define DEFINE_PROGRAM(name, ...) DEFINE(rondo_program_t, name, __VA_ARGS__)
#define DEFINE_LANGUAGE(name, ...)                                                                                             \
    static rondo_result_t call_##name(void *handle)                                                                            \
    {                                                                                                                          \
        rondo_program_t h = handle;                                                                                            \
        rondo_datatype_size(T, NULL); /* its message is the last one, if the call says nothing */                              \
        (void) name(__VA_ARGS__);                                                                                              \
        return strstr(rondo_last_error(), "forked") != NULL                      ? RONDO_ERR_STATE                             \
               : strncmp(rondo_last_error(), #name ": ", sizeof(#name) + 1) == 0 ? RONDO_ERR_ARGUMENT                          \
                                                                                 : RONDO_SUCCESS;                              \
    }
#define DEFINE_OTHER(name, ...)                                                                                                \
    static rondo_result_t call_##name(void *unused)                                                                            \
    {                                                                                                                          \
        (void) unused;                                                                                                         \
        return name(__VA_ARGS__);                                                                                              \
    }
#define ROW(name, ...) {#name, call_##name},

COMM_CALLS(DEFINE_COMM)
RUNTIME_CALLS(DEFINE_RUNTIME)
REQUEST_CALLS(DEFINE_REQUEST)
PROGRAM_CALLS(DEFINE_PROGRAM)
LANGUAGE_CALLS(DEFINE_LANGUAGE)
OTHER_CALLS(DEFINE_OTHER)

struct row {
    const char *name;
    rondo_result_t (*call)(void *handle);
};
static const struct row comm_calls[] = {COMM_CALLS(ROW)};
static const struct row runtime_calls[] = {RUNTIME_CALLS(ROW)};
static const struct row request_calls[] = {REQUEST_CALLS(ROW)};
static const struct row program_calls[] = {PROGRAM_CALLS(ROW) LANGUAGE_CALLS(ROW)};
static const struct row other_calls[] = {OTHER_CALLS(ROW)};
#define ROWS(table) table, sizeof(table) / sizeof((table)[0])

/* Makes each call of the table with the handle. what: for the report. */
static void refuse(const struct row *rows, size_t count, void *handle, rondo_result_t wanted, const char *what)
{
    for (size_t i = 0; i < count; i++) {
        if (handle == NULL &&
            (strcmp(rows[i].name, "rondo_waitall") == 0 || strcmp(rows[i].name, "rondo_program_destroy") == 0))
            continue; /* NULL is nothing to do */
        made_request = NULL;
        made_comm = NULL;
        made_runtime = NULL;
        made_text = NULL;
        STEP("%s with %s", rows[i].name, what);
        const rondo_result_t got = rows[i].call(handle);
        char name[64];
        snprintf(name, sizeof(name), "%s: ", rows[i].name);
        CHECK(got == wanted, "%s with %s: %s (%d), not %d; message: %s", rows[i].name, what, rondo_strerror(got), (int) got,
              (int) wanted, rondo_last_error());
        CHECK(strncmp(rondo_last_error(), name, strlen(name)) == 0, "%s with %s: the message does not name the call: %s",
              rows[i].name, what, rondo_last_error());
        CHECK(made_request == NULL && made_comm == NULL && made_runtime == NULL && made_text == NULL,
              "%s with %s made something", rows[i].name, what);
    }
}

static void refuse_all_kinds(void *handle, rondo_result_t wanted, const char *what)
{
    refuse(ROWS(comm_calls), handle, wanted, what);
    refuse(ROWS(runtime_calls), handle, wanted, what);
    refuse(ROWS(request_calls), handle, wanted, what);
    refuse(ROWS(program_calls), handle, wanted, what);
}

static void good(struct rank *me)
{
    int64_t sum = 0;
    STEP("the good call after the bad ones");
    MUST(ranks_sum(me->world, 1, &sum));
    CHECK(sum == me->size, "sum %lld of %d ranks", (long long) sum, me->size);
}

/* The tables' results are one for the whole process: one rank at a time uses them. */
static void one_after_the_other(struct rank *me, void (*function)(struct rank *me))
{
    for (int rank = 0; rank < me->size; rank++) {
        if (rank == me->rank)
            function(me);
        good(me);
    }
}

static void refuse_foreign(struct rank *me)
{
    int local = 0;
    char *heap = malloc(256);
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uintptr_t world = (uintptr_t) me->world;
    refuse_all_kinds(NULL, RONDO_ERR_ARGUMENT, "NULL");
    refuse_all_kinds((void *) 1, RONDO_ERR_ARGUMENT, "1");
    refuse_all_kinds((void *) -1, RONDO_ERR_ARGUMENT, "-1");
    refuse_all_kinds(&local, RONDO_ERR_ARGUMENT, "an address of the stack");
    refuse_all_kinds(heap, RONDO_ERR_ARGUMENT, "an address of the heap");
    refuse_all_kinds(page, RONDO_ERR_ARGUMENT, "an address that cannot be read");
    for (int bit = 0; bit < 64; bit++) { /* another place, generation or kind: of no object, or of one of another kind */
        const uintptr_t other = world ^ (uintptr_t) 1 << bit;
        CHECK(rondo_comm_status((rondo_comm_t) other, NULL, NULL) == RONDO_ERR_ARGUMENT || me->size > 1, "bit %d: %s", bit,
              rondo_last_error());
    }
    uint64_t state = (uint64_t) me->rank;
    for (int i = 0; i < 100000; i++) {
        void *any = (void *) (uintptr_t) (ranks_random(&state) | (uint64_t) 1 << 63);
        CHECK(rondo_comm_status(any, NULL, NULL) == RONDO_ERR_ARGUMENT, "%p is a communicator", any);
    }
    free(heap);
    munmap(page, 4096);
}

static void foreign(struct rank *me)
{
    one_after_the_other(me, refuse_foreign);
}

static void refuse_other_kinds(struct rank *me)
{
    rondo_request_t request = NULL;
    rondo_program_t program = NULL;
    MUST(rondo_send_init(input, 1, T, me->rank, me->world, NULL, &request));
    MUST(rondo_program_create(&program, &signature));
    refuse(ROWS(program_calls), me->runtime, RONDO_ERR_ARGUMENT, "a runtime");
    refuse(ROWS(program_calls), me->world, RONDO_ERR_ARGUMENT, "a communicator");
    refuse(ROWS(program_calls), request, RONDO_ERR_ARGUMENT, "a request");
    refuse(ROWS(comm_calls), program, RONDO_ERR_ARGUMENT, "a program");
    refuse(ROWS(runtime_calls), program, RONDO_ERR_ARGUMENT, "a program");
    refuse(ROWS(request_calls), program, RONDO_ERR_ARGUMENT, "a program");
    rondo_program_destroy(program);
    refuse(ROWS(comm_calls), me->runtime, RONDO_ERR_ARGUMENT, "a runtime");
    refuse(ROWS(comm_calls), request, RONDO_ERR_ARGUMENT, "a request");
    refuse(ROWS(runtime_calls), me->world, RONDO_ERR_ARGUMENT, "a communicator");
    refuse(ROWS(runtime_calls), request, RONDO_ERR_ARGUMENT, "a request");
    refuse(ROWS(request_calls), me->runtime, RONDO_ERR_ARGUMENT, "a runtime");
    refuse(ROWS(request_calls), me->world, RONDO_ERR_ARGUMENT, "a communicator");
    MUST(rondo_request_free(&request));
}

static void kinds(struct rank *me)
{
    one_after_the_other(me, refuse_other_kinds);
}

/* Freed handles are refused, also when the place in the table and the memory have been used again. */
static void freed(struct rank *me)
{
    rondo_comm_t comm = NULL, freed_comm;
    rondo_request_t persistent = NULL, freed_persistent, of_comm = NULL, once = NULL;
    int done = 0;
    MUST(rondo_comm_dup(me->world, &comm));
    freed_comm = comm;
    MUST(rondo_allreduce_init(input, output, 1, T, S, me->world, NULL, &persistent));
    freed_persistent = persistent;
    MUST(rondo_send_init(input, 1, T, me->rank, comm, NULL, &of_comm)); /* it is freed with the communicator */
    MUST(rondo_iallreduce(input, output + me->rank, 1, T, S, me->world, &once));
    MUST(rondo_wait(once));
    MUST(rondo_request_free(&persistent));
    MUST(rondo_comm_free(&comm));
    for (int round = 0; round < 2; round++) {
        for (int rank = 0; rank < me->size; rank++) {
            if (rank == me->rank) {
                refuse(ROWS(comm_calls), freed_comm, RONDO_ERR_ARGUMENT, "a freed communicator");
                refuse(ROWS(request_calls), freed_persistent, RONDO_ERR_STATE, "a freed request");
                refuse(ROWS(request_calls), of_comm, RONDO_ERR_STATE, "a request of a freed communicator");
                refuse(ROWS(request_calls), once, RONDO_ERR_STATE, "a completed request");
            }
            good(me);
        }
        for (int i = 0; i < 100; i++) { /* whatever was freed is used again */
            rondo_request_t again = NULL;
            MUST(rondo_iallreduce(input, output + me->rank, 1, T, S, me->world, &again));
            CHECK(again != once && again != freed_persistent && again != of_comm, "the freed handle %p again", (void *) again);
            while (!done)
                MUST(rondo_test(again, &done));
            done = 0;
            EXPECT(RONDO_ERR_STATE, "rondo_test: ", rondo_test(again, &done));
        }
        MUST(rondo_comm_dup(me->world, &comm));
        CHECK(comm != freed_comm, "the freed handle %p again", (void *) comm);
        MUST(rondo_comm_free(&comm));
    }
}

/* A destroyed program is refused, also when its place in the table and its memory have been used again; and a reference to
 * its chunks is none to another program's. One that was registered goes on to run. */
static void programs(struct rank *me)
{
    rondo_program_signature_t own = signature;
    rondo_program_t program = NULL, destroyed, other = NULL;
    own.ranks = me->size;
    MUST(rondo_program_create(&program, &own));
    rondo_chunk_t chunk = {0};
    for (int rank = 0; rank < me->size; rank++) {
        chunk = rondo_chunk(program, rank, RONDO_BUFFER_INPUT, 0, 1);
        rondo_program_require(program, rank, 0, 1, &rank, &(size_t){0});
        rondo_chunk_copy(chunk, rank, RONDO_BUFFER_OUTPUT, 0);
    }
    MUST(rondo_program_register(me->world, program, 0, SIZE_MAX));
    rondo_program_destroy(program);
    destroyed = program;
    for (int round = 0; round < 3; round++) {
        for (int rank = 0; rank < me->size; rank++) {
            if (rank == me->rank)
                refuse(ROWS(program_calls), destroyed, RONDO_ERR_ARGUMENT, "a destroyed program");
            good(me);
        }
        EXPECT(RONDO_ERR_ARGUMENT, "rondo_program_register", rondo_program_register(me->world, destroyed, 0, SIZE_MAX));
        MUST(rondo_program_create(&other, &own));
        CHECK(other != destroyed, "the destroyed handle %p again", (void *) other);
        rondo_chunk_reduce(rondo_chunk(other, 0, RONDO_BUFFER_INPUT, 0, 1), chunk);
        EXPECT(RONDO_ERR_ARGUMENT, "", rondo_program_check(other, NULL));
        rondo_program_destroy(other);
        const int64_t given = 17 * me->rank + round;
        int64_t got = -1;
        MUST(rondo_program_run("copy", &given, &got, 1, T, S, me->world));
        CHECK(got == given, "the program copies %lld to %lld", (long long) given, (long long) got);
        good(me);
    }
}

/* More requests at a time than a block of the table has places; each is found. */
static void many(struct rank *me)
{
    enum { COUNT = 6000 };
    rondo_request_t *requests = calloc(2 * COUNT, sizeof(*requests));
    int64_t *data = calloc(2 * COUNT, sizeof(*data));
    if (requests == NULL || data == NULL)
        exit(1);
    for (int i = 0; i < COUNT; i++) {
        data[i] = i;
        MUST(rondo_irecv(&data[COUNT + i], 1, T, me->rank, me->world, &requests[COUNT + i]));
    }
    for (int i = 0; i < COUNT; i++)
        MUST(rondo_isend(&data[i], 1, T, me->rank, me->world, &requests[i]));
    for (int i = 2 * COUNT - 1; i >= 0; i--)
        MUST(rondo_wait(requests[i]));
    for (int i = 0; i < COUNT; i++)
        CHECK(data[COUNT + i] == i, "message %d has %lld", i, (long long) data[COUNT + i]);
    EXPECT(RONDO_ERR_STATE, "rondo_waitall: ", rondo_waitall(2 * COUNT, requests));
    free(requests);
    free(data);
    good(me);
}

/* All that a forked process may do: nothing. It returns the number of failures. */
static long calls_of_child(struct rank *me)
{
    void *const *parents = me->argument;
    refuse(ROWS(comm_calls), me->world, RONDO_ERR_STATE, "the parent's communicator");
    refuse(ROWS(runtime_calls), me->runtime, RONDO_ERR_STATE, "the parent's runtime");
    refuse(ROWS(request_calls), parents[0], RONDO_ERR_STATE, "the parent's request");
    refuse(ROWS(program_calls), parents[1], RONDO_ERR_STATE, "the parent's program");
    refuse_all_kinds(NULL, RONDO_ERR_STATE, "NULL");
    refuse(ROWS(other_calls), NULL, RONDO_ERR_STATE, "nothing");
    CHECK(strcmp(rondo_strerror(RONDO_ERR_STATE), "wrong state") == 0, "what needs no runtime works");
    return ranks_finish("child");
}

/* A child calls everything, and ends by exit; the parent and the other ranks go on, also while it lives. */
static void forks(struct rank *me)
{
    rondo_request_t request = NULL;
    rondo_program_t program = NULL;
    int status = -1, go[2];
    char word = 0;
    MUST(rondo_allreduce_init(input, output + me->rank, 1, T, S, me->world, NULL, &request));
    MUST(rondo_program_create(&program, &signature));
    void *parents[] = {request, program};
    me->argument = parents;
    for (int rank = 0; rank < me->size; rank++) {
        if (rank == me->rank) {
            fflush(stdout);
            if (pipe(go) != 0)
                exit(1);
            pid_t child = fork();
            if (child == 0) {
                alarm(60); /* the watchdog is the parent's */
                const long failed = calls_of_child(me);
                if (read(go[0], &word, 1) != 1 || failed != 0)
                    _exit(1);
#ifdef __SANITIZE_ADDRESS__ /* its search for leaks knows nothing of the stacks of the parent's other threads */
                _exit(0);
#endif
                exit(0); /* runs what is registered to run at the end */
            }
            for (int i = 0; i < 20; i++) {
                MUST(rondo_start(request));
                MUST(rondo_wait(request));
            }
            if (write(go[1], &word, 1) != 1 || waitpid(child, &status, 0) != child)
                exit(1);
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", (unsigned) status);
            close(go[0]);
            close(go[1]);
        } else {
            for (int i = 0; i < 20; i++) {
                MUST(rondo_start(request));
                MUST(rondo_wait(request));
            }
        }
        good(me);
    }
    EXPECT(RONDO_ERR_ARGUMENT, "program 'copy'", rondo_program_check(program, NULL)); /* it asks for nothing */
    rondo_program_destroy(program);
    MUST(rondo_request_free(&request));
}

static const struct {
    const char *name;
    rank_function_t function;
} scenarios[] = {{"foreign", foreign},   {"kinds", kinds}, {"freed", freed},
                 {"programs", programs}, {"many", many},   {"forks", forks}};

static void run(struct rank *me)
{
    int found = 0;
    for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++)
        if (strcmp(scenario, "all") == 0 || strcmp(scenario, scenarios[k].name) == 0) {
            found++;
            scenarios[k].function(me);
        }
    CHECK(found > 0, "no scenario %s", scenario);
}

/* One rank, whose runtime is gone. */
static void ended(void)
{
    rondo_t runtime = NULL, again = NULL;
    rondo_comm_t world = NULL, comm = NULL;
    rondo_request_t request = NULL;
    rondo_unique_id_t id;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.rank = 0;
    config.size = 1;
    config.unique_id = &id;
    config.device = ranks_device();
    for (int round = 0; round < 3; round++) {
        MUST(rondo_get_unique_id(&id));
        MUST(rondo_init(&runtime, &config));
        MUST(rondo_comm_world(runtime, &world));
        MUST(rondo_comm_dup(world, &comm));
        MUST(rondo_allreduce_init(input, output, 1, T, S, comm, NULL, &request));
        MUST(rondo_finalize(runtime));
        refuse(ROWS(runtime_calls), runtime, RONDO_ERR_ARGUMENT, "a finalized runtime");
        refuse(ROWS(comm_calls), world, RONDO_ERR_ARGUMENT, "the world of a finalized runtime");
        refuse(ROWS(comm_calls), comm, RONDO_ERR_ARGUMENT, "a communicator of a finalized runtime");
        refuse(ROWS(request_calls), request, RONDO_ERR_STATE, "a request of a finalized runtime");
    }
    /* Without a runtime, a child is as good as any process. */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        MUST(rondo_get_unique_id(&id));
        MUST(rondo_init(&again, &config));
        MUST(rondo_comm_world(again, &world));
        MUST(rondo_barrier(world));
        MUST(rondo_finalize(again));
        _exit(ranks_finish("child"));
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x",
          (unsigned) status);
}

static void list(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s\n", rows[i].name);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--scenario", NULL, &scenario, "one of the functions of this file, ended, list, or all"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    if (strcmp(scenario, "list") == 0) {
        list(ROWS(comm_calls));
        list(ROWS(runtime_calls));
        list(ROWS(request_calls));
        list(ROWS(program_calls));
        list(ROWS(other_calls));
        return 0;
    }
    if (strcmp(scenario, "ended") == 0)
        ended();
    else
        ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("handles");
}
