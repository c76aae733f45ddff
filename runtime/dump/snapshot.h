/* SPDX-License-Identifier: MIT */
/*
 * Snapshot - a copy of a task's registers and of the used part of its stack, to
 * be unwound after the task has gone on.
 *
 * A task that waits is held meanwhile (task_hold.h); its registers lie on its
 * stack.  So do those of a ready task (optimistic_read.h).  A task that runs
 * cannot be held: a signal interrupts its worker, and the handler copies.
 *
 *	the dumping thread		    the worker's thread
 *	------------------		    -------------------
 *	[word] = its thread id; signal
 *					    [word] thread id -> FILLING
 *					    copies
 *	[word] == DONE: has the copy	    [word] = DONE
 *	or, after too long,
 *	[word] thread id -> NOBODY
 *
 *   SNAP1  The buffer belongs to the thread whose CAS replaces the thread id in
 *       the word.  A signal that comes late finds another word, and does
 *       nothing.
 *   SNAP2  Only one thread of the process asks at a time; the caller ensures
 *       that.
 *
 * Orderings
 *   [snapshot.ask]  thread id store release -> handler's CAS acquire: the
 *       destination of the copy.
 *   [snapshot.done]  DONE store release -> load acquire: the copy.
 */
#ifndef WEFT_RUNTIME_DUMP_SNAPSHOT_H
#define WEFT_RUNTIME_DUMP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__task;
struct weft__worker;

/* Numbered as in DWARF. */
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
	bool returns; /* pc is a return address, not the next instruction */
	uint64_t pc;
};

#define WEFT__SNAPSHOT_BYTES ((size_t)32 << 10)

struct weft__snapshot {
	struct weft__registers at;
	uint64_t base; /* address of the first copied word */
	size_t bytes;
	uint64_t stack[WEFT__SNAPSHOT_BYTES / sizeof(uint64_t)];
};

static inline void weft__register_set(struct weft__registers *at,
				      unsigned which, uint64_t value)
{
	at->value[which] = value;
	at->known |= (uint32_t)1 << which;
}

/* Copies a task that is held and has a stack. */
void weft__snapshot_held(const struct weft__task *task,
			 struct weft__snapshot *ret_snapshot);

/* Copies a task that may run and end meanwhile: the copy counts if the
 * optimistic read around it succeeds (optimistic_read.h).  False: nothing to
 * copy. */
bool weft__snapshot_loose(const struct weft__task *task,
			  struct weft__snapshot *ret_snapshot);

/* Enclose any number of the calls below. */
void weft__snapshot_begin(void);
void weft__snapshot_end(void); /* also in a child after fork() */

enum weft__doing {
	WEFT__DOING_PARKS,   /* runs nothing */
	WEFT__DOING_BETWEEN, /* runs, but no task just now */
	WEFT__DOING_RUNS,    /* runs a task */
	WEFT__DOING_SILENT,  /* does not answer */
};

/* Returns what the worker does; if it runs a task, also the task's id and
 * snapshot. */
enum weft__doing weft__snapshot_worker(struct weft__worker *worker,
				       uint64_t *ret_id,
				       struct weft__snapshot *ret_snapshot);

#endif
