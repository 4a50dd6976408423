/*
 * How a host thread carries out a piece: it folds it itself, at once. Data of LL slots are unpacked first and packed last.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_HOST_H
#define RONDO_DEVICE_MOVE_MOVE_HOST_H

#include "device/codec/codec.h"
#include "device/move/low_latency.h"
#include "device/move/store_policy.h"
#include "device/abi/slice_operation.h"
#include "device/abi/structures.h"

#define RONDO_STAGING_BYTES 65536 /* LL data unpacked at a time; slices are cut so that all of a primitive's sources fit */

/* A piece is done when rondo_team_begin returns, but for the decoding of a stream that was forwarded; the engine has looked at
 * the flags of LL data before. */
#define RONDO_TEAM_OVERLAPS 0
#define RONDO_TEAM_POLLS_LL 0

#define RONDO_TEAM_REST(team) rondo_team_rest(team)

#define RONDO_PACES 16 /* ranks whose numbers differ by so much share one */

struct rondo_team {
    struct rondo_use use;
    struct rondo_piece piece;
    struct rondo_pace paces[RONDO_PACES]; /* by rank in the world */
    int past;                             /* the piece's remotes are stored past the caches */
    int forwarded;                        /* the piece's stream, whose slot is still ours, is yet to be decoded */
    /* Called when the other blocks have been told of something: their threads may sleep. NULL: nobody is to be called. */
    void (*gather)(void *argument);
    void *gather_argument;
};

RONDO_FUNCTION void rondo_team_rest(struct rondo_team *team)
{
    if (team->forwarded)
        rondo_codec_keep(&team->piece);
    team->forwarded = 0;
}

RONDO_FUNCTION struct rondo_piece *rondo_team_piece(struct rondo_team *team)
{
    rondo_team_rest(team);
    return &team->piece;
}

RONDO_FUNCTION struct rondo_use *rondo_team_use(struct rondo_team *team)
{
    return &team->use;
}

RONDO_FUNCTION void rondo_team_begin(struct rondo_team *team, uint64_t polls)
{
    const struct rondo_piece *piece = &team->piece;
    (void) polls;
    if (rondo_piece_is_coded(piece)) {
        team->forwarded = piece->codec & RONDO_CODEC_FORWARD;
        if (team->forwarded)
            rondo_codec_forward(piece);
        else
            rondo_codec_carry_out(piece);
        return;
    }
    const void *sources[RONDO_FOLD_SOURCES_MAX];
    void *remotes[RONDO_FOLD_SOURCES_MAX];
    char staged[RONDO_STAGING_BYTES] __attribute__((aligned(RONDO_CACHE_LINE)));
    char *packed = NULL, *free_stage = staged, *local = piece->local;
    size_t padded = (piece->count * piece->element_bytes + 15) & ~(size_t) 15;
    int remote_count = 0;
    for (int i = 0; i < piece->sources; i++) {
        sources[i] = piece->source[i];
        if (piece->ll_sources >> i & 1) {
            rondo_ll_load(free_stage, (const uint64_t *) (const void *) piece->source[i], padded);
            sources[i] = free_stage;
            free_stage += padded;
        }
    }
    for (int i = 0; i < piece->remotes; i++) {
        if (!(piece->ll_remotes >> i & 1)) {
            remotes[remote_count++] = piece->remote[i];
        } else if (packed == NULL) {
            packed = free_stage;
            remotes[remote_count++] = packed;
        }
    }
    rondo_datatype_t type = (rondo_datatype_t) piece->type;
    rondo_op_t op = (rondo_op_t) piece->op;
    int average = (int) piece->average;
    if (remote_count > 0)
        rondo_fold_out(local, remotes, remote_count, sources, piece->sources, piece->count, type, op, average, team->past);
    else if (local != NULL && !(piece->sources == 1 && sources[0] == local && !average))
        rondo_fold((void *const *) &local, 1, sources, piece->sources, piece->count, type, op, average, piece->streaming);
    for (int i = 0; packed != NULL && i < piece->remotes; i++)
        if (piece->ll_remotes >> i & 1)
            rondo_ll_store((uint64_t *) (void *) piece->remote[i], packed, padded, piece->remote_flags[i]);
}

RONDO_FUNCTION void rondo_team_repeat(struct rondo_team *team)
{
    rondo_team_begin(team, 0);
}

RONDO_FUNCTION int rondo_team_finish(struct rondo_team *team)
{
    rondo_team_rest(team);
    return 1;
}

RONDO_FUNCTION void rondo_team_copy(struct rondo_team *team, void *to, const void *from, uint32_t bytes)
{
    (void) team;
    memcpy(to, from, bytes);
}

#endif
