/* See test/injection/steps.h. */
#include "test/injection/steps.h"

#include "test/injection/buffers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Thread_local struct steps steps;

void step_begin(const char *what)
{
    snprintf(steps.record->step, sizeof(steps.record->step), "%.*s", (int) sizeof(steps.record->step) - 1, what);
}

int step_end(rondo_comm_t comm, rondo_result_t result)
{
    steps.record->steps++;
    if (result == RONDO_SUCCESS)
        return 1;
    if (steps.record->failed_step == 0) {
        steps.record->failed_step = steps.record->steps;
        steps.record->code = result;
        snprintf(steps.record->message, sizeof(steps.record->message), "%.299s", rondo_last_error());
        memcpy(steps.record->failed_call, steps.record->step, sizeof(steps.record->failed_call));
        steps.failed_comm = comm;
    }
    return 0;
}

void step_wrong(const char *format, ...)
{
    if (steps.record->wrong[0] != '\0')
        return;
    va_list values;
    va_start(values, format);
    int at = snprintf(steps.record->wrong, sizeof(steps.record->wrong), "after %.90s: ", steps.record->step);
    vsnprintf(steps.record->wrong + at, sizeof(steps.record->wrong) - (size_t) at, format, values);
    va_end(values);
}

void expect_copied(const char *error)
{
    if (error != NULL)
        step_wrong("a copy of the test: %s", error);
}

void fill(int32_t *buffer, size_t count)
{
    int32_t *image = buffers_image();
    for (size_t i = 0; i < count; i++)
        image[i] = 1000 * steps.rank + (int32_t) i;
    expect_copied(buffers_put(buffer, image, count * sizeof(*image)));
}

void expect(const int32_t *buffer, size_t count, int32_t scale, int32_t offset)
{
    int32_t *image = buffers_image();
    expect_copied(buffers_get(image, buffer, count * sizeof(*image)));
    for (size_t i = 0; i < count; i++)
        if (image[i] != scale * (int32_t) i + offset) {
            step_wrong("element %zu of %zu is %d, not %d", i, count, (int) image[i], (int) (scale * (int32_t) i + offset));
            return;
        }
}

void allreduce(rondo_comm_t comm, size_t count)
{
    fill(in, count);
    TRY(comm, rondo_allreduce(in, out, count, RONDO_INT32, RONDO_SUM, comm));
    expect(out, count, 3, 3000);
}
