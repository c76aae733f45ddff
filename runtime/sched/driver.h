/* SPDX-License-Identifier: MIT */
/*
 * Driver - everything that the scheduler needs from the outside.
 *
 * io/ provides the driver, over io_uring or epoll; in tests on virtual time,
 * over a ring without a kernel (tests/fake/).  The scheduler names no kernel
 * interface but threads.
 *
 * A driver makes tasks ready (weft__wake of runtime/sched/worker.h), always on
 * a worker, and never while it holds a lock.
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

/* The effect of an alarm on its task when it goes off. */
enum weft__alarm_kind {
	WEFT__ALARM_WAKE,   /* wakes it: a sleep, a timer */
	WEFT__ALARM_EXPIRE, /* interrupts it: the deadline of a block */
	WEFT__ALARM_FUTURE, /* wakes the task in whose record it lies */
};

/* One pending point in time, embedded in the object that waits for it. */
struct weft__alarm {
	uint64_t node[4]; /* the timer folder's own, under its shard's lock */
	uint32_t shard;	  /* the shard that holds it; set by arm */
	uint8_t kind;	  /* enum weft__alarm_kind */
	uint8_t armed;	  /* set while it is armed: owner only */
	weft__atomic(uint8_t) fired; /* the timer folder's */
	uint8_t early; /* the owner's: it is set to an earlier time than asked
			  for */
	uint64_t task; /* id of the task it is for; a FUTURE has no such word */
};

#define WEFT__ALARM_FUTURE_BYTES offsetof(struct weft__alarm, task)

struct weft__driver_ops {
	/* For a dump: the name of the engine, and *ret_why, the reason for it.
	 * NULL: it is not told. */
	const char *(*engine)(const struct weft_runtime *runtime,
			      const char **ret_why);

	/* Each is called once for a runtime: open after its workers exist and
	 * before they run, close after they have left their loops.  open
	 * returns 0 or -errno. */
	int (*open)(struct weft_runtime *runtime, const struct weft_opts *opts);
	void (*close)(struct weft_runtime *runtime);

	uint64_t (*now)(struct weft_runtime *runtime);

	/* The alarm goes off at deadline_ns or later, never earlier.  disarm
	 * returns true if the alarm had not gone off; after disarm its memory
	 * is free and nothing refers to it. */
	void (*arm)(struct weft__worker *worker, struct weft__alarm *alarm,
		    uint64_t deadline_ns);
	bool (*disarm)(struct weft_runtime *runtime, struct weft__alarm *alarm);

	/* The start of a tick: advances the timers (worker 0), submits what the
	 * worker's tasks queued, and makes ready the tasks whose operations
	 * completed.  Never waits.  now_ns is the time just read. */
	void (*poll)(struct weft__worker *worker, uint64_t now_ns);

	/* Would a poll make a task ready, at the time that the tick ended?  An
	 * estimate. */
	bool (*pending)(struct weft__worker *worker);

	/* `late` has not been seen for a while: does what its poll would do.
	 * Returns the number of tasks made ready. */
	unsigned (*help)(struct weft__worker *worker, struct weft__worker *late,
			 uint64_t now_ns);

	/* Parking.  park_begin makes sure that no other worker takes this
	 * worker's completions from here on.  Then either park_abort, or park:
	 * submits what is queued, waits for a completion, a wake, or wait_ns
	 * (worker 0: or the next alarm), and makes ready what completed. */
	void (*park_begin)(struct weft__worker *worker);
	void (*park_abort)(struct weft__worker *worker);
	void (*park)(struct weft__worker *worker, uint64_t wait_ns);

	/* For a runtime inside a foreign loop, which has one worker.  attach
	 * opens a descriptor, which stays the driver's; it returns that, or
	 * -errno.  rest is a park that does not wait: from its return on the
	 * descriptor becomes readable on what would end a park.  It returns
	 * when that is at the latest; 0: the rest ends now.  rouse ends each
	 * rest, and makes ready what completed.  persist makes the descriptor
	 * readable until the next rest.  detach: no rest follows. */
	int (*attach)(struct weft__worker *worker);
	uint64_t (*rest)(struct weft__worker *worker, uint64_t wait_ns);
	void (*rouse)(struct weft__worker *worker);
	void (*persist)(struct weft__worker *worker);
	void (*detach)(struct weft__worker *worker);

	/* Ends the other worker's park.  `from` is the calling worker of the
	 * same runtime, or NULL on a foreign thread. */
	void (*wake)(struct weft__worker *from, struct weft__worker *to);

	/* Called on the worker's thread, which is the monitor from here on:
	 * however much others compute, it should run as soon as it wakes.  With
	 * `watches` false it no longer is, and runs tasks.  The call may repeat
	 * what the driver knows. */
	void (*watch)(struct weft__worker *worker, bool watches);

	/* The time for which the worker's thread, which makes this call, has so
	 * far waited for a processor while it could run.  Never less than
	 * before; 0 if that cannot be measured. */
	uint64_t (*waited)(struct weft__worker *worker);

	/* The idle time of all processors of this machine so far, added up.
	 * Called on a worker; 0 if that cannot be measured. */
	uint64_t (*cpu_idle)(struct weft_runtime *runtime);

	/* Describes what a task waits for whose reason is weft__reason_number()
	 * of `number`: words that follow "waits", as snprintf() writes them.
	 * From any thread.  NULL if the driver has no such reasons. */
	int (*describe)(uint64_t number, char *ret_text, size_t bytes);

	/* A seed for the choice of victims. */
	uint64_t (*random)(struct weft_runtime *runtime);
};

#endif
