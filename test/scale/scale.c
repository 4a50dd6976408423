/*
 * One rank of a job of many: makes every collective twice, checks what it gets, and prints a line of JSON with what that has
 * cost. test/scale/scale.py starts the ranks and adds the lines up.
 */
#include "lib/context/handles.h"
#include "lib/context/runtime.h"
#include "lib/control/control.h"
#include "test/multirank/ranks.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static long count = 1; /* elements of a block; 0: the ranks only start */
static const char *gate;
static double began, processor_before;

/* Element i of the block that rank `from` has for rank `to`; of blocks for all, to is 0. */
static int64_t value(int from, int to, long i)
{
    return (int64_t) from * 1000003 + (int64_t) to * 1009 + i;
}

/* The sum of the first `ranks` ranks' values for rank `to`. */
static int64_t sum_of(int ranks, int to, long i)
{
    return (int64_t) ranks * (ranks - 1) / 2 * 1000003 + (int64_t) ranks * ((int64_t) to * 1009 + i);
}

static void fill(int64_t *blocks, const struct rank *me, int number)
{
    for (int to = 0; to < number; to++)
        for (long i = 0; i < count; i++)
            blocks[to * count + i] = value(me->rank, to, i);
}

/* Expects block b of the result, which came from rank `from`, or was summed over the first `ranks` ranks (from -1). */
static void expect(const int64_t *out, int b, int from, int to, int ranks)
{
    long wrong = 0;
    for (long i = 0; i < count; i++)
        wrong += out[b * count + i] != (from < 0 ? sum_of(ranks, to, i) : value(from, to, i));
    CHECK(wrong == 0, "block %d: %ld of %ld elements are wrong", b, wrong, count);
}

static void expect_all(const int64_t *out, const struct rank *me, int to)
{
    for (int from = 0; from < me->size; from++)
        expect(out, from, from, to, 0);
}

#define T RONDO_INT64
/* The call and what it gives; twice, because the first one connects. */
#define TIMED(name, call, check)                                                                                               \
    for (int again = 0; again < 2; again++) {                                                                                  \
        memset(out, 0xff, bytes);                                                                                              \
        const double before = ranks_seconds();                                                                                 \
        MUST(call);                                                                                                            \
        printf(", \"%s%s\": %.6f", name, again ? " again" : "", ranks_seconds() - before);                                     \
        check;                                                                                                                 \
    }

static void collectives(struct rank *me)
{
    const int root = me->size / 3, rank = me->rank, size = me->size;
    const size_t bytes = (size_t) size * (size_t) count * sizeof(int64_t), n = (size_t) count;
    int64_t *in = malloc(bytes), *out = malloc(bytes);
    if (in == NULL || out == NULL)
        ranks_die(__FILE__, __LINE__, "malloc", RONDO_ERR_MEMORY);
    fill(in, me, size);
    TIMED("barrier", rondo_barrier(me->world), (void) 0);
    TIMED("bcast", rondo_bcast(rank == root ? in : out, n, T, root, me->world), if (rank != root) expect(out, 0, root, 0, 0));
    TIMED("reduce", rondo_reduce(in, out, n, T, RONDO_SUM, root, me->world), if (rank == root) expect(out, 0, -1, 0, size));
    TIMED("allreduce", rondo_allreduce(in, out, n, T, RONDO_SUM, me->world), expect(out, 0, -1, 0, size));
    TIMED("reduce_scatter_block", rondo_reduce_scatter_block(in, out, n, T, RONDO_SUM, me->world),
          expect(out, 0, -1, rank, size));
    TIMED("allgather", rondo_allgather(in, out, n, T, me->world), expect_all(out, me, 0));
    TIMED("alltoall", rondo_alltoall(in, out, n, T, me->world), expect_all(out, me, rank));
    TIMED("gather", rondo_gather(in, out, n, T, root, me->world), if (rank == root) expect_all(out, me, 0));
    TIMED("scatter", rondo_scatter(in, out, n, T, root, me->world), expect(out, 0, root, rank, 0));
    TIMED("scan", rondo_scan(in, out, n, T, RONDO_SUM, me->world), expect(out, 0, -1, 0, rank + 1));
    free(in);
    free(out);
}

static int sockets(void)
{
    int found = 0;
    char path[300], target[64];
    DIR *folder = opendir("/proc/self/fd");
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        const ssize_t length = readlink(path, target, sizeof(target) - 1);
        found += length > 7 && strncmp(target, "socket:", 7) == 0;
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

/* The figure of a file's line that begins with the word, in KiB; 0: there is none. */
static long kib_of(const char *path, const char *word)
{
    long kib = 0;
    char line[200];
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            kib = strtol(strchr(line, ':') + 1, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kib;
}

/* What a rank does next makes others send messages. */
static void pass_gate(const struct rank *me)
{
    const int file = gate != NULL ? open(gate, O_RDWR) : -1;
    int *passed = file >= 0 ? mmap(NULL, sizeof(*passed), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (gate == NULL)
        return;
    if (passed == MAP_FAILED)
        ranks_die(__FILE__, __LINE__, "the gate", RONDO_ERR_SYSTEM);
    __atomic_add_fetch(passed, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(passed, __ATOMIC_RELAXED) < me->size) /* scale.py ends a job that takes too long */
        usleep(1000);
    munmap(passed, sizeof(*passed));
    close(file);
}

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void run(struct rank *me)
{
    rondo_stats_t stats;
    struct rondo_runtime *runtime;
    struct rondo_control_costs costs;
    const double init = ranks_seconds() - began, init_processor = processor_seconds() - processor_before;
    MUST(rondo_runtime_of(me->runtime, "scale", &runtime));
    rondo_control_count(runtime->control, &costs);
    printf("{\"rank\": %d, \"init\": %.6f, \"init processor\": %.6f", me->rank, init, init_processor);
    printf(", \"made\": %llu, \"accepted\": %llu, \"messages\": %llu, \"bytes\": %llu", (unsigned long long) costs.made,
           (unsigned long long) costs.accepted, (unsigned long long) costs.messages, (unsigned long long) costs.bytes);
    pass_gate(me);
    if (count > 0)
        collectives(me);
    MUST(rondo_get_stats(me->runtime, &stats));
    printf(", \"sockets\": %d, \"primitives\": %llu, \"bytes sent\": %llu, \"reserved KiB\": %llu", sockets(),
           (unsigned long long) stats.primitives, (unsigned long long) stats.bytes_sent,
           (unsigned long long) stats.memory_reserved / 1024);
    printf(", \"private KiB\": %ld, \"peak KiB\": %ld, \"processor seconds\": %.3f}\n",
           kib_of("/proc/self/smaps_rollup", "Private_Clean:") + kib_of("/proc/self/smaps_rollup", "Private_Dirty:"),
           kib_of("/proc/self/status", "VmHWM:"), processor_seconds());
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--count", &count, NULL, "elements of 8 bytes a block; 0: no collectives"},
        {"--gate", NULL, &gate,
         "a file of 4 zero bytes, by which the ranks wait until each has counted what rondo_init has cost"},
    };
    ranks_parse(argc, argv, options, (int) (sizeof(options) / sizeof(options[0])));
    processor_before = processor_seconds();
    began = ranks_seconds();
    ranks_run(0, NULL, run, NULL);
    return ranks_finish("scale");
}
