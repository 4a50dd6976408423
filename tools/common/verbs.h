/* The verbs of the command. Each takes its own argument vector (argv[0] is the verb) and returns the exit code. */
#ifndef RONDO_TOOLS_COMMON_VERBS_H
#define RONDO_TOOLS_COMMON_VERBS_H

int verb_info(int argc, char **argv);
int verb_bench(int argc, char **argv);
int verb_stress(int argc, char **argv);
int verb_sim(int argc, char **argv);
int verb_trace(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_report(int argc, char **argv);
int verb_program(int argc, char **argv);

#endif
