/*
 * Times collectives with the drop-in, with the MPI underneath, and with rondo.h itself, in turn in one run, in a loop like that
 * of the OSU benchmarks. Compares the results of the three.
 *
 * usage: mpiexec -n N env LD_PRELOAD=.../librondo-mpi-ABI.so ratio [COLLECTIVES [LARGEST [ROUNDS [MILLISECONDS]]]]
 *   COLLECTIVES  allreduce,bcast,...; or all
 *   LARGEST      bytes of a message, in powers of four from 8 on (2097152)
 *   ROUNDS       (9)
 *   MILLISECONDS of one arm in one round, about (10)
 * A message is the buffer of a reduction and of a broadcast, and the block of one rank of the others. Rank 0 writes a line of
 * JSON for each collective and size: of each arm, the microseconds of all rounds, each the mean over the ranks; "again" is the
 * MPI underneath once more.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <rondo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static rondo_comm_t native;

static __attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "ratio: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* ---- the MPI underneath ---- */

/* Of its functions, by the library that has them: a name alone would give the drop-in's. */
/* clang-format off */
#define UNDERNEATH(X) \
    X(Barrier) X(Bcast) X(Reduce) X(Allreduce) X(Reduce_scatter_block) X(Reduce_scatter) X(Gather) X(Gatherv) X(Scatter) \
    X(Scatterv) X(Allgather) X(Allgatherv) X(Alltoall) X(Alltoallv)
/* clang-format on */
#define DECLARE(name) static __typeof__(&MPI_##name) mpi_##name;
UNDERNEATH(DECLARE)

static int look(struct dl_phdr_info *object, size_t bytes, void *found)
{
    const char *file = object->dlpi_name != NULL ? strrchr(object->dlpi_name, '/') : NULL;
    (void) bytes;
    if (file == NULL || strncmp(file, "/libmpi", strlen("/libmpi")) != 0)
        return 0;
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL || dlsym(library, "MPI_Allreduce") == NULL)
        return 0;
    *(void **) found = library;
    return 1;
}

