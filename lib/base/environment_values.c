/* What a value of an environment variable may be, by its row of the table (lib/base/environment_values.h). */
#include "lib/base/environment_values.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parsing: each returns 0, or -1 if the text is no such value ---- */

/* Digits, after at most one minus, with nothing before or after them. */
static int parse_integer(const char *text, int64_t *value)
{
    const char *digits = text + (*text == '-');
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || digits[length] != '\0')
        return -1;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0 ? 0 : -1;
}

/* Digits and at most one of K, M, G behind them. */
static int parse_size(const char *text, int64_t *bytes)
{
    static const char suffixes[] = "KMGkmg";
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    errno = 0;
    int64_t count = strtoll(text, &end, 10);
    const char *suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
    if (errno != 0 || (*end != '\0' && (suffix == NULL || end[1] != '\0')))
        return -1;
    int shift = suffix != NULL ? 10 * ((int) (suffix - suffixes) % 3 + 1) : 0;
    if (count > INT64_MAX >> shift)
        return -1;
    *bytes = (int64_t) ((uint64_t) count << shift);
    return 0;
}

/* Digits, and perhaps a point and more digits. */
static int parse_real(const char *text, double *value)
{
    size_t whole = strspn(text, "0123456789"), part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
    if (whole == 0 || text[whole + (part > 0 ? part + 1 : 0)] != '\0')
        return -1;
    /* The application's locale may write its decimals with a comma; the environment never does. */
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
    if (locale == (locale_t) 0)
        return -1;
    *value = strtod_l(text, NULL, locale);
    freelocale(locale);
    return 0;
}

/* Returns the word's place among the comma-separated words, -1 if it is not there. */
static int place_of(const char *words, const char *word, size_t length)
{
    for (int place = 0; *words != '\0'; place++) {
        size_t next = strcspn(words, ",");
        if (next == length && strncmp(words, word, length) == 0)
            return place;
        words += next + (words[next] == ',');
    }
    return -1;
}

/* A signal that a process may catch: one of the words, with or without SIG, or a number. */
static int parse_signal(const rondo_variable_t *variable, const char *text, int64_t *number)
{
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGQUIT, SIGHUP, SIGWINCH, SIGURG};
    const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
    int place = place_of(variable->words, name, strlen(name));
    if (place >= 0)
        *number = numbers[place];
    else if (parse_integer(text, number) != 0)
        return -1;
    switch (*number) {
    case SIGKILL:
    case SIGSTOP:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
        return -1;
    default:
        return *number >= SIGRTMAX || (*number > 31 && *number < SIGRTMIN) ? -1 : 0;
    }
}

/* Different words, of the row if it has some, else of letters, digits and a name's other characters. */
static int parse_list(const rondo_variable_t *variable, const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:";
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (length == 0 || strspn(at, allowed) < length)
            return -1;
        if (*variable->words != '\0' && place_of(variable->words, at, length) < 0)
            return -1;
        for (const char *earlier = text; earlier < at; earlier += strcspn(earlier, ",") + 1)
            if (strcspn(earlier, ",") == length && strncmp(earlier, at, length) == 0)
                return -1;
        at += length;
        if (*at == '\0')
            return 0;
    }
}

/* A host, and perhaps a colon and a port, which an entry of a list must have. An IPv6 address stands in brackets. What it
 * resolves to is found out by its use. */
static int parse_address(const rondo_variable_t *variable, const char *text, int needs_port)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    char host[256], rest[300];
    int64_t port;
    size_t bracketed = *text == '[', length = strcspn(text + bracketed, bracketed ? "]" : ":");
    const char *end = text + bracketed + length;
    if (length == 0 || length >= sizeof(host) || (bracketed && *end != ']'))
        return -1;
    memcpy(host, text + bracketed, length);
    host[length] = '\0';
    snprintf(rest, sizeof(rest), "%s%s", letters, bracketed ? ":.%_-" : "._-");
    if (strspn(host, rest) < length || (!bracketed && strspn(host, letters) == 0))
        return -1;
    end += bracketed;
    if (*end == '\0')
        return needs_port ? -1 : 0;
    return *end == ':' && strlen(end + 1) <= 5 && parse_integer(end + 1, &port) == 0 && (double) port >= variable->least &&
                   (double) port <= variable->most
               ? 0
               : -1;
}

/* An address, or several different ones. */
static int parse_addresses(const rondo_variable_t *variable, const char *text)
{
    char one[300];
    const int is_list = strchr(text, ',') != NULL;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        if (length >= sizeof(one))
            return -1;
        memcpy(one, at, length);
        one[length] = '\0';
        if (parse_address(variable, one, is_list) != 0)
            return -1;
        for (const char *earlier = text; earlier < at; earlier += strcspn(earlier, ",") + 1)
            if (strncmp(earlier, at, length) == 0 && earlier[length] == ',')
                return -1;
        at += length;
        if (*at == '\0')
            return 0;
    }
}

static int has_control_character(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char) *text < ' ' || *text == '\x7f')
            return 1;
    return 0;
}

