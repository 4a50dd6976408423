/*
 * The tuning table (lib/select/tuning.h) is JSON: an array of objects whose values are strings and whole numbers. The parser
 * rejects everything else. It uses at most a few times the file's size of memory, and that size is bounded.
 */
#include "lib/select/tuning.h"

#include "lib/base/error.h"
#include "lib/call/conditions.h"
#include "lib/base/containers.h"
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX ((size_t) 16 << 20)

struct reader {
    const char *at, *end, *path;
    int line;
    rondo_result_t result;
};

static void refuse(struct reader *r, const char *what)
{
    if (r->result == RONDO_SUCCESS)
        r->result = rondo_fail(RONDO_ERR_ARGUMENT, "%s, line %d: %s", r->path, r->line, what);
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->line += *r->at++ == '\n';
}

static int next_is(struct reader *r, char wanted)
{
    skip_space(r);
    if (r->result != RONDO_SUCCESS || r->at == r->end || *r->at != wanted)
        return 0;
    r->at++;
    return 1;
}

static void expect(struct reader *r, char wanted)
{
    char what[] = "expected ' '";
    what[10] = wanted;
    if (!next_is(r, wanted))
        refuse(r, what);
}

/* Parses a string. Escapes are rejected: no name needs them. */
static void text(struct reader *r, char *value, size_t bytes)
{
    size_t length = 0;
    value[0] = '\0';
    expect(r, '"');
    for (; r->result == RONDO_SUCCESS && r->at < r->end && *r->at != '"'; r->at++) {
        if (*r->at == '\\' || (unsigned char) *r->at < 0x20 || length + 1 == bytes) {
            refuse(r, "a string with escapes, or too long");
            return;
        }
        value[length++] = *r->at;
    }
    value[length] = '\0';
    expect(r, '"');
}

static uint64_t number(struct reader *r)
{
    uint64_t value = 0;
    skip_space(r);
    if (r->at == r->end || *r->at < '0' || *r->at > '9')
        refuse(r, "expected a whole number");
    for (; r->result == RONDO_SUCCESS && r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (value > (UINT64_MAX - 9) / 10) {
            refuse(r, "a number that is too large");
            return 0;
        }
        value = 10 * value + (uint64_t) (*r->at - '0');
    }
    return value;
}

#define FIELDS  6
#define MACHINE FIELDS /* the only field of its object, which is the first of the array */

static int is_protocol(const char *name)
{
    static const char *const names[] = RONDO_PROTOCOL_NAMES;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

static void field(struct reader *r, struct rondo_tuning *tuning, struct rondo_tuning_row *row, unsigned *seen)
{
    static const char *const names[] = {"collective", "ranks", "max_bytes", "algorithm", "protocol", "channels", "machine"};
    char name[32], value[64] = ""; /* cleared, as all its bytes are hashed */
    uint64_t amount = 0;
    unsigned which = 0;
    text(r, name, sizeof(name));
    expect(r, ':');
    while (which <= MACHINE && strcmp(name, names[which]) != 0)
        which++;
    if (which > MACHINE || *seen >> which & 1) {
        refuse(r, which > MACHINE ? "an unknown field" : "a field for the second time");
        return;
    }
    *seen |= 1u << which;
    if (which == MACHINE) {
        if (tuning->count > 0 || tuning->machine[0] != '\0')
            refuse(r, "a machine that is not the first of the table");
        text(r, tuning->machine, sizeof(tuning->machine));
        return;
    }
    if (which == 0 || which == 3 || which == 4)
        text(r, value, sizeof(value));
    else
        amount = number(r);
    if (r->result != RONDO_SUCCESS)
        return;
    if (which == 0)
        row->kind = rondo_kind_find(value);
    else if (which == 3)
        memcpy(row->algorithm, value, sizeof(row->algorithm));
    else if (which == 4 && strlen(value) < sizeof(row->protocol))
        memcpy(row->protocol, value, strlen(value) + 1);
    else if (which == 1 || which == 5)
        *(which == 1 ? &row->ranks : &row->channels) = amount > INT32_MAX ? INT32_MAX : (int) amount;
    else if (which == 2)
        row->max_bytes = amount;
    if (which == 4 && !is_protocol(row->protocol))
        refuse(r, "a protocol that is none of simple, ll, ll128 and tma");
}

static void one_row(struct reader *r, struct rondo_tuning *tuning)
{
    struct rondo_tuning_row row;
    unsigned seen = 0;
    memset(&row, 0, sizeof(row)); /* rows are hashed as bytes */
    expect(r, '{');
    do
        field(r, tuning, &row, &seen);
    while (next_is(r, ','));
    expect(r, '}');
    if (seen == 1u << MACHINE)
        return;
    if (seen != (1u << FIELDS) - 1)
        refuse(r, "a row without all of collective, ranks, max_bytes, algorithm, protocol, channels");
    if (r->result != RONDO_SUCCESS || row.kind == RONDO_KINDS) /* kinds that only the bench knows are ignored */
        return;
    if (!rondo_grow((void **) &tuning->rows, tuning->count, &tuning->room, sizeof(row))) {
        r->result = rondo_fail(RONDO_ERR_MEMORY, "%s: no memory for %zu rows", r->path, tuning->count);
        return;
    }
    tuning->rows[tuning->count++] = row;
}

static uint64_t fingerprint(const struct rondo_tuning *tuning)
{
    const uint64_t value = rondo_hash(RONDO_HASH_BASIS, tuning->rows, tuning->count * sizeof(*tuning->rows));
    return value == 0 ? 1 : value;
}

rondo_result_t rondo_tuning_parse(const char *text_, size_t bytes, const char *path, struct rondo_tuning **result)
{
    struct reader r = {text_, text_ + bytes, path, 1, RONDO_SUCCESS};
    struct rondo_tuning *tuning = calloc(1, sizeof(*tuning));
    *result = NULL;
    if (tuning == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "%s: no memory", path);
    expect(&r, '[');
    if (!next_is(&r, ']')) {
        do
            one_row(&r, tuning);
        while (next_is(&r, ','));
        expect(&r, ']');
    }
    skip_space(&r);
    if (r.at != r.end)
        refuse(&r, "something behind the table");
    if (r.result != RONDO_SUCCESS) {
        rondo_tuning_free(tuning);
        return r.result;
    }
    tuning->fingerprint = fingerprint(tuning);
    *result = tuning;
    return RONDO_SUCCESS;
}

/* ---- files ---- */

/* Copies what follows the word and a colon in a file. Returns 1, or 0 if the file has none. */
static int find_word(const char *path, const char *word, char *value, size_t bytes)
{
    FILE *file = fopen(path, "r");
    char line[256];
    int found = 0;
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, word, strlen(word)) != 0)
            continue;
        const char *at = strchr(line, ':');
        at = at != NULL ? at + 1 + strspn(at + 1, " \t") : "";
        snprintf(value, bytes, "%.*s", (int) strcspn(at, "\n\"\\"), at);
        found = value[0] != '\0';
    }
    if (file != NULL)
        fclose(file);
    return found;
}

