/* See test/rdma/fabric.h. */
#include "test/rdma/fabric.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POSTS = 512, REGIONS = 256, REPORTS = 8192, NOTICES = 256, LATE = 4096, PORT = 4000 };

struct late {
    unsigned char *to, *data;
    uint32_t bytes;
};

struct nic {
    struct ibv_context verbs;
    struct ibv_cq completions;
    struct ibv_comp_channel channel;
    struct ibv_pd domain;
    int rank, rail, report_count, notice_count, late_count;
    struct ibv_wc reports[REPORTS];
    struct ibv_async_event notices[NOTICES];
    struct late late[LATE];
};

struct post {
    struct ibv_send_wr request;
    struct ibv_sge part;
    unsigned char *data; /* taken already; NULL: it is read when the post is carried out */
};

struct pair {
    struct ibv_qp qp;
    struct pair *next, *other;
    struct nic *nic;
    int failed, freed, receives; /* freed: what it has posted is still under way */
    int begin, end;
    struct post posts[POSTS];
};

struct connection {
    struct rdma_cm_id id;
    int rank, established;
    struct nic *here, *there;
    struct connection *other;
};

struct event {
    struct rdma_cm_event event;
    struct event *next;
    unsigned char data[FABRIC_REQUEST];
};

struct fabric fabric;

static struct nic *nics[FABRIC_RANKS][FABRIC_RAILS];
static struct rdma_event_channel channels[FABRIC_RANKS];
static struct event *events[FABRIC_RANKS];
static struct pair *pairs;
static struct ibv_mr *regions[REGIONS];
static int access_of[REGIONS], connections;
static uint32_t state;

uint32_t fabric_random(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t) (((uint64_t) (state >> 8) * below) >> 24);
}

static struct nic *nic_of(const struct ibv_context *verbs)
{
    return (struct nic *) (uintptr_t) verbs;
}

static int is_cut(const struct nic *from, const struct nic *to)
{
    return from != to && (fabric.cut[from->rank][from->rail] || fabric.cut[to->rank][to->rail]);
}

/* ---- memory ---- */

static struct ibv_mr *reg_mr(struct ibv_pd *domain, void *base, size_t bytes, int access)
{
    for (int i = 0; i < REGIONS; i++)
        if (regions[i] == NULL) {
            struct ibv_mr *region = calloc(1, sizeof(*region));
            assert_non_null(region);
            *region = (struct ibv_mr){.pd = domain, .addr = base, .length = bytes, .lkey = (uint32_t) i, .rkey = (uint32_t) i};
            regions[i] = region;
            access_of[i] = access;
            return region;
        }
    fail_msg("more than %d registrations", REGIONS);
    return NULL;
}

static void check_place(const struct nic *nic, uint32_t key, uint64_t place, uint32_t bytes, int access)
{
    assert_true(key < REGIONS);
    const struct ibv_mr *region = regions[key];
    assert_non_null(region);
    assert_ptr_equal(region->pd, &nic->domain);
    assert_int_equal(access_of[key] & access, access);
    assert_true(place >= (uintptr_t) region->addr && place + bytes <= (uintptr_t) region->addr + region->length);
}

static void arrive(struct nic *nic)
{
    memcpy(nic->late[0].to, nic->late[0].data, nic->late[0].bytes);
    free(nic->late[0].data);
    memmove(nic->late, nic->late + 1, (size_t) --nic->late_count * sizeof(nic->late[0]));
}

static void arrive_all(struct nic *nic)
{
    while (nic->late_count > 0)
        arrive(nic);
}

/* What other NICs have written to a place where something else is written now. */
static void arrive_before(const struct nic *nic, const unsigned char *to, const void *data, uint32_t bytes)
{
    struct nic *other = nics[nic->rank][1 - nic->rail];
    for (int i = other->late_count - 1; i >= 0; i--) {
        const struct late *late = &other->late[i];
        uint32_t both = late->bytes < bytes ? late->bytes : bytes;
        if (late->to == to && memcmp(late->data, data, both) != 0) {
            arrive_all(other);
            return;
        }
    }
}

