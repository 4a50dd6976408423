/* The addresses of a meeting point, "host:port" or a Unix socket without a file, and the sockets made for them: non-blocking,
 * closed on exec, TCP connections with keepalive so that a host that vanishes is noticed within about 7 seconds. */
#ifndef RONDO_LIB_BOOTSTRAP_ADDRESS_H
#define RONDO_LIB_BOOTSTRAP_ADDRESS_H

#include "rondo.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct rondo_address {
    struct sockaddr_storage storage;
    socklen_t bytes;
};

enum { RONDO_ADDRESS_MOST = 8 }; /* of one name; further ones are not looked at */

/* Splits "host:port" ("[host]:port" for IPv6). text without a port: *port is "" if port_optional, else an error. */
rondo_result_t rondo_address_split(const char *text, int port_optional, char host[256], char port[16]);
/* The name's TCP addresses. RONDO_ERR_BOOTSTRAP if it has none; *again is then 1 if the name service may know better later. How
 * long this takes is bounded by the resolver's own configuration. */
rondo_result_t rondo_address_resolve(const char *host, const char *port, struct rondo_address *addresses, int *count,
                                     int *again);
int rondo_address_is_loopback(const struct rondo_address *address);
/* Whether host is digits, as against a name. */
int rondo_address_is_numeric(const char *host);
/* An address of this host that other hosts can reach, or loopback if there is none; port 0. */
void rondo_address_of_host(struct rondo_address *address);
/* The address with all bits of its host part cleared: any interface. */
struct rondo_address rondo_address_any(const struct rondo_address *address);

/* The Unix socket of this name in the abstract namespace, which ends with the process. */
rondo_result_t rondo_address_abstract(const char *name, struct rondo_address *address);

/* A listening socket, or -1 with errno. */
int rondo_address_listen(const struct rondo_address *address);
/* A connecting socket (wait for writability, then ask rondo_address_connected), or -1 with errno. */
int rondo_address_connect(const struct rondo_address *address);
/* 0, or the errno with which connecting has failed. */
int rondo_address_connected(int fd);
/* What an accepted or connected TCP socket needs; nothing for a Unix one. */
void rondo_address_tune(int fd);
/* 1 if the other end of a Unix socket is a process of the same user. */
int rondo_address_same_user(int fd);

#endif
