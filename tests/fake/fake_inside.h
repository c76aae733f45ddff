/* SPDX-License-Identifier: MIT */
/*
 * Calls between the parts of a fake run.
 */
#ifndef WEFT_TESTS_FAKE_FAKE_INSIDE_H
#define WEFT_TESTS_FAKE_FAKE_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

struct fake_rings;

/* Is there a run?  The others ask for one, but fake_looks(). */
bool fake_runs(void);

/* The virtual time; and weft's look at the clock, which may take time, and may
 * find that another thread has done something. */
uint64_t fake_clock(void);
uint64_t fake_look(void);

/* Any number, from the seed. */
uint64_t fake_number(void);

struct fake_rings *fake_rings(void);

/* The calling worker pauses until its ring has a completion, for so long at
 * most. */
void fake_sleep(uint32_t worker, uint64_t wait_ns);

/* A worker was sent a message, or its eventfd was written to. */
void fake_woken(uint32_t worker);

/* The calling worker is told whether it is the monitor. */
void fake_watches(bool watches);

/* The time that a worker has waited for a processor, and that all processors
 * were idle. */
uint64_t fake_waited(void);
uint64_t fake_idle(void);

/* The run has failed; the first reason is reported. */
void fake_trouble(const char *what);

#endif
