/* The text of a hang report (lib/diagnostics/hang_report.h), composed from plain data without a runtime. */
#include "lib/diagnostics/hang_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int same(const struct rondo_hang_entry *a, const struct rondo_hang_entry *b)
{
    return a->comm == b->comm && a->lane == b->lane && a->sender == b->sender && a->receiver == b->receiver;
}

static const struct rondo_hang_entry *find(const struct rondo_hang_statement *statement,
                                           const struct rondo_hang_entry *operation)
{
    for (int i = 0; i < statement->count; i++) {
        const struct rondo_hang_entry *entry = &statement->entries[i];
        if (entry->text[0] != '\0' && same(entry, operation) && entry->number == operation->number)
            return entry;
    }
    return NULL;
}

/* Whether the rank has yet to start the operation. */
static int not_started(const struct rondo_hang_statement *statement, const struct rondo_hang_entry *operation)
{
    uint64_t started = 0;
    if (find(statement, operation) != NULL)
        return 0;
    for (int i = 0; i < statement->count; i++) {
        const struct rondo_hang_entry *entry = &statement->entries[i];
        if (!same(entry, operation))
            continue;
        uint64_t upto = entry->text[0] == '\0' ? entry->number : entry->number + 1;
        started = upto > started ? upto : started;
    }
    return started <= operation->number;
}

static const struct rondo_hang_entry *running(const struct rondo_hang_statement *statement)
{
    for (int i = 0; i < statement->count; i++)
        if (statement->entries[i].executing)
            return &statement->entries[i];
    return NULL;
}

/* Whether the rank takes part in the operation. A member beyond those that the entry lists has an entry of the same lane in its
 * own statement. A rank that has not answered may be a member. */
static int is_member(const struct rondo_hang_statement *statements, int rank, const struct rondo_hang_entry *operation)
{
    int listed = operation->size < RONDO_HANG_MEMBERS ? operation->size : RONDO_HANG_MEMBERS;
    for (int i = 0; i < listed; i++)
        if (operation->members[i] == rank)
            return 1;
    if (listed == operation->size)
        return 0;
    for (int i = 0; i < statements[rank].count; i++)
        if (same(&statements[rank].entries[i], operation))
            return 1;
    return !statements[rank].arrived;
}

static void name(FILE *out, const struct rondo_hang_entry *operation)
{
    fprintf(out, "%s on communicator %llu", operation->text, (unsigned long long) operation->comm);
    if (operation->lane >> 60 == 0)
        fprintf(out, ", call %llu", (unsigned long long) operation->number);
    else if (operation->lane >> 60 == 1 || operation->lane >> 60 == 3)
        fprintf(out, ", persistent %llu, start %llu", (unsigned long long) (operation->lane & ~((uint64_t) 15 << 60)),
                (unsigned long long) operation->number);
}

static void list(FILE *out, const char *label, const int *ranks, int count)
{
    if (count == 0)
        return;
    fprintf(out, "; %s rank%s", label, count == 1 ? "" : "s");
    for (int i = 0; i < count && i < 32; i++)
        fprintf(out, "%s %d", i == 0 ? "" : ",", ranks[i]);
    if (count > 32)
        fprintf(out, " and %d more", count - 32);
}

static void report_operation(FILE *out, const struct rondo_hang_statement *statements, int ranks,
                             const struct rondo_hang_entry *operation)
{
    int *in = malloc(3 * (size_t) ranks * sizeof(*in));
    if (in == NULL)
        return;
    int *out_of = in + ranks, *silent = out_of + ranks, ins = 0, outs = 0, silents = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (!is_member(statements, rank, operation))
            continue;
        if (!statements[rank].arrived)
            silent[silents++] = rank;
        else if (find(&statements[rank], operation) != NULL)
            in[ins++] = rank;
        else if (not_started(&statements[rank], operation))
            out_of[outs++] = rank;
    }
    fprintf(out, "  ");
    name(out, operation);
    list(out, "started by", in, ins);
    list(out, "not started by", out_of, outs);
    list(out, "no answer from", silent, silents);
    fprintf(out, "\n");
    for (int i = 0; i < ins; i++) {
        const struct rondo_hang_entry *entry = find(&statements[in[i]], operation);
        if (entry->waiting_on >= 0)
            fprintf(out,
                    entry->executing ? "    rank %d is in it and waits for rank %d\n" : "    rank %d last waited for rank %d\n",
                    in[i], entry->waiting_on);
    }
    free(in);
}

/* A rank waits for a peer if it is inside an operation that the peer has not started, while the peer is inside a different one.
 * Returns the next such peer above after, or -1. */
static int waits_for(const struct rondo_hang_statement *statements, int ranks, int rank, int after)
{
    const struct rondo_hang_entry *operation = running(&statements[rank]);
    if (operation == NULL)
        return -1;
    for (int other = after + 1; other < ranks; other++) {
        if (other == rank || !is_member(statements, other, operation))
            continue;
        const struct rondo_hang_entry *elsewhere = running(&statements[other]);
        int pending = find(&statements[other], operation) != NULL || not_started(&statements[other], operation);
        if (elsewhere != NULL && pending && !(same(elsewhere, operation) && elsewhere->number == operation->number))
            return other;
    }
    return -1;
}

