/* Reading the settings (lib/runtime/settings.h). Relies on -1, or NULL for texts, as the value of a configuration's field that
 * is not set; then the environment variable, or its default, is read. */
#include "lib/runtime/settings.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/call/call.h"

#include <stdio.h>
#include <string.h>

#define FIELD "rondo_config_t."

/* A series of reads: after the first failure, which stays, the others do nothing. */
struct reader {
    rondo_result_t result;
};

/* An integer, or a size in bytes; 0 after a failure. field: of the configuration; NULL if it has none for the variable. */
static int64_t integer(struct reader *reader, int64_t configured, const char *name, const char *field)
{
    int64_t value = configured;
    char digits[32];
    int place;
    if (reader->result != RONDO_SUCCESS)
        return 0;
    snprintf(digits, sizeof(digits), "%lld", (long long) configured);
    if (field == NULL || configured == -1)
        reader->result = rondo_environment_integer(name, &value);
    else
        reader->result = rondo_environment_allow_text(name, field, digits, &place);
    return reader->result == RONDO_SUCCESS ? value : 0;
}

/* Seconds. */
static double real(struct reader *reader, double configured, const char *name, const char *field)
{
    double value = configured;
    if (reader->result == RONDO_SUCCESS && configured >= -1 && configured <= -1)
        reader->result = rondo_environment_real(name, &value);
    else if (reader->result == RONDO_SUCCESS)
        reader->result = rondo_environment_allow_real(name, field, configured);
    return value;
}

/* A text; owned by the environment or the configuration. An empty one of the configuration counts as unset. */
static const char *text(struct reader *reader, const char *configured, const char *name, const char *field)
{
    const char *value = configured;
    int place;
    if (reader->result == RONDO_SUCCESS && (configured == NULL || *configured == '\0'))
        reader->result = rondo_environment_text(name, &value);
    else if (reader->result == RONDO_SUCCESS)
        reader->result = rondo_environment_allow_text(name, field, configured, &place);
    return value;
}

/* The place of a word among the variable's words; 0 after a failure. */
static int choice(struct reader *reader, const char *configured, const char *name, const char *field)
{
    int place = 0;
    if (reader->result == RONDO_SUCCESS && (configured == NULL || *configured == '\0'))
        reader->result = rondo_environment_choice(name, &place);
    else if (reader->result == RONDO_SUCCESS)
        reader->result = rondo_environment_allow_text(name, field, configured, &place);
    return place;
}

static const char *type_name(int type)
{
    return rondo_type_name((rondo_datatype_t) type);
}

static const char *kind_name(int kind)
{
    return rondo_kind_name((enum rondo_kind) kind);
}

/* The set of those numbers below count (at most 32) whose names the variable lists; all if it is unset. */
static uint32_t listed(struct reader *reader, const char *variable, const char *(*name)(int), int count)
{
    const char *list = text(reader, NULL, variable, NULL);
    uint32_t set = 0;
    if (list == NULL || *list == '\0')
        return UINT32_MAX;
    for (size_t length; *list != '\0'; list += length + (list[length] == ',')) {
        length = strcspn(list, ",");
        for (int i = 0; i < count; i++)
            if (strlen(name(i)) == length && strncmp(name(i), list, length) == 0)
                set |= 1u << i;
    }
    return set;
}

/* Reads the daemon's policy. */
static void read_policy(struct reader *reader, const rondo_config_t *config, struct rondo_startup *startup)
{
    enum { ADAPTIVE, FIXED, PROFILE }; /* the words of RONDO_SPIN */
    struct rondo_policy *policy = &startup->policy;
    policy->order = (uint32_t) choice(reader, config->order, "RONDO_ORDER", FIELD "order");
    int spin = choice(reader, config->spin, "RONDO_SPIN", FIELD "spin");
    startup->profile = spin == PROFILE;
    policy->preempt = (uint32_t) integer(reader, config->preempt, "RONDO_PREEMPT", FIELD "preempt");
    policy->budgets.initial = (uint64_t) integer(reader, config->spin_initial, "RONDO_SPIN_INITIAL", FIELD "spin_initial");
    policy->decay = (uint32_t) integer(reader, config->spin_decay, "RONDO_SPIN_DECAY", FIELD "spin_decay");
    policy->boost = (uint32_t) integer(reader, config->spin_boost, "RONDO_SPIN_BOOST", FIELD "spin_boost");
    policy->budgets.cap = (uint64_t) integer(reader, config->spin_cap, "RONDO_SPIN_CAP", FIELD "spin_cap");
    if (spin == FIXED) { /* the grant of a task never changes */
        policy->decay = 100;
        policy->boost = 1;
        startup->fixed = 1;
    }
    policy->readiness_check = (uint32_t) integer(reader, -1, "RONDO_READINESS_CHECK", NULL);
    policy->quit_idle_ns = 1000u * (uint64_t) integer(reader, config->quit_idle_us, "RONDO_QUIT_IDLE", FIELD "quit_idle_us");
    policy->quit_stuck_ns =
        1000u * (uint64_t) integer(reader, config->quit_stuck_us, "RONDO_QUIT_STUCK", FIELD "quit_stuck_us");
    policy->residency_ns = 1000u * (uint64_t) integer(reader, config->residency_us, "RONDO_RESIDENCY", FIELD "residency_us");
}

