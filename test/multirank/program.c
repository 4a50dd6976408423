/*
 * Users' programs on a communicator: registered, chosen by name and by size, refused where they do not fit, mismatched between
 * ranks, custom ones, and programs from MSCCL's XML. Every element is checked.
 */
#include "rondo_program.h"

#include "test/multirank/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long ranks = 4, seed = 1, rounds = 20;

static rondo_program_t ring(const char *name, int n)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    signature.name = name, signature.collective = "allreduce", signature.ranks = n, signature.chunks = n;
    signature.in_place = 1;
    MUST(rondo_program_create(&p, &signature));
    for (int r = 0; r < n; r++) {
        rondo_chunk_t c = rondo_chunk(p, (r + 1) % n, RONDO_BUFFER_INPUT, (size_t) r, 1);
        for (int step = 2; step <= n; step++)
            c = rondo_chunk_reduce(rondo_chunk(p, (r + step) % n, RONDO_BUFFER_INPUT, (size_t) r, 1), c);
        for (int step = 1; step < n; step++)
            c = rondo_chunk_copy(c, (r + step) % n, RONDO_BUFFER_INPUT, (size_t) r);
    }
    return p;
}

/* An all-reduce by the program; sums of small whole numbers are exact in any order. */
static void sum(struct rank *me, const char *program, size_t count, int in_place, rondo_result_t wanted)
{
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_request_t request = NULL;
    int32_t *input = ranks_allocate((count + 1) * 4), *output = ranks_allocate((count + 1) * 4),
            *host = malloc((count + 1) * 4);
    attr.program = program;
    for (size_t i = 0; i < count; i++)
        host[i] = (int32_t) (ranks_hash(i * 977 + (uint64_t) me->rank) % 100000);
    ranks_put(input, host, count * 4);
    ranks_put(output, host, count * 4);
    STEP("allreduce of %zu by %s, in place %d", count, program == NULL ? "any" : program, in_place);
    rondo_result_t result = rondo_allreduce_init(in_place ? RONDO_IN_PLACE : input, output, count, RONDO_INT32, RONDO_SUM,
                                                 me->world, &attr, &request);
    CHECK(result == wanted, "%d (%s), not %d", (int) result, rondo_last_error(), (int) wanted);
    for (int round = 0; result == RONDO_SUCCESS && round < 2; round++) {
        if (in_place)
            ranks_put(output, host, count * 4);
        MUST(rondo_start(request));
        MUST(rondo_wait(request));
        int32_t *found = malloc((count + 1) * 4);
        size_t wrong = 0;
        ranks_get(found, output, count * 4);
        for (size_t i = 0; i < count; i++) {
            int64_t expected = 0;
            for (int r = 0; r < me->size; r++)
                expected += (int64_t) (ranks_hash(i * 977 + (uint64_t) r) % 100000);
            wrong += found[i] != (int32_t) expected;
        }
        CHECK(wrong == 0, "%zu of %zu elements are wrong", wrong, count);
        free(found);
    }
    if (request != NULL)
        MUST(rondo_request_free(&request));
    ranks_release(input);
    ranks_release(output);
    free(host);
}

/* A custom program: every rank gets the previous one's input. */
static void register_previous(struct rank *me)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    size_t zero = 0;
    signature.name = "previous", signature.collective = "custom", signature.ranks = me->size;
    signature.inputs = signature.outputs = 1;
    MUST(rondo_program_create(&p, &signature));
    for (int r = 0; r < me->size; r++) {
        int left = (r + me->size - 1) % me->size;
        rondo_program_require(p, r, 0, 1, &left, &zero);
        rondo_chunk_copy(rondo_chunk(p, left, RONDO_BUFFER_INPUT, 0, 1), r, RONDO_BUFFER_OUTPUT, 0);
    }
    MUST(rondo_program_register(me->world, p, 0, 0));
    rondo_program_destroy(p);
}

