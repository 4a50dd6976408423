/*
 * A secret that the launcher has made for the job and has given to its ranks alone, for jobs across hosts without RONDO_SECRET.
 * What a launcher tells publicly (job numbers, names, addresses) is none. Relies on the environment: only processes of the same
 * user can read it (/proc/PID/environ).
 */
#ifndef RONDO_LIB_BOOTSTRAP_LAUNCHER_KEY_H
#define RONDO_LIB_BOOTSTRAP_LAUNCHER_KEY_H

enum { RONDO_LAUNCHER_KEY = 64 }; /* bytes, with the terminating zero */

/* Stores the key, and returns the variable that it comes from; NULL if the launcher gives none: Open MPI up to version 4 does
 * (the 128 random bits by which its transports recognize the job), MPICH's Hydra, PRRTE and Slurm do not. The caller clears the
 * key. */
const char *rondo_launcher_key(char key[RONDO_LAUNCHER_KEY]);

#endif
