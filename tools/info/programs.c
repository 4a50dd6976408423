/* `rondo info`: the programs of RONDO_PROGRAMS, and for which calls each is in force. */
#include "tools/info/info.h"

#include "lib/select/program_files.h"
#include "tools/common/options.h"

#include <inttypes.h>
#include <stdlib.h>

static json_t *describe(FILE *stream, const struct rondo_program_file *file)
{
    rondo_program_signature_t s;
    rondo_program_describe(file->program, &s);
    fprintf(stream, "  %s: %s for %s of %d ranks, %zu bytes and more", file->name, s.name, s.collective, s.ranks, s.min_bytes);
    if (s.max_bytes > 0)
        fprintf(stream, ", up to %zu", s.max_bytes);
    fprintf(stream, "%s%s%s%s\n", s.op != NULL ? ", operator " : "", s.op != NULL ? s.op : "",
            s.protocol != NULL ? ", protocol " : "", s.protocol != NULL ? s.protocol : "");
    return json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:s?, s:s?}", "file", file->name, "program", s.name, "collective",
                     s.collective, "ranks", s.ranks, "min_bytes", (json_int_t) s.min_bytes, "max_bytes",
                     (json_int_t) s.max_bytes, "op", s.op, "protocol", s.protocol);
}

json_t *info_programs(FILE *stream, int *exit_code)
{
    const char *directory = getenv("RONDO_PROGRAMS");
    struct rondo_program_files files = {0};
    json_t *all = json_array();
    fprintf(stream, "\nprograms (RONDO_PROGRAMS), on a world of as many ranks\n");
    if (directory == NULL || *directory == '\0') {
        fprintf(stream, "  none\n");
        return all;
    }
    if (rondo_program_files_read(directory, 0, &files) == RONDO_SUCCESS) {
        for (size_t i = 0; i < files.count; i++)
            json_array_append_new(all, describe(stream, &files.files[i]));
    } else { /* none is in force, because rondo_init fails */
        fprintf(stream, "  %s\n", rondo_last_error());
        fprintf(stderr, "rondo info: %s\n", rondo_last_error());
        *exit_code = EXIT_WRONG;
    }
    rondo_program_files_release(&files);
    return all;
}
