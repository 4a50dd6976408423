/*
 * Mutants of program files: attributes get other values, steps go, come twice or change places, bytes flip, and conditions of
 * custom programs change. Every mutant is refused with a reason, or its plans compute in random turns what its collective or
 * its postcondition asks for (test/unit/support/plans.h), and get to their ends; with two buffers, and with one if it is proved
 * for one.
 *
 *     mutations CONDITIONS FIRST COUNT FILE...     mutants FIRST to FIRST + COUNT - 1; a number gives the same mutant always
 *     mutations -k FOLDER CONDITIONS ...           also writes each that is accepted to FOLDER/NUMBER-NAME.xml
 *
 * CONDITIONS is what `test/programs/msccl_form.py --conditions` prints: the pre- and postcondition of each file of a custom
 * program.
 */
#include "test/unit/support/plans.h"

#include "lib/base/error.h"
#include "lib/program/builder.h"
#include "lib/program/program.h"
#include "rondo_program.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 16, LINES_MAX = 1 << 12, TERMS_MAX = 16, CONDITIONS_MAX = 128, SECONDS_MAX = 60 };

struct condition {
    char program[64];
    int requires, rank, terms, ranks[TERMS_MAX];
    size_t chunk, indexes[TERMS_MAX];
};

static struct condition conditions[CONDITIONS_MAX];
static int condition_count;
static uint64_t state;
static unsigned long mutant;

static int below(int bound)
{
    return bound < 1 ? 0 : (int) (played_random(&state) % (uint64_t) bound);
}

/* Of a wrong mutant: its number, which gives it again. */
static void wrong(const char *why)
{
    fprintf(stderr, "mutant %lu: %s\n", mutant, why);
    abort();
}

static void hangs(int signal)
{
    static const char text[] = "a mutant takes too long; its number is among the last that were begun\n";
    (void) signal;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) >= 0)
        abort();
    _exit(3);
}

/* ---- text ---- */

/* Replaces `length` bytes at `at` by a text. Does nothing if there is no room. */
static void splice(char *text, size_t at, size_t length, const char *by)
{
    size_t all = strlen(text), more = strlen(by);
    if (at + length > all || all - length + more >= TEXT_MAX)
        return;
    memmove(text + at + more, text + at + length, all - at - length + 1);
    memcpy(text + at, by, more);
}

/* The start of a value in quotes, counted from a random place on, around the end; SIZE_MAX: there is none. */
static size_t random_value(const char *text, size_t *length)
{
    size_t all = strlen(text), from = (size_t) below((int) all);
    for (size_t k = 0; k < all; k++) {
        size_t at = (from + k) % all;
        if (text[at] == '=' && text[at + 1] == '"') {
            const char *end = strchr(text + at + 2, '"');
            *length = end == NULL ? 0 : (size_t) (end - text) - at - 2;
            return end == NULL ? SIZE_MAX : at + 2;
        }
    }
    return SIZE_MAX;
}

static void change_value(char *text)
{
    static const char *const words[] = {"s",      "r",         "cpy",       "re",         "rrc",    "rcs", "rrs", "rrcs",
                                        "nop",    "i",         "o",         "s",          "-1",     "0",   "1",   "2",
                                        "3",      "4",         "65536",     "4294967295", "-2",     "",    "LL",  "LL128",
                                        "Simple", "allreduce", "allgather", "alltoall",   "custom", "sum", "nop"};
    size_t length, at = random_value(text, &length), other_length, other;
    char by[128];
    if (at == SIZE_MAX)
        return;
    long number = strtol(text + at, NULL, 10);
    switch (below(4)) {
    case 0:
        snprintf(by, sizeof(by), "%s", words[below((int) (sizeof(words) / sizeof(words[0])))]);
        break;
    case 1: /* one that stands elsewhere */
        if ((other = random_value(text, &other_length)) == SIZE_MAX || other_length >= sizeof(by))
            return;
        snprintf(by, sizeof(by), "%.*s", (int) other_length, text + other);
        break;
    default:
        snprintf(by, sizeof(by), "%ld", number + below(5) - 2);
        break;
    }
    splice(text, at, length, by);
}

