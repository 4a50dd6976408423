/* See lib/base/host.h. Where /proc does not tell, the host name stands for the boot id and 0 for a namespace. */
#include "lib/base/host.h"

#include "lib/base/environment.h"

#include <fcntl.h>
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

void rondo_host_id(const char *override, char *text, size_t bytes)
{
    static const char *const namespaces[] = {"/proc/self/ns/net", "/proc/self/ns/pid", "/proc/self/ns/user"};
    char part[300] = "";
    if (bytes == 0)
        return;
    *text = '\0';
    if (override == NULL || *override == '\0')
        rondo_environment_text("RONDO_HOSTID", &override);
    if (override != NULL && *override != '\0') {
        append(text, bytes, override);
        append(text, bytes, "@");
    }
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, part, sizeof(part) - 1) : -1;
    if (fd >= 0)
        close(fd);
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
}
