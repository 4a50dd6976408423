/* See lib/bootstrap/address.h. Relies on Linux: abstract Unix sockets, SO_PEERCRED, TCP_USER_TIMEOUT. */
#include "lib/bootstrap/address.h"

#include "lib/base/error.h"
#include "lib/bootstrap/frame_connection.h"
#include "lib/bootstrap/process_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

int rondo_address_count(const char *list)
{
    int count = 1;
    for (const char *at = list; (at = strchr(at, ',')) != NULL; at++)
        count++;
    return count;
}

void rondo_address_entry(const char *list, int entry, char text[RONDO_ADDRESS_TEXT])
{
    while (entry-- > 0)
        list = strchr(list, ',') + 1;
    snprintf(text, RONDO_ADDRESS_TEXT, "%.*s", (int) strcspn(list, ","), list);
}

rondo_result_t rondo_address_split(const char *variable, const char *text, int port_optional, char host[256], char port[16])
{
    const char *begin = text, *end, *colon;
    if (*text == '[') {
        begin = text + 1;
        end = strchr(text, ']');
        if (end == NULL || (end[1] != ':' && end[1] != '\0'))
            return rondo_fail(RONDO_ERR_BOOTSTRAP, "%s=\"%s\" is not host:port", variable, text);
        colon = end[1] == ':' ? end + 1 : NULL;
    } else {
        colon = strchr(text, ':');
        if (colon != NULL && strchr(colon + 1, ':') != NULL)
            return rondo_fail(RONDO_ERR_BOOTSTRAP, "%s=\"%s\": an IPv6 address needs brackets, [address]:port", variable, text);
        end = colon != NULL ? colon : text + strlen(text);
    }
    size_t length = (size_t) (end - begin);
    if (length == 0 || length > 255 || (colon == NULL && !port_optional))
        return rondo_fail(RONDO_ERR_BOOTSTRAP, "%s=\"%s\" is not host:port", variable, text);
    memcpy(host, begin, length);
    host[length] = '\0';
    *port = '\0';
    if (colon == NULL)
        return RONDO_SUCCESS;
    unsigned value = 0;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 5 || colon[1 + digits] != '\0' || sscanf(colon + 1, "%5u", &value) != 1 || value == 0 ||
        value > 65535)
        return rondo_fail(RONDO_ERR_BOOTSTRAP, "%s=\"%s\": the port must be 1 to 65535", variable, text);
    snprintf(port, 16, "%u", value);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_address_resolve(const char *variable, const char *host, const char *port, struct rondo_address *addresses,
                                     int *count, int *again)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    int error = getaddrinfo(host, port, &hints, &found);
    *count = 0;
    *again = error == EAI_AGAIN;
    if (error != 0)
        return rondo_fail(RONDO_ERR_BOOTSTRAP, "the host \"%s\" of %s does not resolve: %s", host, variable,
                          error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    for (struct addrinfo *one = found; one != NULL && *count < RONDO_ADDRESS_MOST; one = one->ai_next) {
        if ((one->ai_family != AF_INET && one->ai_family != AF_INET6) || one->ai_addrlen > sizeof(addresses->storage))
            continue;
        struct rondo_address *address = &addresses[(*count)++];
        memset(address, 0, sizeof(*address));
        memcpy(&address->storage, one->ai_addr, one->ai_addrlen);
        address->bytes = one->ai_addrlen;
    }
    freeaddrinfo(found);
    if (*count == 0)
        return rondo_fail(RONDO_ERR_BOOTSTRAP, "the host \"%s\" of %s has no IP address", host, variable);
    return RONDO_SUCCESS;
}

int rondo_address_is_loopback(const struct rondo_address *address)
{
    if (address->storage.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *) &address->storage;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->storage.ss_family != AF_INET6)
        return 0;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *) &address->storage)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

int rondo_address_is_same_host(const struct rondo_address *a, const struct rondo_address *b)
{
    if (a->storage.ss_family != b->storage.ss_family)
        return 0;
    if (a->storage.ss_family == AF_INET)
        return ((const struct sockaddr_in *) &a->storage)->sin_addr.s_addr ==
               ((const struct sockaddr_in *) &b->storage)->sin_addr.s_addr;
    return a->storage.ss_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *) &a->storage)->sin6_addr,
                  &((const struct sockaddr_in6 *) &b->storage)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

int rondo_address_is_numeric(const char *host)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found = NULL;
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return 0;
    freeaddrinfo(found);
    return 1;
}

