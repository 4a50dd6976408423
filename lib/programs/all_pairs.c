/*
 * All-pairs, one shot: every rank sends what the others need of its input straight to them, and folds what arrives in rank
 * order, so that all ranks compute the same bits. One step of latency; the bytes grow with the number of ranks.
 */
#include "peers.h"

rondo_result_t rondo_build_all_pairs(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS] = {1, 1, 0};
    struct rondo_builder *builder = rondo_builder_create();
    rondo_builder_block(builder);
    struct rondo_peer_ends ends = rondo_add_peer_ends(builder, shape, 0);
    struct rondo_instruction send = {.actions = RONDO_SEND,
                                     .destination_buffer = RONDO_OUTPUT,
                                     .count = 1,
                                     .send_first = ends.out_first,
                                     .send_count = ends.count};
    struct rondo_instruction receive = {.actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY,
                                        .flags = RONDO_FINISH,
                                        .destination_buffer = RONDO_OUTPUT,
                                        .count = 1,
                                        .receive_first = ends.in_first,
                                        .receive_count = ends.count,
                                        .local_place = (uint8_t) shape->rank};
    uint32_t rank = (uint32_t) shape->rank;
    switch (shape->kind) {
    case RONDO_KIND_REDUCE_SCATTER:
        chunks[RONDO_INPUT] = (uint32_t) shape->size;
        send.send_count = 1;
        for (int peer = 0; peer < shape->size; peer++)
            if (peer != shape->rank) {
                send.source_index = (uint32_t) peer;
                send.send_first = (uint8_t) (ends.out_first + rondo_peer_place(shape, peer));
                rondo_builder_add(builder, &send);
            }
        receive.source_index = rank;
        rondo_builder_add(builder, &receive);
        break;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
        chunks[RONDO_OUTPUT] = (uint32_t) shape->size;
        send.actions |= RONDO_COPY;
        send.destination_index = rank;
        rondo_builder_add(builder, &send);
        receive.actions = RONDO_RECEIVE | RONDO_COPY;
        receive.flags = 0;
        receive.receive_count = 1;
        for (int peer = 0; peer < shape->size; peer++)
            if (peer != shape->rank) {
                receive.destination_index = (uint32_t) peer;
                receive.receive_first = (uint8_t) (ends.in_first + rondo_peer_place(shape, peer));
                rondo_builder_add(builder, &receive);
            }
        break;
    case RONDO_KIND_BARRIER: /* an element from everybody, kept by nobody */
        receive.actions = RONDO_RECEIVE;
        receive.flags = 0;
        receive.receive_count = 1;
        rondo_builder_add(builder, &send);
        for (uint8_t peer = 0; peer < ends.count; peer++) {
            receive.receive_first = (uint8_t) (ends.in_first + peer);
            rondo_builder_add(builder, &receive);
        }
        break;
    default: /* all-reduce */
        rondo_builder_add(builder, &send);
        rondo_builder_add(builder, &receive);
        break;
    }
    return rondo_builder_finish(builder, chunks, plan);
}