rondo_result_t rondo_settings_read(const rondo_config_t *given, struct rondo_settings *settings, struct rondo_startup *startup)
{
    static const rondo_config_t defaults = RONDO_CONFIG_DEFAULT;
    const rondo_config_t *config = given != NULL ? given : &defaults;
    struct reader reader = {RONDO_SUCCESS};
    const char *value;
    memset(settings, 0, sizeof(*settings));
    memset(startup, 0, sizeof(*startup));

    reader.result = rondo_environment_check();
    startup->device = config->device;
    if (config->device == RONDO_DEVICE_AUTO)
        startup->device = (rondo_device_t) choice(&reader, NULL, "RONDO_DEVICE", NULL);
    else if (config->device != RONDO_DEVICE_HOST && config->device != RONDO_DEVICE_CUDA)
        return rondo_fail(RONDO_ERR_ARGUMENT, "unknown device %d", (int) config->device);
    if (config->device_index < -1)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_config_t.device_index=%d must be at least -1", config->device_index);
    settings->timeout = real(&reader, config->timeout, "RONDO_TIMEOUT", FIELD "timeout");
    settings->connect_timeout = real(&reader, config->connect_timeout, "RONDO_CONNECT_TIMEOUT", FIELD "connect_timeout");
    settings->check = (int) integer(&reader, config->check, "RONDO_CHECK", FIELD "check");
    startup->blocks = integer(&reader, config->blocks, "RONDO_BLOCKS", FIELD "blocks");
    startup->stream_blocks = integer(&reader, config->stream_blocks, "RONDO_STREAM_BLOCKS", FIELD "stream_blocks");
    startup->sm = integer(&reader, config->sm, "RONDO_SM", FIELD "sm");
    startup->memory = integer(&reader, config->memory_budget, "RONDO_MEMORY", FIELD "memory_budget");
    startup->slot_bytes = integer(&reader, -1, "RONDO_SLOT_BYTES", NULL);
    settings->compression.rate = (int) integer(&reader, -1, "RONDO_COMPRESS", NULL);
    settings->compression.smallest = (size_t) integer(&reader, -1, "RONDO_COMPRESS_MIN", NULL);
    settings->compression.error_feedback = (int) integer(&reader, -1, "RONDO_COMPRESS_FEEDBACK", NULL);
    settings->compressed_comms = (enum rondo_compressed_comms) choice(&reader, NULL, "RONDO_COMPRESS_COMMUNICATORS", NULL);
    settings->compressed_types = listed(&reader, "RONDO_COMPRESS_TYPES", type_name, RONDO_DATATYPE_COUNT);
    settings->compressed_kinds = listed(&reader, "RONDO_COMPRESS_COLLECTIVES", kind_name, RONDO_KINDS < 32 ? RONDO_KINDS : 32);
    startup->transports = text(&reader, config->transports, "RONDO_TRANSPORTS", FIELD "transports");
    startup->host_id = text(&reader, config->host_id, "RONDO_HOSTID", FIELD "host_id");
    value = text(&reader, NULL, "RONDO_ALGORITHM", NULL);
    snprintf(settings->algorithm, sizeof(settings->algorithm), "%s", value == NULL ? "" : value);
    startup->tuning = text(&reader, NULL, "RONDO_TUNING", NULL);
    startup->programs = text(&reader, NULL, "RONDO_PROGRAMS", NULL);
    value = text(&reader, NULL, "RONDO_PROTOCOL", NULL);
    snprintf(settings->protocol, sizeof(settings->protocol), "%s", value == NULL ? "" : value);
    settings->wanted_channels = (uint32_t) integer(&reader, -1, "RONDO_CHANNELS", NULL);
    settings->direct_write = (enum rondo_direct_write) choice(&reader, NULL, "RONDO_DIRECT_WRITE", NULL);
    settings->multicast = choice(&reader, NULL, "RONDO_MULTICAST", NULL) == 0;
    settings->single_copy = (enum rondo_single_copy) choice(&reader, NULL, "RONDO_SINGLE_COPY", NULL);
    read_policy(&reader, config, startup);
    return reader.result;
}
