/* The rails of the rdma transport: the NICs' ports with a local address that rdma_cm binds to a device, within what
 * RONDO_RDMA_DEVICES and RONDO_RDMA_GID allow; of those the nearest ones, unless the user has named them. One address a port.
 */
#include "transport/rdma/rdma.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "transport/memory/memory_node.h"
#include "transport/rdma/rail_choice.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#define COMPLETIONS 4096
#define BACKLOG     1024
#define PORTS_MAX   32 /* of all NICs, that are looked at */

/* Ports by which the rank could be reached. */
struct found {
    struct rondo_rdma_rail ports[PORTS_MAX];
    int count;
};

static void set_nonblocking(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0)
        fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

static void watch(const struct rondo_rdma *rdma, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};
    set_nonblocking(descriptor);
    epoll_ctl(rdma->descriptor, EPOLL_CTL_ADD, descriptor, &event);
}

/* Whether so many bytes are the rail's "name" or "name:port". */
static int is_name_of(const struct rondo_rdma_rail *rail, const char *name, size_t length)
{
    char with_port[80];
    snprintf(with_port, sizeof(with_port), "%s:%u", rail->name, rail->port);
    return (length == strlen(rail->name) && strncmp(name, rail->name, length) == 0) ||
           (length == strlen(with_port) && strncmp(name, with_port, length) == 0);
}

/* Whether the list names the rail; an empty list names all. */
static int is_wanted(const char *list, const struct rondo_rdma_rail *rail)
{
    if (list == NULL)
        return 1;
    for (const char *at = list; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (is_name_of(rail, at, length))
            return 1;
        at += length + (at[length] == ',');
    }
    return 0;
}

/* RONDO_ERR_ARGUMENT if the list has a name that is no found port's. */
static rondo_result_t check_names(const char *list, int64_t gid, const struct found *found)
{
    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ",");
        int known = 0;
        for (int i = 0; i < found->count; i++)
            known |= is_name_of(&found->ports[i], at, length);
        if (!known)
            return rondo_fail(RONDO_ERR_ARGUMENT,
                              "RONDO_RDMA_DEVICES=\"%s\": %.*s is no RDMA device with an IP address for rdma_cm "
                              "(RONDO_RDMA_GID=%lld)",
                              list, (int) length, at, (long long) gid);
        at += length + (at[length] == ',');
    }
    return RONDO_SUCCESS;
}

/* Whether the address is the one of that index in the port's table; -1: any is. */
static int has_gid(const struct rondo_rdma *rdma, const struct rondo_rdma_rail *rail, int64_t index)
{
    union ibv_gid gid;
    if (index < 0)
        return 1;
    return rdma->library->ibv_query_gid(rail->verbs, rail->port, (int) index, &gid) == 0 &&
           memcmp(&gid, &rail->listener->route.addr.addr.ibaddr.sgid, sizeof(gid)) == 0;
}

static int numa_node(const char *device)
{
    char path[160];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/numa_node", device);
    return rondo_memory_node_in(path);
}

static int is_known(const struct found *found, const struct rondo_rdma_rail *rail)
{
    for (int i = 0; i < found->count; i++)
        if (found->ports[i].verbs == rail->verbs && found->ports[i].port == rail->port)
            return 1;
    return 0;
}

static void close_rail(struct rondo_rdma *rdma, struct rondo_rdma_rail *rail)
{
    const struct rondo_rdma_library *library = rdma->library;
    if (rail->sink != NULL)
        library->ibv_dereg_mr(rail->sink);
    if (rail->completions != NULL)
        library->ibv_destroy_cq(rail->completions);
    if (rail->channel != NULL)
        library->ibv_destroy_comp_channel(rail->channel);
    if (rail->domain != NULL)
        library->ibv_dealloc_pd(rail->domain);
    if (rail->listener != NULL)
        library->rdma_destroy_id(rail->listener);
    memset(rail, 0, sizeof(*rail));
}

