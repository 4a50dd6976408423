/* Values of options with their checks and refusals (tools/common/options.h). Relies on the public header for names, and on
 * the library's table for variables of the environment. */
#include "tools/common/options.h"

#include "lib/base/environment.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 1024 }; /* as threads of one process */

/* What operators a type has, as rondo.h says. */
enum { INTEGER = 1, REAL = 2, LOGICAL = 4, COMPLEX = 8, PAIR = 16 };

static const struct {
    const char *name;
    int class;
} types[RONDO_DATATYPE_COUNT] = {
    [RONDO_INT8] = {"int8", INTEGER},
    [RONDO_UINT8] = {"uint8", INTEGER},
    [RONDO_INT16] = {"int16", INTEGER},
    [RONDO_UINT16] = {"uint16", INTEGER},
    [RONDO_INT32] = {"int32", INTEGER},
    [RONDO_UINT32] = {"uint32", INTEGER},
    [RONDO_INT64] = {"int64", INTEGER},
    [RONDO_UINT64] = {"uint64", INTEGER},
    [RONDO_FLOAT16] = {"float16", REAL},
    [RONDO_BFLOAT16] = {"bfloat16", REAL},
    [RONDO_FLOAT] = {"float", REAL},
    [RONDO_DOUBLE] = {"double", REAL},
    [RONDO_FLOAT8E4M3] = {"float8e4m3", REAL},
    [RONDO_FLOAT8E5M2] = {"float8e5m2", REAL},
    [RONDO_BOOL] = {"bool", LOGICAL},
    [RONDO_COMPLEX_FLOAT] = {"complex_float", COMPLEX},
    [RONDO_COMPLEX_DOUBLE] = {"complex_double", COMPLEX},
    [RONDO_LONG_DOUBLE] = {"long_double", REAL},
    [RONDO_FLOAT_INT] = {"float_int", PAIR},
    [RONDO_DOUBLE_INT] = {"double_int", PAIR},
    [RONDO_LONG_INT] = {"long_int", PAIR},
    [RONDO_2INT] = {"2int", PAIR},
    [RONDO_SHORT_INT] = {"short_int", PAIR},
    [RONDO_LONG_DOUBLE_INT] = {"long_double_int", PAIR},
};

/* Other spellings people know from nccl-tests. */
static const struct {
    const char *name;
    rondo_datatype_t type;
} type_aliases[] = {{"half", RONDO_FLOAT16},       {"float32", RONDO_FLOAT},     {"float64", RONDO_DOUBLE},
                    {"f8e4m3", RONDO_FLOAT8E4M3},  {"f8e5m2", RONDO_FLOAT8E5M2}, {"fp8_e4m3", RONDO_FLOAT8E4M3},
                    {"fp8_e5m2", RONDO_FLOAT8E5M2}};

static const struct {
    const char *name;
    int classes;
} operators[] = {
    [RONDO_SUM] = {"sum", INTEGER | REAL | COMPLEX},
    [RONDO_PROD] = {"prod", INTEGER | REAL | COMPLEX},
    [RONDO_MIN] = {"min", INTEGER | REAL},
    [RONDO_MAX] = {"max", INTEGER | REAL},
    [RONDO_AVG] = {"avg", INTEGER | REAL | COMPLEX},
    [RONDO_LAND] = {"land", INTEGER | REAL | LOGICAL},
    [RONDO_LOR] = {"lor", INTEGER | REAL | LOGICAL},
    [RONDO_LXOR] = {"lxor", INTEGER | REAL | LOGICAL},
    [RONDO_BAND] = {"band", INTEGER},
    [RONDO_BOR] = {"bor", INTEGER},
    [RONDO_BXOR] = {"bxor", INTEGER},
    [RONDO_MINLOC] = {"minloc", PAIR},
    [RONDO_MAXLOC] = {"maxloc", PAIR},
};
_Static_assert(sizeof(operators) / sizeof(operators[0]) == RONDO_OP_COUNT, "each operator has a row");

int options_refuse(const char *verb, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char message[512];
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    fprintf(stderr, "rondo %s: %s\n", verb, message);
    return EXIT_USAGE;
}

int options_unknown(const char *verb, int code, char *const *argv)
{
    /* A short option in a cluster is only known by its letter; a long one only by its text. */
    const char *text = argv[optind > 0 ? optind - 1 : 0];
    if (code == ':')
        return options_refuse(verb, "%s needs a value", text);
    if (optopt > 0 && optopt < 128 && strncmp(text, "--", 2) != 0)
        return options_refuse(verb, "unknown option -%c", optopt);
    return options_refuse(verb, "unknown or ambiguous option %s", text);
}

int options_integer(const char *verb, const char *option, const char *text, int64_t minimum, int64_t maximum, int64_t *value)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || *end != '\0')
        return options_refuse(verb, "%s '%s' is not a whole number", option, text);
    if (errno == ERANGE || parsed < minimum || parsed > maximum)
        return options_refuse(verb, "%s %s is not between %lld and %lld", option, text, (long long) minimum,
                              (long long) maximum);
    *value = parsed;
    return 0;
}

