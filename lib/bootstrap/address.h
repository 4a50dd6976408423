/*
 * Addresses at which ranks can meet: "host:port", or a Unix socket without a file; and the sockets made for them, which do
 * not block and are of this process alone (lib/bootstrap/process_socket.h). TCP connections have keepalive, so that a host that
 * vanishes is noticed within about 7 seconds. Relies on the system's resolver. Any thread may call any function here.
 */
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

enum { RONDO_ADDRESS_MOST = 8 };    /* of one name; further ones are not looked at */
enum { RONDO_ADDRESS_TEXT = 300 };  /* bytes of "host:port" as text, with the terminating zero */
enum { RONDO_ADDRESS_STORED = 24 }; /* bytes of an Internet address and port, as messages carry them */

/*
 * Splits "host:port" ("[host]:port" for IPv6) into two terminated texts. Where text has no port, *port becomes "" if
 * port_optional, else that is an error. RONDO_ERR_BOOTSTRAP with the reason if text is neither, or the port is not 1 to 65535;
 * it names the variable of the environment that text is from.
 */
rondo_result_t rondo_address_split(const char *variable, const char *text, int port_optional, char host[256], char port[16]);
/* Returns how many entries a list has, between commas; 1 for a text without one. */
int rondo_address_count(const char *list);
/* Copies an entry of a list, 0 to rondo_address_count - 1. Of one that is too long to be "host:port" it copies the beginning,
 * which rondo_address_split refuses. */
void rondo_address_entry(const char *list, int entry, char text[RONDO_ADDRESS_TEXT]);
/*
 * Stores the name's TCP addresses (at most RONDO_ADDRESS_MOST) and their number. RONDO_ERR_BOOTSTRAP if it has none; *again is
 * then 1 if the name service may answer otherwise later. Blocks for as long as the resolver's own configuration allows.
 */
rondo_result_t rondo_address_resolve(const char *variable, const char *host, const char *port, struct rondo_address *addresses,
                                     int *count, int *again);
/* Whether it is an address of 127.0.0.0/8, ::1, or the former mapped to IPv6. */
int rondo_address_is_loopback(const struct rondo_address *address);
/* Whether both are the same Internet address; ports may differ. */
int rondo_address_is_same_host(const struct rondo_address *a, const struct rondo_address *b);
/* Whether host is a numeric address, as against a name. */
int rondo_address_is_numeric(const char *host);
/* Stores an address of this host that other hosts can reach, or a loopback address if there is none. The port is 0. */
void rondo_address_of_host(struct rondo_address *address);
/* The same port on any interface. */
struct rondo_address rondo_address_any(const struct rondo_address *address);
/* Sets the port of an Internet address. */
void rondo_address_set_port(struct rondo_address *address, uint16_t port);
/* Returns the port of an Internet address; 0 for any other. */
uint16_t rondo_address_port(const struct rondo_address *address);
/* Stores an address, and reads it again: family as 4, 6, or 0 for none (4 bytes), port (4), address (16). What is stored of an
 * address that is not an Internet one is none, which has 0 bytes when it is read. */
void rondo_address_store(const struct rondo_address *address, unsigned char bytes[RONDO_ADDRESS_STORED]);
void rondo_address_load(struct rondo_address *address, const unsigned char bytes[RONDO_ADDRESS_STORED]);
/* Writes it as text, "host:port" without a name; "a Unix socket" for one. Returns text. */
const char *rondo_address_describe(const struct rondo_address *address, char *text, size_t bytes);

/* Stores the Unix socket of this name in the abstract namespace: it has no file and ends with the process. RONDO_ERR_INTERNAL
 * if the name does not fit into a socket address. */
rondo_result_t rondo_address_abstract(const char *name, struct rondo_address *address);

/* Returns a listening socket, or -1 with errno. The caller ends it by rondo_process_socket_close. */
int rondo_address_listen(const struct rondo_address *address);
/* Returns a socket that is connecting, or -1 with errno. The caller waits until it is writable, then asks
 * rondo_address_connected, and ends it by rondo_process_socket_close. */
int rondo_address_connect(const struct rondo_address *address);
/* Sends so few bytes that a fresh socket has room for them. Returns 0, or -1 with errno; then a part may have been sent. */
int rondo_address_send(int fd, const void *bytes, size_t count);
/* Returns 0, or the errno with which connecting has failed. */
int rondo_address_connected(int fd);
/* Sets the options of an accepted or connecting TCP socket: no delay, keepalive. Leaves a Unix socket as it is. */
void rondo_address_tune(int fd);
/* Returns 1 if the process at the other end of a Unix socket had the same effective user when it connected or began to listen.
 */
int rondo_address_same_user(int fd);
/* The same, or root, which may look into every process as it is. */
int rondo_address_same_user_or_root(int fd);
/* Returns the number of that process; 0: it is not known, as on other sockets. */
int rondo_address_process(int fd);

#endif
