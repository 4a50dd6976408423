/* rondo_init and rondo_finalize: the order in which the parts of a runtime are made and freed, and what the ranks exchange
 * meanwhile. Relies on every room below, each of which makes its own part. */
#include "lib/context/handles.h"
#include "lib/context/runtime.h"

#include "lib/base/thread.h"
#include "lib/connection/endpoint_address.h"
#include "lib/submission/check.h"
#include "lib/communicator/agreement.h"
#include "lib/communicator/comm.h"
#include "lib/connection/connect.h"
#include "lib/base/environment.h"
#include "lib/base/host.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/bootstrap/key_store.h"
#include "lib/diagnostics/flight_dump.h"
#include "lib/diagnostics/flight_recorder.h"
#include "lib/diagnostics/hang.h"
#include "lib/diagnostics/inspection.h"
#include "lib/diagnostics/nvtx.h"
#include "lib/diagnostics/timeline.h"
#include "lib/connection/exchange.h"
#include "lib/connection/mailbox.h"
#include "lib/connection/window.h"
#include "device/abi/platform.h"
#include "device/engine/references.h"
#include "lib/submission/observe.h"
#include "lib/submission/poller.h"
#include "lib/submission/progress.h"
#include "lib/runtime/cache.h"
#include "lib/runtime/common_settings.h"
#include "lib/runtime/dispatch.h"
#include "lib/runtime/open_device.h"
#include "lib/runtime/spin.h"
#include "lib/runtime/single_copy.h"
#include "lib/runtime/upcalls.h"
#include "proxy/proxies.h"
#include "lib/submission/queue.h"
#include "lib/submission/request.h"
#include "lib/runtime/settings.h"
#include "lib/runtime/start.h"
#include "lib/select/select.h"
#include "lib/select/program_files.h"
#include "lib/select/tuning.h"
#include "lib/base/error.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds for the goodbyes of a runtime's end, at most: of ranks that have all come to rondo_finalize; after a failure, when
 * ranks may be stopped, or be still at work; and what a timeout leaves at least. */
#define LEAVE_SECONDS    10.0
#define FAREWELL_SECONDS 5.0
#define LEAST_SECONDS    1.0

/* ---- the parts ---- */

/* Makes the parts that the control handler needs. */
static rondo_result_t create_tables(struct rondo_runtime *runtime)
{
    rondo_result_t result = rondo_mailbox_create(&runtime->mailbox);
    if (result == RONDO_SUCCESS)
        result = rondo_connect_create(&runtime->connections);
    if (result == RONDO_SUCCESS)
        result = rondo_endpoints_create(&runtime->endpoints);
    if (result == RONDO_SUCCESS)
        result = rondo_check_create(&runtime->checker);
    if (result == RONDO_SUCCESS)
        result = rondo_agreements_create(&runtime->agreements);
    if (result == RONDO_SUCCESS)
        result = rondo_hang_create(&runtime->hang, &rondo_hang_observer);
    if (result == RONDO_SUCCESS)
        result = rondo_flight_create(&runtime->flight);
    if (result == RONDO_SUCCESS)
        result = rondo_flight_dump_create(&runtime->flight_dump);
    if (result == RONDO_SUCCESS)
        result = rondo_inspection_create(&runtime->inspection);
    return result;
}

/* Names the job for people. A unique id holds a secret, so its digest does. */
static void name_job(struct rondo_runtime *runtime, const struct rondo_job_options *options)
{
    struct rondo_sha256 digest;
    unsigned char bytes[RONDO_SHA256_BYTES];
    char *name = runtime->job;
    if (options->unique_id != NULL) {
        rondo_sha256_begin(&digest);
        rondo_sha256_add(&digest, options->unique_id, sizeof(*options->unique_id));
        rondo_sha256_end(&digest, bytes);
        memcpy(name, "id-", 3);
        rondo_hexadecimal(name + 3, bytes, 8);
    } else {
        const char *found = options->job != NULL && *options->job != '\0' ? options->job : options->root;
        snprintf(name, sizeof(runtime->job), "%.*s", RONDO_JOB_BYTES - 1, found != NULL ? found : "");
    }
    rondo_text_make_plain(name);
}

static rondo_result_t has_failed(const void *argument)
{
    const struct rondo_comm *comm = argument;
    const rondo_result_t failed = rondo_comm_failure(comm);
    return failed != RONDO_SUCCESS ? rondo_fail(failed, "rondo_comm_grow: %s", comm->failure) : RONDO_SUCCESS;
}