static void write_bytes(struct nic *nic, uint32_t key, uint64_t place, const void *data, uint32_t bytes)
{
    unsigned char *to = (unsigned char *) (uintptr_t) place;
    check_place(nic, key, place, bytes, IBV_ACCESS_REMOTE_WRITE);
    if ((access_of[key] & IBV_ACCESS_REMOTE_READ) == 0) {
        memcpy(to, data, bytes);
        return;
    }
    arrive_before(nic, to, data, bytes);
    if (nic->late_count == LATE)
        arrive(nic);
    struct late *late = &nic->late[nic->late_count++];
    *late = (struct late){to, malloc(bytes + 1), bytes};
    assert_non_null(late->data);
    memcpy(late->data, data, bytes);
}

static int dereg_mr(struct ibv_mr *region)
{
    for (int i = 0; i < FABRIC_RANKS * FABRIC_RAILS; i++)
        arrive_all(nics[i / FABRIC_RAILS][i % FABRIC_RAILS]);
    assert_ptr_equal(regions[region->lkey], region);
    regions[region->lkey] = NULL;
    free(region);
    return 0;
}

/* ---- queue pairs ---- */

static int poll_cq(struct ibv_cq *completions, int most, struct ibv_wc *reports)
{
    struct nic *nic = nic_of(completions->context);
    int count = most < nic->report_count ? most : nic->report_count;
    if (fabric_random(2) == 0)
        count = (int) fabric_random((uint32_t) count + 1); /* the rest is still on its way */
    memcpy(reports, nic->reports, (size_t) count * sizeof(*reports));
    nic->report_count -= count;
    memmove(nic->reports, nic->reports + count, (size_t) nic->report_count * sizeof(*reports));
    return count;
}

static int req_notify_cq(struct ibv_cq *completions, int solicited_only)
{
    (void) completions;
    (void) solicited_only;
    return 0;
}

static void report(struct pair *pair, const struct post *post, enum ibv_wc_status status)
{
    struct nic *nic = pair->nic;
    if (pair->freed || (status == IBV_WC_SUCCESS && (post->request.send_flags & IBV_SEND_SIGNALED) == 0))
        return;
    assert_true(nic->report_count < REPORTS);
    nic->reports[nic->report_count++] =
        (struct ibv_wc){.wr_id = post->request.wr_id, .status = status, .qp_num = pair->qp.qp_num};
}

void fabric_report(struct ibv_qp *qp, uint64_t number, enum ibv_wc_status status)
{
    const struct post post = {.request = {.wr_id = number, .send_flags = IBV_SEND_SIGNALED}};
    report((struct pair *) (void *) qp, &post, status);
}

static void take_data(struct post *post)
{
    if (post->data != NULL || post->request.opcode != IBV_WR_RDMA_WRITE)
        return;
    post->data = malloc(post->part.length + 1);
    assert_non_null(post->data);
    memcpy(post->data, (const void *) (uintptr_t) post->part.addr, post->part.length);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **refused)
{
    struct pair *pair = (struct pair *) (void *) qp;
    *refused = request;
    if (fabric.refuse_after > 0 && request->sg_list[0].length >= fabric.refuse_least && --fabric.refuse_after == 0)
        return ENOMEM;
    assert_false(pair->freed);
    if (pair->end - pair->begin == RONDO_RDMA_DEPTH)
        fail_msg("more posts than the queue pair has room for");
    if (pair->end == POSTS) {
        memmove(pair->posts, pair->posts + pair->begin, (size_t) (pair->end - pair->begin) * sizeof(pair->posts[0]));
        pair->end -= pair->begin;
        pair->begin = 0;
    }
    struct post *post = &pair->posts[pair->end++];
    *post = (struct post){.request = *request, .part = request->sg_list[0]};
    if (request->send_flags & IBV_SEND_INLINE) {
        assert_true(post->part.length <= 128);
        take_data(post);
    } else {
        check_place(pair->nic, post->part.lkey, post->part.addr, post->part.length, 0);
    }
    return 0;
}

static void drop_first(struct pair *pair)
{
    free(pair->posts[pair->begin].data);
    pair->begin++;
}

