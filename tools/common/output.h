/* What the verbs print: plain tables for people, and one JSON object for programs (--json FILE, "-" for standard output). */
#ifndef RONDO_TOOLS_COMMON_OUTPUT_H
#define RONDO_TOOLS_COMMON_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

struct output_column {
    const char *title, *unit;
    int width; /* negative: left-aligned */
};

/* Where people's text goes: standard output, unless that is to hold the JSON object alone. */
FILE *output_stream(const char *json_path);

/* Prints the titles and the units of a table; output_row then one row, a text for each column. */
void output_header(FILE *stream, const struct output_column *columns, int count);
void output_row(FILE *stream, const struct output_column *columns, int count, const char *const *cells);

/* Writes root as an object to path and takes ownership of it. Returns 0, or EXIT_WRONG after saying why. path NULL: nothing is
 * written. */
int output_json(const char *verb, const char *path, json_t *root);

#endif
