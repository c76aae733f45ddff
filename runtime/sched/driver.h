/* SPDX-License-Identifier: MIT */
/*
 * Driver - all that the scheduler asks of the outside.
 *
 * io/ provides one over io_uring, tests/ one with virtual time and no kernel.
 * The scheduler names no kernel interface but threads.
 *
 * What a driver does with the scheduler: it makes tasks ready (weft__wake of
 * runtime/sched/worker.h), always from a worker, never while it holds a lock.
 */
#ifndef WEFT_RUNTIME_SCHED_DRIVER_H
#define WEFT_RUNTIME_SCHED_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/atomic.h"

struct weft__task;
struct weft__worker;
struct weft_opts;
struct weft_runtime;

/* What an alarm does to its task when it goes off. */
enum weft__alarm_kind {
	WEFT__ALARM_WAKE,   /* wakes it: a sleep, a timer */
	WEFT__ALARM_EXPIRE, /* interrupts it: the deadline of a block */
	WEFT__ALARM_FUTURE, /* wakes the task in whose record it lies */
};

/* One pending point in time, embedded in what waits for it. */
struct weft__alarm {
	uint64_t node[4]; /* the timer folder's own, under its lane's lock */
	uint32_t shard;	  /* that holds it; set by arm */
	uint8_t kind;	  /* enum weft__alarm_kind */
	uint8_t armed;	  /* by whom it was armed, until disarmed: owner only */
	weft__atomic(uint8_t) fired; /* the timer folder's */
	uint8_t early; /* the owner's: it is set for less than was asked for */
	uint64_t task; /* id of the task it is for; a FUTURE's ends before it */
};

#define WEFT__ALARM_FUTURE_BYTES offsetof(struct weft__alarm, task)

enum weft__park_result {
	WEFT__PARK_WOKEN,   /* woken, or something completed, or time passed */
	WEFT__PARK_PENDING, /* a stepping driver: step the worker again when it
			       is due; nothing was waited for */
};

struct weft__driver_ops {
	const char *name;

	/* Once a runtime, after its workers exist and before they run; after
	 * they have left their loops.  -errno from open. */
	int (*open)(struct weft_runtime *runtime, const struct weft_opts *opts);
	void (*close)(struct weft_runtime *runtime);

	uint64_t (*now)(struct weft_runtime *runtime);

	/* The alarm goes off at deadline_ns or later, never earlier.  disarm
	 * returns true if it had not; after it the alarm's memory is free and
	 * nothing refers to it. */
	void (*arm)(struct weft__worker *worker, struct weft__alarm *alarm,
		    uint64_t deadline_ns);
	bool (*disarm)(struct weft_runtime *runtime, struct weft__alarm *alarm);

	/* The start of a tick: time (worker 0), then what the worker's tasks
	 * queued is submitted and its completions are made ready.  Never waits.
	 * now_ns is the time just read. */
	void (*poll)(struct weft__worker *worker, uint64_t now_ns);

	/* Would a poll make anything ready, at the time that the tick ended?
	 * An estimate. */
	bool (*pending)(struct weft__worker *worker);

	/* `late` has not been seen for a while: does what its poll would do.
	 * Returns how many tasks that made ready. */
	unsigned (*help)(struct weft__worker *worker, struct weft__worker *late,
			 uint64_t now_ns);

	/* Parking.  begin makes sure that nobody else takes this worker's
	 * completions from here on.  Then either abort, or park: submits what
	 * is queued, waits for a completion, a wake, or wait_ns (worker 0: or
	 * the next alarm), and makes ready what completed. */
	void (*park_begin)(struct weft__worker *worker);
	void (*park_abort)(struct weft__worker *worker);
	enum weft__park_result (*park)(struct weft__worker *worker,
				       uint64_t wait_ns);

	/* Ends the other worker's park.  `from` is the calling worker of the
	 * same runtime, or NULL on a foreign thread. */
	void (*wake)(struct weft__worker *from, struct weft__worker *to);

	/* The worker's thread, which calls this, is the monitor from here on:
	 * however others compute, it should run as soon as it wakes.  Or it no
	 * longer is, and runs tasks.  May be told what it knows. */
	void (*watch)(struct weft__worker *worker, bool watches);

	/* How long the worker's thread, which calls this, has so far waited for
	 * a processor while it could run.  Never less than before; 0 if that
	 * cannot be told. */
	uint64_t (*waited)(struct weft__worker *worker);

	/* How long the processors of this machine have had nothing to do so
	 * far, all together.  From a worker; 0 if that cannot be told. */
	uint64_t (*cpu_idle)(struct weft_runtime *runtime);

	/* What a task waits for that was suspended for weft__reason_number() of
	 * that: words that follow "waits", as snprintf() writes them.  From any
	 * thread.  NULL, if it has no such reasons. */
	int (*describe)(uint64_t number, char *ret_text, size_t bytes);

	/* A seed for the choice of victims. */
	uint64_t (*random)(struct weft_runtime *runtime);
};

#endif