/* share: how many halves of it arrive. */
static void apply(struct pair *pair, struct post *post, uint32_t share)
{
    const struct ibv_send_wr *request = &post->request;
    struct nic *nic = pair->other->nic;
    if (request->opcode == IBV_WR_RDMA_READ) {
        check_place(nic, request->wr.rdma.rkey, request->wr.rdma.remote_addr, post->part.length, IBV_ACCESS_REMOTE_READ);
        arrive_all(nic);
        return;
    }
    take_data(post);
    /* Half of a counter is none. */
    uint32_t bytes = share == 2 ? post->part.length : post->part.length > sizeof(uint64_t) ? post->part.length / 2 : 0;
    write_bytes(nic, request->wr.rdma.rkey, request->wr.rdma.remote_addr, post->data, bytes);
}

static int reaches(const struct pair *pair)
{
    return pair->other != NULL && !pair->other->failed && !pair->other->freed && !is_cut(pair->nic, pair->other->nic) &&
           (!fabric.lose_posts || pair->nic == pair->other->nic);
}

static void execute(struct pair *pair)
{
    struct post *post = &pair->posts[pair->begin];
    if (pair->failed) {
        report(pair, post, IBV_WC_WR_FLUSH_ERR);
    } else if (!reaches(pair)) {
        pair->failed = 1;
        report(pair, post, IBV_WC_RETRY_EXC_ERR);
    } else {
        apply(pair, post, 2);
        report(pair, post, IBV_WC_SUCCESS);
    }
    drop_first(pair);
}

static int can_break(const struct pair *pair, int loops)
{
    return !pair->freed && !pair->failed && pair->begin != pair->end && reaches(pair) &&
           (!loops || pair->nic == pair->other->nic);
}

int fabric_break(enum fabric_loss loss, int loops)
{
    uint32_t count = 0;
    for (struct pair *pair = pairs; pair != NULL; pair = pair->next)
        count += (uint32_t) can_break(pair, loops);
    uint32_t chosen = count > 0 ? fabric_random(count) : 0;
    for (struct pair *pair = pairs; pair != NULL && count > 0; pair = pair->next) {
        if (!can_break(pair, loops) || chosen-- != 0)
            continue;
        int posts = loss == FABRIC_UNACKNOWLEDGED ? 1 + (int) fabric_random((uint32_t) (pair->end - pair->begin)) : 0;
        for (int i = 0; i < posts; i++)
            apply(pair, &pair->posts[pair->begin + i], 2);
        if (loss == FABRIC_HALF)
            apply(pair, &pair->posts[pair->begin], 1);
        pair->failed = 1;
        report(pair, &pair->posts[pair->begin], IBV_WC_RETRY_EXC_ERR);
        drop_first(pair);
        fabric.broken++;
        return 1;
    }
    return 0;
}

/* The least that no queue pair has. */
static uint32_t fresh_number(void)
{
    for (uint32_t number = 1;; number++) {
        const struct pair *pair = pairs;
        while (pair != NULL && pair->qp.qp_num != number)
            pair = pair->next;
        if (pair == NULL)
            return number;
    }
}

static int create_qp(struct rdma_cm_id *id, struct ibv_pd *domain, struct ibv_qp_init_attr *attributes)
{
    struct nic *nic = ((struct connection *) (void *) id)->here;
    assert_ptr_equal(domain, &nic->domain);
    assert_ptr_equal(attributes->send_cq, &nic->completions);
    assert_null(id->qp);
    if (fabric.refuse_pairs > 0) {
        fabric.refuse_pairs--;
        errno = ENOMEM;
        return -1;
    }
    struct pair *pair = calloc(1, sizeof(*pair));
    assert_non_null(pair);
    pair->qp.context = &nic->verbs;
    pair->qp.qp_num = fresh_number();
    pair->nic = nic;
    pair->next = pairs;
    pairs = pair;
    id->qp = &pair->qp;
    return 0;
}

static void remove_pair(struct pair *pair)
{
    struct pair **link = &pairs;
    for (struct pair *one = pairs; one != NULL; one = one->next)
        if (one->other == pair)
            one->other = NULL;
    while (*link != pair)
        link = &(*link)->next;
    *link = pair->next;
    free(pair);
}

