/* See transport/memory/segment.h. A segment is a memfd sealed against resizing, so that no process can make another's mapping
 * fault; transport/memory/descriptor_passing.h passes it on. A process never maps its own segment again: it gets the maker's
 * struct, whose references are counted. */
#include "transport/memory/segment.h"

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/thread.h"
#include "transport/memory/descriptor_passing.h"
#include "lib/base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { IMPORT_MS = 10000 };

struct handle {
    unsigned char maker[RONDO_DESCRIPTOR_NAME];
    struct rondo_descriptor_passing_request request;
    uint64_t bytes;
};
_Static_assert(sizeof(struct handle) <= sizeof(struct rondo_segment_handle), "a handle must fit");
_Static_assert(sizeof(struct handle) <= sizeof(struct rondo_descriptor_offer), "a handle must fit");

/* What a struct rondo_segment that leaves this file is the first part of. */
struct known {
    struct rondo_segment segment;
    struct handle handle;
};

/* A segment of this process, or a descriptor on offer, which has no base. It lives while it is referred to: once by its maker
 * until that releases it or is destroyed, and once by each import in this process. */
struct made {
    struct known known;
    atomic_int references;
    int fd;
    struct made *next; /* in its maker's list, where it can be asked for */
};

struct import {
    struct known mapping; /* of another process's segment */
    struct made *made;    /* or one of this process, and then there is no mapping of its own */
    struct known *known;  /* one of the two */
    int count;
    struct import *next;
};

struct rondo_segments {
    struct rondo_descriptor_passing *passing;
    unsigned char name[RONDO_DESCRIPTOR_NAME];
    pthread_mutex_t mutex; /* guards the rest; never held while waiting */
    uint64_t made_count;
    struct made *made;
    struct import *imports;
};

static size_t page_bytes(void)
{
    return (size_t) sysconf(_SC_PAGESIZE);
}

/* Bytes of memory and swap together. The kernel maps larger memory files, and then ends a process that touches them. */
static uint64_t machine_memory(void)
{
    struct sysinfo about;
    if (sysinfo(&about) != 0)
        return UINT64_MAX;
    return ((uint64_t) about.totalram + about.totalswap) * about.mem_unit;
}

static void drop_reference(void *thing)
{
    struct made *made = thing;
    if (atomic_fetch_sub(&made->references, 1) > 1)
        return;
    if (made->known.segment.base != NULL)
        munmap(made->known.segment.base, made->known.segment.bytes);
    close(made->fd);
    free(made);
}

/* For descriptor passing, on the control thread. */
static void *find_made(void *argument, const struct rondo_descriptor_passing_request *request, uint64_t *bytes, int *fd)
{
    struct rondo_segments *segments = argument;
    pthread_mutex_lock(&segments->mutex);
    struct made *made = segments->made;
    while (made != NULL && made->known.segment.id != request->id)
        made = made->next;
    if (made != NULL && !rondo_sha256_equal(made->known.handle.request.key, request->key, RONDO_DESCRIPTOR_KEY))
        made = NULL;
    if (made != NULL) {
        atomic_fetch_add(&made->references, 1);
        *bytes = made->known.segment.bytes;
        *fd = made->fd;
    }
    pthread_mutex_unlock(&segments->mutex);
    return made;
}

