/* A trace as tracks of blocks over time, as SVG. See trace.h. */
#include "tools/common/options.h"
#include "tools/trace/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 1000
#define LEFT  110
#define TOP   30
#define TRACK 22
#define GAP   4

enum { TRACKS_MAX = 64 };

struct track {
    int rank, block;
};

static int by_track(const void *a, const void *b)
{
    const struct track *x = a, *y = b;
    return x->rank != y->rank ? x->rank - y->rank : x->block - y->block;
}

/* The tracks that visits are on, sorted; at most TRACKS_MAX. */
static int find_tracks(const struct trace *trace, struct track *tracks)
{
    int count = 0;
    for (size_t i = 0; i < trace->visit_count; i++) {
        const struct trace_visit *v = &trace->visits[i];
        int t = 0;
        while (t < count && (tracks[t].rank != v->rank || tracks[t].block != v->block))
            t++;
        if (t == count && count < TRACKS_MAX)
            tracks[count++] = (struct track){v->rank, v->block};
    }
    qsort(tracks, (size_t) count, sizeof(*tracks), by_track);
    return count;
}

/* Neighbouring lanes get hues far apart (137 degrees is the golden angle); pale: of little saturation and much light. */
static unsigned color_of(uint32_t lane, int pale)
{
    unsigned color = 0;
    for (int channel = 0; channel < 3; channel++) {
        double turn = fmod(lane * 137.508 / 360 + 1 - channel / 3.0, 1), strength = fabs(turn * 6 - 3) - 1;
        strength = strength < 0 ? 0 : strength > 1 ? 1 : strength;
        color = color << 8 | (unsigned) (pale ? 170 + 75 * strength : 40 + 170 * strength);
    }
    return color;
}

static void draw_visits(FILE *out, const struct trace *trace, const struct track *track, int y, double first, double scale)
{
    for (size_t i = 0; i < trace->visit_count; i++) {
        const struct trace_visit *v = &trace->visits[i];
        double width = v->length * scale;
        if (v->rank != track->rank || v->block != track->block)
            continue;
        fprintf(out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/>\n",
                LEFT + (v->from - first) * scale, y, width > 0.4 ? width : 0.4, TRACK, color_of(v->lane, v->preempted));
    }
}

static void draw_axis(FILE *out, int height, double span, double scale)
{
    double step = 1; /* milliseconds */
    while (step * 12 < span / 1e3)
        step *= 2;
    while (step * 4 > span / 1e3)
        step /= 2;
    for (double at = 0; at <= span / 1e3; at += step) {
        double x = LEFT + at * 1e3 * scale;
        fprintf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ccc\"/>\n", x, x, TOP, height);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g ms</text>\n", x, TOP - 8, at);
    }
}

int trace_draw(const struct trace *trace, const char *path)
{
    struct track tracks[TRACKS_MAX];
    int count = find_tracks(trace, tracks), height = TOP + count * (TRACK + GAP) + 10;
    double first = 1e300, last = -1e300;
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        fprintf(stderr, "rondo trace: cannot write %s: %s\n", path, strerror(errno));
        return EXIT_WRONG;
    }
    for (size_t i = 0; i < trace->visit_count; i++) {
        const struct trace_visit *v = &trace->visits[i];
        first = v->from < first ? v->from : first;
        last = v->from + v->length > last ? v->from + v->length : last;
    }
    double span = last > first ? last - first : 1, scale = WIDTH / span;
    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        LEFT + WIDTH + 30, height);
    draw_axis(out, height - 6, span, scale);
    for (int t = 0; t < count; t++) {
        int y = TOP + t * (TRACK + GAP);
        fprintf(out, "<text x=\"8\" y=\"%d\">rank %d, block %d</text>\n", y + TRACK - 7, tracks[t].rank, tracks[t].block);
        draw_visits(out, trace, &tracks[t], y, first, scale);
    }
    fprintf(out, "</svg>\n");
    int failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        fprintf(stderr, "rondo trace: cannot write %s: %s\n", path, strerror(errno));
        return EXIT_WRONG;
    }
    return 0;
}
