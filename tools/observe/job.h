/* Finding the ranks that run on this host and asking one of them (lib/diagnostics/inspection_protocol.h). */
#ifndef RONDO_TOOLS_OBSERVE_JOB_H
#define RONDO_TOOLS_OBSERVE_JOB_H

#include <jansson.h>
#include <stddef.h>

enum { JOB_NAME_BYTES = 128, JOB_SOCKET_BYTES = 100 };

/* A rank that answers: one of its job, by which the job is asked. */
struct job {
    char name[JOB_NAME_BYTES], socket[JOB_SOCKET_BYTES];
    long pid;
    int rank, size;
};

/* Finds the job: wanted is its name or the number of a process of it; NULL: the only one that this user has on this host.
 * Returns 0, or an exit code after saying why not, with the jobs that there are. */
int job_find(const char *verb, int words, char *const *word, struct job *job);
/* Sends the request to the job's rank and returns the whole answer, which the caller frees; NULL after saying why, also if it
 * takes more than ten seconds. */
char *job_ask(const char *verb, const struct job *job, const char *request);
/* The states of all ranks; the caller gives it back (json_decref). NULL after saying why. */
json_t *job_state(const char *verb, const struct job *job);

#endif