/* The resources of a rail whose listener is bound. 0, or -1 with errno. */
static int equip(struct rondo_rdma *rdma, struct rondo_rdma_rail *rail)
{
    const struct rondo_rdma_library *library = rdma->library;
    if ((rail->domain = library->ibv_alloc_pd(rail->verbs)) == NULL ||
        (rail->channel = library->ibv_create_comp_channel(rail->verbs)) == NULL ||
        (rail->completions = library->ibv_create_cq(rail->verbs, COMPLETIONS, NULL, rail->channel, 0)) == NULL ||
        library->rdma_listen(rail->listener, BACKLOG) != 0)
        return -1;
    struct sockaddr *bound = &rail->listener->route.addr.src_addr;
    memcpy(&rail->address, bound, bound->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    watch(rdma, rail->channel->fd);
    watch(rdma, rail->verbs->async_fd);
    return 0;
}

static void try_address(struct rondo_rdma *rdma, const struct sockaddr *address, const char *devices, int64_t gid,
                        struct found *found)
{
    struct rondo_rdma_rail *rail = &found->ports[found->count];
    struct sockaddr_storage place;
    memset(&place, 0, sizeof(place));
    memcpy(&place, address, address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    memset(rail, 0, sizeof(*rail));
    if (rdma->library->rdma_create_id(rdma->events, &rail->listener, NULL, RDMA_PS_TCP) != 0) {
        rail->listener = NULL;
        return;
    }
    if (rdma->library->rdma_bind_addr(rail->listener, (struct sockaddr *) &place) == 0 && rail->listener->verbs != NULL) {
        rail->verbs = rail->listener->verbs;
        rail->port = rail->listener->port_num;
        snprintf(rail->name, sizeof(rail->name), "%s", rail->verbs->device->name);
        rail->node = numa_node(rail->name);
        if (!is_known(found, rail) && is_wanted(devices, rail) && has_gid(rdma, rail, gid)) {
            found->count++;
            return;
        }
    }
    close_rail(rdma, rail);
}

static int is_useful(const struct ifaddrs *one)
{
    if (one->ifa_addr == NULL || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0)
        return 0;
    if (one->ifa_addr->sa_family == AF_INET6)
        return !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *) (const void *) one->ifa_addr)->sin6_addr);
    return one->ifa_addr->sa_family == AF_INET;
}

static rondo_result_t find(struct rondo_rdma *rdma, const char *devices, int64_t gid, struct found *found)
{
    struct ifaddrs *interfaces;
    if (getifaddrs(&interfaces) != 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "getifaddrs: %s", strerror(errno));
    static const int families[] = {AF_INET, AF_INET6};
    for (int family = 0; family < 2; family++) /* a port's IPv4 address is taken before others of it */
        for (struct ifaddrs *one = interfaces; one != NULL && found->count < PORTS_MAX; one = one->ifa_next)
            if (is_useful(one) && one->ifa_addr->sa_family == families[family])
                try_address(rdma, one->ifa_addr, devices, gid, found);
    freeifaddrs(interfaces);
    return RONDO_SUCCESS;
}

/* Where the rank's GPU or processors are, and the ports as seen from there. */
static void locate(struct rondo_rdma *rdma, const struct found *found, struct rondo_rail_place places[PORTS_MAX])
{
    char bus_id[RONDO_GPU_BUS_ID_BYTES], gpu[64] = "", nic[160];
    if (rdma->gpu >= 0 && rondo_gpu_bus_id(rdma->gpu, bus_id)) {
        for (char *c = bus_id; *c != '\0'; c++)
            *c = (char) tolower((unsigned char) *c); /* CUDA writes it in capitals */
        snprintf(gpu, sizeof(gpu), "/sys/bus/pci/devices/%s", bus_id);
    }
    rdma->node = rdma->gpu < 0 ? rondo_memory_node_here() : gpu[0] != '\0' ? rondo_memory_node(bus_id) : -1;
    for (int i = 0; i < found->count; i++) {
        snprintf(nic, sizeof(nic), "/sys/class/infiniband/%s/device", found->ports[i].name);
        places[i] = (struct rondo_rail_place){found->ports[i].node, gpu[0] != '\0' ? rondo_rails_bridges(gpu, nic) : 0};
    }
}

/* Takes the ports that the rank is to use, and closes the others. */
static void take(struct rondo_rdma *rdma, struct found *found, int named)
{
    struct rondo_rail_place places[PORTS_MAX];
    int chosen[RONDO_RDMA_RAILS];
    locate(rdma, found, places);
    for (int i = 0; i < found->count && named; i++)
        places[i].bridges = 0; /* wherever they are */
    int count =
        rondo_rails_choose(places, found->count, named ? -1 : rdma->node, "/sys", rdma->local_rank, RONDO_RDMA_RAILS, chosen);
    for (int i = 0; i < count; i++) {
        struct rondo_rdma_rail *rail = &rdma->rails[rdma->rail_count];
        *rail = found->ports[chosen[i]];
        memset(&found->ports[chosen[i]], 0, sizeof(*rail));
        if (equip(rdma, rail) == 0) {
            rondo_log(RONDO_LOG_DEBUG, rdma->rank,
                      "rdma: rail %d, of %d ports, is %s port %u, memory node %d; the rank's is %d", rdma->rail_count,
                      found->count, rail->name, rail->port, rail->node, rdma->node);
            rdma->rail_count++;
            continue;
        }
        rondo_log(RONDO_LOG_WARN, rdma->rank, "the RDMA device %s cannot be used: %s", rail->name, strerror(errno));
        close_rail(rdma, rail);
    }
    for (int i = 0; i < found->count; i++)
        close_rail(rdma, &found->ports[i]);
}

