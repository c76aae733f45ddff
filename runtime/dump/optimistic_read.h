/* SPDX-License-Identifier: MIT */
/*
 * Still - reading the stack of a task that is ready, or joins one that runs,
 * which nobody can hold: a worker may take it up at any time.  So it is read
 * without asking, and what was read counts if no worker has run the task
 * meanwhile.  What switches write anyway tells that, and they pay nothing:
 *
 *	to T		current = T; jump; runs + 1; T goes on
 *	away from T	left = T, left_how = ...; current = another; saves;
 *			jump; left_how = nothing
 *
 *	begin		notes the runs of all workers; then none has T, or is
 *			leaving it
 *	  ... reads ...
 *	end		none has T; then their runs are what they were
 *
 *   Q1  Who has begun to run T since has it still, or has counted a run.
 *   Q2  Who had it before, and has another one now, has said that he leaves it,
 *       and until he has left.
 *   Q3  Records and stacks stay mapped while the runtime lives: what is read
 *       may be nonsense, but can be read.
 *
 * Those are writes, and reads, in the order of the program, which x86-64 keeps.
 * Elsewhere each switch would have to pay for that, and does not: there every
 * task may have run.
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

/* 0 or -ENOMEM; fini is to be called all the same. */
int weft__optimistic_read_init(struct weft__optimistic_read *still,
			       struct weft_runtime *runtime);
void weft__optimistic_read_fini(struct weft__optimistic_read *still);

/* False: it runs. */
bool weft__optimistic_read_begin(struct weft__optimistic_read *still,
		       const struct weft__task *task);

/* The id of what the task joins by a switch to it; 0: it does not.  Holds if it
 * is asked for between begin and end. */
uint64_t weft__optimistic_read_joins(const struct weft__optimistic_read *still,
			   const struct weft__task *task);

/* False: it may have run. */
bool weft__optimistic_read_end(const struct weft__optimistic_read *still,
		     const struct weft__task *task);

#endif
