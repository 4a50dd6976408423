/* Errors, warnings, and the counts of what was taken and what was left to MPI (RONDO_MPI_REPORT). */
#include "compat/mpi/shim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t rondo_mpi_counts[RONDO_MPI_KINDS][RONDO_MPI_REASON_COUNT];

int rondo_mpi_class(rondo_result_t result)
{
    switch (result) {
    case RONDO_SUCCESS:
        return MPI_SUCCESS;
    case RONDO_ERR_ARGUMENT:
        return MPI_ERR_ARG;
    case RONDO_ERR_BUFFER:
        return MPI_ERR_BUFFER;
    case RONDO_ERR_MEMORY:
        return MPI_ERR_NO_MEM;
    case RONDO_ERR_PEER:
#ifdef MPI_ERR_PROC_FAILED
        return MPI_ERR_PROC_FAILED;
#else
        return MPI_ERR_OTHER;
#endif
    case RONDO_ERR_INTERNAL:
        return MPI_ERR_INTERN;
    default:
        return MPI_ERR_OTHER;
    }
}

void rondo_mpi_warn(const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "rondo: MPI: %s\n", text);
}

int rondo_mpi_fail(struct rondo_mpi_comm *comm, int class)
{
    MPI_Comm handle = __atomic_load_n(&comm->handle, __ATOMIC_RELAXED);
    if (class == MPI_SUCCESS)
        return class;
    rondo_mpi_warn("rank %d of %d: %s", comm->rank, comm->size, rondo_last_error());
    NEXT(Comm_call_errhandler)(handle != (MPI_Comm) 0 ? handle : MPI_COMM_WORLD, class);
    return class;
}

/* ---- the report ---- */

#define COLLECTIVE(Name, name, ...) #name,
static const char *const names[] = {
#include "compat/mpi/table.h"
};
#undef COLLECTIVE

#define REASON(name, text) text,
static const char *const reasons[] = {RONDO_MPI_REASONS(REASON)};
#undef REASON

static uint64_t left_of(const uint64_t *counts)
{
    uint64_t left = 0;
    for (int reason = 1; reason < RONDO_MPI_REASON_COUNT; reason++)
        left += counts[reason];
    return left;
}

static void print(FILE *file, uint64_t (*counts)[RONDO_MPI_REASON_COUNT])
{
    fprintf(file, "rondo: MPI: %-22s %12s %12s  %s\n", "collective", "taken", "left", "why left");
    for (int kind = 0; kind < RONDO_MPI_KINDS; kind++) {
        uint64_t left = left_of(counts[kind]);
        if (counts[kind][RONDO_MPI_TAKEN] + left == 0)
            continue;
        fprintf(file, "rondo: MPI: %-22s %12llu %12llu ", names[kind], (unsigned long long) counts[kind][RONDO_MPI_TAKEN],
                (unsigned long long) left);
        for (int reason = 1; reason < RONDO_MPI_REASON_COUNT; reason++)
            if (counts[kind][reason] > 0)
                fprintf(file, " %s: %llu;", reasons[reason], (unsigned long long) counts[kind][reason]);
        fprintf(file, "\n");
    }
}

static void write_json(FILE *file, uint64_t (*counts)[RONDO_MPI_REASON_COUNT])
{
    const char *before = "";
    fprintf(file, "[");
    for (int kind = 0; kind < RONDO_MPI_KINDS; kind++) {
        uint64_t left = left_of(counts[kind]);
        const char *between = "";
        if (counts[kind][RONDO_MPI_TAKEN] + left == 0)
            continue;
        fprintf(file, "%s\n {\"collective\": \"%s\", \"taken\": %llu, \"left\": %llu, \"reasons\": {", before, names[kind],
                (unsigned long long) counts[kind][RONDO_MPI_TAKEN], (unsigned long long) left);
        for (int reason = 1; reason < RONDO_MPI_REASON_COUNT; reason++)
            if (counts[kind][reason] > 0) {
                fprintf(file, "%s\"%s\": %llu", between, reasons[reason], (unsigned long long) counts[kind][reason]);
                between = ", ";
            }
        fprintf(file, "}}");
        before = ",";
    }
    fprintf(file, "\n]\n");
}

void rondo_mpi_report(void)
{
    static uint64_t sums[RONDO_MPI_KINDS][RONDO_MPI_REASON_COUNT];
    const char *where = getenv("RONDO_MPI_REPORT");
    int rank, mine = where != NULL && where[0] != '\0' && strcmp(where, "0") != 0, wanted = 0;
    NEXT(Allreduce)(&mine, &wanted, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD); /* all ranks must take part in the sum */
    if (!wanted)
        return;
    NEXT(Comm_rank)(MPI_COMM_WORLD, &rank);
    NEXT(Reduce)
    (rondo_mpi_counts, sums, RONDO_MPI_KINDS * RONDO_MPI_REASON_COUNT, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank != 0 || !mine)
        return;
    if (strcmp(where, "1") == 0) {
        print(stderr, sums);
        return;
    }
    FILE *file = fopen(where, "w");
    if (file == NULL) {
        rondo_mpi_warn("RONDO_MPI_REPORT: %s: %s", where, strerror(errno));
        return;
    }
    write_json(file, sums);
    fclose(file);
}