static void destroy_qp(struct rdma_cm_id *id)
{
    struct pair *pair = (struct pair *) (void *) id->qp;
    assert_non_null(pair);
    id->qp = NULL;
    pair->freed = 1;
    for (int i = pair->begin; i < pair->end && reaches(pair); i++)
        take_data(&pair->posts[i]);
    while ((pair->failed || !reaches(pair)) && pair->begin != pair->end)
        drop_first(pair);
    if (pair->begin == pair->end)
        remove_pair(pair);
}

/* What a freed queue pair has left. */
static void execute_left(struct pair *pair)
{
    if (reaches(pair) && !pair->failed && pair->posts[pair->begin].data != NULL)
        apply(pair, &pair->posts[pair->begin], 2);
    drop_first(pair);
    if (pair->begin == pair->end)
        remove_pair(pair);
}

int fabric_step(void)
{
    uint32_t count = 0;
    for (struct pair *pair = pairs; pair != NULL; pair = pair->next)
        count += pair->begin != pair->end;
    if (fabric_random(2000) == 0) {
        struct nic *nic = nics[fabric_random(FABRIC_RANKS)][fabric_random(FABRIC_RAILS)];
        if (nic->late_count > 0) {
            arrive(nic);
            return 1;
        }
    }
    if (count == 0)
        return 0;
    uint32_t chosen = fabric_random(count);
    for (struct pair *pair = pairs; pair != NULL; pair = pair->next)
        if (pair->begin != pair->end && chosen-- == 0) {
            if (pair->freed)
                execute_left(pair);
            else
                execute(pair);
            break;
        }
    return 1;
}

/* ---- connections ---- */

static void push(struct connection *to, enum rdma_cm_event_type type, const unsigned char *data)
{
    struct event *event = calloc(1, sizeof(*event)), **link = &events[to->rank];
    assert_non_null(event);
    event->event.id = &to->id;
    event->event.event = type;
    if (data != NULL) {
        memcpy(event->data, data, sizeof(event->data));
        event->event.param.conn.private_data = event->data;
        event->event.param.conn.private_data_len = sizeof(event->data);
    }
    while (*link != NULL)
        link = &(*link)->next;
    *link = event;
}

static int get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    struct event **first = &events[channel - channels];
    if (*first == NULL)
        return -1;
    *event = &(*first)->event;
    *first = (*first)->next;
    return 0;
}

static int ack_cm_event(struct rdma_cm_event *event)
{
    free(event);
    return 0;
}

static struct connection *make_connection(int rank, struct nic *here, void *context)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    assert_non_null(connection);
    connection->rank = rank;
    connection->here = here;
    connection->id.context = context;
    connection->id.verbs = here != NULL ? &here->verbs : NULL;
    connections++;
    return connection;
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space space)
{
    (void) space;
    *id = &make_connection((int) (channel - channels), NULL, context)->id;
    return 0;
}

static int destroy_id(struct rdma_cm_id *id)
{
    struct connection *own = (struct connection *) (void *) id;
    assert_null(id->qp);
    for (struct event **link = &events[own->rank]; *link != NULL;) {
        struct event *event = *link;
        if (event->event.id != id) {
            link = &event->next;
            continue;
        }
        *link = event->next;
        free(event);
    }
    if (own->other != NULL) {
        own->other->other = NULL;
        if (own->established && !fabric.lose_goodbyes && !is_cut(own->here, own->there))
            push(own->other, RDMA_CM_EVENT_DISCONNECTED, NULL);
    }
    connections--;
    free(own);
    return 0;
}

static struct nic *nic_at(const struct sockaddr *address)
{
    uint32_t place = ntohl(((const struct sockaddr_in *) (const void *) address)->sin_addr.s_addr);
    assert_int_equal(place >> 24, 10);
    return nics[(place >> 16) & 255][place & 255];
}

