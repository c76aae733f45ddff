/* SPDX-License-Identifier: MIT */
/*
 * Captures the stderr of a process that goes on, and ends it afterwards.
 */
#ifndef WEFT_TESTS_SUPPORT_STDERR_CAPTURE_H
#define WEFT_TESTS_SUPPORT_STDERR_CAPTURE_H

#include <sys/types.h>

void said_begin(void);
const char *said_end(void);

/* Waits for what is written, and takes it: the bytes of a pipe. */
ssize_t said_read(void *buf, size_t bytes);

/* Tasks that are left keep their memory, so the process ends without a search
 * for leaks. */
_Noreturn void leave_memory(void);

#endif
