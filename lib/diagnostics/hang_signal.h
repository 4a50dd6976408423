/* The signal (RONDO_REPORT_SIGNAL) that makes a process ask for a report of what all ranks are doing. */
#ifndef RONDO_LIB_DIAGNOSTICS_HANG_SIGNAL_H
#define RONDO_LIB_DIAGNOSTICS_HANG_SIGNAL_H

#include "rondo.h"

/* Catches the signal from now on, if the environment names one (*watched). RONDO_ERR_ARGUMENT if it names something else. What
 * caught it before is called as well. */
rondo_result_t rondo_hang_signal_watch(int *watched);
/* Once for each successful watch; the last one gives the signal back. */
void rondo_hang_signal_ignore(void);
/* Whether the signal has come since this was last called in this process. */
int rondo_hang_signal_came(void);

#endif
