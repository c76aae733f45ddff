/* SPDX-License-Identifier: MIT */
/*
 * CPU idle - the time for which the processors of this machine were idle.
 */
#ifndef WEFT_IO_OS_CPU_IDLE_H
#define WEFT_IO_OS_CPU_IDLE_H

#include <stdint.h>

/* Returns a descriptor, or -1: the time is not known. */
int weft__cpu_idle_open(void);

/* The sum over all processors since the machine started, in steps of 10 ms; 0
 * if it is not known.  A sleep that counts as a wait for a disk is part of
 * it. */
uint64_t weft__cpu_idle_ns(int fd);

#endif