/* Stores the starts of the lines that have a step, and returns their number. */
static int find_steps(const char *text, size_t *starts)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, "<step")) != NULL && count < LINES_MAX; at++)
        starts[count++] = (size_t) (at - text);
    return count;
}

static size_t step_length(const char *text, size_t start)
{
    const char *end = strchr(text + start, '>');
    return end == NULL ? 0 : (size_t) (end - text) - start + 1;
}

/* Removes a step, doubles it, or exchanges two: neighbours, or any. */
static void change_steps(char *text)
{
    static size_t starts[LINES_MAX];
    static char one[512], two[512];
    int count = find_steps(text, starts), a = below(count), b = below(2) ? a + 1 : below(count);
    if (count < 2 || b >= count)
        return;
    if (a > b) {
        int saved = a;
        a = b, b = saved;
    }
    size_t first = step_length(text, starts[a]), second = step_length(text, starts[b]);
    if (first >= sizeof(one) || second >= sizeof(two))
        return;
    snprintf(one, sizeof(one), "%.*s", (int) first, text + starts[a]);
    snprintf(two, sizeof(two), "%.*s", (int) second, text + starts[b]);
    switch (below(4)) {
    case 0:
        splice(text, starts[a], first, "");
        break;
    case 1:
        splice(text, starts[b], 0, one);
        break;
    default:
        splice(text, starts[b], second, one);
        splice(text, starts[a], first, two);
        break;
    }
}

struct numbered {
    int gpu, block, before, after;
};

/* The number that follows at `at`; -1 if none does. */
static int number_at(const char *at, const char *before)
{
    const char *found = strstr(at, before), *end = strchr(at, '>');
    return found == NULL || end == NULL || found > end ? -1 : atoi(found + strlen(before));
}

/* Puts a number in place of that behind `before` in the element at `at`. */
static void set_number(char *text, size_t at, const char *before, int number)
{
    const char *found = strstr(text + at, before), *end = strchr(text + at, '>');
    char by[16];
    if (found == NULL || end == NULL || found > end)
        return;
    snprintf(by, sizeof(by), "%d", number);
    found += strlen(before);
    splice(text, (size_t) (found - text), strcspn(found, "\""), by);
}

/* Numbers the steps of each thread block anew, and the waits with them, so that the file's form does not give the mutant away.
 */
static void renumber(char *text)
{
    static struct numbered all[LINES_MAX];
    int count = 0, gpu = 0, block = 0, next = 0;
    for (int pass = 0; pass < 2; pass++, gpu = block = next = 0)
        for (size_t at = 0; text[at] != '\0'; at++) {
            if (strncmp(text + at, "<gpu", 4) == 0)
                gpu++;
            if (strncmp(text + at, "<tb", 3) == 0)
                block = number_at(text + at, " id=\""), next = 0;
            if (strncmp(text + at, "<step", 5) != 0)
                continue;
            if (pass == 0 && count < LINES_MAX) {
                all[count++] = (struct numbered){gpu, block, number_at(text + at, " s=\""), next++};
                continue;
            }
            int on = number_at(text + at, " depid=\""), step = number_at(text + at, " deps=\"");
            set_number(text, at, " s=\"", next++);
            for (int k = 0; k < count; k++)
                if (all[k].gpu == gpu && all[k].block == on && all[k].before == step) {
                    set_number(text, at, " deps=\"", all[k].after);
                    break;
                }
        }
}

/* Takes the wait from a step. */
static void change_wait(char *text)
{
    static size_t starts[LINES_MAX];
    int count = find_steps(text, starts), from = below(count);
    for (int k = 0; k < count; k++) {
        size_t at = starts[(from + k) % count];
        if (number_at(text + at, " depid=\"") < 0)
            continue;
        set_number(text, at, " deps=\"", -1);
        set_number(text, at, " depid=\"", -1);
        return;
    }
}

