/* The signal (RONDO_REPORT_SIGNAL) by which a process asks for a report of all ranks' operations. Relies on the C library
 * alone. */
#ifndef RONDO_LIB_DIAGNOSTICS_HANG_SIGNAL_H
#define RONDO_LIB_DIAGNOSTICS_HANG_SIGNAL_H

#include "rondo.h"

/* Installs the handler if the environment names a signal, and sets *watched to whether it does. The handler calls the one that
 * was installed before. Any thread; once per runtime. RONDO_ERR_ARGUMENT if the variable names no signal that can be caught. */
rondo_result_t rondo_hang_signal_watch(int *watched);
/* Undoes one successful watch. The last one of the process restores the previous handler. */
void rondo_hang_signal_ignore(void);
/* Whether the signal has arrived since the last call of this function in this process. Any thread. */
int rondo_hang_signal_came(void);

#endif
