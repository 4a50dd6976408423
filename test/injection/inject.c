/* See test/injection/inject.h. */
#include "test/injection/inject.h"

#include <errno.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INJECT_ROW(name, ...) {#name, {__VA_ARGS__}, #__VA_ARGS__},
static const struct {
    const char *name;
    int ways[INJECT_WAYS];
    const char *way_names; /* as the row has them, with a comma between */
} functions[] = {INJECT_FUNCTIONS(INJECT_ROW) INJECT_UCX_FUNCTIONS(INJECT_ROW) INJECT_CUDA_FUNCTIONS(INJECT_ROW)};
#undef INJECT_ROW

static struct inject_record *records[INJECT_RANKS]; /* NULL: not armed */
static struct order {
    long number;
    int function, way, rank, lasting;
} wanted;
static _Thread_local int self, paused;

const char *inject_function_name(int function)
{
    return functions[function].name;
}

int inject_is_cuda(int function)
{
    return function >= INJECT_OF_LIBC;
}

int inject_way(int function, int way)
{
    return way < INJECT_WAYS ? functions[function].ways[way] : 0;
}

#if RONDO_WITH_CUDA
/* An error of CUDA's, as the row has it. CUDA itself must not be asked: it would begin in the driver, and a process that is
 * forked after that cannot use it. */
static const char *cuda_way_name(int function, int way)
{
    static _Thread_local char text[64];
    const char *at = functions[function].way_names;
    for (int i = 0; i + 1 < INJECT_WAYS && functions[function].ways[i] != way && strchr(at, ',') != NULL; i++)
        at = strchr(at, ',') + 1;
    at += strspn(at, " ");
    snprintf(text, sizeof(text), "%.*s", (int) strcspn(at, ","), at);
    return text;
}
#endif

const char *inject_way_name(int function, int way)
{
    const char *name = way == INJECT_SHORT ? "short" : way == INJECT_END ? "end" : strerrorname_np(way);
#if RONDO_WITH_CUDA
    if (inject_is_cuda(function))
        name = cuda_way_name(function, way);
#else
    (void) function;
#endif
    return name != NULL ? name : "?";
}

void inject_be(int rank)
{
    self = rank;
}

int inject_self(void)
{
    return self;
}

void inject_pause(void)
{
    paused++;
}

void inject_resume(void)
{
    paused--;
}

void inject_arm(struct inject_record *to)
{
    static int order_lock;
    const char *call = getenv("RONDO_X_FAIL_CALL"), *number = getenv("RONDO_X_FAIL_NUMBER"), *way = getenv("RONDO_X_FAIL_WITH"),
               *rank = getenv("RONDO_X_FAIL_RANK");
    int function = -1;
    for (int f = 0; call != NULL && f < INJECT_FUNCTION_COUNT; f++)
        if (strcmp(call, functions[f].name) == 0)
            function = f;
    const struct order order = {.function = function,
                                .number = number != NULL ? atol(number) : 0,
                                .rank = rank != NULL ? atoi(rank) : 0,
                                .way = function >= 0 ? inject_way(function, way != NULL ? atoi(way) : 0) : 0,
                                .lasting = getenv("RONDO_X_FAIL_LASTING") != NULL};
    while (__atomic_exchange_n(&order_lock, 1, __ATOMIC_ACQUIRE))
        ;
    /* The ranks of a process read the same, each when it begins. Only the first writes: the others may find it in use. */
    if (memcmp(&wanted, &order, sizeof(order)) != 0)
        wanted = order;
    __atomic_store_n(&order_lock, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&records[self], to, __ATOMIC_RELEASE);
}

void inject_disarm(void)
{
    __atomic_store_n(&records[self], NULL, __ATOMIC_RELEASE);
}

/* A hash of the place in the library and of two or three callers: with all of them, places that are the same would differ by
 * what a wait happened to be in. */
static uint64_t context(void)
{
    void *stack[6]; /* this function, inject_now and the wrapper first */
    uint64_t hash = 0xcbf29ce484222325u;
    inject_pause(); /* it may allocate */
    int depth = backtrace(stack, 6);
    inject_resume();
    for (int i = 0; i < depth; i++)
        hash = (hash ^ (uintptr_t) stack[i]) * 0x100000001b3u;
    return hash;
}

int inject_now(enum inject_function function, const void *site)
{
    struct inject_record *to = paused ? NULL : __atomic_load_n(&records[self], __ATOMIC_ACQUIRE);
    if (to == NULL)
        return 0;
    long number = __atomic_add_fetch(&to->calls[function], 1, __ATOMIC_RELAXED);
    if (number <= INJECT_SITES) {
        to->sites[function][number - 1] = (uintptr_t) site;
        if (to->wants_contexts)
            to->contexts[function][number - 1] = context();
    }
    if ((int) function != wanted.function || self != wanted.rank || number < wanted.number ||
        (number > wanted.number && !wanted.lasting))
        return 0;
    if (number == wanted.number) {
        to->fired_site = (uintptr_t) site;
        to->fired_depth = backtrace(to->fired_stack, INJECT_DEPTH);
    }
    __atomic_store_n(&to->fired, 1, __ATOMIC_RELEASE);
    return wanted.way;
}

/* ---- what is allocated ---- */

enum { BUCKETS = 1 << 14, ALLOCATIONS = 1 << 17 };
static struct allocation {
    void *memory;
    const void *site;
    size_t bytes;
    uint32_t next;
} allocations[ALLOCATIONS]; /* 0 is none */
static uint32_t buckets[BUCKETS], unused, used = 1;
static long live;
static int locked;

static void lock(void)
{
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        ;
}

static void unlock(void)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static uint32_t *bucket_of(const void *memory)
{
    return &buckets[((uintptr_t) memory >> 4) * 0x9e3779b97f4a7c15u >> 50];
}

void inject_allocated(void *memory, size_t bytes, const void *site)
{
    if (memory == NULL || paused)
        return;
    lock();
    uint32_t at = unused != 0 ? unused : used < ALLOCATIONS ? used++ : 0;
    if (at != 0) {
        if (at == unused)
            unused = allocations[at].next;
        uint32_t *bucket = bucket_of(memory);
        allocations[at] = (struct allocation){memory, site, bytes, *bucket};
        *bucket = at;
        live++;
    }
    unlock();
}

void inject_freed(void *memory)
{
    if (memory == NULL)
        return;
    lock();
    for (uint32_t *at = bucket_of(memory); *at != 0; at = &allocations[*at].next)
        if (allocations[*at].memory == memory) {
            uint32_t found = *at;
            *at = allocations[found].next;
            allocations[found] = (struct allocation){.next = unused};
            unused = found;
            live--;
            break;
        }
    unlock();
}

void inject_forget(void)
{
    lock();
    memset(buckets, 0, sizeof(buckets));
    memset(allocations, 0, used * sizeof(allocations[0]));
    unused = 0;
    used = 1;
    live = 0;
    unlock();
}

long inject_live(char *text, size_t bytes)
{
    size_t at = 0;
    *text = '\0';
    lock();
    for (uint32_t i = 1; i < used && at + 40 < bytes; i++)
        if (allocations[i].memory != NULL)
            at += (size_t) snprintf(text + at, bytes - at, "%p %zu,", allocations[i].site, allocations[i].bytes);
    long count = live;
    unlock();
    return count;
}
