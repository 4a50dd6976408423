/* What `rondo info` says of RDMA cards: each port that ranks would use, and where their slots would lie. See tools/info/info.h.
 */
#include "tools/info/info.h"

#if RONDO_WITH_VERBS
#include "transport/rdma/survey.h"

struct survey {
    FILE *stream;
    json_t *array;
    int gpu, told;
};

static void tell_why(const struct survey *survey, json_t *object, const char *kind, const char *why)
{
    char key[32];
    snprintf(key, sizeof(key), "why_not_%s", kind);
    json_object_set_new(object, key, why[0] == '\0' ? json_null() : json_string(why));
    if (why[0] != '\0')
        fprintf(survey->stream, "           not %s: %s\n", kind, why);
}

static void tell(void *argument, const struct rondo_rdma_report *report)
{
    struct survey *survey = argument;
    json_t *object = json_object();
    char rank[16] = "host";
    if (survey->gpu >= 0)
        snprintf(rank, sizeof(rank), "GPU %d", survey->gpu);
    fprintf(survey->stream, "  %-7s  %s port %u, memory node %d: %s%s%s%s\n", survey->told == 0 ? rank : "", report->nic,
            report->port, report->node,
            report->slots != NULL ? "slots " : "cannot be used: ", report->slots != NULL ? report->slots : report->trouble,
            report->flush != NULL ? "; of what arrives, " : "", report->flush != NULL ? report->flush : "");
    json_object_set_new(object, "gpu", survey->gpu >= 0 ? json_integer(survey->gpu) : json_null());
    json_object_set_new(object, "card", json_string(report->nic));
    json_object_set_new(object, "port", json_integer(report->port));
    json_object_set_new(object, "memory_node", json_integer(report->node));
    json_object_set_new(object, "slots", report->slots != NULL ? json_string(report->slots) : json_null());
    json_object_set_new(object, "trouble", report->trouble != NULL ? json_string(report->trouble) : json_null());
    json_object_set_new(object, "flush", report->flush != NULL ? json_string(report->flush) : json_null());
    tell_why(survey, object, "dmabuf", report->why_not_dmabuf);
    tell_why(survey, object, "peermem", report->why_not_peermem);
    json_array_append_new(survey->array, object);
    survey->told++;
}

json_t *info_nics(FILE *stream, int gpus)
{
    struct survey survey = {.stream = stream, .array = json_array()};
    fprintf(stream, "\nRDMA cards (slots: as RONDO_GPUDIRECT names it)\n");
    for (survey.gpu = gpus > 0 ? 0 : -1; survey.gpu < gpus; survey.gpu++) {
        survey.told = 0;
        if (rondo_rdma_survey(survey.gpu, tell, &survey) != RONDO_SUCCESS) {
            fprintf(stream, "  %s\n", rondo_last_error());
            break;
        }
    }
    return survey.array;
}
#else
json_t *info_nics(FILE *stream, int gpus)
{
    (void) stream;
    (void) gpus;
    return json_array();
}
#endif
