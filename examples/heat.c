/* The steady temperature of a square plate, by Jacobi iteration: the plate's rows are divided among the ranks, which exchange
 * their outermost rows before every sweep while they update the others. One edge is held at sin(pi x), three at zero, so the
 * solution is known, sin(pi x) sinh(pi y) / sinh(pi), and checked. Usage: heat [GRID [TOLERANCE]] */
#include "rondo.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS_PER_CHECK = 50, LARGEST_GRID = 16384 };
static const double PI = 3.14159265358979323846;

/* Any failure ends this process; the other ranks then see RONDO_ERR_PEER and end too. */
#define CHECK(call) check(call, #call)
static void check(rondo_result_t result, const char *call)
{
    if (result != RONDO_SUCCESS) {
        fprintf(stderr, "heat: %s: %s: %s\n", call, rondo_strerror(result), rondo_last_error());
        exit(EXIT_FAILURE);
    }
}

/* This rank's rows of the grid, with a row of halo on both sides: the neighbour's outermost row, or the plate's edge. There are
 * two copies: a sweep reads one and writes the other. */
struct block {
    int grid;                   /* unknowns along each side; unknown i is at i / (grid + 1), i = 1..grid */
    int first;                  /* the grid's row that is this block's row 1 */
    int rows;                   /* may be 0 on the last ranks, when there are more ranks than rows */
    size_t width;               /* values a row: grid + 2 */
    double *values[2];          /* (rows + 2) x width each */
    int exchanges;              /* requests in each row of the next */
    rondo_request_t halo[2][4]; /* for each copy: its persistent sends and receives, none towards the plate's edges */
};

static int rows_of(int rank, int size, int grid)
{
    return grid / size + (rank < grid % size);
}

static double *row_of(const struct block *block, int copy, int row)
{
    return block->values[copy] + (size_t) row * block->width;
}

static double solution(const struct block *block, int row, int column)
{
    const double step = PI / (block->grid + 1);
    return sin(step * column) * sinh(step * (block->first + row - 1)) / sinh(PI);
}

/* Exchanges `mine`, a row of this block, for the neighbour's, which arrives in `halo`. */
static void add_exchange(struct block *block, int copy, int mine, int halo, int neighbour, rondo_comm_t world)
{
    rondo_request_t *request = block->halo[copy] + block->exchanges;
    CHECK(rondo_send_init(row_of(block, copy, mine), block->width, RONDO_DOUBLE, neighbour, world, NULL, &request[0]));
    CHECK(rondo_recv_init(row_of(block, copy, halo), block->width, RONDO_DOUBLE, neighbour, world, NULL, &request[1]));
    block->exchanges += 2;
}

static void create(struct block *block, int grid, rondo_comm_t world)
{
    int rank, size;
    CHECK(rondo_comm_rank(world, &rank));
    CHECK(rondo_comm_size(world, &size));
    *block = (struct block){.grid = grid, .first = 1, .rows = rows_of(rank, size, grid), .width = (size_t) grid + 2};
    for (int below = 0; below < rank; below++)
        block->first += rows_of(below, size, grid);

    for (int copy = 0; copy < 2; copy++) {
        block->values[copy] = calloc(((size_t) block->rows + 2) * block->width, sizeof(double));
        if (!block->values[copy]) {
            fprintf(stderr, "heat: no memory for %d rows of %zu values\n", block->rows + 2, block->width);
            exit(EXIT_FAILURE);
        }
        if (block->rows == 0)
            continue;
        if (block->first + block->rows > grid) /* the hot edge is this block's upper halo */
            for (int column = 1; column <= grid; column++)
                row_of(block, copy, block->rows + 1)[column] = solution(block, block->rows + 1, column);
        block->exchanges = 0;
        if (block->first > 1)
            add_exchange(block, copy, 1, 0, rank - 1, world);
        if (block->first + block->rows <= grid)
            add_exchange(block, copy, block->rows, block->rows + 1, rank + 1, world);
    }
}

static void destroy(struct block *block)
{
    for (int copy = 0; copy < 2; copy++) {
        for (int i = 0; i < block->exchanges; i++)
            CHECK(rondo_request_free(&block->halo[copy][i]));
        free(block->values[copy]);
    }
}