rondo_result_t rondo_segments_create(struct rondo_segments **result, struct rondo_control *control)
{
    struct rondo_segments *segments = calloc(1, sizeof(*segments));
    if (segments == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for segments");
    pthread_mutex_init(&segments->mutex, NULL);
    struct rondo_descriptor_passing_owner owner = {segments, find_made, drop_reference};
    rondo_result_t status = rondo_descriptor_passing_create(&segments->passing, control, &owner, segments->name);
    if (status != RONDO_SUCCESS) {
        rondo_segments_destroy(segments);
        return status;
    }
    *result = segments;
    return RONDO_SUCCESS;
}

/* What others can ask for, once it is complete. */
static void publish(struct rondo_segments *segments, struct made *made, char *base, uint64_t bytes)
{
    struct handle *handle = &made->known.handle;
    atomic_init(&made->references, 1);
    memcpy(handle->maker, segments->name, sizeof(handle->maker));
    handle->bytes = bytes;
    pthread_mutex_lock(&segments->mutex);
    handle->request.id = ++segments->made_count;
    made->known.segment = (struct rondo_segment){base, bytes, handle->request.id};
    made->next = segments->made;
    segments->made = made;
    pthread_mutex_unlock(&segments->mutex);
}

rondo_result_t rondo_segment_allocate(struct rondo_segments *segments, size_t bytes, struct rondo_segment **segment)
{
    size_t page = page_bytes();
    if (bytes == 0 || bytes > PTRDIFF_MAX - page)
        return rondo_fail(RONDO_ERR_ARGUMENT, "a segment cannot have %zu bytes", bytes);
    uint64_t memory = machine_memory();
    if (bytes > memory)
        return rondo_fail(RONDO_ERR_MEMORY, "no shared memory of %zu bytes: memory and swap of this machine have %llu", bytes,
                          (unsigned long long) memory);
    struct made *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a segment");
    struct handle *handle = &made->known.handle;
    rondo_result_t status = rondo_random_bytes(handle->request.key, sizeof(handle->request.key));
    if (status != RONDO_SUCCESS) {
        free(made);
        return status;
    }
    size_t whole = (bytes + page - 1) / page * page;
    void *base = MAP_FAILED;
    made->fd = memfd_create("rondo", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = made->fd < 0 ? errno : rondo_file_resize(made->fd, (off_t) whole);
    if (error == 0 && fcntl(made->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, made->fd, 0);
    if (base == MAP_FAILED) {
        char reason[RONDO_FILE_REASON_BYTES];
        status = rondo_fail(RONDO_ERR_MEMORY, "no shared memory of %zu bytes: %s", whole,
                            rondo_file_reason(error == 0 ? errno : error, reason));
        if (made->fd >= 0)
            close(made->fd);
        free(made);
        return status;
    }
    publish(segments, made, base, whole);
    *segment = &made->known.segment;
    return RONDO_SUCCESS;
}

void rondo_segment_export(const struct rondo_segment *segment, struct rondo_segment_handle *handle)
{
    const struct known *known = (const struct known *) segment;
    memset(handle, 0, sizeof(*handle));
    memcpy(handle->bytes, &known->handle, sizeof(known->handle));
}

/* Maps what the descriptor holds, after making sure that it is what the handle says and cannot be made shorter. Takes fd. */
static rondo_result_t map(const struct handle *handle, int fd, struct rondo_segment *mapping)
{
    struct stat about;
    void *base = MAP_FAILED;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &about) != 0 || (uint64_t) about.st_size != handle->bytes) {
        close(fd);
        return rondo_fail(RONDO_ERR_TRANSPORT, "what was passed is not a segment of %llu bytes",
                          (unsigned long long) handle->bytes);
    }
    base = mmap(NULL, handle->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int error = errno;
    close(fd);
    if (base == MAP_FAILED)
        return rondo_fail(RONDO_ERR_MEMORY, "cannot map a segment of %llu bytes: %s", (unsigned long long) handle->bytes,
                          strerror(error));
    *mapping = (struct rondo_segment){base, handle->bytes, handle->request.id};
    return RONDO_SUCCESS;
}

static rondo_result_t fetch(const struct handle *handle, struct import *import)
{
    void *thing;
    int fd;
    rondo_result_t result = rondo_descriptor_passing_ask(handle->maker, &handle->request, IMPORT_MS, &fd, &thing);
    if (result != RONDO_SUCCESS)
        return result;
    import->made = thing;
    import->known = thing != NULL ? &import->made->known : &import->mapping;
    import->mapping.handle = *handle;
    if (thing == NULL)
        return map(handle, fd, &import->mapping.segment);
    if (import->made->known.handle.bytes == handle->bytes && import->made->known.segment.base != NULL)
        return RONDO_SUCCESS;
    drop_reference(thing);
    return rondo_fail(RONDO_ERR_TRANSPORT, "a handle says %llu bytes of what has other, or is no segment",
                      (unsigned long long) handle->bytes);
}

static void drop_import(struct import *import)
{
    if (import->made != NULL)
        drop_reference(import->made);
    else
        munmap(import->mapping.segment.base, import->mapping.segment.bytes);
    free(import);
}

/* An import of the same segment, counted once more. The mutex is held. */
static struct import *find_import(struct rondo_segments *segments, const struct handle *handle)
{
    for (struct import *import = segments->imports; import != NULL; import = import->next)
        if (import->known->handle.request.id == handle->request.id &&
            memcmp(import->known->handle.maker, handle->maker, sizeof(handle->maker)) == 0) {
            import->count++;
            return import;
        }
    return NULL;
}

rondo_result_t rondo_segment_import(struct rondo_segments *segments, const struct rondo_segment_handle *handle,
                                    struct rondo_segment **segment)
{
    struct handle wanted;
    memcpy(&wanted, handle->bytes, sizeof(wanted));
    if (wanted.bytes == 0 || wanted.bytes % page_bytes() != 0 || wanted.bytes > PTRDIFF_MAX)
        return rondo_fail(RONDO_ERR_TRANSPORT, "not a segment's handle");
    pthread_mutex_lock(&segments->mutex);
    struct import *import = find_import(segments, &wanted);
    pthread_mutex_unlock(&segments->mutex);
    if (import != NULL) {
        *segment = &import->known->segment;
        return RONDO_SUCCESS;
    }
    struct import *fetched = calloc(1, sizeof(*fetched));
    if (fetched == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for an imported segment");
    fetched->count = 1;
    rondo_result_t result = fetch(&wanted, fetched);
    if (result != RONDO_SUCCESS) {
        free(fetched);
        return result;
    }
    pthread_mutex_lock(&segments->mutex);
    /* Another thread may have imported it meanwhile. */
    import = find_import(segments, &wanted);
    if (import == NULL) {
        fetched->next = segments->imports;
        segments->imports = fetched;
    }
    pthread_mutex_unlock(&segments->mutex);
    *segment = import != NULL ? &import->known->segment : &fetched->known->segment;
    if (import != NULL)
        drop_import(fetched);
    return RONDO_SUCCESS;
}

void rondo_segment_release(struct rondo_segments *segments, struct rondo_segment *segment)
{
    struct import *dropped = NULL;
    struct made *made = NULL;
    if (segment == NULL)
        return;
    pthread_mutex_lock(&segments->mutex);
    struct import **import = &segments->imports;
    while (*import != NULL && &(*import)->known->segment != segment)
        import = &(*import)->next;
    if (*import != NULL) {
        if (--(*import)->count == 0) {
            dropped = *import;
            *import = dropped->next;
        }
    } else {
        struct made **own = &segments->made;
        while (*own != NULL && &(*own)->known.segment != segment)
            own = &(*own)->next;
        if (*own != NULL) {
            made = *own;
            *own = made->next;
        }
    }
    pthread_mutex_unlock(&segments->mutex);
    if (dropped != NULL)
        drop_import(dropped);
    if (made != NULL)
        drop_reference(made);
}

rondo_result_t rondo_descriptor_offer_make(struct rondo_segments *segments, int fd, uint64_t bytes,
                                           struct rondo_descriptor_offer *offer)
{
    struct made *made = calloc(1, sizeof(*made));
    rondo_result_t status = RONDO_SUCCESS;
    if (made == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory to offer a descriptor");
    else
        status = rondo_random_bytes(made->known.handle.request.key, sizeof(made->known.handle.request.key));
    if (status != RONDO_SUCCESS) {
        free(made);
        close(fd);
        return status;
    }
    made->fd = fd;
    publish(segments, made, NULL, bytes);
    memset(offer, 0, sizeof(*offer));
    memcpy(offer->bytes, &made->known.handle, sizeof(made->known.handle));
    return RONDO_SUCCESS;
}

void rondo_descriptor_offer_withdraw(struct rondo_segments *segments, const struct rondo_descriptor_offer *offer)
{
    struct made *made = NULL;
    pthread_mutex_lock(&segments->mutex);
    for (struct made **link = &segments->made; *link != NULL && made == NULL; link = &(*link)->next)
        if ((*link)->known.segment.base == NULL && memcmp(&(*link)->known.handle, offer->bytes, sizeof(struct handle)) == 0) {
            made = *link;
            *link = made->next;
            break;
        }
    pthread_mutex_unlock(&segments->mutex);
    if (made != NULL)
        drop_reference(made);
}

rondo_result_t rondo_descriptor_offer_take(const struct rondo_descriptor_offer *offer, int *fd)
{
    struct handle handle;
    void *thing;
    memcpy(&handle, offer->bytes, sizeof(handle));
    rondo_result_t result = rondo_descriptor_passing_ask(handle.maker, &handle.request, IMPORT_MS, fd, &thing);
    if (result != RONDO_SUCCESS || thing == NULL)
        return result;
    *fd = fcntl(((struct made *) thing)->fd, F_DUPFD_CLOEXEC, 0);
    if (*fd < 0)
        result = rondo_fail(RONDO_ERR_SYSTEM, "cannot duplicate a descriptor: %s", strerror(errno));
    drop_reference(thing);
    return result;
}

void rondo_segments_destroy(struct rondo_segments *segments)
{
    if (segments == NULL)
        return;
    rondo_descriptor_passing_destroy(segments->passing);
    while (segments->imports != NULL) {
        struct import *import = segments->imports;
        segments->imports = import->next;
        drop_import(import);
    }
    while (segments->made != NULL) {
        struct made *made = segments->made;
        segments->made = made->next;
        drop_reference(made);
    }
    pthread_mutex_destroy(&segments->mutex);
    free(segments);
}
