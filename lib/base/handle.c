/* The table of handles (lib/base/handle.h), and what a fork does to it. Relies on pthread_atfork. */
#include "lib/base/handle.h"

#include "lib/base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(uintptr_t) == 8, "a handle has 64 bits");

#define INDEX_BITS      (RONDO_HANDLE_PLACE_BITS + RONDO_HANDLE_BLOCK_BITS)
#define INDEX_MASK      (((uintptr_t) 1 << INDEX_BITS) - 1)
#define GENERATION_STEP ((uintptr_t) 1 << (RONDO_HANDLE_KIND_BITS + INDEX_BITS))
#define MARK            ((uintptr_t) 1 << 63)
#define NO_PLACE        UINT32_MAX

/* What a block has beside its places. */
struct history {
    uintptr_t generation[RONDO_HANDLE_PLACES]; /* of the place's next handle, shifted to where a handle has it */
    uint32_t next_free[RONDO_HANDLE_PLACES];
};

struct block {
    struct rondo_handle_place places[RONDO_HANDLE_PLACES]; /* first: rondo_handle_blocks points to them */
    struct history history;
};

static struct rondo_handle_place no_places[RONDO_HANDLE_PLACES]; /* stays 0: a block without handles */
struct rondo_handle_place *rondo_handle_blocks[RONDO_HANDLE_BLOCKS] = {[0 ... RONDO_HANDLE_BLOCKS - 1] = no_places};

/* Protects the fields below. A thread that forks holds it meanwhile, so that the child finds the table whole and the lock free.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t used; /* places that have ever had a handle; written under the lock, read without */
static uint32_t free_places = NO_PLACE;

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static int watch_failed;
static uint32_t runtimes; /* that exist or begin; atomic */
static uint32_t forked;   /* this process was forked while a runtime existed; atomic */

/* ---- forks ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Runs in the forked process, on its only thread, before fork returns. Other threads of the parent may have been anywhere but
 * in the table, so it takes no other lock and frees nothing. */
static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
    if (__atomic_load_n(&runtimes, __ATOMIC_RELAXED) == 0)
        return;
    __atomic_store_n(&forked, 1, __ATOMIC_RELAXED);
    for (uint32_t index = 0; index < __atomic_load_n(&used, __ATOMIC_RELAXED); index++)
        __atomic_store_n(&rondo_handle_blocks[index / RONDO_HANDLE_PLACES][index % RONDO_HANDLE_PLACES].handle, 0,
                         __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
    watch_failed = pthread_atfork(before_fork, after_fork_in_parent, after_fork);
}

