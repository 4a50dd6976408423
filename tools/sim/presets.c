/*
 * The rows of the paper's table 1 (DFCCL, EuroSys 2025), run as the paper's must have been (docs/guide/simulator.md): the
 * single-queue rows with a GPU's groups one after the other, the synchronization rows with the groups in turn and the
 * artifact's intersection test. See tools/sim/sim.h.
 */
#include "tools/common/options.h"
#include "tools/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define VERB   "sim"
#define ROUNDS 32000 /* the paper's */

static const struct sim_preset presets[] = {
    {"single-3d-4x4x4-1e-7", "single queue, 3D (4,4,4): 32 groups, 64 GPUs, 400 and 1200 collectives", 0.0110},
    {"single-3d-4x4x4-1e-6", "likewise, disorder 1e-6", 0.0997},
    {"single-3d-8x6x64-1e-9", "single queue, 3D (8,6,64): 896 groups, 3072 GPUs, 400 and 1200 collectives", 0.0047},
    {"single-3d-8x6x64-1e-8", "likewise, disorder 1e-8", 0.0359},
    {"single-free-1x8-1e-5", "single queue, one group of 8 GPUs, 161 collectives", 0.0121},
    {"single-free-32x64-1e-6", "single queue, free: 32 groups, 64 GPUs, 400 or 1200 collectives", 0.0098},
    {"single-free-32x64-1e-5", "likewise, disorder 1e-5", 0.0945},
    {"single-free-32x128-1e-6", "single queue, free: 32 groups, 128 GPUs, 400 or 1200 collectives", 0.0172},
    {"sync-3d-4x4x4-2e-3-4e-3", "synchronization, 3D (4,4,4), disorder 2e-3, synchronization 4e-3", 0.0068},
    {"sync-3d-4x4x4-4e-3-4e-3", "likewise, 4e-3 and 4e-3", 0.0138},
    {"sync-3d-4x4x4-4e-3-2e-3", "likewise, 4e-3 and 2e-3", 0.0032},
    {"sync-3d-4x4x4-double", "likewise, 4e-3 and 4e-3, 800 and 2400 collectives", 0.0256},
    {"sync-3d-8x6x64-8e-4-8e-4", "synchronization, 3D (8,6,64), 8e-4 and 8e-4", 0.0156},
    {"sync-free-32x64-4e-6-4e-5", "synchronization, free: 32 groups, 64 GPUs, 4e-6 and 4e-5", 0.0081},
    {"sync-free-32x64-4e-5-4e-5", "likewise, 4e-5 and 4e-5", 0.0116},
    {"sync-free-32x64-4e-5-8e-5", "likewise, 4e-5 and 8e-5", 0.0656},
    {"sync-free-32x64-double", "likewise, 4e-5 and 4e-5, 800 or 2400 collectives", 0.0694},
    {"sync-free-32x128-4e-5-4e-5", "synchronization, free: 32 groups, 128 GPUs, 4e-5 and 4e-5", 0.0234},
};

/* In the order of presets. */
static const struct {
    double disorder, sync;
    int tp, dp, pp;      /* 0: free */
    int gpus;            /* free: 8, 64 or 128 */
    int64_t fewer, more; /* collectives: TP and DP, or of every other group */
} rows[] = {
    {1e-7, 0, 4, 4, 4, 0, 400, 1200},     {1e-6, 0, 4, 4, 4, 0, 400, 1200},     {1e-9, 0, 8, 6, 64, 0, 400, 1200},
    {1e-8, 0, 8, 6, 64, 0, 400, 1200},    {1e-5, 0, 0, 0, 0, 8, 161, 161},      {1e-6, 0, 0, 0, 0, 64, 400, 1200},
    {1e-5, 0, 0, 0, 0, 64, 400, 1200},    {1e-6, 0, 0, 0, 0, 128, 400, 1200},   {2e-3, 4e-3, 4, 4, 4, 0, 400, 1200},
    {4e-3, 4e-3, 4, 4, 4, 0, 400, 1200},  {4e-3, 2e-3, 4, 4, 4, 0, 400, 1200},  {4e-3, 4e-3, 4, 4, 4, 0, 800, 2400},
    {8e-4, 8e-4, 8, 6, 64, 0, 400, 1200}, {4e-6, 4e-5, 0, 0, 0, 64, 400, 1200}, {4e-5, 4e-5, 0, 0, 0, 64, 400, 1200},
    {4e-5, 8e-5, 0, 0, 0, 64, 400, 1200}, {4e-5, 4e-5, 0, 0, 0, 64, 800, 2400}, {4e-5, 4e-5, 0, 0, 0, 128, 400, 1200},
};

