/* `rondo program run` of custom programs: inputs as the precondition says, outputs compared with the postcondition. */
#include "tools/program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form { FORM_BLOCKING, FORM_PERSISTENT, FORMS };
static const char *const form_names[FORMS] = {"blocking", "persistent"};

/* Of one rank. */
struct custom {
    struct rank *rank;
    const struct program_options *options;
    const rondo_program_signature_t *signature;
    size_t count;         /* elements of a chunk */
    void *input, *output; /* device memory */
    uint32_t *host;       /* room for either */
};

static rondo_result_t fill(struct custom *c)
{
    const size_t inputs = (size_t) c->signature->inputs, outputs = (size_t) c->signature->outputs;
    for (size_t i = 0; i < inputs * c->count; i++)
        c->host[i] = conditions_element(&c->options->before, c->rank->rank, i / c->count, i % c->count);
    rondo_result_t result = buffers_put(&c->rank->buffers, c->input, c->host, inputs * c->count * sizeof(*c->host));
    if (result == RONDO_SUCCESS)
        result = buffers_set(&c->rank->buffers, c->output, 0xa5, outputs * c->count * sizeof(*c->host));
    return result;
}

static rondo_result_t start(struct custom *c, enum form form)
{
    const char *name = c->signature->name;
    rondo_request_t request = NULL;
    if (form == FORM_BLOCKING)
        return rondo_program_run(name, c->input, c->output, c->count, RONDO_UINT32, RONDO_SUM, c->rank->world);
    rondo_result_t result =
        rondo_program_run_init(name, c->input, c->output, c->count, RONDO_UINT32, RONDO_SUM, c->rank->world, NULL, &request);
    if (result == RONDO_SUCCESS)
        result = rondo_start(request);
    if (result == RONDO_SUCCESS)
        result = rondo_wait(request);
    if (result == RONDO_SUCCESS)
        result = rondo_request_free(&request);
    return result;
}

static rondo_result_t compare(struct custom *c, uint64_t *wrong)
{
    const size_t outputs = (size_t) c->signature->outputs;
    rondo_result_t result = buffers_get(&c->rank->buffers, c->host, c->output, outputs * c->count * sizeof(*c->host));
    for (size_t i = 0; result == RONDO_SUCCESS && i < outputs * c->count; i++)
        if (conditions_find(&c->options->after, c->rank->rank, i / c->count) != NULL)
            *wrong += c->host[i] != conditions_element(&c->options->after, c->rank->rank, i / c->count, i % c->count);
    return result;
}

rondo_result_t program_run_custom(struct rank *rank, const struct program_options *options,
                                  const rondo_program_signature_t *signature, size_t bytes, struct program_row *row)
{
    struct custom c = {.rank = rank, .options = options, .signature = signature};
    const size_t inputs = (size_t) signature->inputs, outputs = (size_t) signature->outputs;
    const size_t most = inputs > outputs ? inputs : outputs;
    c.count = bytes / sizeof(*c.host) / inputs > 0 ? bytes / sizeof(*c.host) / inputs : 1;
    row->bytes = c.count * inputs * sizeof(*c.host);
    c.host = malloc(most * c.count * sizeof(*c.host));
    rondo_result_t result = c.host == NULL ? RONDO_ERR_MEMORY : RONDO_SUCCESS;
    if (result == RONDO_SUCCESS)
        result = buffers_allocate(&rank->buffers, inputs * c.count * sizeof(*c.host), &c.input);
    if (result == RONDO_SUCCESS)
        result = buffers_allocate(&rank->buffers, outputs * c.count * sizeof(*c.host), &c.output);
    for (int form = 0; form < FORMS && result == RONDO_SUCCESS; form++) {
        row->form = form_names[form];
        result = fill(&c);
        if (result == RONDO_SUCCESS)
            result = start(&c, (enum form) form);
        if (result == RONDO_SUCCESS)
            result = compare(&c, &row->wrong);
    }
    free(c.host);
    buffers_release(rank->buffers.gpu, c.input);
    buffers_release(rank->buffers.gpu, c.output);
    return result;
}
