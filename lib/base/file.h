/*
 * Files that a user names: opened without waiting for another process, and written without a signal; and small files of the
 * system. Errors are errno values.
 * Relies on lib/base/signals.h. Any thread may call any function here.
 */
#ifndef RONDO_LIB_BASE_FILE_H
#define RONDO_LIB_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Opens a regular file; flags and mode as of open(2). Does not wait, as open does for the other end of a FIFO. Returns the
 * descriptor, or an errno value as a negative number: ESPIPE for a FIFO, a socket or a device. */
int rondo_file_open(const char *path, int flags, mode_t mode);
/* Writes all bytes at the offset. Returns 0 or the errno value; then any part may have been written. */
int rondo_file_write(int descriptor, const void *data, size_t bytes, off_t offset);
/* Replaces the file of this path as a whole, readable by its user alone: a reader finds the old bytes or the new ones. Returns
 * 0 or the errno value; then the old file is there, and none beside it. */
int rondo_file_replace(const char *path, const void *data, size_t bytes);
/* Reads a small file of the system (proc(5)) in one piece. Returns how many bytes of it there are, at most bytes, or an errno
 * value as a negative number. */
ssize_t rondo_file_read(const char *path, char *text, size_t bytes);
/* Sets the size of a file or of a memory file (memfd). Returns 0 or the errno value. */
int rondo_file_resize(int descriptor, off_t bytes);

#define RONDO_FILE_REASON_BYTES 160
/* Writes what the errno value of one of these functions means, with the limit that was exceeded, and returns text. */
const char *rondo_file_reason(int error, char text[RONDO_FILE_REASON_BYTES]);

#endif
