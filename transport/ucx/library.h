/*
 * The functions of libucp that the ucx transport calls, found at run time: a program that stays on one host never loads UCX,
 * and one that was built with it runs where it is missing.
 */
#ifndef RONDO_TRANSPORT_UCX_LIBRARY_H
#define RONDO_TRANSPORT_UCX_LIBRARY_H

#include <ucp/api/ucp.h>

#define RONDO_UCX_FUNCTIONS(each)                                                                                              \
    each(ucp_config_read) each(ucp_config_modify) each(ucp_config_release) each(ucp_init_version) each(ucp_cleanup)            \
        each(ucp_context_query) each(ucp_worker_create) each(ucp_worker_destroy) each(ucp_worker_get_efd) each(ucp_worker_arm) \
            each(ucp_worker_progress) each(ucp_worker_get_address) each(ucp_worker_release_address)                            \
                each(ucp_worker_set_am_recv_handler) each(ucp_worker_flush_nbx) each(ucp_ep_create) each(ucp_ep_close_nbx)     \
                    each(ucp_am_send_nbx) each(ucp_am_recv_data_nbx) each(ucp_request_free) each(ucp_request_check_status)     \
                        each(ucs_status_string)

struct rondo_ucx_library {
#define RONDO_UCX_MEMBER(name) __typeof__(&name) name;
    RONDO_UCX_FUNCTIONS(RONDO_UCX_MEMBER)
#undef RONDO_UCX_MEMBER
};

/* NULL, with the reason in *why, if it is not there or too old. Never unloaded. */
const struct rondo_ucx_library *rondo_ucx_library(const char **why);

#endif