/* Puts a step that does nothing before another. Its number is one that no step has, so waits stay what they are. */
static void add_nothing(char *text)
{
    static size_t starts[LINES_MAX];
    int count = find_steps(text, starts);
    if (count > 0)
        splice(text, starts[below(count)], 0,
               "<step s=\"9999\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" depid=\"-1\" "
               "deps=\"-1\" "
               "hasdep=\"0\"/>\n");
}

/* Changes what the file says of the calls that it is for, or its numbers of channels or scratch chunks. */
static void change_head(char *text)
{
    static const char *const names[] = {" minBytes=\"",       " maxBytes=\"", " nchannels=\"", " s_chunks=\"",
                                        " nchunksperloop=\"", " inplace=\"",  " outofplace=\""};
    const char *name = names[below((int) (sizeof(names) / sizeof(names[0])))], *found = strstr(text, name);
    for (int skip = below(4); found != NULL && skip > 0; skip--)
        found = strstr(found + 1, name) != NULL ? strstr(found + 1, name) : found;
    if (found != NULL)
        splice(text, (size_t) (found - text) + strlen(name), strcspn(found + strlen(name), "\""),
               (const char *const[]){"0", "1", "2", "3", "8", "64"}[below(6)]);
}

/* Gives all that is on a channel another one, everywhere. */
static void change_channel(char *text)
{
    int from = below(3), to = below(4);
    for (size_t at = 0; text[at] != '\0'; at++)
        if (strncmp(text + at, "<tb", 3) == 0 && number_at(text + at, " chan=\"") == from)
            set_number(text, at, " chan=\"", to);
    set_number(text, 0, " nchannels=\"", 4);
}

static void change_bytes(char *text)
{
    size_t all = strlen(text), at = (size_t) below((int) all);
    char byte[2] = {(char) (1 + below(255)), '\0'};
    if (below(4) == 0)
        text[at] = '\0';
    else
        splice(text, at, (size_t) below(3), byte);
}

static void mutate(char *text)
{
    static void (*const gentle[])(char *) = {change_wait, add_nothing, change_head, change_channel};
    for (int changes = 1 + below(2) * below(3); changes > 0 && strlen(text) > 16; changes--) {
        int which = below(20);
        if (which < 7)
            change_value(text);
        else if (which < 12)
            change_steps(text);
        else if (which < 19)
            gentle[below((int) (sizeof(gentle) / sizeof(gentle[0])))](text);
        else
            change_bytes(text);
    }
    if (below(8) != 0)
        renumber(text);
}

/* ---- conditions ---- */

static int read_conditions(const char *path)
{
    char line[1024], kind[16];
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL && condition_count < CONDITIONS_MAX) {
        struct condition *c = &conditions[condition_count];
        int used = 0;
        if (sscanf(line, "%63s %15s %d %zu%n", c->program, kind, &c->rank, &c->chunk, &used) != 4)
            return 0;
        c->requires = strcmp(kind, "require") == 0;
        for (const char *at = line + used; c->terms < TERMS_MAX; c->terms++, at += used)
            if (sscanf(at, "%d %zu%n", &c->ranks[c->terms], &c->indexes[c->terms], &used) != 2)
                break;
        condition_count++;
    }
    if (file != NULL)
        fclose(file);
    return file != NULL && condition_count > 0;
}

static void apply_conditions(rondo_program_t program, const char *name)
{
    int change = below(8) == 0 ? below(condition_count) : -1;
    for (int k = 0; k < condition_count; k++) {
        struct condition c = conditions[k];
        if (strcmp(c.program, name) != 0)
            continue;
        if (change >= 0 && below(3) == 0) {
            c.rank += below(3) - 1;
            c.chunk += (size_t) below(2);
            if (c.terms > 0)
                c.ranks[below(c.terms)] += below(3) - 1;
        }
        if (c.requires)
            rondo_program_require(program, c.rank, c.chunk, c.terms, c.ranks, c.indexes);
        else
            rondo_program_assume(program, c.rank, c.chunk, c.terms, c.ranks, c.indexes);
    }
}

/* ---- judging ---- */

