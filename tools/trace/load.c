/* Reads the files of a trace into memory (tools/trace/trace.h). Relies on jansson. */
#include "tools/common/options.h"
#include "tools/trace/trace.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define VERB "trace"

enum what { START, FETCH, VISIT, COMPLETE }; /* in an operation's order */

/* What one event tells of an operation. */
struct note {
    int rank;
    uint32_t lane, number;
    enum what what;
    double time;
    int value;              /* FETCH: queue; VISIT: preempted */
    json_int_t preemptions; /* of a VISIT */
    const char *text;
};

struct notes {
    struct note *list;
    size_t count, room;
};

static bool add(struct notes *notes, struct note note)
{
    if (notes->count == notes->room) {
        size_t room = notes->room == 0 ? 1024 : 2 * notes->room;
        struct note *larger = realloc(notes->list, room * sizeof(*larger));
        if (larger == NULL)
            return false;
        notes->list = larger;
        notes->room = room;
    }
    notes->list[notes->count++] = note;
    return true;
}

static bool keep(struct trace *trace, struct trace_visit visit)
{
    if (trace->visit_count == trace->visit_room) {
        size_t room = trace->visit_room == 0 ? 1024 : 2 * trace->visit_room;
        struct trace_visit *larger = realloc(trace->visits, room * sizeof(*larger));
        if (larger == NULL)
            return false;
        trace->visits = larger;
        trace->visit_room = room;
    }
    trace->visits[trace->visit_count++] = visit;
    return true;
}

/* Returns false without memory. */
static bool take(json_t *event, struct trace *trace, struct notes *notes)
{
    json_t *arguments = json_object_get(event, "args");
    const char *name = json_string_value(json_object_get(event, "name"));
    const char *phase = json_string_value(json_object_get(event, "ph"));
    struct note note = {.rank = (int) json_integer_value(json_object_get(event, "pid")),
                        .lane = (uint32_t) json_integer_value(json_object_get(arguments, "lane")),
                        .number = (uint32_t) json_integer_value(json_object_get(arguments, "number")),
                        .time = json_number_value(json_object_get(event, "ts"))};
    if (name == NULL || phase == NULL || strcmp(phase, "M") == 0 || note.rank < 0 || note.rank >= 1 << 20)
        return true;
    trace->ranks = note.rank >= trace->ranks ? note.rank + 1 : trace->ranks;
    trace->first = note.time < trace->first ? note.time : trace->first;
    trace->last = note.time > trace->last ? note.time : trace->last;
    if (strcmp(name, "lost records") == 0)
        trace->lost += (uint64_t) json_integer_value(json_object_get(arguments, "count"));
    if (strcmp(name, "dropped events") == 0)
        trace->dropped += (uint64_t) json_integer_value(json_object_get(arguments, "count"));
    trace->full += strcmp(name, "trace full") == 0;
    trace->quits += strcmp(name, "daemon quits") == 0;
    if (strcmp(name, "fetch") == 0) {
        note.what = FETCH;
        note.value = (int) json_integer_value(json_object_get(arguments, "queue"));
    } else if (strcmp(name, "start") == 0 || strcmp(name, "enqueue") == 0) {
        note.what = START;
        note.text = json_string_value(json_object_get(arguments, "operation"));
    } else if (strcmp(name, "complete") == 0 || strcmp(name, "executed") == 0) {
        note.what = COMPLETE;
    } else if (strcmp(phase, "X") == 0) {
        const char *end = json_string_value(json_object_get(arguments, "end"));
        note.what = VISIT;
        note.value = end != NULL && strcmp(end, "preempted") == 0;
        json_t *preemptions = json_object_get(arguments, "preemptions");
        note.preemptions = json_is_integer(preemptions) ? json_integer_value(preemptions) : note.value;
        if (note.preemptions < note.value || note.preemptions > UINT16_MAX) /* no block counts as far */
            note.preemptions = note.value;
        if (!keep(trace, (struct trace_visit){note.rank, (int) json_integer_value(json_object_get(event, "tid")), note.lane,
                                              note.time, json_number_value(json_object_get(event, "dur")), note.value}))
            return false;
    } else {
        return true;
    }
    return add(notes, note);
}

static int by_operation(const void *a, const void *b)
{
    const struct note *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (int) x->what - (int) y->what; /* a visit may begin with the fetch */
}

static double beginning(const struct trace_operation *o)
{
    return o->started >= 0 ? o->started : o->fetched >= 0 ? o->fetched : o->completed;
}

static int by_start(const void *a, const void *b)
{
    const struct trace_operation *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return beginning(x) < beginning(y) ? -1 : beginning(x) > beginning(y);
}

/* A lane's next life counts from 0 again: what starts after a completion is another operation. */
static bool reduce(const struct notes *notes, struct trace *trace)
{
    trace->operations = calloc(notes->count + 1, sizeof(*trace->operations));
    if (trace->operations == NULL)
        return false;
    struct trace_operation *o = NULL;
    for (size_t i = 0; i < notes->count; i++) {
        const struct note *n = &notes->list[i];
        bool other = o == NULL || o->rank != n->rank || o->lane != n->lane || o->number != n->number;
        if (other || (o->completed >= 0 && (n->what == START || n->what == FETCH))) {
            o = &trace->operations[trace->count++];
            *o = (struct trace_operation){n->rank, n->lane, n->number, -1, -1, -1, -1, 0, 0, ""};
        }
        if (n->what == FETCH) {
            o->fetched = n->time;
            o->queue = n->value;
        } else if (n->what == START) {
            o->started = n->time;
            snprintf(o->text, sizeof(o->text), "%s", n->text != NULL ? n->text : "");
        } else if (n->what == COMPLETE) {
            o->completed = n->time;
        } else {
            o->visits += (uint64_t) (n->preemptions + !n->value);
            o->switches += (uint64_t) n->preemptions;
        }
    }
    qsort(trace->operations, trace->count, sizeof(*trace->operations), by_start);
    return true;
}

int trace_load(const char *path, struct trace *trace)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error), *event;
    struct notes notes = {0};
    bool enough = true;
    int code = 0;
    size_t index;
    *trace = (struct trace){.first = 1e300, .last = -1e300};
    if (root == NULL)
        return options_refuse(VERB, "%s, line %d: %s: not a trace, or a truncated one", path, error.line, error.text);
    /* Chrome's other form has the events in an object. */
    json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");
    json_array_foreach(events, index, event)
    {
        enough = enough && take(event, trace, &notes);
    }
    if (notes.count > 0)
        qsort(notes.list, notes.count, sizeof(*notes.list), by_operation);
    if (!json_is_array(events) || notes.count == 0)
        code = options_refuse(VERB, "%s has no events of a Rondo daemon", path);
    else if (!enough || !reduce(&notes, trace))
        code = options_refuse(VERB, "%s: no memory for %zu events", path, json_array_size(events));
    free(notes.list);
    json_decref(root);
    if (code != 0)
        trace_free(trace);
    return code;
}

void trace_free(struct trace *trace)
{
    free(trace->operations);
    free(trace->visits);
    *trace = (struct trace){0};
}
