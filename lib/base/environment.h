/* Every environment variable that Rondo reads is a row of one table in lib/base/environment.c, which rondo_environment_describe
 * (rondo.h) shows, and from which the guide is made. Relies on getenv, so calls belong to init time: the application must not
 * change the environment meanwhile. */
#ifndef RONDO_LIB_BASE_ENVIRONMENT_H
#define RONDO_LIB_BASE_ENVIRONMENT_H

#include "rondo.h"
#include <stdint.h>

/*
 * Each stores the value set in the environment, else the table's default. name must be in the table, else RONDO_ERR_INTERNAL. A
 * value that does not parse, or a number that is unset and has no default, is RONDO_ERR_ARGUMENT with the name and the text. An
 * empty text counts as unset. A size is in bytes and takes the suffixes K, M, G (powers of 1024). Numbers are read as in the C
 * locale.
 */
int rondo_environment_is_set(const char *name);
rondo_result_t rondo_environment_text(const char *name, const char **value); /* *value NULL: unset, default "" */
rondo_result_t rondo_environment_integer(const char *name, int64_t *value);
rondo_result_t rondo_environment_real(const char *name, double *value);
rondo_result_t rondo_environment_size(const char *name, int64_t *bytes);

/* Rank, size and job as the launcher gives them: RONDO_RANK/RONDO_SIZE, else Open MPI (OMPI_COMM_WORLD_*), MPICH/Hydra (PMI_*),
 * Slurm (SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS); with none of them a job of one rank. */
struct rondo_launch {
    int rank, size;
    int local_rank, local_size; /* -1 where the launcher does not give them */
    char job[128];              /* text that is the same in all ranks of this job on this host and no other job of this user */
    const char *launcher;       /* "RONDO_RANK", "Open MPI", "MPICH", "Slurm" or "none" */
};
/* Fills *launch. RONDO_ERR_ARGUMENT with the variable and its text if one does not parse, is out of range or lacks its partner.
 */
rondo_result_t rondo_environment_launch(struct rondo_launch *launch);

#endif
