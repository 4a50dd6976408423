/* Parameters (ncclParam*): the library's environment variables, as rondo_environment_describe lists them, and NCCL_DEBUG and
 * NCCL_DEBUG_FILE, which the drop-in reads. A value is what the environment has, else the default. A handle is the address of a
 * table's entry, so that no foreign one is followed. */
#include "compat/nccl/shim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS_MAX 256
#define VALUE_BYTES    4096

static struct ncclParamHandle {
    const char *name, *fallback;
} parameters[PARAMETERS_MAX];
static const char *keys[PARAMETERS_MAX];
static int count;

static void list(void)
{
    const rondo_variable_t *variable;
    static const struct ncclParamHandle own[] = {{"NCCL_DEBUG", ""}, {"NCCL_DEBUG_FILE", ""}};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        parameters[count++] = own[i];
    for (int i = 0; count < PARAMETERS_MAX && (variable = rondo_environment_describe(i)) != NULL; i++)
        parameters[count++] = (struct ncclParamHandle){variable->name, variable->fallback};
    for (int i = 0; i < count; i++)
        keys[i] = parameters[i].name;
}

static void list_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, list);
}

static ncclParamHandle_t find(const char *key)
{
    list_once();
    for (int i = 0; i < count; i++)
        if (strcmp(parameters[i].name, key) == 0)
            return &parameters[i];
    return NULL;
}

/* NULL: it is no handle. */
static const char *value_of(ncclParamHandle_t handle)
{
    list_once();
    for (int i = 0; i < count; i++)
        if (handle == &parameters[i]) {
            const char *text = getenv(handle->name);
            return text != NULL && *text != '\0' ? text : handle->fallback;
        }
    return NULL;
}

static ncclResult_t read_value(ncclParamHandle_t handle, const void *out, const char *function, const char **value)
{
    *value = NULL;
    if (out == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: out is NULL", function);
    *value = value_of(handle);
    if (*value == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %p is no parameter's handle (ncclParamBind)", function,
                               (void *) handle);
    return ncclSuccess;
}

/* Decimal digits, and the K, M or G of a size. least, most: of the type asked for; most is 0 where that is uint64_t's. */
static ncclResult_t read_number(ncclParamHandle_t handle, const void *out, int64_t least, uint64_t most, const char *function,
                                uint64_t *number)
{
    const char *text;
    char *end;
    ncclResult_t result = read_value(handle, out, function, &text);
    if (result != ncclSuccess)
        return result;
    const int negative = *text == '-';
    const char *digits = text + negative;
    errno = 0;
    end = (char *) (uintptr_t) text;
    *number = 0;
    if (*digits >= '0' && *digits <= '9')
        *number = strtoull(digits, &end, 10);
    const char *units = "KMG", *unit = *end != '\0' ? strchr(units, *end) : NULL;
    int shift = unit != NULL && end != text ? 10 * (int) (unit - units + 1) : 0;
    if (shift > 0)
        end++;
    if (end == text || *end != '\0')
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %s is \"%s\", no integer", function, handle->name, text);
    const int fits = errno == 0 && *number << shift >> shift == *number;
    *number <<= shift;
    if (!fits || (negative ? least == 0 || *number > (uint64_t) - (least + 1) + 1 : *number > most))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %s is \"%s\", more than the type asked for holds", function,
                               handle->name, text);
    if (negative)
        *number = 0 - *number;
    return ncclSuccess;
}

/* ---- the calls ---- */

ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key)
{
    if (out == NULL || key == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclParamBind: out %p, key %p", (void *) out, (const void *) key);
    *out = find(key);
    if (*out == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclParamBind: there is no parameter %.100s", key);
    return ncclSuccess;
}
NCCL_EXPORT(ncclParamBind);

#define GET(suffix, type, least, most)                                                                                         \
    ncclResult_t pncclParamGet##suffix(ncclParamHandle_t handle, type *out)                                                    \
    {                                                                                                                          \
        uint64_t number = 0;                                                                                                   \
        ncclResult_t result = read_number(handle, out, least, most, "ncclParamGet" #suffix, &number);                          \
        if (result == ncclSuccess)                                                                                             \
            *out = (type) number;                                                                                              \
        return result;                                                                                                         \
    }                                                                                                                          \
    NCCL_EXPORT(ncclParamGet##suffix);
GET(I8, int8_t, INT8_MIN, INT8_MAX)
GET(I16, int16_t, INT16_MIN, INT16_MAX)
GET(I32, int32_t, INT32_MIN, INT32_MAX)
GET(I64, int64_t, INT64_MIN, INT64_MAX)
GET(U8, uint8_t, 0, UINT8_MAX)
GET(U16, uint16_t, 0, UINT16_MAX)
GET(U32, uint32_t, 0, UINT32_MAX)
GET(U64, uint64_t, 0, UINT64_MAX)

/* A copy, because the environment's text ends with the next setenv. */
static const char *copy_value(const char *value, char *copy)
{
    snprintf(copy, VALUE_BYTES, "%s", value);
    return copy;
}

ncclResult_t pncclParamGetStr(ncclParamHandle_t handle, const char **out)
{
    static _Thread_local char copy[VALUE_BYTES];
    const char *value;
    ncclResult_t result = read_value(handle, out, "ncclParamGetStr", &value);
    if (result == ncclSuccess)
        *out = copy_value(value, copy);
    return result;
}
NCCL_EXPORT(ncclParamGetStr);

/* The bytes are those of the text, without its end. */
ncclResult_t pncclParamGet(ncclParamHandle_t handle, void *out, int most, int *length)
{
    const char *value;
    ncclResult_t result = read_value(handle, out, "ncclParamGet", &value);
    if (result != ncclSuccess)
        return result;
    const size_t bytes = strlen(value);
    if (most < 0 || bytes > (size_t) most)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclParamGet: %s has %zu bytes, and there is room for %d", handle->name,
                               bytes, most);
    memcpy(out, value, bytes);
    if (length != NULL)
        *length = (int) bytes;
    return ncclSuccess;
}
NCCL_EXPORT(ncclParamGet);

ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *length)
{
    static _Thread_local char copy[VALUE_BYTES];
    ncclParamHandle_t handle;
    if (value == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclParamGetParameter: value is NULL");
    ncclResult_t result = pncclParamBind(&handle, key);
    if (result != ncclSuccess)
        return result;
    *value = copy_value(value_of(handle), copy);
    if (length != NULL)
        *length = (int) strlen(*value);
    return ncclSuccess;
}
NCCL_EXPORT(ncclParamGetParameter);

ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *length)
{
    list_once();
    if (table == NULL || length == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclParamGetAllParameterKeys: table %p, length %p", (void *) table,
                               (void *) length);
    *table = keys;
    *length = count;
    return ncclSuccess;
}
NCCL_EXPORT(ncclParamGetAllParameterKeys);

void pncclParamDumpAll(void)
{
    list_once();
    for (int i = 0; i < count; i++)
        rondo_nccl_log(RONDO_NCCL_LOG_INFO, "%s=%s", parameters[i].name, value_of(&parameters[i]));
}
NCCL_EXPORT(ncclParamDumpAll);
