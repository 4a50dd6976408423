/* See lib/connection/copy_engine.h. A rank's words lie in its GPU's memory: first how many operations this rank has done, then
 * one for each rank, where that stores how many signals it has sent. Streams wait until a word has come to a count. CUDA may
 * put streams of one context behind each other's waits: ranks of one process that share a GPU have no copy engines. */
#include "lib/connection/copy_engine.h"

#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"
#include "lib/connection/copy_steps.h"

#include <stdlib.h>

#define SIGNALS   2 /* where those words begin, so that the first one is 8 aligned bytes, which download can fetch */
#define FAR_AHEAD ((uint32_t) 1 << 30) /* of every count that a stream may wait for */

struct rondo_copy_engine {
    struct rondo_registration *window; /* opens the words to the other ranks */
    uint32_t *words;                   /* [SIGNALS + size]; NULL: no memory */
    int usable;
    uint32_t **theirs;         /* [size] */
    char **output;             /* [size]: of the operation that is being enqueued */
    uint32_t *sent, *received; /* [size] */
    uint32_t issued;           /* operations */
    uint64_t stream_id;        /* of the last one */
};

static size_t words_bytes(const struct rondo_comm *comm)
{
    return ((size_t) comm->size + SIGNALS) * sizeof(uint32_t);
}

/* Zeros. Memory of their own: NULL: there is none. */
static uint32_t *make_words(const struct rondo_comm *comm)
{
    struct rondo_device *device = comm->runtime->device;
    char *memory = NULL;
    uint32_t *zeros = calloc(1, words_bytes(comm));
    if (zeros != NULL && rondo_cuda_allocate(comm->runtime->device_index, words_bytes(comm), &memory) == RONDO_SUCCESS &&
        device->kind->upload(device, memory, zeros, words_bytes(comm)) != RONDO_SUCCESS) {
        rondo_cuda_free(comm->runtime->device_index, memory);
        memory = NULL;
    }
    free(zeros);
    return (uint32_t *) (void *) memory;
}

/* The words of a failed communicator stay until the process ends, because the other ranks' streams may still store there. */
static void destroy(struct rondo_comm *comm, struct rondo_copy_engine *engine)
{
    if (engine->window != NULL)
        rondo_window_close(comm, engine->window);
    if (engine->words != NULL && (engine->issued == 0 || rondo_comm_failure(comm) == RONDO_SUCCESS))
        rondo_cuda_free(comm->runtime->device_index, engine->words);
    free(engine->theirs);
    free(engine->output);
    free(engine->sent);
    free(engine->received);
    free(engine);
}

/* A rank without memory takes part, and none has copy engines then. */
rondo_result_t rondo_copy_engine_open(struct rondo_comm *comm)
{
    const size_t size = (size_t) comm->size;
    if (!comm->runtime->settings.copy_engines || !comm->gpus_only || !comm->same_host || comm->size == 1 ||
        comm->runtime->device->kind->copy == NULL || comm->connections->copy_engine != NULL)
        return RONDO_SUCCESS;
    struct rondo_copy_engine *engine = calloc(1, sizeof(*engine));
    if (engine == NULL)
        return rondo_comm_conclude(comm, "register", rondo_fail(RONDO_ERR_MEMORY, "no memory for copy engines"));
    engine->theirs = calloc(size, sizeof(*engine->theirs));
    engine->output = calloc(size, sizeof(*engine->output));
    engine->sent = calloc(size, sizeof(*engine->sent));
    engine->received = calloc(size, sizeof(*engine->received));
    if (engine->theirs != NULL && engine->output != NULL && engine->sent != NULL && engine->received != NULL)
        engine->words = make_words(comm);
    rondo_result_t result =
        rondo_window_open(comm, (char *) engine->words, engine->words != NULL ? words_bytes(comm) : 0, &engine->window);
    if (result == RONDO_ERR_BUFFER) /* these are the library's words, and no mistake of the caller's */
        result = rondo_comm_conclude(comm, "register", rondo_fail(RONDO_ERR_DEVICE, "copy engines: %s", rondo_last_error()));
    if (result != RONDO_SUCCESS) {
        destroy(comm, engine);
        return result;
    }
    engine->usable = engine->window->usable && !comm->shares_context;
    for (int rank = 0; rank < comm->size && engine->usable; rank++) {
        engine->usable = engine->window->spans[rank].bytes >= words_bytes(comm);
        engine->theirs[rank] = (uint32_t *) (void *) engine->window->spans[rank].base + SIGNALS;
    }
    if (!engine->usable)
        rondo_log(RONDO_LOG_INFO, comm->runtime->rank, "no operation is done by copy engines: %s",
                  comm->shares_context ? "ranks of one process share a GPU" : "not all ranks reach each other");
    comm->connections->copy_engine = engine;
    return RONDO_SUCCESS;
}

int rondo_copy_engine_usable(const struct rondo_comm *comm)
{
    return comm->runtime->settings.copy_engines && comm->connections->copy_engine != NULL &&
           comm->connections->copy_engine->usable;
}

