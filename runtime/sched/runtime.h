/* SPDX-License-Identifier: MIT */
/*
 * Runtime - workers, the queues they share, and the records of their tasks.
 * This header has the struct; runtime/runtime.c makes and ends one.
 */
#ifndef WEFT_RUNTIME_SCHED_RUNTIME_H
#define WEFT_RUNTIME_SCHED_RUNTIME_H

#include <pthread.h>
#include <signal.h>

#include <weft/runtime.h>
#include <weft/scope.h>

#include "runtime/base/thread_number.h"
#include "runtime/sched/driver.h"
#include "runtime/sched/idle.h"
#include "runtime/sched/inject.h"
#include "runtime/sched/stack_wait.h"
#include "runtime/stack/stack.h"

/* Records are in chunks of 4096; the limit of tasks sets the length of the
 * table of chunks. */
enum { WEFT__TASK_CHUNK_BITS = 12, WEFT__TASK_CHUNK = 1 << 12 };

struct weft__task_slabs {
	struct weft__lock lock;
	weft__atomic(struct weft__task *) *chunks; /* the table is immutable */
	uint32_t chunks_max;			   /* immutable */
	weft__atomic(uint32_t) used; /* indices handed out; under lock */
	uint32_t max;		     /* immutable */
	bool small; /* immutable: workers keep none, so that max is exact */
	struct weft__task *batches;  /* under lock; full batches, by
					handle_next */
	struct weft__task *free;     /* under lock; others */
	uint32_t free_count;	     /* under lock */
	const struct weft_allocator *memory; /* immutable: the runtime's */
};

struct weft__blocking;
struct weft__watchdog;

/* How many workers run at a time; see runtime/sched/worker_limit.h. */
struct weft__worker_limit {
	weft__atomic(uint32_t) max; /* workers_count: no limit */
	weft__atomic(uint32_t) max_before; /* the last change */
	weft__atomic(uint64_t) changed_ns;
	weft__atomic(uint64_t) hold_ns; /* from then until it is tested */
	weft__atomic(bool) raised;	/* by the last change */
	weft__atomic(bool) gained;	/* and that brought more runs */
	/* The idle time of the machine, when it was last looked at, and whether
	 * there was much before. */
	weft__atomic(uint64_t) cpu_idle_ns;
	weft__atomic(uint64_t) cpu_looked_ns;
	weft__atomic(bool) cpu_free;
	/* Runs of tasks: their number when they were last counted, and a second
	 * under this limit and before the last change; 0: not known. */
	weft__atomic(uint64_t) counted_ns;
	weft__atomic(uint64_t) runs;
	weft__atomic(uint64_t) rate;
	weft__atomic(uint64_t) rate_before;
	weft__atomic(uint64_t) completions; /* when the runs were counted */
	weft__atomic(bool) serving; /* most runs were due to them */
};

/* The call that the first task makes, and its result. */
struct weft__main_call {
	weft_fn fn;
	void *arg;
	int64_t result;
};

/* A bit of `refs`: its end is awaited. */
#define WEFT__REFS_AWAITED ((uint32_t)1 << 31)

/* How often looking before a sleep was in vain; see runtime/sched/spin.h. */
struct weft__spin {
	weft__atomic(uint32_t) misses;
};

struct weft_runtime {
	const struct weft__driver_ops *ops; /* immutable */
	struct weft__worker **workers;	    /* immutable */
	uint32_t workers_count;		    /* immutable */
	uint8_t stack_class;		    /* immutable */
	uint64_t control; /* immutable: tasks' floating-point control words */
	bool spins;			    /* immutable; see
					       runtime/sched/spin.h */
	bool caller_works;		    /* immutable: the thread that made
					       it is the thread of worker 0 */
	bool monitor_off;		    /* immutable; tests */
	bool help_off;			    /* immutable; tests */
	bool timer_shards_off;			    /* immutable; tests */
	bool turn_off;			    /* immutable; tests */
	void *driver;			    /* the driver's own */
	struct weft__task_slabs tasks;
	struct weft__stacks stacks;
	struct weft__stack_wait stack_wait;
	struct weft_scope root; /* main and submitted tasks; no owner */
	weft__atomic(uint64_t) roots_begun; /* their number so far */