size_t sim_presets(const struct sim_preset **all)
{
    *all = presets;
    return sizeof(presets) / sizeof(presets[0]);
}

/* The paper gives the sizes of the groups (28 of 3, 4 of 8; each GPU in one to five), not their members. Ours: every GPU has
 * one membership first, and the other 52 go round in strides that leave no GPU with more than five. */
static void place_64(int *member_first, int *member, int larger_by)
{
    int memberships[64] = {0}, next = 0, stride = 0;
    for (int g = 0; g < 32; g++) {
        int size = g % 8 == 7 ? 8 : 3, from = next;
        member_first[g] = from;
        for (int i = 0; i < size; i++) {
            int gpu = 2 * g + i; /* two a group cover all 64 */
            bool repeated = true;
            while (i >= 2 && repeated) {
                stride = (stride * 5 + 17) % 64;                       /* a full period */
                gpu = stride % 3 == 0 ? stride : stride * stride % 64; /* squares are few: some GPUs are in many groups */
                repeated = memberships[gpu] >= 5;
                for (int k = from; k < next; k++)
                    repeated |= member[k] == gpu;
            }
            memberships[gpu]++;
            member[next++] = gpu;
        }
        for (int i = 0; i < larger_by; i++)
            member[next++] = 64 + larger_by * g + i;
    }
    member_first[32] = next;
}

static bool place(struct sim_config *c)
{
    c->groups = c->gpus == 8 ? 1 : 32;
    c->member_first = calloc((size_t) c->groups + 1, sizeof(*c->member_first));
    c->member = calloc(180, sizeof(*c->member)); /* of 128 GPUs, the most */
    c->collectives = calloc((size_t) c->groups, sizeof(*c->collectives));
    if (c->member_first == NULL || c->member == NULL || c->collectives == NULL)
        return false;
    if (c->gpus == 8) {
        c->member_first[1] = 8;
        for (int i = 0; i < 8; i++)
            c->member[i] = i;
    } else
        place_64(c->member_first, c->member, c->gpus == 128 ? 2 : 0);
    return true;
}

int sim_preset_load(const char *name, struct sim_config *c)
{
    size_t i = 0, count = sizeof(presets) / sizeof(presets[0]);
    while (i < count && strcmp(presets[i].name, name) != 0)
        i++;
    if (i == count)
        return options_refuse(VERB, "--preset '%s' is not a preset; --list tells them", name);
    *c = (struct sim_config){.model = rows[i].sync > 0 ? SIM_SYNC : SIM_SINGLE,
                             .grouping = rows[i].tp > 0 ? SIM_THREE_D : SIM_FREE,
                             .disorder = rows[i].disorder,
                             .sync = rows[i].sync,
                             .rounds = ROUNDS,
                             .seed = 1,
                             .resource_limit = -1,
                             .order = rows[i].sync > 0 ? SIM_INTERLEAVED : SIM_CONCATENATED,
                             .test = rows[i].sync > 0 ? SIM_INTERSECTION : SIM_CYCLE,
                             .tp = rows[i].tp,
                             .dp = rows[i].dp,
                             .pp = rows[i].pp,
                             .tp_collectives = rows[i].fewer,
                             .dp_collectives = rows[i].more,
                             .gpus = rows[i].gpus};
    bool enough = (c->name = strdup(name)) != NULL;
    if (c->grouping == SIM_THREE_D) {
        c->gpus = c->tp * c->dp * c->pp;
        c->groups = (c->tp + c->dp) * c->pp;
    } else {
        enough = enough && place(c);
        for (int g = 0; enough && g < c->groups; g++)
            c->collectives[g] = g % 2 == 0 ? rows[i].fewer : rows[i].more;
    }
    if (enough)
        return 0;
    sim_config_free(c);
    return options_refuse(VERB, "no memory for preset %s", name);
}
