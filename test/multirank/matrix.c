/*
 * Every collective x type x operator x in place x odd counts x roots, blocking, non-blocking and persistent, against the
 * reference of trial.h. Options restrict the matrix. Without options only the combinations that `wanted` names below are left
 * out.
 */
#include "test/multirank/trial.h"

static long ranks = 4, seed = 1, restarts = 3, large = 1;
static const char *collectives = "all", *types = "all", *ops = "all", *forms = "all", *counts = "all";
static const char *order, *transports;

static const size_t all_counts[] = {0, 1, 2, 3, 17, 1000, 4099, 70001};
enum { COUNTS = sizeof(all_counts) / sizeof(all_counts[0]) };

/* Whether name is in the comma-separated list. */
static int listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    if (strcmp(list, "all") == 0)
        return 1;
    for (const char *at = list; at != NULL; at = strchr(at, ','), at = at != NULL ? at + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

static int listed_count(size_t count)
{
    char text[32];
    snprintf(text, sizeof(text), "%zu", count);
    return listed(counts, text);
}

/* Whether the matrix includes the trial. The two largest counts run for one type of each width and kind and for the sum only:
 * all combinations would take hours. */
static int wanted(const struct trial *t)
{
    if (!listed_count(t->count) || !op_allowed(t->what, t->op, t->type))
        return 0;
    if (!collective_reduces(t->what) && t->op != RONDO_SUM)
        return 0;
    if (t->what == BARRIER)
        return t->count == 0 && t->type == RONDO_INT8;
    if (t->count < 4099)
        return 1;
    int typical = t->type == RONDO_INT8 || t->type == RONDO_UINT64 || t->type == RONDO_FLOAT16 || t->type == RONDO_FLOAT ||
                  t->type == RONDO_FLOAT8E4M3;
    return typical && t->op == RONDO_SUM && (t->count < 70001 || (large && t->type != RONDO_UINT64));
}

static void run_persistent(struct trial *t)
{
    rondo_request_t request = NULL;
    trial_fill(t, 0);
    MUST(trial_call(t, PERSISTENT, NULL, &request));
    for (int round = 0; round < restarts; round++) {
        trial_fill(t, round);
        MUST(rondo_start(request));
        if (round % 2 == 0)
            MUST(rondo_wait(request));
        else
            MUST(ranks_poll(request));
        trial_verify(t, "persistent", round);
    }
    MUST(rondo_request_free(&request));
    CHECK(request == NULL, "request_free left %p", (void *) request);
}

/* A call that the ranks' devices do not execute is refused in all of its forms, and leaves nothing behind. */
static void run_refused(struct trial *t, const char *text)
{
    STEP("refused %s", text);
    trial_fill(t, 0);
    for (int form = 0; form < FORMS; form++) {
        rondo_request_t request = NULL;
        rondo_result_t result = trial_call(t, (enum form) form, NULL, &request);
        CHECK(result == RONDO_ERR_UNSUPPORTED && request == NULL, "%s: %s gives %d, request %p", text, form_names[form],
              (int) result, (void *) request);
    }
    memcpy(t->expected, t->recv_area, t->recv_area_bytes); /* nothing was written */
    trial_verify(t, "refused", 0);
    trial_release(t);
}

static void run_trial(struct trial *t, uint64_t number)
{
    char text[256];
    trial_prepare(t);
    trial_describe(t, text, sizeof(text));
    if (!op_runs(t->what, t->op, t->type)) {
        run_refused(t, text);
        return;
    }
    if (listed(forms, "blocking")) {
        STEP("blocking %s", text);
        trial_fill(t, 100);
        MUST(trial_call(t, BLOCKING, NULL, NULL));
        trial_verify(t, "blocking", 100);
    }
    if (listed(forms, "nonblocking")) {
        rondo_request_t request = NULL;
        STEP("nonblocking %s", text);
        trial_fill(t, 200);
        MUST(trial_call(t, NONBLOCKING, NULL, &request));
        MUST(rondo_wait(request));
        trial_verify(t, "nonblocking", 200);
    }
    /* An init costs far more than a call: for reductions each type and operator has it at some counts only. */
    if (listed(forms, "persistent") && (!collective_reduces(t->what) || t->count >= 4099 || number % 5 == 0)) {
        STEP("persistent %s", text);
        run_persistent(t);
    }
    trial_release(t);
}

static void run(struct rank *me)
{
    /* Neighbourhood collectives have graphs one after the other; the others have none. */
    enum { GRAPHS = 8 };
    struct graph *graphs = calloc(GRAPHS, sizeof(*graphs));
    rondo_comm_t joined[GRAPHS];
    struct trial t = {.comm = me->world};
    uint64_t number = 0;
    int in_range = 0;
    for (int i = 0; i < GRAPHS; i++)
        make_graph(me->world, (uint64_t) (seed * GRAPHS + i), &graphs[i], &joined[i]);
    for (int what = 0; what < COLLECTIVES; what++)
        for (int type = 0; type < RONDO_DATATYPE_COUNT; type++)
            for (int op = 0; op < RONDO_OP_COUNT; op++)
                for (int c = 0; c < COUNTS; c++)
                    for (int in_place = 0; in_place <= collective_in_place((enum collective) what); in_place++) {
                        t.what = (enum collective) what, t.type = (rondo_datatype_t) type, t.op = (rondo_op_t) op;
                        t.count = all_counts[c], t.in_place = in_place;
                        if (!listed(collectives, collective_names[what]) || !listed(types, type_table[type].name) ||
                            !listed(ops, op_names[op]) || !wanted(&t))
                            continue;
                        number++;
                        /* Tries every root at one count, and one root after the other at the other counts. */
                        int all = collective_has_root(t.what) && t.count == 17 && t.op == RONDO_SUM;
                        for (int k = 0; k < (all ? me->size : 1); k++) {
                            t.root = (int) ((number + (uint64_t) k) % (uint64_t) me->size);
                            t.comm = is_neighborhood(t.what) ? joined[number % GRAPHS] : me->world;
                            t.graph = is_neighborhood(t.what) ? &graphs[number % GRAPHS] : NULL;
                            t.seed = ranks_hash((uint64_t) seed * 65537 + number * 64 + (uint64_t) k);
                            run_trial(&t, number);
                            in_range++;
                        }
                    }
    for (int i = 0; i < GRAPHS; i++)
        MUST(rondo_comm_free(&joined[i]));
    free(graphs);
    CHECK(in_range > 0, "the options leave no case (collective %s, types %s, operators %s, counts %s)", collectives, types, ops,
          counts);
    if (me->rank == 0)
        printf("matrix: %d cases on %d ranks\n", in_range, me->size);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--seed", &seed, NULL, "of the data"},
        {"--restarts", &restarts, NULL, "runs of each persistent request"},
        {"--large", &large, NULL, "0: not the largest count"},
        {"--collectives", NULL, &collectives, "names, comma-separated, or all"},
        {"--types", NULL, &types, "names or all"},
        {"--ops", NULL, &ops, "names or all"},
        {"--counts", NULL, &counts, "of 0,1,2,3,17,1000,4099,70001, or all"},
        {"--forms", NULL, &forms, "blocking,nonblocking,persistent or all"},
        {"--order", NULL, &order, "fifo or priority"},
        {"--transports", NULL, &transports, "as RONDO_TRANSPORTS"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.order = order;
    config.transports = transports;
    config.check = 1;
    ranks_run((int) ranks, &config, run, NULL);
    return ranks_finish("matrix");
}
