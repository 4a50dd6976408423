/* Every environment variable that Rondo reads is a row of one table in lib/base/environment.c, which rondo_environment_describe
 * (rondo.h) shows, and from which the guide is made. Relies on getenv, so calls belong to init time: the application must not
 * change the environment meanwhile. */
#ifndef RONDO_LIB_BASE_ENVIRONMENT_H
#define RONDO_LIB_BASE_ENVIRONMENT_H

#include "rondo.h"
#include <stddef.h>
#include <stdint.h>

/* Compares every variable that is set with its row. Returns RONDO_ERR_ARGUMENT with the name, the value and what is allowed,
 * for the first that is wrong. What makes a runtime or a unique id calls it before it reads any. */
rondo_result_t rondo_environment_check(void);

/*
 * Each stores the value set in the environment, else the table's default. name must be in the table and of the function's kind,
 * else RONDO_ERR_INTERNAL. A value that its row does not allow, or a number that is unset and has no default, is
 * RONDO_ERR_ARGUMENT, with the name, the value and what is allowed. An empty text counts as unset. Numbers are read as in the C
 * locale.
 */
int rondo_environment_is_set(const char *name);
rondo_result_t rondo_environment_text(const char *name, const char **text);   /* any kind; *text NULL: unset, default "" */
rondo_result_t rondo_environment_integer(const char *name, int64_t *integer); /* integers, sizes in bytes, signals' numbers */
rondo_result_t rondo_environment_real(const char *name, double *real);
rondo_result_t rondo_environment_choice(const char *name, int *place); /* the word's place among the row's words */
/* As rondo_environment_choice, with the default instead of an error. Sets no message. name must be in the table. */
int rondo_environment_choice_or_default(const char *name);

/* Each compares the value of a configuration's field, an integer as its digits, with the row of the variable of the same
 * meaning. Returns RONDO_ERR_ARGUMENT with the field, the value and what is allowed if the row does not allow it. *place: as
 * rondo_environment_choice stores it; 0 for other kinds. */
rondo_result_t rondo_environment_allow_real(const char *name, const char *field, double real);
rondo_result_t rondo_environment_allow_text(const char *name, const char *field, const char *text, int *place);

/* Returns the row of that name, or NULL. */
const rondo_variable_t *rondo_environment_find(const char *name);
/* Writes what a variable may be, as in "it must be ...", cut to so many bytes with the final zero. */
void rondo_environment_allowed(const rondo_variable_t *variable, char *text, size_t bytes);
/* Whether the value must not be shown. */
int rondo_environment_is_secret(const rondo_variable_t *variable);

/* Logs a warning for each variable RONDO_* that the table lacks, with the nearest name that it has. RONDO_X_* are reserved for
 * builds and tests. Once a process: returns the number of warnings, 0 in later calls. */
int rondo_environment_warn_of_unknown(int rank);
/* Returns the table's name that is nearest to a name of so many bytes, NULL if none is near. */
const char *rondo_environment_nearest(const char *name, size_t length);

/* Stores the number in a launcher's variable that is set, which may be what the row of the variable `as` (in the table) allows.
 * RONDO_ERR_ARGUMENT with the name, the value and what is allowed. */
rondo_result_t rondo_environment_of_launcher(const char *name, const char *as, int *number);

/* Rank, size and job as the launcher gives them: RONDO_RANK/RONDO_SIZE, else Open MPI (OMPI_COMM_WORLD_*), MPICH/Hydra (PMI_*),
 * Slurm (SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS); with none of them a job of one rank. */
struct rondo_launch {
    int rank, size;
    int local_rank, local_size; /* -1 where the launcher does not give them */
    int spans_hosts;            /* the launcher says that the job is on several hosts */
    char job[128];              /* text that is the same in all ranks of this job on this host and no other job of this user */
    const char *launcher;       /* "RONDO_RANK", "Open MPI", "MPICH", "Slurm" or "none" */
};
/* Fills *launch. RONDO_ERR_ARGUMENT with the variable and its text if one does not parse, is out of range or lacks its partner.
 */
rondo_result_t rondo_environment_launch(struct rondo_launch *launch);

#endif