void rondo_tuning_machine(int cuda, char machine[RONDO_MACHINE_BYTES])
{
    char processor[64] = "unknown", gpu[48] = "unknown";
    glob_t gpus = {0};
    find_word("/proc/cpuinfo", "model name", processor, sizeof(processor));
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (!cuda) {
        snprintf(machine, RONDO_MACHINE_BYTES, "host device, %ld x %s", processors, processor);
        return;
    }
    if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &gpus) == 0)
        find_word(gpus.gl_pathv[0], "Model", gpu, sizeof(gpu));
    snprintf(machine, RONDO_MACHINE_BYTES, "CUDA device, %zu x %s, %ld x %s", gpus.gl_pathc, gpu, processors, processor);
    globfree(&gpus);
}

rondo_result_t rondo_tuning_check(const struct rondo_tuning *tuning, const char *path, int cuda)
{
    char here[RONDO_MACHINE_BYTES];
    rondo_tuning_machine(cuda, here);
    if (tuning == NULL || tuning->machine[0] == '\0' || strcmp(tuning->machine, here) == 0)
        return RONDO_SUCCESS;
    return rondo_fail(RONDO_ERR_ARGUMENT, "%s, line 1: the table was measured on '%s', and this is '%s'", path, tuning->machine,
                      here);
}

rondo_result_t rondo_tuning_read(const char *path, struct rondo_tuning **tuning)
{
    int descriptor = rondo_file_open(path, O_RDONLY, 0);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
    char *text_ = malloc(BYTES_MAX), reason[RONDO_FILE_REASON_BYTES];
    rondo_result_t result = RONDO_SUCCESS;
    size_t bytes = 0;
    *tuning = NULL;
    if (file == NULL)
        result = rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_TUNING=\"%s\" cannot be read: %s", path,
                            rondo_file_reason(descriptor < 0 ? -descriptor : errno, reason));
    else if (text_ == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "RONDO_TUNING: %s: no memory", path);
    if (result == RONDO_SUCCESS) {
        bytes = fread(text_, 1, BYTES_MAX, file);
        if (ferror(file))
            result = rondo_fail(RONDO_ERR_SYSTEM, "RONDO_TUNING: %s: %s", path, strerror(errno));
        else if (bytes == BYTES_MAX)
            result = rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_TUNING: %s is larger than %zu bytes", path, BYTES_MAX);
    }
    if (result == RONDO_SUCCESS && (result = rondo_tuning_parse(text_, bytes, path, tuning)) != RONDO_SUCCESS)
        rondo_fail(result, "RONDO_TUNING: %s", rondo_last_error());
    if (file != NULL)
        fclose(file);
    else if (descriptor >= 0)
        close(descriptor);
    free(text_);
    return result;
}

void rondo_tuning_free(struct rondo_tuning *tuning)
{
    if (tuning != NULL)
        free(tuning->rows);
    free(tuning);
}

const struct rondo_tuning_row *rondo_tuning_find(const struct rondo_tuning *tuning, enum rondo_kind kind, int ranks,
                                                 size_t bytes)
{
    const struct rondo_tuning_row *best = NULL;
    for (size_t i = 0; tuning != NULL && i < tuning->count; i++) {
        const struct rondo_tuning_row *row = &tuning->rows[i];
        if (row->kind == kind && row->ranks == ranks && bytes <= row->max_bytes &&
            (best == NULL || row->max_bytes < best->max_bytes))
            best = row;
    }
    return best;
}
