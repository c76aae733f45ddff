/* SPDX-License-Identifier: MIT */
/*
 * Idled - how long the processors of this machine have had nothing to do.
 */
#ifndef WEFT_IO_OS_CPU_IDLE_H
#define WEFT_IO_OS_CPU_IDLE_H

#include <stdint.h>

/* A descriptor, or -1: not to be told. */
int weft__cpu_idle_open(void);

/* All of them together, since it was started, in steps of 10 ms; 0 if that
 * cannot be told.  A sleep that counts as one for a disk is part of it. */
uint64_t weft__cpu_idle_ns(int fd);

#endif