/* A custom program: every rank gets the sum of its neighbours' inputs, each in a chunk of its own. */
static void custom(struct rank *me)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    int n = me->size;
    signature.name = "neighbours", signature.collective = "custom", signature.ranks = n;
    signature.inputs = 1, signature.outputs = 2;
    MUST(rondo_program_create(&p, &signature));
    for (int r = 0; r < n; r++) {
        int left = (r + n - 1) % n, both[2] = {left, r};
        size_t zero[2] = {0, 0};
        rondo_program_require(p, r, 0, 1, &left, zero);
        rondo_program_require(p, r, 1, 2, both, zero);
        rondo_chunk_t c = rondo_chunk_copy(rondo_chunk(p, left, RONDO_BUFFER_INPUT, 0, 1), r, RONDO_BUFFER_OUTPUT, 0);
        rondo_chunk_t own = rondo_chunk_copy(rondo_chunk(p, r, RONDO_BUFFER_INPUT, 0, 1), r, RONDO_BUFFER_OUTPUT, 1);
        rondo_chunk_reduce(own, c);
    }
    MUST(rondo_program_register(me->world, p, 0, 0));
    rondo_program_destroy(p);
    register_previous(me);
    enum { COUNT = 1001 };
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_request_t request;
    int32_t *input = ranks_allocate(COUNT * 4), *output = ranks_allocate(2 * COUNT * 4), host[2 * COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = 1000 * me->rank + i;
    ranks_put(input, host, COUNT * 4);
    EXPECT(RONDO_ERR_ARGUMENT, "program is NULL",
           rondo_program_run_init(NULL, input, output, COUNT, RONDO_INT32, RONDO_SUM, me->world, NULL, &request));
    EXPECT(RONDO_ERR_UNSUPPORTED, "no-such",
           rondo_program_run("no-such", input, output, COUNT, RONDO_INT32, RONDO_SUM, me->world));
    attr.program = "no-such";
    EXPECT(RONDO_ERR_ARGUMENT, "attr->program is 'no-such'",
           rondo_program_run_init("neighbours", input, output, COUNT, RONDO_INT32, RONDO_SUM, me->world, &attr, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "avg", rondo_program_run("neighbours", input, output, COUNT, RONDO_INT32, RONDO_AVG, me->world));
    static const char *const forms[] = {"blocking", "non-blocking", "persistent"};
    for (int form = 0; form < 6; form++) { /* each twice, for the request cache */
        const char *name = form % 2 == 0 ? "neighbours" : "previous";
        const size_t count = (size_t) (form % 2 == 0 ? COUNT : COUNT - form);
        memset(host, 0, sizeof(host));
        ranks_put(output, host, sizeof(host));
        STEP("%s by %s", forms[form / 2], name);
        if (form / 2 == 0) {
            MUST(rondo_program_run(name, input, output, count, RONDO_INT32, RONDO_SUM, me->world));
        } else if (form / 2 == 1) {
            MUST(rondo_iprogram_run(name, input, output, count, RONDO_INT32, RONDO_SUM, me->world, &request));
            MUST(rondo_wait(request));
        } else {
            MUST(rondo_program_run_init(name, input, output, count, RONDO_INT32, RONDO_SUM, me->world, NULL, &request));
            MUST(rondo_start(request));
            MUST(rondo_wait(request));
            MUST(rondo_request_free(&request));
        }
        ranks_get(host, output, sizeof(host));
        int left = (me->rank + n - 1) % n, wrong = 0;
        for (int i = 0; i < (int) count; i++) {
            wrong += host[i] != 1000 * left + i;
            wrong += form % 2 == 0 && host[COUNT + i] != 1000 * left + i + 1000 * me->rank + i;
        }
        CHECK(wrong == 0, "%d elements are wrong", wrong);
    }
    if (n > 1) { /* the two have equal arguments but for the program */
        rondo_result_t result =
            rondo_program_run(me->rank == 0 ? "neighbours" : "previous", input, output, 8, RONDO_INT32, RONDO_SUM, me->world);
        CHECK(result == RONDO_ERR_MISMATCH, "%d (%s)", (int) result, rondo_last_error());
    }
    ranks_release(input);
    ranks_release(output);
}

static void run(struct rank *me)
{
    uint64_t state = (uint64_t) seed;
    rondo_program_t p = ring("mine", me->size), other = ring("mine", me->size + 1);
    EXPECT(RONDO_ERR_ARGUMENT, "is for", rondo_program_register(me->world, other, 0, 0));
    rondo_program_destroy(other);
    EXPECT(RONDO_ERR_ARGUMENT, "from 9 to 8", rondo_program_register(me->world, p, 9, 8));
    EXPECT(RONDO_ERR_MISMATCH, "different programs", rondo_program_register(me->world, p, 0, me->rank == 0 ? 100 : 200));
    sum(me, "mine", 10, 0, RONDO_ERR_UNSUPPORTED); /* no program of this name is registered */
    MUST(rondo_program_register(me->world, p, 4, 65536));
    EXPECT(RONDO_ERR_STATE, "already", rondo_program_register(me->world, p, 0, 0));
    rondo_program_destroy(p);
    sum(me, "no-such", 10, 0, RONDO_ERR_UNSUPPORTED);
    for (long round = 0; round < rounds; round++) {
        size_t count = (size_t) ranks_below(&state, round % 2 == 0 ? 100 : 40000) + 1;
        int in_place = ranks_below(&state, 2);
        sum(me, round % 3 == 0 ? "mine" : NULL, count, in_place, RONDO_SUCCESS);
    }
    /* The same through a file. */
    char *text = NULL;
    rondo_program_t again;
    p = ring("filed", me->size);
    MUST(rondo_program_write_xml(p, &text));
    MUST(rondo_program_read_xml(text, strlen(text), &again));
    MUST(rondo_program_register(me->world, again, 0, 0));
    rondo_program_text_free(text);
    rondo_program_destroy(p);
    rondo_program_destroy(again);
    for (int i = 0; i < 4; i++)
        sum(me, "filed", (size_t) ranks_below(&state, 5000) + 1, i % 2, RONDO_SUCCESS);
    custom(me);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {{"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
                                           {"--seed", &seed, NULL, "of the sizes"},
                                           {"--rounds", &rounds, NULL, "calls of random sizes"}};
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.check = 1;
    ranks_run((int) ranks, &config, run, NULL);
    return ranks_finish("program");
}