static void play(const struct rondo_program_builder *program, const struct rondo_plan_set *set)
{
    struct rondo_verify_limits limits = {PLAYED_SLOTS, RONDO_COMPILE_BLOCKS, 0};
    for (int shared = 0; shared < 2; shared++) {
        if (shared ? !rondo_conditions_may_share(&set->conditions) : rondo_conditions_always_shared(&set->conditions))
            continue;
        if (rondo_verify_plans(set, program->name, &limits, shared) != RONDO_SUCCESS) {
            if (!shared)
                wrong("accepted, but its plans are refused");
            continue;
        }
        for (uint32_t turn = 0; turn < 2; turn++)
            if (!plans_play(set, shared, turn == 0 ? UINT32_MAX : 1 + set->conditions.block_chunks / 2, mutant + turn))
                wrong("accepted, but it computes the wrong result, or gets stuck");
    }
}

/* Returns whether the mutant is accepted. */
static int judge(const char *text, const char *name, int blocks)
{
    struct rondo_compile_options options = {.blocks = (uint32_t) blocks, .slots = PLAYED_SLOTS};
    rondo_program_limits_t limits = {PLAYED_SLOTS, blocks, 0};
    struct rondo_plan_set *set = NULL;
    rondo_program_t program = NULL;
    struct rondo_program_builder *builder = NULL;
    int accepted = 0;
    if (rondo_program_read_xml(text, strlen(text), &program) == RONDO_SUCCESS &&
        rondo_program_builder_of(program, "judge", &builder) == RONDO_SUCCESS) {
        if (builder->conditions.kind == RONDO_KIND_CUSTOM)
            apply_conditions(program, name);
        accepted = rondo_program_check(program, &limits) == RONDO_SUCCESS;
    }
    if (!accepted && rondo_last_error()[0] == '\0')
        wrong("refused without a reason");
    if (accepted && builder->conditions.ranks <= 256) {
        if (rondo_program_compile(builder, &options, -1, &set) != RONDO_SUCCESS)
            wrong("accepted, but it does not compile");
        play(builder, set);
    }
    rondo_plan_set_free(set);
    rondo_program_destroy(program);
    return accepted;
}

static char *read_file(const char *path)
{
    char *text = calloc(1, TEXT_MAX);
    FILE *file = fopen(path, "r");
    if (text == NULL || file == NULL || fread(text, 1, TEXT_MAX / 2, file) == 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    return text;
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%lu-%s.xml", folder, mutant, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        fprintf(stderr, "cannot write %s\n", path);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    const char *folder = NULL;
    if (argc > 2 && strcmp(argv[1], "-k") == 0) {
        folder = argv[2];
        argc -= 2, argv += 2;
    }
    if (argc < 5 || !read_conditions(argv[1])) {
        fprintf(stderr, "usage: mutations [-k FOLDER] CONDITIONS FIRST COUNT FILE...\n");
        return 2;
    }
    unsigned long first = strtoul(argv[2], NULL, 10), count = strtoul(argv[3], NULL, 10), accepted = 0, same = 0, custom = 0;
    static char text[TEXT_MAX];
    signal(SIGALRM, hangs);
    for (mutant = first; mutant < first + count; mutant++) {
        state = mutant;
        const char *path = argv[4 + below(argc - 4)], *slash = strrchr(path, '/');
        char *original = read_file(path), name[64];
        snprintf(name, sizeof(name), "%s", slash != NULL ? slash + 1 : path);
        name[strcspn(name, ".")] = '\0';
        memcpy(text, original, TEXT_MAX);
        for (int tries = 0; tries < 8 && strcmp(text, original) == 0; tries++)
            mutate(text);
        if (mutant % 100 == 0)
            fprintf(stderr, "from mutant %lu on\n", mutant);
        alarm(SECONDS_MAX);
        int fine = judge(text, name, 1 + below(8));
        alarm(0);
        accepted += (unsigned long) fine;
        if (fine && folder != NULL)
            write_file(folder, name, text);
        same += (unsigned long) (fine && strcmp(text, original) == 0);
        custom += (unsigned long) (strstr(original, "coll=\"custom\"") != NULL);
        free(original);
    }
    printf("%lu mutants, %lu of custom programs: %lu accepted (%lu unchanged), all right\n", count, custom, accepted, same);
    return 0;
}
