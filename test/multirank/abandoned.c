/*
 * A large receive whose communicator is aborted while the sender starts to send. After the receive has ended, the sender must
 * not store into the buffer, which belongs to the application again (device/engine/direct_write.h). Abort and send happen at
 * about the same time, in many rounds.
 */
#include "test/multirank/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4 << 20 }; /* large enough for a direct write instead of slots */

static long rounds = 300, seed = 1, received, given_up;

/* Sleeps up to 300 us in small steps. Now and then the receiver sleeps long enough for the whole message to arrive, or not at
 * all. */
static void pause(const struct rank *me, long round)
{
    const uint64_t random = ranks_hash((uint64_t) seed << 32 ^ (uint64_t) round << 1 ^ (uint64_t) me->rank);
    const double end = ranks_seconds() + 1e-6 * (double) (random % 300);
    if (me->rank == 0 && round % 10 == 0)
        ranks_sleep(0.03);
    while ((me->rank != 0 || round % 10 != 1) && ranks_seconds() < end)
        ;
}

static void check(const unsigned char *memory, unsigned char value, long round, const char *when)
{
    size_t wrong = 0;
    for (size_t i = 0; i < BYTES; i++)
        wrong += memory[i] != value;
    CHECK(wrong == 0, "round %ld: %zu of %d bytes are not %#x %s", round, wrong, BYTES, value, when);
}

/* Receives and aborts. On return the buffer belongs to the application, and is filled with a pattern. */
static void receive(struct rank *me, rondo_comm_t comm, unsigned char *memory, long round)
{
    rondo_request_t request = NULL;
    MUST(rondo_irecv(memory, BYTES, RONDO_UINT8, 1, comm, &request));
    MUST(rondo_barrier(me->world));
    pause(me, round);
    MUST(rondo_comm_abort(comm, 1));
    const rondo_result_t result = rondo_wait(request);
    CHECK(result == RONDO_SUCCESS || result == RONDO_ERR_ABORTED, "%s: %s", rondo_strerror((int) result), rondo_last_error());
    if (result == RONDO_SUCCESS)
        check(memory, 0x22, round, "though they have been received");
    received += result == RONDO_SUCCESS;
    given_up += result != RONDO_SUCCESS;
    memset(memory, 0x11, BYTES);
}

static void send(struct rank *me, rondo_comm_t comm, unsigned char *memory, long round)
{
    rondo_request_t request = NULL;
    memset(memory, 0x22, BYTES);
    MUST(rondo_barrier(me->world));
    pause(me, round);
    if (rondo_isend(memory, BYTES, RONDO_UINT8, 0, comm, &request) == RONDO_SUCCESS)
        (void) rondo_wait(request); /* any result: the abort may have come too late */
}

static void run(struct rank *me)
{
    unsigned char *memory = ranks_allocate(BYTES);
    for (long round = 0; round < rounds; round++) {
        rondo_comm_t comm;
        STEP("round %ld", round);
        MUST(rondo_comm_dup(me->world, &comm));
        if (me->rank == 0)
            receive(me, comm, memory, round);
        else
            send(me, comm, memory, round);
        MUST(rondo_barrier(me->world)); /* the sender has ended */
        if (me->rank == 0)
            check(memory, 0x11, round, "after the receive had ended");
        MUST(rondo_comm_free(&comm));
    }
    ranks_release(memory);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--rounds", &rounds, NULL, "each with a communicator of its own"},
        {"--seed", &seed, NULL, "of the pauses"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    ranks_run(2, NULL, run, NULL);
    printf("abandoned: %ld received, %ld given up\n", received, given_up);
    CHECK(received > 0 && given_up > 0, "%ld received, %ld given up", received, given_up);
    return ranks_finish("abandoned");
}