/* ---- enqueuing ---- */

/* Where the others have their outputs: as far from the start of their ranges as this rank has. */
static rondo_result_t find_outputs(struct rondo_comm *comm, const struct rondo_copy_operation *what)
{
    const size_t bytes = what->output_bytes;
    const char *own = what->operation->buffers[RONDO_OUTPUT];
    const struct rondo_span *spans;
    size_t offset;
    if (!rondo_window_spans(comm, own, bytes, &spans, &offset))
        return rondo_fail(RONDO_ERR_BUFFER, "copy engines: %zu bytes at %p are in no registered range", bytes,
                          (const void *) own);
    for (int rank = 0; rank < comm->size; rank++) {
        if (offset > spans[rank].bytes || bytes > spans[rank].bytes - offset)
            return rondo_fail(RONDO_ERR_BUFFER,
                              "copy engines: rank %d's range has %zu bytes, not %zu from %zu on; with RONDO_SM=0 what is "
                              "received lies at the same offset of its range on all ranks",
                              rank, spans[rank].bytes, bytes, offset);
        comm->connections->copy_engine->output[rank] = spans[rank].base + offset;
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_copy_engine_enqueue(struct rondo_comm *comm, const struct rondo_copy_operation *what)
{
    struct rondo_copy_engine *engine = comm->connections->copy_engine;
    struct rondo_device *device = comm->runtime->device;
    const struct rondo_copy_view view = {.plan = what->plan,
                                         .operation = what->operation,
                                         .rank = comm->rank,
                                         .words = engine->words + SIGNALS,
                                         .theirs = engine->theirs,
                                         .output = engine->output,
                                         .sent = engine->sent,
                                         .received = engine->received};
    int count = 0;
    rondo_result_t result = find_outputs(comm, what);
    if (result != RONDO_SUCCESS)
        return result;
    struct rondo_copy_step *steps = calloc((size_t) rondo_copy_steps_most(what->plan) + 2, sizeof(*steps));
    if (steps == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the steps of an operation by copy engines");
    /* On one stream an operation has ended when the next one begins. */
    if (engine->issued > 0 && (what->stream_id == 0 || what->stream_id != engine->stream_id))
        steps[count++] = (struct rondo_copy_step){.kind = RONDO_COPY_STEP_WAIT, .word = engine->words, .value = engine->issued};
    count += rondo_copy_steps(&view, steps + count);
    __atomic_store_n(&engine->issued, engine->issued + 1, __ATOMIC_RELAXED);
    engine->stream_id = what->stream_id;
    steps[count++] = (struct rondo_copy_step){.kind = RONDO_COPY_STEP_WRITE, .word = engine->words, .value = engine->issued};
    result = device->kind->copy(device, steps, count, what->stream);
    free(steps);
    return result;
}

/* ---- the end ---- */

/* What peers store meanwhile may be less: so it is done again for as long as something waits. */
static void release(struct rondo_comm *comm, const struct rondo_copy_engine *engine)
{
    struct rondo_device *device = comm->runtime->device;
    uint32_t *words = calloc(1, words_bytes(comm));
    for (int rank = 0; words != NULL && rank < comm->size; rank++)
        words[SIGNALS + rank] = __atomic_load_n(&engine->received[rank], __ATOMIC_RELAXED) + FAR_AHEAD;
    if (words != NULL)
        (void) device->kind->upload(device, engine->words + SIGNALS, words + SIGNALS, (size_t) comm->size * sizeof(uint32_t));
    free(words);
}

uint32_t rondo_copy_engine_issued(const struct rondo_comm *comm)
{
    const struct rondo_copy_engine *engine = comm->connections->copy_engine;
    return engine != NULL ? __atomic_load_n(&engine->issued, __ATOMIC_RELAXED) : 0;
}

rondo_result_t rondo_copy_engine_idle(struct rondo_comm *comm, int *idle)
{
    const struct rondo_copy_engine *engine = comm->connections->copy_engine;
    struct rondo_device *device = comm->runtime->device;
    const uint32_t issued = rondo_copy_engine_issued(comm);
    uint64_t words = 0;
    rondo_result_t result = issued != 0 ? device->kind->download(device, &words, engine->words, sizeof(words)) : RONDO_SUCCESS;
    *idle = result == RONDO_SUCCESS && (uint32_t) words == issued;
    if (!*idle && rondo_comm_failure(comm) != RONDO_SUCCESS)
        release(comm, engine);
    return result;
}

void rondo_copy_engine_fail(struct rondo_comm *comm)
{
    const struct rondo_copy_engine *engine = comm->connections->copy_engine;
    if (rondo_copy_engine_issued(comm) > 0)
        release(comm, engine);
}

void rondo_copy_engine_close(struct rondo_comm *comm)
{
    if (comm->connections->copy_engine != NULL)
        destroy(comm, comm->connections->copy_engine);
    comm->connections->copy_engine = NULL;
}
