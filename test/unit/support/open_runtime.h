/* A runtime of one rank on the host device, for unit tests of internals. */
#ifndef RONDO_TEST_OPEN_RUNTIME_H
#define RONDO_TEST_OPEN_RUNTIME_H

#include "rondo.h"
#include "lib/context/handles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void open_runtime(rondo_t *runtime, rondo_comm_t *world)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    rondo_unique_id_t id;
    assert_int_equal(rondo_get_unique_id(&id), RONDO_SUCCESS);
    config.rank = 0;
    config.size = 1;
    config.unique_id = &id;
    config.device = RONDO_DEVICE_HOST;
    assert_int_equal(rondo_init(runtime, &config), RONDO_SUCCESS);
    assert_int_equal(rondo_comm_world(*runtime, world), RONDO_SUCCESS);
}

/* What the handle stands for. */
static inline struct rondo_runtime *object_of(rondo_t handle)
{
    struct rondo_runtime *runtime;
    assert_int_equal(rondo_runtime_of(handle, "object_of", &runtime), RONDO_SUCCESS);
    return runtime;
}

#endif
