/* SPDX-License-Identifier: MIT */
/*
 * Probe - a feature of the running kernel that only a try can show.
 */
#ifndef WEFT_IO_RING_URING_PROBE_H
#define WEFT_IO_RING_URING_PROBE_H

#include <stdbool.h>

/* Does a multishot receive always report the end of its socket?  False if that
 * cannot be found out.  It is tried once in a process. */
bool weft__probe_reports_ends(void);

/* Tries it each time. */
bool weft__probe_try_ends(void);

#endif
