/* Tables for people and JSON for programs (tools/common/output.h). Relies on jansson. */
#include "tools/common/output.h"
#include "tools/common/options.h"

#include <errno.h>
#include <string.h>

FILE *output_stream(const char *json_path)
{
    return json_path != NULL && strcmp(json_path, "-") == 0 ? stderr : stdout;
}

static void line(FILE *stream, const struct output_column *columns, int count, const char *const *cells, const char *lead)
{
    fputs(lead, stream);
    for (int i = 0; i < count; i++)
        fprintf(stream, "%s%*s", i > 0 ? "  " : "", columns[i].width, cells[i]);
    fputc('\n', stream);
}

void output_header(FILE *stream, const struct output_column *columns, int count)
{
    const char *titles[32], *units[32];
    for (int i = 0; i < count && i < 32; i++) {
        titles[i] = columns[i].title;
        units[i] = columns[i].unit;
    }
    line(stream, columns, count, titles, "# ");
    line(stream, columns, count, units, "# ");
    fflush(stream);
}

void output_row(FILE *stream, const struct output_column *columns, int count, const char *const *cells)
{
    line(stream, columns, count, cells, "  ");
    fflush(stream);
}

int output_json(const char *verb, const char *path, json_t *root)
{
    int code = 0;
    if (path != NULL) {
        FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
        if (file == NULL || json_dumpf(root, file, JSON_INDENT(2)) != 0 || fputc('\n', file) == EOF ||
            (file == stdout ? fflush(file) : fclose(file)) != 0) {
            fprintf(stderr, "rondo %s: cannot write --json %s: %s\n", verb, path, strerror(errno));
            code = EXIT_WRONG;
        }
    }
    json_decref(root);
    return code;
}