static int resolve_addr(struct rdma_cm_id *id, struct sockaddr *here, struct sockaddr *there, int milliseconds)
{
    struct connection *own = (struct connection *) (void *) id;
    assert_true(milliseconds > 0);
    assert_int_equal(((struct sockaddr_in *) (void *) there)->sin_port, htons(PORT));
    own->here = nic_at(here);
    own->there = nic_at(there);
    assert_int_equal(own->here->rank, own->rank);
    id->verbs = &own->here->verbs;
    push(own, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
    return 0;
}

static int resolve_route(struct rdma_cm_id *id, int milliseconds)
{
    (void) milliseconds;
    push((struct connection *) (void *) id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
    return 0;
}

void fabric_request(int rank, int rail, const unsigned char data[FABRIC_REQUEST])
{
    push(make_connection(rank, nics[rank][rail], NULL), RDMA_CM_EVENT_CONNECT_REQUEST, data);
}

static int connect_id(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
    struct connection *own = (struct connection *) (void *) id;
    assert_true(parameters->private_data_len <= sizeof(fabric.request));
    assert_non_null(id->qp);
    memset(fabric.request, 0, sizeof(fabric.request));
    memcpy(fabric.request, parameters->private_data, parameters->private_data_len);
    if (is_cut(own->here, own->there)) {
        if (!fabric.silent)
            push(own, RDMA_CM_EVENT_UNREACHABLE, NULL);
        return 0;
    }
    struct connection *other = make_connection(own->there->rank, own->there, NULL);
    other->there = own->here;
    other->other = own;
    own->other = other;
    push(other, RDMA_CM_EVENT_CONNECT_REQUEST, fabric.request);
    if (fabric.repeat_requests)
        fabric_request(own->there->rank, own->there->rail, fabric.request);
    return 0;
}

static int accept_id(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
    struct connection *own = (struct connection *) (void *) id, *other = own->other;
    (void) parameters;
    assert_non_null(id->qp);
    fabric.accepted++;
    if (other == NULL)
        return 0; /* the other side has given up */
    assert_non_null(other->id.qp);
    struct pair *here = (struct pair *) (void *) id->qp, *there = (struct pair *) (void *) other->id.qp;
    here->other = there;
    there->other = here;
    here->receives = 1;
    own->established = other->established = 1;
    push(own, RDMA_CM_EVENT_ESTABLISHED, NULL);
    push(other, RDMA_CM_EVENT_ESTABLISHED, NULL);
    return 0;
}

static int reject_id(struct rdma_cm_id *id, const void *data, uint8_t bytes)
{
    struct connection *own = (struct connection *) (void *) id;
    (void) data;
    (void) bytes;
    fabric.rejected++;
    if (own->other != NULL)
        push(own->other, RDMA_CM_EVENT_REJECTED, NULL);
    return 0;
}

static int set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes)
{
    (void) id;
    (void) level;
    (void) name;
    (void) value;
    (void) bytes;
    return 0;
}

static const char *event_str(enum rdma_cm_event_type type)
{
    return type == RDMA_CM_EVENT_REJECTED ? "rejected" : type == RDMA_CM_EVENT_UNREACHABLE ? "unreachable" : "another event";
}

static const char *wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR ? "retries exceeded" : "another error";
}

/* ---- the NICs' events ---- */

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **completions, void **context)
{
    (void) channel;
    (void) completions;
    (void) context;
    return -1;
}

static int get_async_event(struct ibv_context *verbs, struct ibv_async_event *event)
{
    struct nic *nic = nic_of(verbs);
    if (nic->notice_count == 0)
        return -1;
    *event = nic->notices[0];
    memmove(nic->notices, nic->notices + 1, (size_t) --nic->notice_count * sizeof(*event));
    return 0;
}

static void ack_async_event(struct ibv_async_event *event)
{
    (void) event;
}

static void notify(struct nic *nic, struct ibv_async_event event)
{
    assert_true(nic->notice_count < NOTICES);
    nic->notices[nic->notice_count++] = event;
}

void fabric_fail_receiver(int rank)
{
    for (struct pair *pair = pairs; pair != NULL; pair = pair->next)
        if (pair->nic->rank == rank && pair->receives && !pair->freed && !pair->failed && pair->other != NULL &&
            pair->other->nic->rank != rank) {
            struct ibv_async_event event = {.event_type = IBV_EVENT_QP_FATAL};
            event.element.qp = &pair->qp;
            pair->failed = 1;
            notify(pair->nic, event);
            fabric.broken++;
        }
}