/* Stores the id of the root that takes in this rank; of several, that of the first too. Rank and size are set. */
static rondo_result_t choose_root(const rondo_config_t *config, struct rondo_job_options *options)
{
    const int most = options->size < RONDO_JOB_ROOTS_MOST ? options->size : RONDO_JOB_ROOTS_MOST;
    if (config->unique_ids < 1 || config->unique_ids > most)
        return rondo_fail(RONDO_ERR_ARGUMENT, "unique_ids=%d of a configuration: it must be 1 to %d for %d ranks",
                          config->unique_ids, most, options->size);
    options->roots = config->unique_ids;
    options->unique_id = config->unique_id + rondo_job_share(options->rank, options->size, options->roots);
    options->first_id = options->roots > 1 ? config->unique_id : NULL;
    return RONDO_SUCCESS;
}

/* Finds rank and size, in the configuration or as the launcher says, and connects to the other ranks, for all of which it
 * waits. *local_rank: the rank on its host; -1: unknown. */
static rondo_result_t connect_control(struct rondo_runtime *runtime, const rondo_config_t *config,
                                      const struct rondo_comm *grows, int *local_rank)
{
    struct rondo_launch launch;
    struct rondo_job_options options = {0};
    int64_t roots;
    int given = config != NULL && (config->rank != -1 || config->size != -1);
    rondo_result_t result = RONDO_SUCCESS;
    memset(&launch, 0, sizeof(launch));
    if (!given || config->unique_id == NULL)
        result = rondo_environment_launch(&launch);
    if (result == RONDO_SUCCESS)
        result = rondo_environment_text("RONDO_ROOT", &options.root);
    if (result == RONDO_SUCCESS)
        result = rondo_environment_text("RONDO_SECRET", &options.secret);
    if (result != RONDO_SUCCESS)
        return result;
    *local_rank = given ? -1 : launch.local_rank;
    runtime->rank = given ? config->rank : launch.rank;
    runtime->size = given ? config->size : launch.size;
    if (runtime->size < 1 || runtime->rank < 0 || runtime->rank >= runtime->size)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rank %d of %d: give both, with 0 <= rank < size", runtime->rank, runtime->size);
    options.rank = runtime->rank;
    options.size = runtime->size;
    if (config != NULL && config->unique_id != NULL && (result = choose_root(config, &options)) != RONDO_SUCCESS)
        return result;
    options.job = launch.job;
    options.launched = !given && strcmp(launch.launcher, "RONDO_RANK") != 0 && strcmp(launch.launcher, "none") != 0;
    options.key_store = !given && options.unique_id == NULL && options.root == NULL && launch.spans_hosts &&
                        rondo_key_store_is_offered(options.rank);
    if (options.key_store && (result = rondo_environment_integer("RONDO_ROOTS", &roots)) != RONDO_SUCCESS)
        return result;
    if (options.key_store)
        options.roots = (int) roots;
    options.encrypts = runtime->transport.encrypts;
    options.connect_timeout = runtime->settings.connect_timeout;
    options.cancelled = grows != NULL ? has_failed : NULL;
    options.cancelled_argument = grows;
    name_job(runtime, &options);
    runtime->nvtx = rondo_nvtx_create(runtime->rank);
    runtime->gone = calloc((size_t) runtime->size, sizeof(*runtime->gone));
    runtime->peers = calloc((size_t) runtime->size, sizeof(*runtime->peers));
    runtime->single_copy_peers = calloc((size_t) runtime->size, sizeof(*runtime->single_copy_peers));
    if (runtime->gone == NULL || runtime->peers == NULL || runtime->single_copy_peers == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", runtime->size);
    return rondo_control_connect(&runtime->control, &options, rondo_dispatch, runtime);
}

/* Fills in the transport list from RONDO_TRANSPORTS; without it, from all that are usable. */
static rondo_result_t choose_transports(struct rondo_runtime *runtime, const char *names)
{
    struct rondo_transport_context *context = &runtime->transport;
    int count;
    const struct rondo_transport *const *all = rondo_transport_table(&count);
    rondo_result_t result = rondo_job_encrypts(&context->encrypts);
    if (result != RONDO_SUCCESS)
        return result;
    if (names == NULL) {
        for (int i = 0; i < count; i++) /* compare_networks finds out later which networks are usable */
            if (all[i]->network != NULL ? rondo_transport_keeps_secret(context, all[i]) : all[i]->unusable() == NULL)
                context->transports[context->transport_count++] = all[i];
        return RONDO_SUCCESS;
    }
    /* The settings have found each name in the table of variables, and once. */
    char list[256], *rest = list, *name;
    snprintf(list, sizeof(list), "%s", names);
    while ((name = strsep(&rest, ",")) != NULL) {
        const struct rondo_transport *transport = rondo_transport_find(name);
        if (transport != NULL && !rondo_transport_keeps_secret(context, transport))
            return rondo_fail(RONDO_ERR_TRANSPORT, "transport '%s': RONDO_ENCRYPT=1, and it does not encrypt", name);
        if (transport == NULL || transport->unusable() != NULL)
            return rondo_fail(RONDO_ERR_TRANSPORT, "transport '%s': %s", name,
                              transport == NULL ? "there is none of that name in this build" : transport->unusable());
        if (context->transport_count < RONDO_TRANSPORTS_MAX)
            context->transports[context->transport_count++] = transport;
    }
    return RONDO_SUCCESS;
}

/* Fills in what transports and the proxy see of the runtime. Device, arena and segments exist; no transport has been called. */
static void fill_transport_context(struct rondo_runtime *runtime)
{
    struct rondo_transport_context *context = &runtime->transport;
    context->rank = runtime->rank;
    context->size = runtime->size;
    context->device_type = runtime->device_type;
    context->device_index = runtime->device_index;
    context->device = runtime->device;
    context->arena = runtime->arena;
    context->segments = runtime->segments;
    context->peers = runtime->peers;
    context->upcalls = rondo_upcalls;
    context->library = runtime;
}

/* Exchanges which networks each rank can use. Only where a network may be needed, because finding out loads the networks'
 * libraries: between hosts, or, without an exchange, if RONDO_TRANSPORTS lists transports (listed). All ranks see the same
 * hosts, so all take part in the exchange or none does. */
static rondo_result_t compare_networks(struct rondo_runtime *runtime, struct rondo_comm *world, int listed)
{
    if (!listed && !rondo_spans_hosts(runtime))
        return RONDO_SUCCESS;
    uint32_t mine = rondo_transport_networks(&runtime->transport), *all = calloc((size_t) runtime->size, sizeof(*all));
    if (all == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", runtime->size);
    rondo_result_t result = RONDO_SUCCESS;
    if (rondo_spans_hosts(runtime))
        result = rondo_exchange(world, "rondo_init", &mine, sizeof(mine), all);
    for (int rank = 0; rank < runtime->size; rank++)
        runtime->peers[rank].networks = rondo_spans_hosts(runtime) ? all[rank] : mine;
    free(all);
    return result;
}

/* Exchanges what ranks know of themselves, over a rendezvous of the world, and makes device and proxies with it. Collective.
 * The last exchange makes sure that no rank connects to one that does not know the others yet, and tells how many threads of
 * each rank move data over networks, and whether it can read its neighbours' memory. */
static rondo_result_t exchange_peers(struct rondo_runtime *runtime, struct rondo_startup *startup)
{
    struct rondo_comm_rendezvous *rendezvous = NULL;
    int *members = calloc((size_t) runtime->size, sizeof(*members));
    struct rondo_peer self;
    struct last_words {
        uint32_t carriers, single_copy;
    } last, *all_last = calloc((size_t) runtime->size, sizeof(*all_last));
    cpu_set_t set;
    memset(&self, 0, sizeof(self));
    rondo_result_t result = RONDO_SUCCESS;
    if (members == NULL || all_last == NULL) {
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for a world of %d ranks", runtime->size);
        goto done;
    }
    for (int rank = 0; rank < runtime->size; rank++)
        members[rank] = rank;
    result = rondo_comm_rendezvous_open(runtime, UINT64_MAX, members, runtime->rank, runtime->size, &rendezvous);
    if (result != RONDO_SUCCESS)
        goto done;
    struct rondo_comm *world = rondo_comm_rendezvous_comm(rendezvous);

    result = rondo_host_id(startup->host_id, self.host_id, sizeof(self.host_id));
    self.device = (uint32_t) runtime->device_type;
    if (runtime->device_type == RONDO_DEVICE_CUDA)
        rondo_gpu_identify(runtime->device_index, &self.gpu);
    self.blocks = (uint32_t) startup->blocks;
    self.stream_blocks = (uint32_t) startup->stream_blocks;
    self.sm = (int32_t) startup->sm;
    self.cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t) CPU_COUNT(&set) : 1;
    self.slot_bytes = startup->slot_bytes != 0 ? (uint32_t) (startup->slot_bytes + 63) / 64 * 64 : RONDO_DEFAULT_SLOT_BYTES;
    self.tuning = runtime->settings.tuning != NULL ? runtime->settings.tuning->fingerprint : 0;
    self.programs = startup->program_files.fingerprint;
    if (result == RONDO_SUCCESS)
        result = rondo_process_token((unsigned char *) self.process);
    if (result == RONDO_SUCCESS)
        result = rondo_single_copy_prepare(runtime, &self);
    if (result == RONDO_SUCCESS)
        result = rondo_exchange(world, "rondo_init", &self, sizeof(self), runtime->peers);
    if (result == RONDO_SUCCESS)
        result = rondo_common_settings(runtime);
    if (result == RONDO_SUCCESS)
        result = rondo_timeline_create(runtime, &runtime->queue->lock, &runtime->trace);
    if (result == RONDO_SUCCESS) {
        runtime->stream_bytes = rondo_stream_bytes(rondo_neighbours(runtime, runtime->rank));
        result = rondo_open_device(runtime, startup); /* from the next exchange on, other ranks may ask for its memory */
        fill_transport_context(runtime);
    }
    if (result == RONDO_SUCCESS)
        result = compare_networks(runtime, world, startup->transports != NULL);
    if (result == RONDO_SUCCESS)
        result = rondo_proxies_create(&runtime->transport, &runtime->proxies);
    if (result == RONDO_SUCCESS) {
        runtime->transport.proxies = runtime->proxies;
        last = (struct last_words){rondo_proxies_carriers(runtime->proxies), rondo_single_copy_probe(runtime)};
        result = rondo_exchange(world, "rondo_init", &last, sizeof(last), all_last);
    }
    for (int rank = 0; rank < runtime->size && result == RONDO_SUCCESS; rank++) {
        runtime->peers[rank].carriers = all_last[rank].carriers;
        runtime->peers[rank].single_copy = all_last[rank].single_copy;
    }
    if (result == RONDO_SUCCESS)
        rondo_single_copy_connect(runtime);

done:
    rondo_comm_rendezvous_close(rendezvous);
    free(members);
    free(all_last);
    return result;
}

/* Registers the programs of RONDO_PROGRAMS that are for as many ranks with the world. Collective: all ranks have compared what
 * they have. A program that cannot run here fails on all ranks alike, or is told to the others as any failure of rondo_init. */
static rondo_result_t register_programs(struct rondo_runtime *runtime, const struct rondo_startup *startup)
{
    const struct rondo_program_files *files = &startup->program_files;
    rondo_result_t result = RONDO_SUCCESS;
    for (int rank = 0; rank < runtime->size; rank++)
        if (runtime->peers[rank].programs != runtime->peers[0].programs)
            return rondo_fail(RONDO_ERR_MISMATCH,
                              "RONDO_PROGRAMS: ranks 0 and %d have different files, or one of them has none", rank);
    for (size_t i = 0; i < files->count && result == RONDO_SUCCESS; i++) {
        rondo_program_signature_t signature;
        rondo_program_describe(files->files[i].program, &signature);
        if (signature.ranks != runtime->size)
            continue;
        result = rondo_program_register(runtime->world->handle, files->files[i].program, 0, SIZE_MAX);
        if (result != RONDO_SUCCESS) {
            char reason[400]; /* in which the message that it came from begins */
            snprintf(reason, sizeof(reason), "%s", rondo_last_error());
            rondo_fail(result, "RONDO_PROGRAMS: %s/%s: %s", startup->programs, files->files[i].name, reason);
        }
    }
    return result;
}

/* Makes the world communicator. */
static rondo_result_t create_world(struct rondo_runtime *runtime)
{
    int *members = calloc((size_t) runtime->size, sizeof(*members));
    if (members == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", runtime->size);
    for (int rank = 0; rank < runtime->size; rank++)
        members[rank] = rank;
    rondo_result_t result = rondo_comm_create(runtime, 0, members, runtime->size, &runtime->world);
    free(members);
    return result;
}

/* Frees a runtime, in whatever state init has left it. Threads that use a part end before the part is freed. seconds: for the
 * goodbye. */
static void tear_down(struct rondo_runtime *runtime, double seconds)
{
    rondo_handle_close(runtime->handle);
    rondo_poller_destroy(runtime);
    rondo_inspection_close(runtime->inspection);
    if (runtime->device != NULL)
        runtime->device->kind->halt(runtime->device);
    rondo_timeline_destroy(runtime);
    while (runtime->comms != NULL) {
        rondo_request_destroy_all(runtime->comms);
        rondo_comm_destroy(runtime->comms);
    }
    if (runtime->connections != NULL)
        rondo_connect_shut(runtime);
    if (runtime->endpoints != NULL)
        rondo_endpoints_withdraw(runtime);
    rondo_proxies_close(runtime->proxies);
    rondo_allocations_free(runtime);
    rondo_arena_destroy(runtime->arena);
    rondo_proxies_destroy(runtime->proxies);
    runtime->proxies = runtime->transport.proxies = NULL;
    if (runtime->segments != NULL)
        rondo_segments_destroy(runtime->segments);
    if (runtime->control != NULL)
        rondo_control_close(runtime->control, seconds); /* from here on no handler runs */
    rondo_connect_destroy(runtime);
    rondo_endpoints_destroy(runtime->endpoints);
    rondo_queue_destroy(runtime);
    if (runtime->nothing != NULL)
        runtime->device->kind->release(runtime->device, runtime->nothing, RONDO_CACHE_LINE);
    if (runtime->device != NULL)
        runtime->device->kind->destroy(runtime->device);
    rondo_lanes_destroy(runtime);
    rondo_hang_destroy(runtime);
    rondo_inspection_destroy(runtime->inspection);
    rondo_flight_dump_destroy(runtime->flight_dump);
    rondo_flight_destroy(runtime->flight);
    rondo_nvtx_destroy(runtime->nvtx);
    rondo_check_destroy(runtime->checker);
    rondo_agreements_destroy(runtime);
    rondo_mailbox_destroy(runtime->mailbox);
    pthread_mutex_destroy(&runtime->lock);
    rondo_tuning_free(runtime->settings.tuning);
    free(runtime->gone);
    rondo_topology_free(&runtime->hosts);
    free(runtime->peers);
    free(runtime->single_copy_peers);
    free(runtime);
    rondo_handle_runtime_ended();
}

/* Tells the other ranks why there will be no runtime on this one, unless the reason is another rank, of which they know. */
static void report_failed_init(struct rondo_runtime *runtime, rondo_result_t code, const char *message)
{
    char text[1100];
    if (runtime->control == NULL)
        return;
    pthread_mutex_lock(&runtime->lock);
    int known = runtime->early_count > 0;
    pthread_mutex_unlock(&runtime->lock);
    for (int rank = 0; rank < runtime->size; rank++)
        known |= rondo_is_gone(runtime, rank);
    snprintf(text, sizeof(text), "rondo_init failed on rank %d: %s", runtime->rank, message);
    if (!known)
        rondo_rank_fail(runtime, code, text);
}

/* ---- the public calls ---- */

rondo_result_t rondo_init(rondo_t *rt, const rondo_config_t *config)
{
    return rondo_runtime_start(rt, config, NULL);
}

rondo_result_t rondo_runtime_start(rondo_t *rt, const rondo_config_t *config, const struct rondo_comm *grows)
{
    struct rondo_startup startup = {.program_files = {0}};
    int local_rank = -1;
    rondo_result_t result = rondo_handle_check_process("rondo_init");
    if (result != RONDO_SUCCESS)
        return result;
    if (rt == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_init: rt is NULL");
    *rt = NULL;
    struct rondo_runtime *runtime = calloc(1, sizeof(*runtime));
    if (runtime == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a runtime");
    result = rondo_handle_runtime_begins("rondo_init");
    if (result != RONDO_SUCCESS) {
        free(runtime);
        return result;
    }
    pthread_mutex_init(&runtime->lock, NULL);
    runtime->failure_listeners = rondo_failure_listeners;
    runtime->device_index = -1;
    runtime->forming = 1;
    result = rondo_queue_create(runtime);
    if (result == RONDO_SUCCESS)
        result = rondo_settings_read(config, &runtime->settings, &startup);
    if (result == RONDO_SUCCESS)
        result = startup.tuning != NULL ? rondo_tuning_read(startup.tuning, &runtime->settings.tuning) : RONDO_SUCCESS;
    if (result == RONDO_SUCCESS)
        result = choose_transports(runtime, startup.transports);
    if (result == RONDO_SUCCESS)
        result = create_tables(runtime);
    if (result == RONDO_SUCCESS)
        result = connect_control(runtime, config, grows, &local_rank);
    if (result == RONDO_SUCCESS)
        result = rondo_choose_device(runtime, config, local_rank, &startup);
    if (result == RONDO_SUCCESS)
        result = rondo_tuning_check(runtime->settings.tuning, startup.tuning, runtime->device_type == RONDO_DEVICE_CUDA);
    if (result == RONDO_SUCCESS && startup.programs != NULL)
        result = rondo_program_files_read(startup.programs, runtime->size, &startup.program_files);
    if (result == RONDO_SUCCESS)
        result = rondo_segments_create(&runtime->segments, runtime->control);
    if (result == RONDO_SUCCESS)
        result = rondo_arena_create(&runtime->arena, (uint64_t) startup.memory);
    if (result == RONDO_SUCCESS)
        result = exchange_peers(runtime, &startup);
    if (result == RONDO_SUCCESS)
        result = create_world(runtime);
    if (result == RONDO_SUCCESS)
        result = rondo_timeline_begin(runtime);
    if (result == RONDO_SUCCESS) {
        rondo_inspection_open(runtime);
        result = rondo_poller_create(runtime);
    }
    if (result == RONDO_SUCCESS && startup.profile)
        result = rondo_spin_profile(runtime);
    if (result == RONDO_SUCCESS && (runtime->handle = rondo_handle_open(RONDO_HANDLE_RUNTIME, runtime)) == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for a runtime's handle");
    if (result == RONDO_SUCCESS)
        result = register_programs(runtime, &startup);
    if (result == RONDO_SUCCESS) /* no rank has a runtime that another could not make */
        result = rondo_meet(runtime->world, "rondo_init", NULL);
    char message[1024] = ""; /* a call in tear_down may set another message */
    if (result != RONDO_SUCCESS)
        snprintf(message, sizeof(message), "%s", rondo_last_error());
    rondo_program_files_release(&startup.program_files); /* registering keeps what it needs */
    if (result != RONDO_SUCCESS) {
        report_failed_init(runtime, result, message);
        tear_down(runtime, FAREWELL_SECONDS);
        return rondo_fail(result, "%s", message);
    }
    __atomic_store_n(&runtime->forming, 0, __ATOMIC_RELAXED);
    if (runtime->rank == 0)
        rondo_environment_warn_of_unknown(runtime->rank);
    *rt = runtime->handle;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_finalize(rondo_t handle)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_finalize", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    double timeout = runtime->settings.timeout;
    uint64_t began = rondo_clock_ns();
    int active = rondo_progress_settle(runtime, NULL);
    if (active > 0)
        return rondo_fail(RONDO_ERR_STATE, "rondo_finalize: %d operations have not completed", active);
    rondo_handle_close(runtime->handle); /* a second call finds nothing */
    runtime->handle = NULL;
    rondo_flight_dump_close(runtime);
    /* The exchange keeps this rank from leaving while others may still wait for its last credit or for a connection. After a
     * failure no rank waits for another. */
    if (rondo_comm_failure(runtime->world) == RONDO_SUCCESS) {
        rondo_result_t met = rondo_meet(runtime->world, "rondo_finalize", NULL);
        if (met != RONDO_SUCCESS) /* a rank that has met the others may have left before this one heard of it */
            rondo_log(met == RONDO_ERR_PEER ? RONDO_LOG_INFO : RONDO_LOG_WARN, runtime->rank, "%s", rondo_last_error());
    }
    double most = rondo_comm_failure(runtime->world) == RONDO_SUCCESS ? LEAVE_SECONDS : FAREWELL_SECONDS;
    double left = timeout > 0 ? timeout - (double) (rondo_clock_ns() - began) / 1e9 : most;
    tear_down(runtime, left > most ? most : left < LEAST_SECONDS ? LEAST_SECONDS : left);
    return RONDO_SUCCESS;
}
