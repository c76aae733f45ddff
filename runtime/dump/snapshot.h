/* SPDX-License-Identifier: MIT */
/*
 * Snapshot - the registers and the live part of the stack of a task, copied, to
 * be unwound when it has gone on.
 *
 * A task that waits is held meanwhile (task_hold.h), and its registers lie on
 * its stack, as do those of one that is ready (optimistic_read.h).  One that
 * runs cannot be held: a signal interrupts its worker, and the handler copies.
 *
 *	who looks			    the worker's thread
 *	---------			    -------------------
 *	[word] = its thread id; signal
 *					    [word] thread id -> FILLING
 *					    copies
 *	[word] == DONE: has it		    [word] = DONE
 *	or, when it takes too long,
 *	[word] thread id -> NOBODY
 *
 *   S1  The buffer belongs to the one whose CAS takes the word from the thread
 *       id on.  A signal that comes late finds another word, and does nothing.
 *   S2  One at a time asks, in the whole process; that is the caller's affair.
 *
 * Orderings
 *   [snapshot.ask]  thread id store release -> handler's CAS acquire: where to
 *       copy to.
 *   [snapshot.done]  DONE store release -> load acquire: the copy.
 */
#ifndef WEFT_RUNTIME_DUMP_SNAPSHOT_H
#define WEFT_RUNTIME_DUMP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__task;
struct weft__worker;

/* By the numbers that DWARF has for them. */
enum {
#if defined(__x86_64__)
	WEFT__REGISTER_FRAME = 6,
	WEFT__REGISTER_SP = 7,
	WEFT__REGISTERS = 16,
#else
	WEFT__REGISTER_FRAME = 29,
	WEFT__REGISTER_SP = 31,
	WEFT__REGISTERS = 32,
#endif
};

struct weft__registers {
	uint64_t value[WEFT__REGISTERS];
	uint32_t known; /* bits */
	bool returns; /* pc is where a call returns to, not what runs next */
	uint64_t pc;
};

#define WEFT__SNAPSHOT_BYTES ((size_t)32 << 10)

struct weft__snapshot {
	struct weft__registers at;
	uint64_t base; /* address of what `stack` begins with */
	size_t bytes;
	uint64_t stack[WEFT__SNAPSHOT_BYTES / sizeof(uint64_t)];
};

static inline void weft__register_set(struct weft__registers *at,
				      unsigned which, uint64_t value)
{
	at->value[which] = value;
	at->known |= (uint32_t)1 << which;
}

/* Of a task that is held, and has a stack. */
void weft__snapshot_held(const struct weft__task *task,
			 struct weft__snapshot *ret_snapshot);

/* Of one that may run and end meanwhile: it counts if that one stood still
 * (optimistic_read.h).  False: there is nothing to be copied. */
bool weft__snapshot_loose(const struct weft__task *task,
			  struct weft__snapshot *ret_snapshot);

/* Around any number of the next. */
void weft__snapshot_begin(void);
void weft__snapshot_end(void);

enum weft__doing {
	WEFT__DOING_PARKS,   /* nothing */
	WEFT__DOING_BETWEEN, /* runs, but no task just now */
	WEFT__DOING_RUNS,    /* a task */
	WEFT__DOING_SILENT,  /* does not answer */
};

/* What the worker does; of a task that runs its id, and the snapshot. */
enum weft__doing weft__snapshot_worker(struct weft__worker *worker,
				       uint64_t *ret_id,
				       struct weft__snapshot *ret_snapshot);

#endif
