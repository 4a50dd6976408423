/* See udmabuf.h. */
#include "udmabuf.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE "/dev/udmabuf"

/* The dma-buf of the whole file; -1 with errno. */
static int make(int file, size_t bytes)
{
    int device = open(DEVICE, O_RDWR | O_CLOEXEC);
    if (device < 0)
        return -1;
    struct udmabuf_create wish = {.memfd = (uint32_t) file, .flags = UDMABUF_FLAGS_CLOEXEC, .offset = 0, .size = bytes};
    int descriptor = ioctl(device, UDMABUF_CREATE, &wish), error = errno;
    close(device);
    errno = error;
    return descriptor;
}

rondo_result_t rondo_udmabuf_allocate(size_t bytes, char **base, size_t *whole, int *descriptor)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    rondo_result_t result = RONDO_SUCCESS;
    *base = NULL;
    *whole = (bytes + page - 1) & ~(page - 1);
    int file = memfd_create("rondo slots", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0 || ftruncate(file, (off_t) *whole) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        result = rondo_fail(RONDO_ERR_SYSTEM, "no memory file of %zu bytes: %s", *whole, strerror(errno));
    } else if ((*descriptor = make(file, *whole)) < 0) {
        result = rondo_fail(RONDO_ERR_TRANSPORT, "no dma-buf of %zu bytes of the host's memory: %s: %s", *whole, DEVICE,
                            strerror(errno));
    } else {
        void *mapped = mmap(NULL, *whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED)
            *base = mapped;
        else {
            result = rondo_fail(RONDO_ERR_MEMORY, "no room for %zu bytes of network slots: %s", *whole, strerror(errno));
            close(*descriptor);
        }
    }
    if (file >= 0)
        close(file);
    return result;
}

void rondo_udmabuf_release(char *base, size_t whole)
{
    munmap(base, whole);
}
