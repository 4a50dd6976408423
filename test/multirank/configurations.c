/*
 * rondo_init refuses bad configurations and environment variables before it contacts other ranks, with the offending value in
 * the message. A good configuration works afterwards.
 */
#include "test/multirank/ranks.h"

#include <stdio.h>
#include <string.h>
#include <stdlib.h>

static void expect_config(int line, rondo_config_t config, rondo_result_t code, rondo_result_t other, const char *fragment)
{
    rondo_t runtime = NULL;
    if (config.rank == -1 && config.size == -1)
        config.rank = 0, config.size = 1;
    STEP("init with a bad %s", fragment);
    ranks_expect(__FILE__, line, "rondo_init", rondo_init(&runtime, &config), code, other, fragment);
    CHECK(runtime == NULL, "a refused init made a runtime");
}
#define EXPECT_CONFIG(code, other, fragment, ...)                                                                              \
    do {                                                                                                                       \
        rondo_config_t config = RONDO_CONFIG_DEFAULT;                                                                          \
        config.device = RONDO_DEVICE_HOST;                                                                                     \
        __VA_ARGS__;                                                                                                           \
        expect_config(__LINE__, config, code, other, fragment);                                                                \
    } while (0)

static void expect_variable(int line, const char *name, const char *value)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    setenv(name, value, 1);
    expect_config(line, config, RONDO_ERR_ARGUMENT, RONDO_ERR_ARGUMENT, name);
    CHECK(strstr(rondo_last_error(), value) != NULL, "the message lacks %s: %s", value, rondo_last_error());
    unsetenv(name);
}

static void configurations(void)
{
    const rondo_result_t bad = RONDO_ERR_ARGUMENT, no = RONDO_ERR_UNSUPPORTED;
    EXPECT_CONFIG(bad, bad, "3", config.rank = 3, config.size = 3);
    EXPECT_CONFIG(bad, bad, "-4", config.rank = -4, config.size = 3);
    EXPECT_CONFIG(bad, bad, "0", config.rank = 0, config.size = 0);
    EXPECT_CONFIG(bad, bad, "-9", config.rank = 0, config.size = -9);
    EXPECT_CONFIG(bad, no, "99", config.device = (rondo_device_t) 99);
    EXPECT_CONFIG(bad, bad, "lifo", config.order = "lifo");
    EXPECT_CONFIG(bad, bad, "sometimes", config.spin = "sometimes");
    EXPECT_CONFIG(bad, RONDO_ERR_TRANSPORT, "pigeon", config.transports = "shm,pigeon");
    EXPECT_CONFIG(bad, bad, "-5", config.timeout = -5);
    EXPECT_CONFIG(bad, bad, "-17", config.blocks = -17);
    EXPECT_CONFIG(bad, bad, "-18", config.spin_initial = -18);
    EXPECT_CONFIG(bad, bad, "-19", config.memory_budget = -19);
    expect_variable(__LINE__, "RONDO_TIMEOUT", "soon");
    expect_variable(__LINE__, "RONDO_CHECK", "maybe");
    expect_variable(__LINE__, "RONDO_ORDER", "lifo");
    expect_variable(__LINE__, "RONDO_DEVICE", "abacus");
    rondo_unique_id_t junk;
    memset(&junk, 0x5a, sizeof(junk));
    EXPECT_CONFIG(RONDO_ERR_BOOTSTRAP, bad, "", config.unique_id = &junk, config.rank = 0, config.size = 2);
    /* A good configuration works after all the bad ones. */
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.rank = 0, config.size = 1, config.device = RONDO_DEVICE_HOST;
    rondo_t runtime = NULL;
    MUST(rondo_init(&runtime, &config));
    rondo_device_t device = RONDO_DEVICE_AUTO;
    MUST(rondo_device(runtime, &device));
    CHECK(device == RONDO_DEVICE_HOST, "device %d", (int) device);
    MUST(rondo_finalize(runtime));
}

int main(int argc, char **argv)
{
    ranks_parse(argc, argv, NULL, 0);
    configurations();
    return ranks_finish("configurations");
}
