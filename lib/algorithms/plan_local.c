/* Local, by hand: on a communicator of one rank, what is left of each collective is a copy, or nothing. Relies on no connector.
 */
#include "lib/algorithms/algorithms.h"

rondo_result_t rondo_build_local(const struct rondo_shape *shape, struct rondo_plan **plan)
{
    uint32_t chunks[RONDO_BUFFERS];
    struct rondo_shape one = *shape;
    one.channels = 1;
    rondo_shape_chunks(&one, chunks);
    struct rondo_plan_builder *builder = rondo_plan_builder_create();
    rondo_plan_builder_block(builder);
    int copies = shape->kind != RONDO_KIND_BARRIER && shape->kind != RONDO_KIND_EXSCAN && shape->kind != RONDO_KIND_ALLTONEXT &&
                 shape->kind != RONDO_KIND_BCAST;
    int reduces = rondo_kind_reduces(shape->kind) && shape->kind != RONDO_KIND_CUSTOM;
    struct rondo_instruction copy = {
        .actions = RONDO_COPY, .flags = reduces ? RONDO_FINISH : 0, .destination_buffer = RONDO_OUTPUT, .count = 1};
    if (copies)
        rondo_plan_builder_add(builder, &copy);
    return rondo_plan_builder_finish(builder, chunks, plan);
}
