/* SPDX-License-Identifier: MIT */
/*
 * Snapshot - a copy of a task's registers and of the used part of its stack, to
 * be unwound after the task has gone on.
 *
 * A task that waits is held meanwhile (task_hold.h); its registers lie on its
 * stack.  So do those of a ready task (optimistic_read.h).  A task that runs
 * cannot be held.  If its thread sleeps in the kernel, a signal would cut the
 * system call short: the stack is copied as it is, from the sp and pc that the
 * kernel reports; the other registers are unknown.  Otherwise a signal
 * interrupts the thread, and the handler copies.
 *
 *	the dumping thread		    the worker's thread
 *	------------------		    -------------------
 *	[word] = its thread id; timer
 *					    the timer's signal
 *					    [word] thread id -> FILLING
 *					    copies
 *	[word] == DONE: has the copy	    [word] = DONE
 *	or, after a while,
 *	[word] thread id -> NOBODY; looks again whether the thread sleeps
 *
 * A system call that sleeps, or is about to, would be cut by the signal.  So
 * the timer is one of the CPU time that the thread spends outside of the
 * kernel.  It expires at a tick of the kernel's clock that finds the thread
 * there, and the thread has the signal before its next system call.  Only a
 * kernel that counts such time without ticks (nohz_full) may notice at a tick
 * within a call.
 *
 *   SNAP1  The buffer belongs to the thread whose CAS replaces the thread id in
 *       the word.  A signal that comes late finds another word, and does
 *       nothing.
 *   SNAP2  Only one thread of the process asks at a time; the caller ensures
 *       that.
 *   SNAP3  The copy of a thread that sleeps counts if the thread sleeps before
 *       and after it, and has not run meanwhile, as its CPU time shows.
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

#include "runtime/dump/task_info.h"

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

enum weft__sleeps {
	WEFT__SLEEPS_NOT,
	WEFT__SLEEPS_SEEN,   /* its sp and pc are known */
	WEFT__SLEEPS_HIDDEN, /* it does not run, and /proc cannot be read */
};

/* A worker, at one moment. */
struct weft__sample {
	enum weft__doing doing;
	enum weft__sleeps sleeps; /* its thread, in a task */
	uint64_t polls;		  /* that it has counted */
	struct weft__task_info task; /* that it runs; id 0: none, or unknown */
};

/* Looks at a worker; if it runs a task, also takes the task's snapshot.  That
 * is empty, and pc is 0, if the worker does not answer, or sleeps hidden. */
void weft__snapshot_worker(struct weft__worker *worker,
			   struct weft__sample *ret_sample,
			   struct weft__snapshot *ret_snapshot);

#endif
