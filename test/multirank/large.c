/*
 * Counts beyond 2^31 bytes and beyond 2^31 elements, where a 32-bit integer would wrap. Two ranks run as threads, and every
 * buffer is compared completely. Needs about 5 GB.
 */
#include "test/multirank/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *scenario = "float";

enum { RANKS = 2 };

static void *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        printf("FAILED: no %zu bytes for the test\n", bytes);
        exit(1);
    }
    madvise(memory, bytes, MADV_HUGEPAGE); /* a hint; page faults would take most of the time */
    return memory;
}

/* The period of the data is prime to every slot, slice and page size, so that misplaced data differs. */
enum { PERIOD = 251 };

static void float_allreduce(struct rank *me)
{
    const size_t count = 600000000; /* 2.4 GB */
    float *buffer = reserve(count * sizeof(*buffer)), pattern[PERIOD];
    for (size_t i = 0; i < PERIOD; i++)
        pattern[i] = (float) ((int) i * (me->rank + 1));
    for (size_t i = 0; i < count; i++)
        buffer[i] = pattern[i % PERIOD];
    STEP("allreduce of %zu floats", count);
    MUST(rondo_allreduce(RONDO_IN_PLACE, buffer, count, RONDO_FLOAT, RONDO_SUM, me->world));
    for (size_t i = 0; i < PERIOD; i++)
        pattern[i] = (float) ((int) i * 3);
    size_t bad = 0, first = 0;
    for (size_t i = 0; i < count; i++)
        if (buffer[i] != pattern[i % PERIOD] && bad++ == 0)
            first = i;
    CHECK(bad == 0, "%zu wrong, first [%zu] = %g", bad, first, (double) buffer[first]);
    munmap(buffer, count * sizeof(*buffer));
}

static void fill_bytes(unsigned char *buffer, size_t count, int step)
{
    for (size_t i = 0; i < count && i < PERIOD; i++)
        buffer[i] = (unsigned char) ((int) i * step);
    for (size_t done = PERIOD; done < count;) { /* doubles the number of whole periods */
        size_t more = done < count - done ? done : count - done;
        memcpy(buffer + done, buffer, more);
        done += more;
    }
}
static void check_bytes(const unsigned char *buffer, size_t count, int step, const char *what)
{
    unsigned char expected[PERIOD * 64]; /* the tail is compared in blocks of this size as well */
    fill_bytes(expected, sizeof(expected), step);
    size_t bad = 0, first = 0;
    for (size_t at = 0; at < count; at += sizeof(expected)) {
        size_t part = count - at < sizeof(expected) ? count - at : sizeof(expected);
        if (memcmp(buffer + at, expected, part) != 0 && bad++ == 0)
            first = at;
    }
    CHECK(bad == 0, "%s: %zu pieces of %zu bytes wrong, the first at %zu", what, bad, sizeof(expected), first);
}

static const size_t many = ((size_t) 1 << 31) + 5;

static void byte_allreduce(struct rank *me)
{
    unsigned char *buffer = reserve(many + 64);
    fill_bytes(buffer, many, me->rank + 1);
    memset(buffer + many, 0xa5, 64);
    STEP("allreduce of %zu int8", many);
    MUST(rondo_allreduce(RONDO_IN_PLACE, buffer, many, RONDO_INT8, RONDO_SUM, me->world));
    check_bytes(buffer, many, 3, "int8 sum");
    CHECK(buffer[many] == 0xa5 && buffer[many + 63] == 0xa5, "overrun %#x", buffer[many]);
    munmap(buffer, many + 64);
}

static void byte_bcast(struct rank *me)
{
    unsigned char *buffer = reserve(many + 64);
    memset(buffer + many, 0xa5, 64);
    if (me->rank == 1)
        fill_bytes(buffer, many, 7);
    STEP("bcast of %zu bytes", many);
    MUST(rondo_bcast(buffer, many, RONDO_UINT8, 1, me->world));
    check_bytes(buffer, many, 7, "bcast");
    CHECK(buffer[many] == 0xa5 && buffer[many + 63] == 0xa5, "overrun %#x", buffer[many]);
    munmap(buffer, many + 64);
}

static void double_allgather(struct rank *me)
{
    const size_t count =
        ((size_t) 1 << 27) + 3; /* just over 1 GiB each: the second block starts there, and the whole is over 2 GiB */
    const size_t bytes = count * sizeof(double);
    unsigned char *buffer = reserve(2 * bytes);
    fill_bytes(buffer + (size_t) me->rank * bytes, bytes, 3 + me->rank);
    STEP("allgather of 2 x %zu doubles", count);
    MUST(rondo_allgather(RONDO_IN_PLACE, buffer, count, RONDO_DOUBLE, me->world));
    check_bytes(buffer, bytes, 3, "block 0");
    check_bytes(buffer + bytes, bytes, 4, "block 1");
    munmap(buffer, 2 * bytes);
}

static void byte_message(struct rank *me)
{
    unsigned char *buffer = reserve(many + 64);
    if (me->rank == 0) {
        fill_bytes(buffer, many, 5);
        STEP("send of %zu bytes", many);
        MUST(rondo_send(buffer, many, RONDO_INT8, 1, me->world));
    } else {
        STEP("receive of %zu bytes", many);
        MUST(rondo_recv(buffer, many, RONDO_INT8, 0, me->world));
        check_bytes(buffer, many, 5, "message");
    }
    munmap(buffer, many + 64);
}

static const struct {
    const char *name;
    rank_function_t function;
} scenarios[] = {{"float_allreduce", float_allreduce},
                 {"byte_allreduce", byte_allreduce},
                 {"byte_bcast", byte_bcast},
                 {"double_allgather", double_allgather},
                 {"byte_message", byte_message}};

static void run(struct rank *me)
{
    int found = 0;
    for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++)
        if (strcmp(scenario, scenarios[k].name) == 0) {
            found++;
            scenarios[k].function(me);
        }
    CHECK(found > 0, "no scenario %s", scenario);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {{"--scenario", NULL, &scenario, "one of the functions of this file"}};
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    ranks_run(RANKS, NULL, run, NULL);
    return ranks_finish("large");
}