int rondo_environment_parse(const rondo_variable_t *variable, const char *text, struct rondo_environment_value *value)
{
    int status = 0;
    *value = (struct rondo_environment_value){0, 0};
    if (has_control_character(text))
        return -1;
    switch (variable->kind) {
    case RONDO_VARIABLE_INTEGER:
        if (place_of(variable->words, text, strlen(text)) >= 0)
            return parse_integer(text, &value->integer);
        status = parse_integer(text, &value->integer);
        value->real = (double) value->integer;
        break;
    case RONDO_VARIABLE_SIZE:
        if (place_of(variable->words, text, strlen(text)) >= 0)
            return parse_size(text, &value->integer);
        status = parse_size(text, &value->integer);
        value->real = (double) value->integer;
        break;
    case RONDO_VARIABLE_REAL:
        status = parse_real(text, &value->real);
        break;
    case RONDO_VARIABLE_SIGNAL:
        status = parse_signal(variable, text, &value->integer);
        value->real = (double) value->integer;
        break;
    case RONDO_VARIABLE_CHOICE:
        value->integer = place_of(variable->words, text, strlen(text));
        return value->integer < 0 ? -1 : 0;
    case RONDO_VARIABLE_LIST:
        return parse_list(variable, text);
    case RONDO_VARIABLE_ADDRESS:
        return parse_addresses(variable, text);
    case RONDO_VARIABLE_TEXT:
    case RONDO_VARIABLE_PATH:
        value->real = (double) strlen(text);
        break;
    }
    return status != 0 || value->real < variable->least || value->real > variable->most ? -1 : 0;
}

/* ---- messages ---- */

/* Writes words as "a, b or c". */
static void join(const char *words, const char *last, char *text, size_t bytes)
{
    size_t at = 0;
    *text = '\0';
    while (*words != '\0' && at < bytes) {
        size_t length = strcspn(words, ",");
        int first = at == 0, is_last = words[length] == '\0';
        at += (size_t) snprintf(text + at, bytes - at, "%s%.*s", first ? "" : is_last ? last : ", ", (int) length, words);
        words += length + !is_last;
    }
}

/* Writes a bound as the environment would have it. */
static void bound(const rondo_variable_t *variable, double value, char text[32])
{
    int64_t whole = (int64_t) value;
    if (variable->kind == RONDO_VARIABLE_REAL)
        snprintf(text, 32, "%.10g", value);
    else if (variable->kind == RONDO_VARIABLE_SIZE && whole > 0 && whole % (1 << 30) == 0)
        snprintf(text, 32, "%lldG", (long long) whole >> 30);
    else if (variable->kind == RONDO_VARIABLE_SIZE && whole > 0 && whole % (1 << 20) == 0)
        snprintf(text, 32, "%lldM", (long long) whole >> 20);
    else
        snprintf(text, 32, "%lld", (long long) whole);
}

void rondo_environment_allowed(const rondo_variable_t *variable, char *text, size_t bytes)
{
    char words[256], least[32], most[32], unit[64] = "";
    bound(variable, variable->least, least);
    bound(variable, variable->most, most);
    if (*variable->unit != '\0')
        snprintf(unit, sizeof(unit), " (%s)", variable->unit);
    join(variable->words, " or ", words, sizeof(words));
    switch (variable->kind) {
    case RONDO_VARIABLE_INTEGER:
        snprintf(text, bytes, variable->most - variable->least > 1 ? "%s%san integer from %s to %s%s" : "%s%s%s or %s%s", words,
                 *words != '\0' ? " or " : "", least, most, unit);
        break;
    case RONDO_VARIABLE_SIZE:
        snprintf(text, bytes, "%s%sdigits and at most one of K, M, G, from %s to %s%s", words, *words != '\0' ? " or " : "",
                 least, most, unit);
        break;
    case RONDO_VARIABLE_REAL:
        snprintf(text, bytes, "a decimal number from %s to %s%s", least, most, unit);
        break;
    case RONDO_VARIABLE_CHOICE:
        snprintf(text, bytes, "%s", words);
        break;
    case RONDO_VARIABLE_LIST:
        join(variable->words, ", ", words, sizeof(words));
        snprintf(text, bytes, "%s%s%s, separated by commas, each once", *words != '\0' ? "some of " : "names", words,
                 *words != '\0' ? "" : " of letters, digits, _ - . :");
        break;
    case RONDO_VARIABLE_SIGNAL:
        snprintf(text, bytes, "%s, or the number of a signal that can be caught", words);
        break;
    case RONDO_VARIABLE_ADDRESS:
        snprintf(
            text, bytes,
            "host or host:port, with a port from %s to %s and an IPv6 address in brackets, or several host:port, separated by "
            "commas, each once",
            least, most);
        break;
    case RONDO_VARIABLE_TEXT:
    case RONDO_VARIABLE_PATH:
        snprintf(text, bytes, "%s of %s to %s bytes, without control characters",
                 variable->kind == RONDO_VARIABLE_TEXT ? "text" : "a path", least, most);
        break;
    }
}

/* Writes the text as a message shows it: not a secret, no control characters, and cut if it is long. */
static void quote(const rondo_variable_t *variable, const char *text, char *quoted, size_t bytes)
{
    size_t at = 0, length = strlen(text);
    if (rondo_environment_is_secret(variable)) {
        snprintf(quoted, bytes, "(hidden, %zu bytes)", length);
        return;
    }
    for (size_t i = 0; i < length && at + 8 < bytes; i++) {
        unsigned char c = (unsigned char) text[i];
        at += (size_t) snprintf(quoted + at, bytes - at, c < ' ' || c == 0x7f ? "\\x%02x" : "%c", c);
    }
    snprintf(quoted + at, bytes - at, "%s", strlen(text) > at ? "..." : "");
}

rondo_result_t rondo_environment_refuse(const rondo_variable_t *variable, const char *source, const char *text)
{
    char quoted[128], allowed[400];
    quote(variable, text, quoted, sizeof(quoted));
    rondo_environment_allowed(variable, allowed, sizeof(allowed));
    return rondo_fail(RONDO_ERR_ARGUMENT, "%s=\"%s\" is not allowed: it must be %s", source, quoted, allowed);
}

int rondo_environment_is_secret(const rondo_variable_t *variable)
{
    return strcmp(variable->name, "RONDO_SECRET") == 0;
}