rondo_result_t rondo_rdma_open_rails(struct rondo_rdma *rdma)
{
    const char *devices;
    int64_t gid;
    rondo_result_t result = rondo_environment_text("RONDO_RDMA_DEVICES", &devices);
    if (result == RONDO_SUCCESS)
        result = rondo_environment_integer("RONDO_RDMA_GID", &gid);
    if (result != RONDO_SUCCESS)
        return result;
    rdma->events = rdma->library->rdma_create_event_channel();
    if (rdma->events == NULL)
        return rondo_fail(RONDO_ERR_TRANSPORT, "rdma: no event channel: %s (is the module rdma_ucm loaded?)", strerror(errno));
    watch(rdma, rdma->events->fd);
    struct found *found = calloc(1, sizeof(*found));
    if (found == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the ports of RDMA devices");
    result = find(rdma, devices, gid, found);
    if (result == RONDO_SUCCESS)
        result = check_names(devices, gid, found);
    take(rdma, found, devices != NULL);
    free(found);
    if (result == RONDO_SUCCESS && rdma->rail_count == 0)
        return rondo_fail(
            RONDO_ERR_TRANSPORT,
            "rdma: no RDMA device with an address that fits (RONDO_RDMA_DEVICES \"%s\", RONDO_RDMA_GID %lld); each "
            "port needs an IP address, for rdma_cm",
            devices == NULL ? "" : devices, (long long) gid);
    return result;
}

void rondo_rdma_close_rails(struct rondo_rdma *rdma)
{
    for (int i = 0; i < rdma->rail_count; i++)
        close_rail(rdma, &rdma->rails[i]);
    if (rdma->events != NULL)
        rdma->library->rdma_destroy_event_channel(rdma->events);
}

static void take_down(struct rondo_rdma *rdma, struct rondo_rdma_rail *rail)
{
    if (rail->down)
        return;
    rail->down = 1;
    rondo_log(RONDO_LOG_WARN, rdma->rank, "rdma: %s port %u went down", rail->name, rail->port);
    for (struct rondo_rdma_queue *queue = rdma->all; queue != NULL; queue = queue->next)
        if (&rdma->rails[queue->rail] == rail) {
            rondo_rdma_break(queue, "the RDMA device's port went down");
            if (queue->peer == rdma->rank) /* nothing that comes by another rail needs it */
                rondo_rdma_set_phase(queue, queue->phase, 0);
        }
}

/* Ports of one device share its events. */
static void take_port_event(struct rondo_rdma *rdma, const struct ibv_context *verbs, const struct ibv_async_event *event)
{
    for (int i = 0; i < rdma->rail_count; i++) {
        struct rondo_rdma_rail *rail = &rdma->rails[i];
        int here = rail->verbs == verbs, port_here = here && event->element.port_num == rail->port;
        if (here && event->event_type == IBV_EVENT_DEVICE_FATAL)
            __atomic_store_n(&rail->dead, 1, __ATOMIC_RELAXED);
        if ((here && event->event_type == IBV_EVENT_DEVICE_FATAL) || (port_here && event->event_type == IBV_EVENT_PORT_ERR))
            take_down(rdma, rail);
        else if (port_here && event->event_type == IBV_EVENT_PORT_ACTIVE && !rail->dead && rail->down) {
            rail->down = 0;
            rondo_log(RONDO_LOG_INFO, rdma->rank, "rdma: %s port %u is up again", rail->name, rail->port);
        }
    }
}

static void take_queue_event(struct rondo_rdma *rdma, const struct ibv_qp *pair)
{
    for (struct rondo_rdma_queue *queue = rdma->all; queue != NULL; queue = queue->next)
        if (queue->id != NULL && queue->id->qp == pair) {
            rondo_rdma_break(queue, "the RDMA device reports an error of the queue pair");
            return;
        }
}

void rondo_rdma_poll_device_events(struct rondo_rdma *rdma, struct rondo_rdma_rail *rail)
{
    struct ibv_async_event event;
    while (rdma->library->ibv_get_async_event(rail->verbs, &event) == 0) {
        rdma->library->ibv_ack_async_event(&event); /* before a queue pair is freed, which waits for that */
        switch (event.event_type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
            take_queue_event(rdma, event.element.qp);
            break;
        default:
            take_port_event(rdma, rail->verbs, &event);
            break;
        }
    }
}
