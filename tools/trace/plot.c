/* The two plots of figure 11 of the DFCCL paper, as SVG. See trace.h. */
#include "tools/common/options.h"
#include "tools/trace/trace.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define WIDTH  900
#define HEIGHT 230 /* of a panel's plotting area */
#define LEFT   70
#define TOP    40
#define PANEL  (HEIGHT + 80)

enum { RANKS_DRAWN = 8, POINTS_MAX = 4000 };
static const char *const colors[RANKS_DRAWN] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e",
                                                "#9467bd", "#8c564b", "#17becf", "#7f7f7f"};

struct panel {
    const char *title;
    double (*value)(const struct trace_operation *operation);
    int y; /* of its top */
};

static double switches(const struct trace_operation *o)
{
    return (double) o->switches;
}

static double queue(const struct trace_operation *o)
{
    return o->queue < 0 ? 0 : o->queue;
}

/* 1, 2 or 5 times a power of ten, so that there are five steps or fewer; at least 1. */
static double nice_step(double most)
{
    double power = pow(10, floor(log10(most / 5)));
    double step = power * (most / 5 <= power ? 1 : most / 5 <= 2 * power ? 2 : most / 5 <= 5 * power ? 5 : 10);
    return step > 1 ? step : 1;
}

static void axes(FILE *out, const struct panel *panel, double most, size_t longest)
{
    double step = nice_step(most), across = nice_step((double) longest);
    fprintf(out, "<text x=\"%d\" y=\"%d\" font-size=\"15\">%s</text>\n", LEFT, panel->y - 12, panel->title);
    for (double value = 0; value <= most; value += step) {
        double y = panel->y + HEIGHT - HEIGHT * value / most;
        fprintf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT, LEFT + WIDTH, y, y);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4, value);
    }
    for (double value = 0; value <= (double) longest; value += across)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", LEFT + WIDTH * value / (double) longest,
                panel->y + HEIGHT + 18, value);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations in the order of their starts</text>\n",
            LEFT + WIDTH / 2, panel->y + HEIGHT + 36);
}

/* Where there are more operations than can be told apart, each point is the largest of a few. */
static void curve(FILE *out, const struct panel *panel, const struct trace_operation *operations, size_t count, double most,
                  size_t longest, const char *color)
{
    size_t together = count / POINTS_MAX + 1;
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\" points=\"", color);
    for (size_t i = 0; i < count; i += together) {
        double largest = 0;
        for (size_t k = i; k < i + together && k < count; k++)
            largest = panel->value(&operations[k]) > largest ? panel->value(&operations[k]) : largest;
        fprintf(out, "%.1f,%.1f ", LEFT + WIDTH * (double) i / (double) longest, panel->y + HEIGHT - HEIGHT * largest / most);
    }
    fprintf(out, "\"/>\n");
}

static void plot(FILE *out, const struct trace *trace, const struct panel *panel)
{
    double most = 1;
    size_t longest = 1;
    for (size_t i = 0, run = 0; i < trace->count; i++) {
        const struct trace_operation *o = &trace->operations[i];
        run = i > 0 && o[-1].rank == o->rank ? run + 1 : 1;
        longest = run > longest ? run : longest;
        most = panel->value(o) > most ? panel->value(o) : most;
    }
    axes(out, panel, most, longest);
    for (size_t i = 0, to; i < trace->count; i = to) {
        int rank = trace->operations[i].rank;
        for (to = i; to < trace->count && trace->operations[to].rank == rank;)
            to++;
        if (rank < RANKS_DRAWN)
            curve(out, panel, trace->operations + i, to - i, most, longest, colors[rank]);
    }
}

int trace_plot(const struct trace *trace, const char *path)
{
    static const struct panel panels[] = {{"context switches of each operation", switches, TOP + 20},
                                          {"length of the task queue after its fetch", queue, TOP + 20 + PANEL}};
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        fprintf(stderr, "rondo trace: cannot write %s: %s\n", path, strerror(errno));
        return EXIT_WRONG;
    }
    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        LEFT + WIDTH + 40, TOP + 20 + 2 * PANEL);
    for (int rank = 0; rank < trace->ranks && rank < RANKS_DRAWN; rank++)
        fprintf(out, "<text x=\"%d\" y=\"20\" fill=\"%s\">rank %d</text>\n", LEFT + 80 * rank, colors[rank], rank);
    for (size_t i = 0; i < sizeof(panels) / sizeof(panels[0]); i++)
        plot(out, trace, &panels[i]);
    fprintf(out, "</svg>\n");
    int failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        fprintf(stderr, "rondo trace: cannot write %s: %s\n", path, strerror(errno));
        return EXIT_WRONG;
    }
    return 0;
}
