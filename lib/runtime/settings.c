/* Reading the settings (lib/runtime/settings.h). Relies on -1, or NULL for texts, as the value of a configuration's field that
 * is not set; then the environment variable, or its default, is read. */
#include "lib/runtime/settings.h"

#include "lib/base/environment.h"
#include "lib/select/tuning.h"
#include "lib/base/error.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A series of reads: after the first failure, which stays, the others do nothing. */
struct reader {
    rondo_result_t result;
};

/* An integer in [least, most]; least after a failure. */
static int64_t integer(struct reader *reader, int64_t configured, const char *name, int64_t least, int64_t most)
{
    int64_t value = configured;
    if (reader->result != RONDO_SUCCESS)
        return least;
    if (configured == -1)
        reader->result = rondo_environment_integer(name, &value);
    if (reader->result == RONDO_SUCCESS && (value < least || value > most))
        reader->result = rondo_fail(RONDO_ERR_ARGUMENT, "%s = %lld is not in [%lld, %lld]", name, (long long) value,
                                    (long long) least, (long long) most);
    return value;
}

/* A number of bytes, with a suffix in the environment. */
static int64_t size(struct reader *reader, int64_t configured, const char *name)
{
    int64_t value = configured;
    if (reader->result == RONDO_SUCCESS && configured == -1)
        reader->result = rondo_environment_size(name, &value);
    if (reader->result == RONDO_SUCCESS && value < 0)
        reader->result = rondo_fail(RONDO_ERR_ARGUMENT, "%s = %lld is negative", name, (long long) value);
    return value;
}

/* Seconds. */
static double real(struct reader *reader, double configured, const char *name)
{
    double value = configured;
    if (reader->result == RONDO_SUCCESS && configured >= -1 && configured <= -1)
        reader->result = rondo_environment_real(name, &value);
    if (reader->result == RONDO_SUCCESS && !(value >= 0 && value < 1e9))
        reader->result = rondo_fail(RONDO_ERR_ARGUMENT, "%s = %g is not in [0, 1e9) seconds", name, value);
    return value;
}

/* A text; owned by the environment or the configuration. */
static const char *text(struct reader *reader, const char *configured, const char *name)
{
    const char *value = configured;
    if (reader->result == RONDO_SUCCESS && configured == NULL)
        reader->result = rondo_environment_text(name, &value);
    return value;
}

/* The index of value among the names; 0 after a failure. */
static int choice(struct reader *reader, const char *value, const char *name, const char *const *names, int count)
{
    for (int i = 0; value != NULL && i < count; i++)
        if (strcmp(value, names[i]) == 0)
            return i;
    if (reader->result == RONDO_SUCCESS)
        reader->result = rondo_fail(RONDO_ERR_ARGUMENT, "%s = '%s' is none of its values", name, value == NULL ? "" : value);
    return 0;
}

/* Reads the daemon's policy. */
static void read_policy(struct reader *reader, const rondo_config_t *config, struct rondo_startup *startup)
{
    static const char *const orders[] = {"fifo", "priority"};
    static const char *const spins[] = {"adaptive", "fixed", "profile"};
    struct rondo_policy *policy = &startup->policy;
    policy->order = (uint32_t) choice(reader, text(reader, config->order, "RONDO_ORDER"), "RONDO_ORDER", orders, 2);
    startup->spin = text(reader, config->spin, "RONDO_SPIN");
    int spin = choice(reader, startup->spin, "RONDO_SPIN", spins, 3);
    policy->preempt = (uint32_t) integer(reader, config->preempt, "RONDO_PREEMPT", 0, 1);
    startup->spin_given = config->spin_initial != -1 || config->spin_cap != -1 ||
                          rondo_environment_is_set("RONDO_SPIN_INITIAL") || rondo_environment_is_set("RONDO_SPIN_CAP") ||
                          rondo_environment_is_set("RONDO_SPIN");
    policy->initial = (uint64_t) integer(reader, config->spin_initial, "RONDO_SPIN_INITIAL", 1, INT64_MAX / 200);
    policy->decay = (uint32_t) integer(reader, config->spin_decay, "RONDO_SPIN_DECAY", 0, 100);
    policy->boost = (uint32_t) integer(reader, config->spin_boost, "RONDO_SPIN_BOOST", 1, 1000);
    policy->cap = (uint64_t) integer(reader, config->spin_cap, "RONDO_SPIN_CAP", 1, INT64_MAX / 2000);
    if (spin == 1) { /* fixed: the grant of a task never changes */
        policy->decay = 100;
        policy->boost = 1;
    }
    if (policy->cap < policy->initial)
        policy->cap = policy->initial;
    policy->alone = policy->initial;
    policy->readiness_check = (uint32_t) integer(reader, -1, "RONDO_READINESS_CHECK", 0, 1);
    policy->quit_idle_ns = 1000u * (uint64_t) integer(reader, config->quit_idle_us, "RONDO_QUIT_IDLE", 0, INT32_MAX);
    policy->quit_stuck_ns = 1000u * (uint64_t) integer(reader, config->quit_stuck_us, "RONDO_QUIT_STUCK", 1, INT32_MAX);
    policy->residency_ns = 1000u * (uint64_t) integer(reader, config->residency_us, "RONDO_RESIDENCY", 1, INT32_MAX);
}