struct rondo_address rondo_address_any(const struct rondo_address *address)
{
    struct rondo_address any = *address;
    if (any.storage.ss_family == AF_INET)
        ((struct sockaddr_in *) &any.storage)->sin_addr.s_addr = htonl(INADDR_ANY);
    else
        ((struct sockaddr_in6 *) &any.storage)->sin6_addr = in6addr_any;
    return any;
}

void rondo_address_set_port(struct rondo_address *address, uint16_t port)
{
    if (address->storage.ss_family == AF_INET)
        ((struct sockaddr_in *) &address->storage)->sin_port = htons(port);
    else if (address->storage.ss_family == AF_INET6)
        ((struct sockaddr_in6 *) &address->storage)->sin6_port = htons(port);
}

uint16_t rondo_address_port(const struct rondo_address *address)
{
    if (address->bytes > 0 && address->storage.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *) &address->storage)->sin_port);
    if (address->bytes > 0 && address->storage.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *) &address->storage)->sin6_port);
    return 0;
}

enum { STORED_PORT = 4, STORED_ADDRESS = 8 }; /* offsets */

void rondo_address_store(const struct rondo_address *address, unsigned char bytes[RONDO_ADDRESS_STORED])
{
    memset(bytes, 0, RONDO_ADDRESS_STORED);
    if (address->bytes == 0)
        return;
    rondo_frame_store32(bytes + STORED_PORT, rondo_address_port(address));
    if (address->storage.ss_family == AF_INET) {
        rondo_frame_store32(bytes, 4);
        memcpy(bytes + STORED_ADDRESS, &((const struct sockaddr_in *) &address->storage)->sin_addr, 4);
    } else if (address->storage.ss_family == AF_INET6) {
        rondo_frame_store32(bytes, 6);
        memcpy(bytes + STORED_ADDRESS, &((const struct sockaddr_in6 *) &address->storage)->sin6_addr, 16);
    }
}

void rondo_address_load(struct rondo_address *address, const unsigned char bytes[RONDO_ADDRESS_STORED])
{
    const uint32_t family = rondo_frame_load32(bytes);
    memset(address, 0, sizeof(*address));
    if (family == 4) {
        struct sockaddr_in *v4 = (struct sockaddr_in *) &address->storage;
        v4->sin_family = AF_INET;
        memcpy(&v4->sin_addr, bytes + STORED_ADDRESS, 4);
        address->bytes = sizeof(*v4);
    } else if (family == 6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) &address->storage;
        v6->sin6_family = AF_INET6;
        memcpy(&v6->sin6_addr, bytes + STORED_ADDRESS, 16);
        address->bytes = sizeof(*v6);
    }
    rondo_address_set_port(address, (uint16_t) rondo_frame_load32(bytes + STORED_PORT));
}

const char *rondo_address_describe(const struct rondo_address *address, char *text, size_t bytes)
{
    char host[INET6_ADDRSTRLEN] = "?";
    const int is_v6 = address->storage.ss_family == AF_INET6;
    if (rondo_address_port(address) == 0) {
        snprintf(text, bytes, "a Unix socket");
        return text;
    }
    inet_ntop(is_v6 ? AF_INET6 : AF_INET,
              is_v6 ? (const void *) &((const struct sockaddr_in6 *) &address->storage)->sin6_addr
                    : (const void *) &((const struct sockaddr_in *) &address->storage)->sin_addr,
              host, sizeof(host));
    snprintf(text, bytes, is_v6 ? "[%s]:%u" : "%s:%u", host, rondo_address_port(address));
    return text;
}

/* Stores the source address of a datagram to a host far away, which is that of the default route. No datagram is sent. Returns
 * 0 if there is no such route. */
static int routed(const char *far_away, struct rondo_address *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    int is_v4 = inet_pton(AF_INET, far_away, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, far_away, &v6.sin6_addr) != 1)
        return 0;
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    int connected =
        is_v4 ? connect(fd, (const struct sockaddr *) &v4, sizeof(v4)) : connect(fd, (const struct sockaddr *) &v6, sizeof(v6));
    address->bytes = sizeof(address->storage);
    int known = connected == 0 && getsockname(fd, (struct sockaddr *) &address->storage, &address->bytes) == 0;
    close(fd);
    return known;
}