void fabric_set_port(int rank, int rail, int up)
{
    struct ibv_async_event event = {.event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR};
    event.element.port_num = 1;
    fabric.cut[rank][rail] = !up;
    notify(nics[rank][rail], event);
}

/* ---- life ---- */

const struct rondo_rdma_library fabric_library = {
    .ibv_reg_mr = reg_mr,
    .ibv_dereg_mr = dereg_mr,
    .ibv_get_cq_event = get_cq_event,
    .ibv_get_async_event = get_async_event,
    .ibv_ack_async_event = ack_async_event,
    .ibv_wc_status_str = wc_status_str,
    .rdma_create_id = create_id,
    .rdma_destroy_id = destroy_id,
    .rdma_resolve_addr = resolve_addr,
    .rdma_resolve_route = resolve_route,
    .rdma_create_qp = create_qp,
    .rdma_destroy_qp = destroy_qp,
    .rdma_connect = connect_id,
    .rdma_accept = accept_id,
    .rdma_reject = reject_id,
    .rdma_get_cm_event = get_cm_event,
    .rdma_ack_cm_event = ack_cm_event,
    .rdma_set_option = set_option,
    .rdma_event_str = event_str,
};

void fabric_open(unsigned seed)
{
    memset(&fabric, 0, sizeof(fabric));
    memset(regions, 0, sizeof(regions));
    memset(events, 0, sizeof(events));
    pairs = NULL; /* what a test that has failed has left */
    connections = 0;
    state = seed;
    for (int rank = 0; rank < FABRIC_RANKS; rank++)
        for (int rail = 0; rail < FABRIC_RAILS; rail++) {
            struct nic *nic = nics[rank][rail] = calloc(1, sizeof(*nic));
            assert_non_null(nic);
            nic->rank = rank;
            nic->rail = rail;
            nic->verbs.ops.poll_cq = poll_cq;
            nic->verbs.ops.req_notify_cq = req_notify_cq;
            nic->verbs.ops.post_send = post_send;
            nic->completions.context = nic->domain.context = &nic->verbs;
        }
}

void fabric_close(void)
{
    while (pairs != NULL) {
        assert_true(pairs->freed);
        execute_left(pairs);
    }
    for (int rank = 0; rank < FABRIC_RANKS; rank++) {
        while (events[rank] != NULL) { /* connections that were requested and not looked at */
            struct event *event = events[rank];
            assert_int_equal(event->event.event, RDMA_CM_EVENT_CONNECT_REQUEST);
            destroy_id(event->event.id);
        }
        for (int rail = 0; rail < FABRIC_RAILS; rail++) {
            free(nics[rank][rail]);
        }
    }
    assert_int_equal(connections, 0);
    for (int i = 0; i < REGIONS; i++)
        assert_null(regions[i]);
}

void fabric_equip(struct rondo_rdma *rdma, int rank, int rails)
{
    rdma->library = &fabric_library;
    rdma->events = &channels[rank];
    rdma->rail_count = rails;
    rdma->token = 0x1234567800000000u + (uint64_t) rank;
    rdma->endpoint.token = rdma->token;
    rdma->endpoint.rails = (uint32_t) rails;
    rdma->endpoint.queues = (uint32_t) rdma->queues;
    for (int i = 0; i < rails; i++) {
        struct rondo_rdma_rail *rail = &rdma->rails[i];
        struct sockaddr_in *address = (struct sockaddr_in *) &rail->address;
        struct nic *nic = nics[rank][i];
        snprintf(rail->name, sizeof(rail->name), "nic%d%d", rank, i);
        rail->verbs = &nic->verbs;
        rail->domain = &nic->domain;
        rail->channel = &nic->channel;
        rail->completions = &nic->completions;
        rail->port = 1;
        address->sin_family = AF_INET;
        address->sin_port = htons(PORT);
        address->sin_addr.s_addr = htonl(10u << 24 | (uint32_t) rank << 16 | (uint32_t) i);
        rdma->endpoint.addresses[i].family = AF_INET;
        rdma->endpoint.addresses[i].port = address->sin_port;
        memcpy(rdma->endpoint.addresses[i].bytes, &address->sin_addr, sizeof(address->sin_addr));
    }
}