rondo_result_t rondo_settings_read(const rondo_config_t *given, struct rondo_settings *settings, struct rondo_startup *startup)
{
    static const char *const devices[] = {"auto", "host", "cuda"};
    static const char *const protocols[] = RONDO_PROTOCOL_NAMES;
    static const char *const direct_writes[] = {"auto", "off", "refused"};
    static const rondo_config_t defaults = RONDO_CONFIG_DEFAULT;
    const rondo_config_t *config = given != NULL ? given : &defaults;
    struct reader reader = {RONDO_SUCCESS};
    const char *value;
    memset(settings, 0, sizeof(*settings));
    memset(startup, 0, sizeof(*startup));

    startup->device = config->device;
    if (config->device == RONDO_DEVICE_AUTO)
        startup->device = (rondo_device_t) choice(&reader, text(&reader, NULL, "RONDO_DEVICE"), "RONDO_DEVICE", devices, 3);
    else if (config->device != RONDO_DEVICE_HOST && config->device != RONDO_DEVICE_CUDA)
        return rondo_fail(RONDO_ERR_ARGUMENT, "unknown device %d", (int) config->device);
    settings->timeout = real(&reader, config->timeout, "RONDO_TIMEOUT");
    settings->connect_timeout = real(&reader, config->connect_timeout, "RONDO_CONNECT_TIMEOUT");
    settings->check = (int) integer(&reader, config->check, "RONDO_CHECK", 0, 1);
    startup->blocks = integer(&reader, config->blocks, "RONDO_BLOCKS", 0, RONDO_CHANNELS_MAX);
    startup->stream_blocks = integer(&reader, config->stream_blocks, "RONDO_STREAM_BLOCKS", 0, 2 * RONDO_CHANNELS_MAX);
    startup->memory = size(&reader, config->memory_budget, "RONDO_MEMORY");
    startup->slot_bytes = size(&reader, -1, "RONDO_SLOT_BYTES");
    if (reader.result == RONDO_SUCCESS && (startup->slot_bytes < 0 || startup->slot_bytes > 1 << 24))
        return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_SLOT_BYTES = %lld is not in [0, 16M]", (long long) startup->slot_bytes);
    settings->compression.rate = (int) integer(&reader, -1, "RONDO_COMPRESS", 0, 64);
    settings->compression.smallest = (size_t) size(&reader, -1, "RONDO_COMPRESS_MIN");
    if (reader.result == RONDO_SUCCESS && settings->compression.rate > 0 && settings->compression.rate < 4)
        return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_COMPRESS = %d is neither 0 nor in [4, 64]", settings->compression.rate);
    startup->transports = text(&reader, config->transports, "RONDO_TRANSPORTS");
    startup->host_id = text(&reader, config->host_id, "RONDO_HOSTID");
    value = text(&reader, NULL, "RONDO_ALGORITHM");
    snprintf(settings->algorithm, sizeof(settings->algorithm), "%s", value == NULL ? "" : value);
    startup->tuning = text(&reader, NULL, "RONDO_TUNING");
    value = text(&reader, NULL, "RONDO_PROTOCOL");
    snprintf(settings->protocol, sizeof(settings->protocol), "%s", value == NULL ? "" : value);
    choice(&reader, settings->protocol, "RONDO_PROTOCOL", protocols, sizeof(protocols) / sizeof(protocols[0]));
    settings->wanted_channels = (uint32_t) integer(&reader, -1, "RONDO_CHANNELS", 0, RONDO_CHANNELS_MAX);
    settings->direct_write = (enum rondo_direct_write) choice(&reader, text(&reader, NULL, "RONDO_DIRECT_WRITE"),
                                                              "RONDO_DIRECT_WRITE", direct_writes, 3);
    read_policy(&reader, config, startup);
    return reader.result;
}
