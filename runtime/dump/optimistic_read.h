/* SPDX-License-Identifier: MIT */
/*
 * Optimistic read - reads the stack of a task that is ready, or joins one that
 * runs.  Such a task cannot be held, as a worker may run it at any time.  So
 * its stack is read without holding it, and the data counts if no worker has
 * run the task meanwhile.  The writes that every switch makes anyway show that,
 * so switches pay nothing:
 *
 *	to T		current = T; jump; runs + 1; T goes on
 *	away from T	left = T, left_how = ...; current = another; saves;
 *			jump; left_how = nothing
 *
 *	begin		notes the runs of all workers; then checks that no
 *			worker runs T or is leaving it
 *	  ... reads ...
 *	end		checks that no worker runs T; then that their runs are
 *			unchanged
 *
 *   OPT1  A worker that has begun to run T since then either still runs it, or
 *       has counted a run.
 *   OPT2  A worker that ran T before and runs another task now has noted in
 *       `left` that it is leaving T, and keeps that until it has left.
 *   OPT3  Records and stacks stay mapped while the runtime lives: the data may
 *       be nonsense, but can be read.
 *
 * This needs writes and reads in program order, which x86-64 keeps.  Elsewhere
 * each switch would have to pay for that order, and does not: there every task
 * counts as one that may have run.
 */
#ifndef WEFT_RUNTIME_DUMP_OPTIMISTIC_READ_H
#define WEFT_RUNTIME_DUMP_OPTIMISTIC_READ_H

#include <stdbool.h>
#include <stdint.h>

struct weft__task;
struct weft_runtime;

struct weft__optimistic_read {
	struct weft_runtime *runtime;
	uint64_t *runs; /* of each worker, at the beginning */
};

/* 0 or -ENOMEM; call fini in either case. */
int weft__optimistic_read_init(struct weft__optimistic_read *still,
			       struct weft_runtime *runtime);
void weft__optimistic_read_fini(struct weft__optimistic_read *still);

/* False: the task runs. */
bool weft__optimistic_read_begin(struct weft__optimistic_read *still,
		       const struct weft__task *task);

/* The id of the task that `task` joins by a switch to it; 0: none.  Valid if
 * called between begin and a successful end. */
uint64_t weft__optimistic_read_joins(const struct weft__optimistic_read *still,
			   const struct weft__task *task);

/* False: the task may have run. */
bool weft__optimistic_read_end(const struct weft__optimistic_read *still,
		     const struct weft__task *task);

#endif
