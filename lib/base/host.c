/* See lib/base/host.h. Where /proc does not tell, the host name stands for the boot id and 0 for a namespace. */
#include "lib/base/host.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void append(char *text, size_t bytes, const char *more)
{
    size_t at = strlen(text);
    if (at + 1 < bytes)
        snprintf(text + at, bytes - at, "%s", more);
}

/* A name of more than NAME_MOST bytes is cut and made distinct again by its hash, so that what follows has room. */
static void append_name(char *text, size_t bytes, const char *name)
{
    enum { NAME_MOST = 40, RETAINED = 8, HASHED = 16 };
    char part[RETAINED + 2 * HASHED + 1];
    unsigned char digest[RONDO_SHA256_BYTES];
    struct rondo_sha256 hash;
    if (strlen(name) <= NAME_MOST) {
        append(text, bytes, name);
        return;
    }
    rondo_sha256_begin(&hash);
    rondo_sha256_add(&hash, name, strlen(name));
    rondo_sha256_end(&hash, digest);
    int at = snprintf(part, sizeof(part), "%.*s", RETAINED, name);
    rondo_hexadecimal(part + at, digest, HASHED);
    append(text, bytes, part);
}

/* Reads the boot id. Returns its length; 0 if the system has none, and -1 if it cannot be read now. */
static ssize_t read_boot_id(char *text, size_t bytes)
{
    const ssize_t got = rondo_file_read("/proc/sys/kernel/random/boot_id", text, bytes);
    if (got >= 0)
        return got;
    return got == -EMFILE || got == -ENFILE || got == -ENOMEM ? -1 : 0;
}

rondo_result_t rondo_host_id(const char *override, char *text, size_t bytes)
{
    static const char *const namespaces[] = {"/proc/self/ns/net", "/proc/self/ns/pid", "/proc/self/ns/user"};
    char part[300] = "";
    if (bytes == 0)
        return RONDO_SUCCESS;
    *text = '\0';
    if (override == NULL || *override == '\0')
        rondo_environment_text("RONDO_HOSTID", &override);
    if (override != NULL && *override != '\0') {
        append_name(text, bytes, override);
        append(text, bytes, "@");
    }
    ssize_t got = read_boot_id(part, sizeof(part) - 1);
    if (got < 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "this host's boot id cannot be read: %s", strerror(errno));
    if (got > 0)
        part[strcspn(part, "\n")] = '\0';
    else if (gethostname(part, sizeof(part) - 1) != 0)
        snprintf(part, sizeof(part), "unknown");
    append(text, bytes, part);
    for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
        struct stat about;
        unsigned long long number = stat(namespaces[i], &about) == 0 ? about.st_ino : 0;
        snprintf(part, sizeof(part), "-%llu", number);
        append(text, bytes, part);
    }
    snprintf(part, sizeof(part), "-%lu", (unsigned long) geteuid());
    append(text, bytes, part);
    return RONDO_SUCCESS;
}