/* Stores the IPv4 address of an interface that is up and not loopback. Returns 0 if there is none. */
static int any_interface(struct rondo_address *address)
{
    struct ifaddrs *interfaces, *one;
    if (getifaddrs(&interfaces) != 0)
        return 0;
    for (one = interfaces; one != NULL; one = one->ifa_next)
        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET && (one->ifa_flags & IFF_UP) != 0 &&
            (one->ifa_flags & IFF_LOOPBACK) == 0)
            break;
    if (one != NULL) {
        address->bytes = sizeof(struct sockaddr_in);
        memcpy(&address->storage, one->ifa_addr, address->bytes);
    }
    freeifaddrs(interfaces);
    return one != NULL;
}

void rondo_address_of_host(struct rondo_address *address)
{
    memset(address, 0, sizeof(*address));
    /* Addresses set aside for documentation (RFC 5737, 3849) belong to no network, so the default route leads there. */
    if (!routed("192.0.2.1", address) && !any_interface(address) && !routed("2001:db8::1", address)) {
        struct sockaddr_in *loopback = (struct sockaddr_in *) &address->storage;
        loopback->sin_family = AF_INET;
        loopback->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address->bytes = sizeof(*loopback);
    }
    if (address->storage.ss_family == AF_INET)
        ((struct sockaddr_in *) &address->storage)->sin_port = 0;
    else
        ((struct sockaddr_in6 *) &address->storage)->sin6_port = 0;
}

rondo_result_t rondo_address_abstract(const char *name, struct rondo_address *address)
{
    struct sockaddr_un *unix_address = (struct sockaddr_un *) &address->storage;
    size_t length = strlen(name);
    if (length + 1 > sizeof(unix_address->sun_path))
        return rondo_fail(RONDO_ERR_INTERNAL, "a Unix socket's name has %zu bytes, more than fit", length);
    memset(address, 0, sizeof(*address));
    unix_address->sun_family = AF_UNIX;
    memcpy(unix_address->sun_path + 1, name, length);
    address->bytes = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return RONDO_SUCCESS;
}

int rondo_address_listen(const struct rondo_address *address)
{
    int on = 1;
    int fd = rondo_process_socket(address->storage.ss_family, SOCK_STREAM);
    if (fd < 0)
        return -1;
    if (address->storage.ss_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    /* So that both families can listen on one port. */
    if (address->storage.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *) &address->storage, address->bytes) != 0 || listen(fd, 4096) != 0) {
        rondo_process_socket_close(fd);
        return -1;
    }
    return fd;
}

int rondo_address_connect(const struct rondo_address *address)
{
    int fd = rondo_process_socket(address->storage.ss_family, SOCK_STREAM);
    if (fd < 0)
        return -1;
    rondo_address_tune(fd);
    if (connect(fd, (const struct sockaddr *) &address->storage, address->bytes) != 0 && errno != EINPROGRESS) {
        rondo_process_socket_close(fd);
        return -1;
    }
    return fd;
}

int rondo_address_send(int fd, const void *bytes, size_t count)
{
    const char *from = bytes;
    while (count > 0) {
        ssize_t sent = send(fd, from, count, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        from += sent;
        count -= (size_t) sent;
    }
    return 0;
}

int rondo_address_connected(int fd)
{
    int error = 0;
    socklen_t bytes = sizeof(error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
        return errno;
    return error;
}

void rondo_address_tune(int fd)
{
    int on = 1, idle = 3, interval = 1, probes = 4, unanswered_ms = 7000, domain = AF_UNIX;
    socklen_t bytes = sizeof(domain);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0 || domain == AF_UNIX)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof(unanswered_ms));
    /* Soon after a link carries again: doubled intervals may be longer than a rank may be silent. */
    setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof(on));
}

/* Of the other end of a Unix socket. Returns 0 if it is not known. */
static int credentials_of_peer(int fd, struct ucred *peer)
{
    socklen_t bytes = sizeof(*peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &bytes) == 0;
}

int rondo_address_same_user(int fd)
{
    struct ucred peer;
    return credentials_of_peer(fd, &peer) && peer.uid == geteuid();
}

int rondo_address_same_user_or_root(int fd)
{
    struct ucred peer;
    return credentials_of_peer(fd, &peer) && (peer.uid == geteuid() || peer.uid == 0);
}

int rondo_address_process(int fd)
{
    struct ucred peer;
    return credentials_of_peer(fd, &peer) && peer.pid > 0 ? peer.pid : 0;
}
