/* `rondo program run`: the ranks as threads, the program registered on their world, every element compared. */
#include "tools/program/program.h"

#include "tools/common/check.h"
#include "tools/common/options.h"
#include "tools/common/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct running {
    const struct program_options *options;
    rondo_program_signature_t signature;
    json_t *rows;
    uint64_t wrong;
};

static const char default_bytes[] = "4,68,1020,16K,260K,4M";

static int say(const struct rank *rank, const char *what, rondo_result_t code)
{
    fprintf(stderr, "rondo program run: rank %d: %s: %s: %s\n", rank->rank, what, rondo_strerror((int) code),
            rondo_last_error());
    return EXIT_WRONG;
}

/* One size in one form. */
static int run_row(struct rank *rank, struct running *running, size_t bytes, bool in_place)
{
    const struct collective *collective = collective_find(running->signature.collective);
    struct call call = {.collective = collective,
                        .comm = rank->world,
                        .attr = RONDO_ATTR_DEFAULT,
                        .rank = rank->rank,
                        .ranks = rank->size,
                        .root = running->signature.root,
                        .type = RONDO_INT32,
                        .op = RONDO_SUM,
                        .in_place = in_place,
                        .buffers = &rank->buffers};
    struct values values = {
        .type = RONDO_INT32, .op = RONDO_SUM, .reduces = collective->rule->reduces, .ranks = rank->size, .seed = 7 + bytes};
    struct check_buffers buffers = {.device = &rank->buffers};
    void *memory[2] = {NULL, NULL};
    uint64_t wrong = 0;
    int code = 0;
    if (running->signature.op != NULL && (code = options_operator("program", "redop", running->signature.op, &call.op)) != 0)
        return code;
    values.op = call.op;
    call.attr.program = running->signature.name;
    values_prepare(&values, collective_is_prefix(collective));
    if (!call_shape(&call, bytes))
        return EXIT_WRONG;
    size_t lengths[2] = {call.input_elements * call.type_bytes, call.output_elements * call.type_bytes};
    rondo_result_t result = RONDO_SUCCESS;
    for (int b = 0; b < 2 && result == RONDO_SUCCESS; b++)
        result = buffers_allocate(&rank->buffers, lengths[b] + 2 * CHECK_GUARD + 64, &memory[b]);
    if (result == RONDO_SUCCESS) {
        buffers.input = (char *) memory[0] + CHECK_GUARD, buffers.input_bytes = lengths[0];
        buffers.output = (char *) memory[1] + CHECK_GUARD, buffers.output_bytes = lengths[1];
        call_bind(&call, buffers.input, buffers.output);
        result = check_fill(&call, &values, &buffers, false);
    }
    if (result == RONDO_SUCCESS)
        result = call_open(&call, FORM_PERSISTENT);
    bool refused = result == RONDO_ERR_UNSUPPORTED; /* on all ranks alike */
    if (result == RONDO_SUCCESS)
        result = call_run(&call, FORM_PERSISTENT);
    if (result == RONDO_SUCCESS)
        result = check_result(&call, &values, &buffers, &wrong);
    if (result == RONDO_SUCCESS)
        result = call_close(&call, FORM_PERSISTENT);
    if (result != RONDO_SUCCESS && !refused)
        code = say(rank, "run", result);
    if (rank->rank == 0) {
        FILE *out = output_stream(running->options->json);
        if (refused)
            fprintf(out, "%10zu B  %-12s not run: %s\n", call.bytes, in_place ? "in place" : "out of place",
                    rondo_last_error());
        else if (code == 0)
            fprintf(out, "%10zu B  %-12s %s\n", call.bytes, in_place ? "in place" : "out of place",
                    wrong == 0 ? "right" : "WRONG");
        json_array_append_new(running->rows, json_pack("{s:I, s:b, s:b, s:I}", "bytes", (json_int_t) call.bytes, "in_place",
                                                       (int) in_place, "ran", (int) !refused, "wrong", (json_int_t) wrong));
    }
    __atomic_fetch_add(&running->wrong, wrong, __ATOMIC_RELAXED);
    for (int b = 0; b < 2; b++)
        if (memory[b] != NULL)
            buffers_release(rank->buffers.gpu, memory[b]);
    call_release(&call);
    return code;
}

/* One size of a custom program. */
static int run_custom_row(struct rank *rank, struct running *running, size_t bytes)
{
    struct program_row row = {.form = "start"};
    rondo_result_t result = program_run_custom(rank, running->options, &running->signature, bytes, &row);
    if (result != RONDO_SUCCESS)
        return say(rank, row.form, result);
    if (rank->rank == 0) {
        fprintf(output_stream(running->options->json), "%10zu B  %-12s %s\n", row.bytes, "custom",
                row.wrong == 0 ? "right" : "WRONG");
        json_array_append_new(running->rows, json_pack("{s:I, s:b, s:b, s:I}", "bytes", (json_int_t) row.bytes, "in_place", 0,
                                                       "ran", 1, "wrong", (json_int_t) row.wrong));
    }
    __atomic_fetch_add(&running->wrong, row.wrong, __ATOMIC_RELAXED);
    return 0;
}

static int body(struct rank *rank, void *argument)
{
    struct running *running = argument;
    rondo_program_t program = NULL;
    rondo_result_t result = program_load(running->options, &program);
    if (result == RONDO_SUCCESS)
        result = rondo_program_register(rank->world, program, 0, 0);
    rondo_program_destroy(program);
    if (result != RONDO_SUCCESS)
        return say(rank, "register", result);
    const char *at = running->options->bytes != NULL ? running->options->bytes : default_bytes;
    const bool custom = strcmp(running->signature.collective, "custom") == 0;
    const bool may_be_in_place = !custom && collective_shares(collective_find(running->signature.collective));
    for (int code; *at != '\0';) {
        char text[32];
        size_t length = strcspn(at, ","), bytes;
        snprintf(text, sizeof(text), "%.*s", (int) (length < sizeof(text) ? length : sizeof(text) - 1), at);
        at += length + (at[length] == ',');
        if ((code = options_size("program", "--bytes", text, &bytes)) != 0)
            return code;
        if (custom && (code = run_custom_row(rank, running, bytes)) != 0)
            return code;
        for (int in_place = 0; !custom && in_place <= (int) may_be_in_place; in_place++)
            if ((code = run_row(rank, running, bytes, in_place != 0)) != 0)
                return code;
    }
    return 0;
}

int program_run(const struct program_options *options, rondo_program_t program, json_t *json)
{
    struct running running = {.options = options, .rows = json_array()};
    rondo_program_describe(program, &running.signature);
    struct options_runtime runtime = OPTIONS_RUNTIME_DEFAULT;
    runtime.threads = running.signature.ranks;
    runtime.device = options->device;
    if (strcmp(running.signature.collective, "custom") != 0 && collective_find(running.signature.collective) == NULL) {
        json_decref(running.rows);
        return options_refuse("program", "run: there is no way to check %s", running.signature.collective);
    }
    struct ranks_plan plan = {.verb = "program", .runtime = &runtime, .body = body, .argument = &running};
    int code = ranks_run(&plan);
    json_object_set_new(json, "rows", running.rows);
    json_object_set_new(json, "wrong", json_integer((json_int_t) running.wrong));
    return code != 0 ? code : running.wrong > 0 ? EXIT_WRONG : 0;
}
