/*
 * The functions of libibverbs and librdmacm that the rdma transport calls, found at run time: a program that needs no RDMA
 * never loads them, and one that was built with them runs where they are missing. What the headers define inline calls the
 * driver and needs none of this.
 */
#ifndef RONDO_TRANSPORT_RDMA_LIBRARY_H
#define RONDO_TRANSPORT_RDMA_LIBRARY_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* Macros around the functions of these names. */
#undef ibv_reg_mr
#undef ibv_query_port

#define RONDO_VERBS_FUNCTIONS(each)                                                                                            \
    each(ibv_alloc_pd) each(ibv_dealloc_pd) each(ibv_reg_mr) each(ibv_dereg_mr) each(ibv_create_comp_channel)                  \
        each(ibv_destroy_comp_channel) each(ibv_create_cq) each(ibv_destroy_cq) each(ibv_get_cq_event) each(ibv_ack_cq_events) \
            each(ibv_get_async_event) each(ibv_ack_async_event) each(ibv_wc_status_str) each(ibv_query_gid)

#define RONDO_RDMACM_FUNCTIONS(each)                                                                                           \
    each(rdma_create_event_channel) each(rdma_destroy_event_channel) each(rdma_create_id) each(rdma_destroy_id)                \
        each(rdma_bind_addr) each(rdma_listen) each(rdma_resolve_addr) each(rdma_resolve_route) each(rdma_create_qp)           \
            each(rdma_destroy_qp) each(rdma_connect) each(rdma_accept) each(rdma_reject) each(rdma_get_cm_event)               \
                each(rdma_ack_cm_event) each(rdma_set_option) each(rdma_event_str)

struct rondo_rdma_library {
#define RONDO_RDMA_MEMBER(name) __typeof__(&name) name;
    RONDO_VERBS_FUNCTIONS(RONDO_RDMA_MEMBER)
    RONDO_RDMACM_FUNCTIONS(RONDO_RDMA_MEMBER)
#undef RONDO_RDMA_MEMBER
    /* NULL: libibverbs is older than 1.12. Spelled out, for its header may be, too. */
    struct ibv_mr *(*ibv_reg_dmabuf_mr)(struct ibv_pd *domain, uint64_t offset, size_t bytes, uint64_t address, int descriptor,
                                        int access);
};

/* NULL, with the reason in *why, if they are not there or too old, or the kernel has no RDMA device. Never unloaded. */
const struct rondo_rdma_library *rondo_rdma_library(const char **why);

#endif
