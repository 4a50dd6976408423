/* The reader of `rondo trace`: any file is refused with a message or becomes operations and visits that are in order and in
 * bounds. */
#include "tools/common/options.h"
#include "tools/trace/trace.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char refusal[512];

/* In place of the tool's, which prints. */
int options_refuse(const char *verb, const char *format, ...)
{
    va_list arguments;
    (void) verb;
    va_start(arguments, format);
    vsnprintf(refusal, sizeof(refusal), format, arguments);
    va_end(arguments);
    return EXIT_USAGE;
}

static void judge(const struct trace *trace)
{
    uint64_t visits = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_operation *o = &trace->operations[i];
        visits += o->visits;
        if (o->rank < 0 || o->rank >= trace->ranks || (i > 0 && o->rank < o[-1].rank) || o->switches > o->visits ||
            memchr(o->text, '\0', sizeof(o->text)) == NULL)
            abort();
    }
    for (size_t i = 0; i < trace->visit_count; i++)
        if (trace->visits[i].rank < 0 || trace->visits[i].rank >= trace->ranks)
            abort();
    if (trace->count == 0 || visits < trace->visit_count || trace->first > trace->last)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct trace trace;
    char path[64];
    int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t) bytes)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    refusal[0] = '\0';
    if (trace_load(path, &trace) == 0) {
        judge(&trace);
        trace_free(&trace);
    } else if (refusal[0] == '\0') {
        abort();
    }
    close(fd);
    return 0;
}