/* Updates rows from..to of the other copy from `copy`; returns the larger of `change` and the largest change made. */
static double update(const struct block *block, int copy, int from, int to, double change)
{
    for (int row = from; row <= to; row++) {
        const double *below = row_of(block, copy, row - 1), *here = row_of(block, copy, row);
        const double *above = row_of(block, copy, row + 1);
        double *next = row_of(block, !copy, row);
        for (int column = 1; column <= block->grid; column++) {
            next[column] = 0.25 * (below[column] + above[column] + here[column - 1] + here[column + 1]);
            const double difference = fabs(next[column] - here[column]);
            change = difference > change ? difference : change;
        }
    }
    return change;
}

/* One Jacobi step. The halos travel while the rows that do not need them are updated. */
static double sweep(struct block *block, int copy)
{
    if (block->rows == 0)
        return 0.0;
    CHECK(rondo_startall(block->exchanges, block->halo[copy]));
    double change = update(block, copy, 2, block->rows - 1, 0.0);
    CHECK(rondo_waitall(block->exchanges, block->halo[copy]));
    change = update(block, copy, 1, 1, change);
    return block->rows > 1 ? update(block, copy, block->rows, block->rows, change) : change;
}

static double largest_error(const struct block *block, int copy)
{
    double error = 0.0;
    for (int row = 1; row <= block->rows; row++)
        for (int column = 1; column <= block->grid; column++)
            error = fmax(error, fabs(row_of(block, copy, row)[column] - solution(block, row, column)));
    return error;
}

static double largest_of_all(double value, rondo_comm_t world)
{
    CHECK(rondo_allreduce(RONDO_IN_PLACE, &value, 1, RONDO_DOUBLE, RONDO_MAX, world));
    return value;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

int main(int argc, char **argv)
{
    const int grid = argc > 1 ? atoi(argv[1]) : 64;
    const double tolerance = argc > 2 ? atof(argv[2]) : 1e-8;
    if (argc > 3 || grid < 1 || grid > LARGEST_GRID || !(tolerance >= 1e-14)) {
        fprintf(stderr,
                "usage: heat [GRID [TOLERANCE]]\n"
                "  GRID       unknowns along each side, 1 to %d (64)\n"
                "  TOLERANCE  stop when no unknown changes by more in a step, 1e-14 or more (1e-8)\n",
                LARGEST_GRID);
        return 2;
    }

    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.device = RONDO_DEVICE_HOST; /* the grid is host memory */
    rondo_t runtime;
    rondo_comm_t world;
    int rank, size;
    CHECK(rondo_init(&runtime, &config));
    CHECK(rondo_comm_world(runtime, &world));
    CHECK(rondo_comm_rank(world, &rank));
    CHECK(rondo_comm_size(world, &size));
    struct block block;
    create(&block, grid, world);

    const double start = seconds();
    double residual = INFINITY;
    int steps = 0;
    while (residual > tolerance) {
        double change = 0.0;
        for (int i = 0; i < STEPS_PER_CHECK; i++)
            change = sweep(&block, steps++ % 2);
        residual = largest_of_all(change, world);
    }
    const double elapsed = seconds() - start;

    /* Two defects are left: each step still changes the grid, by the residual, and the five-point formula is off by h^2 / 12
     * times the fourth derivatives, at most 2 pi^4. A plate answers a constant source with at most 0.074 of it. */
    const double h = 1.0 / (grid + 1);
    const double error = largest_of_all(largest_error(&block, steps % 2), world);
    const double allowed = 0.074 * (4.0 * residual / (h * h) + 2.0 * pow(PI, 4.0) * h * h / 12.0);
    const int good = error <= allowed;
    if (rank == 0)
        printf("heat: %d x %d on %d ranks: %d iterations, residual %.3e, error %.3e (%s %.3e allowed), %.3f s\n", grid, grid,
               size, steps, residual, error, good ? "within the" : "above the", allowed, elapsed);

    destroy(&block);
    CHECK(rondo_finalize(runtime));
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
