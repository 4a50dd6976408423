/*
 * Harness of the multi-rank programs: runs a function on every rank, counts checks, and turns a hang into a failure that says
 * where each thread was. With RONDO_DEVICE=cuda the ranks' buffers are memory of their GPUs. Relies on the public API, POSIX
 * and, in builds with CUDA, its runtime only.
 */
#ifndef RONDO_TEST_RANKS_H
#define RONDO_TEST_RANKS_H

#include "rondo.h"
#include <stdint.h>

struct rank {
    rondo_t runtime;
    rondo_comm_t world;
    int rank, size;
    void *argument;
};
typedef void (*rank_function_t)(struct rank *me);

/* Runs function on every rank. ranks > 0: that many ranks as threads of this process; 0: this process is one rank of a job, as
 * its environment says. config (NULL: defaults) is copied; its rank, size, id and device are set here. A program may call it
 * several times. */
void ranks_run(int ranks, const rondo_config_t *config, rank_function_t function, void *argument);

/* The device that RONDO_DEVICE asks for; without it the host. */
rondo_device_t ranks_device(void);

/* Memory of the current rank's device (ranks_current), and copies between it and the host, which are complete on return. On the
 * host device it comes from malloc. A failure ends the program. */
void *ranks_allocate(size_t bytes);
void ranks_release(void *memory);
void ranks_put(void *memory, const void *from, size_t bytes);
void ranks_get(void *to, const void *memory, size_t bytes);
/* ranks_sum: the sum of one number of each rank, by an all-reduce on device memory. ranks_tell: rank 0's number on all
 * ranks. */
rondo_result_t ranks_sum(rondo_comm_t comm, int64_t mine, int64_t *sum);
rondo_result_t ranks_tell(rondo_comm_t comm, int64_t *number);

/* One option of a program's command line, as "--name value". */
struct ranks_option {
    const char *name;
    long *number;      /* the option is a number, or */
    const char **text; /* a text; the other one is NULL */
    const char *meaning;
};
/* Starts the watchdog (RANKS_WATCHDOG seconds, else 60). An unknown option ends the program with status 2. */
void ranks_parse(int argc, char **argv, const struct ranks_option *options, int count);

/* Prints the program's tally and returns its exit status: 1 if any check failed or none was made. */
int ranks_finish(const char *program);

/* Which rank the calling thread works for; helper threads of a rank set it first. */
extern _Thread_local int ranks_current;

void ranks_count_check(void);
void ranks_fail(const char *file, int line, const char *what, const char *format, ...) __attribute__((format(printf, 4, 5)));
void ranks_die(const char *file, int line, const char *what, rondo_result_t result);
void ranks_step(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A failed check is printed and counted, and the program goes on. */
#define CHECK(condition, ...)                                                                                                  \
    do {                                                                                                                       \
        ranks_count_check();                                                                                                   \
        if (!(condition))                                                                                                      \
            ranks_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                           \
    } while (0)

/* For calls without which the other ranks would wait for ever: a failure ends the program. */
#define MUST(call)                                                                                                             \
    do {                                                                                                                       \
        rondo_result_t must_result = (call);                                                                                   \
        ranks_count_check();                                                                                                   \
        if (must_result != RONDO_SUCCESS)                                                                                      \
            ranks_die(__FILE__, __LINE__, #call, must_result);                                                                 \
    } while (0)

/* The call must return code, and leave a message with fragment in it. */
#define EXPECT(code, fragment, call)                                                                                           \
    do {                                                                                                                       \
        STEP("%s", #call);                                                                                                     \
        ranks_expect(__FILE__, __LINE__, #call, (call), code, code, fragment);                                                 \
    } while (0)
/* As EXPECT, where the interface allows either of two codes. */
#define EXPECT_EITHER(code, other, fragment, call)                                                                             \
    do {                                                                                                                       \
        STEP("%s", #call);                                                                                                     \
        ranks_expect(__FILE__, __LINE__, #call, (call), code, other, fragment);                                                \
    } while (0)

void ranks_expect(const char *file, int line, const char *call, rondo_result_t got, rondo_result_t wanted,
                  rondo_result_t or_else, const char *fragment);
/* The pointer as printf prints it, in one of the thread's eight buffers. */
const char *ranks_pointer_text(const void *pointer);

/* Notes what this thread is about to do, for the watchdog's report. */
#define STEP(...) ranks_step(__FILE__, __LINE__, __VA_ARGS__)

/* Polls the request until it is done, giving the core away now and then. */
rondo_result_t ranks_poll(rondo_request_t request);

double ranks_seconds(void); /* monotonic */
void ranks_sleep(double seconds);

/* A small generator (splitmix64) so that every rank can compute every other rank's choices. */
static inline uint64_t ranks_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
static inline uint64_t ranks_random(uint64_t *state)
{
    return *state = ranks_hash(*state);
}
static inline int ranks_below(uint64_t *state, int limit)
{
    return (int) (ranks_random(state) % (uint64_t) limit);
}

#endif