static void find_underneath(void)
{
    void *library = NULL;
    dl_iterate_phdr(look, &library);
    if (library == NULL)
        give_up("no library libmpi* is loaded");
#define FIND(name)                                                                                                             \
    mpi_##name = (__typeof__(mpi_##name)) dlsym(library, "MPI_" #name);                                                        \
    if (mpi_##name == NULL)                                                                                                    \
        give_up("the MPI underneath has no MPI_" #name);
    UNDERNEATH(FIND)
    if (mpi_Allreduce == MPI_Allreduce)
        give_up("the drop-in is not preloaded: LD_PRELOAD=build/mpi/librondo-mpi-ABI.so");
}

/* ---- the collectives ---- */

enum arm { DROP_IN, UNDER, NATIVE, AGAIN, ARMS };
static const char *const arm_names[ARMS] = {"drop_in", "mpi", "rondo", "again"};

/* Of one cell. counts and displacements are of size ranks, in bytes or elements; the library's are size_t. */
struct cell {
    char *send, *recv;
    int n, floats; /* bytes of a message, and its elements in a reduction */
    int *counts, *places;
    size_t *wide_counts, *wide_places;
};

#define WORLD MPI_COMM_WORLD
#define F     MPI_FLOAT, MPI_SUM
#define RF    RONDO_FLOAT, RONDO_SUM
#define RU    RONDO_UINT8
/* X(name, MPI's function, its arguments, rondo.h's, blocks of the send buffer, blocks of the receive buffer) */
#define COLLECTIVES(X)                                                                                                         \
    X(barrier, Barrier, (WORLD), (native), 0, 0)                                                                               \
    X(bcast, Bcast, (c->recv, c->n, MPI_BYTE, 0, WORLD), (c->recv, (size_t) c->n, RU, 0, native), 1, 1)                        \
    X(reduce, Reduce, (c->send, c->recv, c->floats, F, 0, WORLD), (c->send, c->recv, (size_t) c->floats, RF, 0, native), 1, 1) \
    X(allreduce, Allreduce, (c->send, c->recv, c->floats, F, WORLD), (c->send, c->recv, (size_t) c->floats, RF, native), 1, 1) \
    X(reduce_scatter_block, Reduce_scatter_block, (c->send, c->recv, c->floats, F, WORLD),                                     \
      (c->send, c->recv, (size_t) c->floats, RF, native), size, 1)                                                             \
    X(reduce_scatter, Reduce_scatter, (c->send, c->recv, c->counts, F, WORLD), (c->send, c->recv, c->wide_counts, RF, native), \
      size, 1)                                                                                                                 \
    X(gather, Gather, (c->send, c->n, MPI_BYTE, c->recv, c->n, MPI_BYTE, 0, WORLD),                                            \
      (c->send, c->recv, (size_t) c->n, RU, 0, native), 1, size)                                                               \
    X(gatherv, Gatherv, (c->send, c->n, MPI_BYTE, c->recv, c->counts, c->places, MPI_BYTE, 0, WORLD),                          \
      (c->send, (size_t) c->n, c->recv, c->wide_counts, c->wide_places, RU, 0, native), 1, size)                               \
    X(scatter, Scatter, (c->send, c->n, MPI_BYTE, c->recv, c->n, MPI_BYTE, 0, WORLD),                                          \
      (c->send, c->recv, (size_t) c->n, RU, 0, native), size, 1)                                                               \
    X(scatterv, Scatterv, (c->send, c->counts, c->places, MPI_BYTE, c->recv, c->n, MPI_BYTE, 0, WORLD),                        \
      (c->send, c->wide_counts, c->wide_places, c->recv, (size_t) c->n, RU, 0, native), size, 1)                               \
    X(allgather, Allgather, (c->send, c->n, MPI_BYTE, c->recv, c->n, MPI_BYTE, WORLD),                                         \
      (c->send, c->recv, (size_t) c->n, RU, native), 1, size)                                                                  \
    X(allgatherv, Allgatherv, (c->send, c->n, MPI_BYTE, c->recv, c->counts, c->places, MPI_BYTE, WORLD),                       \
      (c->send, (size_t) c->n, c->recv, c->wide_counts, c->wide_places, RU, native), 1, size)                                  \
    X(alltoall, Alltoall, (c->send, c->n, MPI_BYTE, c->recv, c->n, MPI_BYTE, WORLD),                                           \
      (c->send, c->recv, (size_t) c->n, RU, native), size, size)                                                               \
    X(alltoallv, Alltoallv, (c->send, c->counts, c->places, MPI_BYTE, c->recv, c->counts, c->places, MPI_BYTE, WORLD),         \
      (c->send, c->wide_counts, c->wide_places, c->recv, c->wide_counts, c->wide_places, RU, native), size, size)

/* So many calls; returns the first status that is not 0. A branch for each arm outside of the loop, as a program has none. */
#define LOOP(call)                                                                                                             \
    do {                                                                                                                       \
        for (int i = 0; i < calls && status == 0; i++)                                                                         \
            status = call;                                                                                                     \
    } while (0)
#define RUN(name, Name, mpi_arguments, rondo_arguments, sends, recvs)                                                          \
    static int run_##name(const struct cell *c, enum arm arm, int calls)                                                       \
    {                                                                                                                          \
        int status = 0;                                                                                                        \
        (void) c;                                                                                                              \
        if (arm == DROP_IN)                                                                                                    \
            LOOP(MPI_##Name mpi_arguments);                                                                                    \
        else if (arm == NATIVE)                                                                                                \
            LOOP((int) rondo_##name rondo_arguments);                                                                          \
        else                                                                                                                   \
            LOOP((*mpi_##Name) mpi_arguments);                                                                                 \
        return status;                                                                                                         \
    }
COLLECTIVES(RUN)

/* ---- measuring ---- */

/* Microseconds of a call, the mean over the ranks. */
static double measure(int (*run)(const struct cell *, enum arm, int), const struct cell *cell, enum arm arm, int calls)
{
    double mine, all;
    mpi_Barrier(MPI_COMM_WORLD);
    mine = MPI_Wtime();
    if (run(cell, arm, calls) != 0)
        give_up("a call failed, arm %s", arm_names[arm]);
    mine = (MPI_Wtime() - mine) / calls * 1e6;
    mpi_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all / size;
}

/* What a rank sends: small whole numbers, so that sums are exact in any order. */
static void fill(struct cell *cell, size_t sent, size_t received)
{
    float *values = (float *) cell->send;
    for (size_t i = 0; i < sent / sizeof(float); i++)
        values[i] = (float) ((i * 7 + (size_t) rank * 13) % 101);
    memset(cell->recv, 0, received);
}

static uint64_t digest(const char *bytes, size_t count)
{
    uint64_t value = 1469598103934665603u;
    for (size_t i = 0; i < count; i++)
        value = (value ^ (unsigned char) bytes[i]) * 1099511628211u;
    return value;
}

static void check(const char *name, int (*run)(const struct cell *, enum arm, int), struct cell *cell, size_t sent,
                  size_t received)
{
    uint64_t found[NATIVE + 1];
    for (int arm = DROP_IN; arm <= NATIVE; arm++) {
        fill(cell, sent, received);
        if (strcmp(name, "bcast") == 0 && rank == 0)
            memcpy(cell->recv, cell->send, received);
        if (run(cell, (enum arm) arm, 1) != 0)
            give_up("%s of %d bytes failed, arm %s", name, cell->n, arm_names[arm]);
        found[arm] = digest(cell->recv, received);
    }
    if (found[DROP_IN] != found[UNDER] || found[NATIVE] != found[UNDER])
        give_up("%s of %d bytes: rank %d has other results than with the MPI underneath", name, cell->n, rank);
}

static void measure_cell(const char *name, int (*run)(const struct cell *, enum arm, int), size_t bytes, int sends, int recvs,
                         int rounds, double milliseconds)
{
    const size_t sent = (size_t) sends * bytes, received = (size_t) recvs * bytes;
    const int reduces = strncmp(name, "reduce_scatter", strlen("reduce_scatter")) == 0;
    struct cell cell = {.n = (int) bytes, .floats = (int) (bytes / sizeof(float))};
    cell.send = aligned_alloc(4096, (sent + 4096) / 4096 * 4096);
    cell.recv = aligned_alloc(4096, (received + 4096) / 4096 * 4096);
    cell.counts = calloc((size_t) size, 2 * sizeof(int));
    cell.wide_counts = calloc((size_t) size, 2 * sizeof(size_t));
    double *times = calloc((size_t) rounds, ARMS * sizeof(double));
    if (cell.send == NULL || cell.recv == NULL || cell.counts == NULL || cell.wide_counts == NULL || times == NULL)
        give_up("no memory for %zu bytes", sent + received);
    cell.places = cell.counts + size;
    cell.wide_places = cell.wide_counts + size;
    for (int i = 0; i < size; i++) {
        cell.counts[i] = reduces ? cell.floats : cell.n;
        cell.places[i] = i * cell.n;
        cell.wide_counts[i] = (size_t) cell.counts[i];
        cell.wide_places[i] = (size_t) cell.places[i];
    }
    check(name, run, &cell, sent, received);
    fill(&cell, sent, received);
    double longest = 0;
    for (int arm = 0; arm < ARMS; arm++) {
        measure(run, &cell, (enum arm) arm, 2);
        const double took = measure(run, &cell, (enum arm) arm, 4);
        longest = took > longest ? took : longest;
    }
    int calls = (int) (milliseconds * 1e3 / (longest > 0.01 ? longest : 0.01));
    calls = calls < 3 ? 3 : calls > 20000 ? 20000 : calls;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < ARMS; i++) {
            const int arm = (i + round) % ARMS;
            times[arm * rounds + round] = measure(run, &cell, (enum arm) arm, calls);
        }
    if (rank == 0) {
        printf("{\"collective\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"calls\": %d", name, size, bytes, calls);
        for (int arm = 0; arm < ARMS; arm++) {
            printf(", \"%s\": [", arm_names[arm]);
            for (int round = 0; round < rounds; round++)
                printf("%s%.4f", round > 0 ? ", " : "", times[arm * rounds + round]);
            printf("]");
        }
        printf("}\n");
        fflush(stdout);
    }
    free(times);
    free(cell.wide_counts);
    free(cell.counts);
    free(cell.recv);
    free(cell.send);
}

static int is_wanted(const char *list, const char *name)
{
    char within[512], word[64];
    snprintf(within, sizeof(within), ",%s,", list);
    snprintf(word, sizeof(word), ",%s,", name);
    return strcmp(list, "all") == 0 || strstr(within, word) != NULL;
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "all";
    const size_t largest = argc > 2 ? strtoul(argv[2], NULL, 0) : (size_t) 2 << 20;
    const int rounds = argc > 3 && atoi(argv[3]) > 0 ? atoi(argv[3]) : 9;
    const double milliseconds = argc > 4 ? atof(argv[4]) : 10;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    rondo_unique_id_t id;
    rondo_t runtime;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    find_underneath();
    if (rank == 0 && rondo_get_unique_id(&id) != RONDO_SUCCESS)
        give_up("%s", rondo_last_error());
    mpi_Bcast(&id, (int) sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    config.rank = rank;
    config.size = size;
    config.unique_id = &id;
    config.device = RONDO_DEVICE_HOST;
    if (rondo_init(&runtime, &config) != RONDO_SUCCESS || rondo_comm_world(runtime, &native) != RONDO_SUCCESS)
        give_up("%s", rondo_last_error());
#define MEASURE(name, Name, mpi_arguments, rondo_arguments, sends, recvs)                                                      \
    for (size_t bytes = 8; is_wanted(wanted, #name) && bytes <= (strcmp(#name, "barrier") == 0 ? 8 : largest);                 \
         bytes = bytes < largest && bytes * 4 > largest ? largest : bytes * 4)                                                 \
        measure_cell(#name, run_##name, bytes, sends, recvs, rounds, milliseconds);
    COLLECTIVES(MEASURE)
    if (rondo_finalize(runtime) != RONDO_SUCCESS)
        give_up("%s", rondo_last_error());
    MPI_Finalize();
    return 0;
}