rondo_result_t rondo_handle_check_process(const char *function)
{
    if (__atomic_load_n(&forked, __ATOMIC_RELAXED))
        return rondo_fail(RONDO_ERR_STATE,
                          "%s: this process was forked from one that had a runtime, which is not the child's to use; only a "
                          "program that it executes (exec) may call Rondo",
                          function);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_handle_runtime_begins(const char *function)
{
    rondo_result_t result = rondo_handle_check_process(function);
    if (result != RONDO_SUCCESS)
        return result;
    pthread_once(&watch_once, watch_forks);
    if (watch_failed != 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "%s: pthread_atfork: %s", function, strerror(watch_failed));
    __atomic_add_fetch(&runtimes, 1, __ATOMIC_RELAXED);
    return RONDO_SUCCESS;
}

void rondo_handle_runtime_ended(void)
{
    __atomic_sub_fetch(&runtimes, 1, __ATOMIC_RELAXED);
}

/* ---- the table ---- */

static struct block *block_of(uint32_t index)
{
    return (struct block *) (void *) rondo_handle_blocks[index >> RONDO_HANDLE_PLACE_BITS];
}

static uint32_t index_of(const void *handle)
{
    return (uint32_t) ((uintptr_t) handle >> RONDO_HANDLE_KIND_BITS & INDEX_MASK);
}

/* The generation of a handle, where it stands. */
static uintptr_t generation_of(uintptr_t handle)
{
    return handle & ~MARK & ~(GENERATION_STEP - 1);
}

/* Takes a place that has no handle; NO_PLACE: there is none. Lock held. */
static uint32_t take_place(void)
{
    uint32_t index = free_places;
    if (index != NO_PLACE) {
        free_places = block_of(index)->history.next_free[index % RONDO_HANDLE_PLACES];
        return index;
    }
    if (used > INDEX_MASK)
        return NO_PLACE;
    if (used % RONDO_HANDLE_PLACES == 0) {
        struct block *block = calloc(1, sizeof(*block));
        if (block == NULL)
            return NO_PLACE;
        /* Release: rondo_handle_find sees empty places. */
        __atomic_store_n(&rondo_handle_blocks[used / RONDO_HANDLE_PLACES], block->places, __ATOMIC_RELEASE);
    }
    index = used;
    __atomic_store_n(&used, used + 1, __ATOMIC_RELAXED);
    return index;
}

/* Lets the place stand for its object under a handle of its next generation, which it returns. */
static void *begin_generation(uint32_t index, enum rondo_handle_kind kind)
{
    struct block *block = block_of(index);
    const uint32_t at = index % RONDO_HANDLE_PLACES;
    const uintptr_t generation = block->history.generation[at];
    const uintptr_t handle = MARK | generation | (uintptr_t) index << RONDO_HANDLE_KIND_BITS | (uintptr_t) kind;
    __atomic_store_n(&block->history.generation[at], generation_of(generation + GENERATION_STEP), __ATOMIC_RELAXED);
    /* Release: a thread that finds the handle finds its object. */
    __atomic_store_n(&block->places[at].handle, handle, __ATOMIC_RELEASE);
    return (void *) handle; /* NOLINT: never dereferenced */
}

void *rondo_handle_open(enum rondo_handle_kind kind, void *object)
{
    void *handle = NULL;
    pthread_once(&watch_once, watch_forks);
    if (watch_failed != 0)
        return NULL;
    pthread_mutex_lock(&lock);
    const uint32_t index = take_place();
    if (index != NO_PLACE) {
        __atomic_store_n(&block_of(index)->places[index % RONDO_HANDLE_PLACES].object, object, __ATOMIC_RELAXED);
        handle = begin_generation(index, kind);
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

void rondo_handle_close(void *handle)
{
    if (handle == NULL)
        return;
    const uint32_t index = index_of(handle), at = index % RONDO_HANDLE_PLACES;
    pthread_mutex_lock(&lock);
    struct block *block = block_of(index);
    __atomic_store_n(&block->places[at].handle, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&block->places[at].object, NULL, __ATOMIC_RELAXED);
    block->history.next_free[at] = free_places;
    free_places = index;
    pthread_mutex_unlock(&lock);
}

void *rondo_handle_renew(void *handle)
{
    const uintptr_t kind = (uintptr_t) handle & ((1u << RONDO_HANDLE_KIND_BITS) - 1);
    return begin_generation(index_of(handle), (enum rondo_handle_kind) kind);
}

/* ---- messages ---- */

/* Whether the value was a handle of the kind before. */
static int was_handle(uintptr_t value, enum rondo_handle_kind kind)
{
    const uint32_t index = index_of((const void *) value);
    return (value & MARK) != 0 && (value & ((1u << RONDO_HANDLE_KIND_BITS) - 1)) == (uintptr_t) kind &&
           index < __atomic_load_n(&used, __ATOMIC_RELAXED) &&
           generation_of(value) <
               __atomic_load_n(&block_of(index)->history.generation[index % RONDO_HANDLE_PLACES], __ATOMIC_RELAXED);
}

rondo_result_t rondo_handle_refuse(const void *handle, enum rondo_handle_kind kind, const char *function)
{
    static const char *const names[] = {"", "runtime", "communicator", "request", "program"};
    rondo_result_t result = rondo_handle_check_process(function);
    if (result != RONDO_SUCCESS)
        return result;
    if (handle == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s: the %s is NULL", function, names[kind]);
    for (int other = RONDO_HANDLE_RUNTIME; other < RONDO_HANDLE_KINDS; other++)
        if (rondo_handle_find(handle, (enum rondo_handle_kind) other) != NULL)
            return rondo_fail(RONDO_ERR_ARGUMENT, "%s: %p is a %s, not a %s", function, handle, names[other], names[kind]);
    if (was_handle((uintptr_t) handle, kind))
        return rondo_fail(kind == RONDO_HANDLE_REQUEST ? RONDO_ERR_STATE : RONDO_ERR_ARGUMENT, "%s: the %s %p has been freed",
                          function, names[kind], handle);
    return rondo_fail(RONDO_ERR_ARGUMENT, "%s: %p is no %s", function, handle, names[kind]);
}