/* Depth-first from start; path holds the ranks on the way. Returns the cycle's length, or 0. visited bounds the work. */
static int find_cycle(const struct rondo_hang_statement *statements, int ranks, int start, int *path, char *visited)
{
    int depth = 0;
    int *next = malloc((size_t) ranks * sizeof(*next));
    if (next == NULL)
        return 0;
    path[0] = start;
    next[0] = -1;
    visited[start] = 1;
    while (depth >= 0) {
        int to = waits_for(statements, ranks, path[depth], next[depth]);
        if (to < 0) {
            depth--;
            continue;
        }
        next[depth] = to;
        for (int i = 0; i <= depth; i++)
            if (path[i] == to) {
                int length = depth - i + 1;
                memmove(path, path + i, (size_t) length * sizeof(*path));
                free(next);
                return length;
            }
        if (visited[to])
            continue;
        visited[to] = 1;
        depth++;
        path[depth] = to;
        next[depth] = -1;
    }
    free(next);
    return 0;
}

/* Writes which ranks are inside which operation, and which ranks are elsewhere than most. */
static void report_places(FILE *out, const struct rondo_hang_statement *statements, int ranks)
{
    int *place = malloc(3 * (size_t) ranks * sizeof(*place));
    if (place == NULL)
        return;
    int *of_place = place + ranks, *here = of_place + ranks, places = 0, most = -1, sitting = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const struct rondo_hang_entry *operation = running(&statements[rank]);
        place[rank] = -1;
        for (int other = 0; operation != NULL && other < rank && place[rank] < 0; other++) {
            const struct rondo_hang_entry *theirs = running(&statements[other]);
            if (theirs != NULL && same(theirs, operation) && theirs->number == operation->number)
                place[rank] = place[other];
        }
        if (operation != NULL && place[rank] < 0) {
            of_place[places] = 0;
            place[rank] = places++;
        }
        if (operation != NULL) {
            sitting++;
            of_place[place[rank]]++;
        }
    }
    for (int p = 0; p < places; p++) {
        int count = 0;
        if (2 * of_place[p] > sitting)
            most = p;
        for (int rank = 0; rank < ranks; rank++)
            if (place[rank] == p)
                here[count++] = rank;
        if (p >= 16)
            continue;
        fprintf(out, "    in ");
        name(out, running(&statements[here[0]]));
        list(out, "there:", here, count);
        fprintf(out, "\n");
    }
    int elsewhere = 0;
    for (int rank = 0; rank < ranks && most >= 0; rank++)
        if (place[rank] >= 0 && place[rank] != most)
            here[elsewhere++] = rank;
    if (elsewhere > 0) {
        fprintf(out, "    in another order than most");
        list(out, "namely", here, elsewhere);
        fprintf(out, "\n");
    }
    free(place);
}

static void report_cycle(FILE *out, const struct rondo_hang_statement *statements, int ranks)
{
    if (ranks < 2)
        return;
    int *path = malloc((size_t) ranks * sizeof(*path));
    char *visited = calloc(1, (size_t) ranks);
    int length = 0;
    for (int rank = 0; path != NULL && visited != NULL && rank < ranks && length == 0; rank++)
        if (!visited[rank])
            length = find_cycle(statements, ranks, rank, path, visited);
    if (length > 0) {
        fprintf(out, "  circular wait:\n");
        for (int i = 0; i < length; i++) {
            const struct rondo_hang_entry *operation = running(&statements[path[i]]);
            fprintf(out, "    rank %d sits in ", path[i]);
            name(out, operation);
            fprintf(out, " and waits for rank %d\n", path[(i + 1) % length]);
        }
        report_places(out, statements, ranks);
    }
    free(path);
    free(visited);
}

/* Whether the report lists the entry. The first rank's entry represents those of all ranks. */
static int is_told(const struct rondo_hang_entry *entry, int all)
{
    return entry->text[0] != '\0' && (all || entry->overdue);
}

char *rondo_hang_compose(const struct rondo_hang_statement *statements, int ranks, int all)
{
    char *text = NULL;
    size_t bytes = 0;
    int reported = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    fprintf(out, all ? "report: operations that are active\n" : "hang report: operations stuck beyond the timeout\n");
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < statements[rank].count; i++) {
            const struct rondo_hang_entry *entry = &statements[rank].entries[i];
            int seen = !is_told(entry, all);
            for (int before = 0; before < rank && !seen; before++) {
                const struct rondo_hang_entry *other = find(&statements[before], entry);
                seen = other != NULL && is_told(other, all);
            }
            if (seen)
                continue;
            if (++reported <= 64)
                report_operation(out, statements, ranks, entry);
        }
    if (reported > 64)
        fprintf(out, "  and %d more operations\n", reported - 64);
    if (reported == 0)
        fprintf(out, "  none\n");
    report_cycle(out, statements, ranks);
    fclose(out);
    return text;
}