int options_variable(const char *verb, const char *name, int64_t *value)
{
    if (rondo_environment_find(name) == NULL)
        return options_refuse(verb, "this library reads no %s", name);
    if (rondo_environment_integer(name, value) != RONDO_SUCCESS)
        return options_refuse(verb, "%s", rondo_last_error());
    return 0;
}

bool options_variable_is_set(const char *name)
{
    return rondo_environment_is_set(name);
}

const char *options_variable_text(const char *name)
{
    const char *text = NULL;
    return rondo_environment_text(name, &text) == RONDO_SUCCESS ? text : NULL;
}

int options_size(const char *verb, const char *option, const char *text, size_t *bytes)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text)
        return options_refuse(verb, "%s '%s' is not a size (a number with an optional K, M or G)", option, text);
    if (parsed < 0)
        return options_refuse(verb, "%s %s is negative", option, text);
    int shift = 0;
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    if (shift > 0)
        end++;
    if (*end != '\0')
        return options_refuse(verb, "%s '%s' is not a size (a number with an optional K, M or G)", option, text);
    if (errno == ERANGE || parsed > (INT64_MAX >> (shift + 8)))
        return options_refuse(verb, "%s %s is too large", option, text);
    *bytes = (size_t) parsed << shift;
    return 0;
}

int options_real(const char *verb, const char *option, const char *text, double minimum, double *value)
{
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(parsed))
        return options_refuse(verb, "%s '%s' is not a number", option, text);
    if (parsed < minimum)
        return options_refuse(verb, "%s %s is less than %g", option, text, minimum);
    *value = parsed;
    return 0;
}

int options_type(const char *verb, const char *option, const char *text, rondo_datatype_t *type)
{
    for (int t = 0; t < RONDO_DATATYPE_COUNT; t++) {
        if (strcmp(text, types[t].name) == 0) {
            *type = (rondo_datatype_t) t;
            return 0;
        }
    }
    for (size_t a = 0; a < sizeof(type_aliases) / sizeof(type_aliases[0]); a++) {
        if (strcmp(text, type_aliases[a].name) == 0) {
            *type = type_aliases[a].type;
            return 0;
        }
    }
    struct options_names names;
    return options_refuse(verb, "%s '%s' is not a type (%s)", option, text, options_type_names(", ", &names));
}

int options_operator(const char *verb, const char *option, const char *text, rondo_op_t *op)
{
    for (int o = 0; o < RONDO_OP_COUNT; o++) {
        if (strcmp(text, operators[o].name) == 0) {
            *op = (rondo_op_t) o;
            return 0;
        }
    }
    struct options_names names;
    return options_refuse(verb, "%s '%s' is not an operator (%s)", option, text, options_operator_names(", ", &names));
}

int options_device(const char *verb, const char *option, const char *text, rondo_device_t *device)
{
    if (strcmp(text, "host") == 0)
        *device = RONDO_DEVICE_HOST;
    else if (strcmp(text, "auto") == 0)
        *device = RONDO_DEVICE_AUTO;
    else if (strcmp(text, "cuda") != 0)
        return options_refuse(verb, "%s '%s' is not a device (auto, host, cuda)", option, text);
    else if (!RONDO_WITH_CUDA)
        return options_refuse(verb, "%s cuda: this build is without CUDA", option);
    else
        *device = RONDO_DEVICE_CUDA;
    return 0;
}

int options_ranks(const char *verb, const char *option, const char *text, int *ranks)
{
    int64_t value;
    int code = options_integer(verb, option, text, 1, RANKS_MAX, &value);
    if (code == 0)
        *ranks = (int) value;
    return code;
}

const char *options_type_name(rondo_datatype_t type)
{
    return types[type].name;
}

const char *options_operator_name(rondo_op_t op)
{
    return operators[op].name;
}

bool options_operator_takes(rondo_op_t op, rondo_datatype_t type)
{
    return (operators[op].classes & types[type].class) != 0;
}

/* Appends a name, behind what separates it from the one before. */
static void append(struct options_names *names, const char *between, const char *name)
{
    size_t used = strlen(names->text);
    snprintf(names->text + used, sizeof(names->text) - used, "%s%s", used > 0 ? between : "", name);
}

const char *options_type_names(const char *between, struct options_names *names)
{
    names->text[0] = '\0';
    for (int t = 0; t < RONDO_DATATYPE_COUNT; t++)
        append(names, between, types[t].name);
    return names->text;
}

const char *options_operator_names(const char *between, struct options_names *names)
{
    names->text[0] = '\0';
    for (int o = 0; o < RONDO_OP_COUNT; o++)
        append(names, between, operators[o].name);
    return names->text;
}

const char *options_device_name(rondo_device_t device)
{
    return device == RONDO_DEVICE_HOST ? "host" : device == RONDO_DEVICE_CUDA ? "cuda" : "auto";
}