	struct weft__inject inject;
	struct weft__idle idle;

	/* When a worker last went from parked to running. */
	weft__atomic(uint64_t) active_ns WEFT__APART;
	struct weft__worker_limit worker_limit;

	weft__atomic(uint32_t) stopping WEFT__APART; /* enum weft__stop */
	struct weft__lock stop_lock; /* see runtime/runtime.c */
	bool ends_for_good; /* under stop_lock; no way back from ENDS */
	weft__atomic(uint64_t) stop_by_ns; /* written under stop_lock, or by
					      worker 0 */
	weft__atomic(uint32_t) left; /* workers out of their loops; a futex */
	weft__atomic(uint32_t) closed; /* the driver is closed; a futex */
	/* Calls of threads in progress, and whether their end is waited for; a
	 * futex. */
	weft__atomic(uint32_t) refs;
	struct weft__spin join_spin; /* of threads in weft_wait() */
	uint64_t shutdown_ns; /* immutable */
	/* The first task of weft_run(); an id of 0: none.  Here, since an
	 * abandoned task outlives that call. */
	weft__atomic(uint64_t) main_id;
	struct weft__main_call main_call; /* the first task only, and the
					     thread of weft_run() */
	/* Immutable: the program's functions, and NULL or their address; see
	 * base/memory.h. */
	struct weft_allocator allocator;
	const struct weft_allocator *memory;
	uint64_t blocking_idle_ns;     /* immutable; 0: the default */
	uint32_t blocking_threads_max; /* immutable; 0: the default */
	weft__atomic(struct weft__blocking *) blocking; /* NULL: not needed
							   so far */
	struct weft__watchdog *watchdog; /* NULL: none */
	sigset_t signals; /* immutable: blocked in the thread that started it */
	/* Immutable: the number of the thread whose loop it is in; 0: none.
	 * The descriptor for that loop.  The stack for signals that the thread
	 * was given, or NULL. */
	uint64_t loop_thread;
	int loop_fd;
	void *loop_altstack;
	uint32_t workers_room; /* the places of `workers` */
	pthread_t *threads;
	uint32_t threads_count;
	weft__atomic(bool) abandoned; /* tasks are left, [runtime.left] */
};

enum weft__stop {
	WEFT__STOP_NOT,	   /* runs */
	WEFT__STOP_ENDS,   /* main is to end, within shutdown_ns */
	WEFT__STOP_DRAINS, /* main is done; the rest is cancelled, waited for */
	WEFT__STOP_NOW,	   /* workers leave their loops */
};

/* Makes a runtime with its workers, without threads; weft__runtime_free undoes
 * it.  Tests call these two with a driver of their own.  caller_works: this
 * thread will run the runtime, and free it. */
int weft__runtime_new(const struct weft_opts *opts,
		      const struct weft__driver_ops *ops, bool caller_works,
		      struct weft_runtime **ret_runtime);
void weft__runtime_free(struct weft_runtime *runtime);
/* Prints the limits that may be the cause of the error; returns the error.
 * Locked memory has a message of its own. */
int weft__not_started(int error);

/* Is the calling thread the one whose loop the runtime is in? */
static inline bool weft__loop_is_here(const struct weft_runtime *runtime)
{
	return weft__unlikely(runtime->loop_thread != 0) &&
	       runtime->loop_thread == weft__thread_number();
}

/* The driver of the programs; io/driver.c. */
const struct weft__driver_ops *weft__driver_default(void);

/* The program's own function of a task that has `fn`, and whose arguments begin
 * with `arg`. */
weft_fn weft__task_function(weft_fn fn, const void *arg);

/* Prints the tasks that have not ended; returns their number. */
unsigned weft__runtime_name_survivors(struct weft_runtime *runtime);

#endif
