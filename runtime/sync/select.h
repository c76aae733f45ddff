/* SPDX-License-Identifier: MIT */
/*
 * Select - one wait, with a waiter in the queue of each channel, and cases of
 * other kinds beside them.
 *
 * Channels.  The task holds the locks of all channels, taken in the order of
 * their addresses, while it looks for a case that can be done now and while it
 * queues its waiters: nothing can come in between.  Once queued, the wait goes
 * to the task that claims it under its channel's lock.  From then on the other
 * waiters are stale; a task that meets one takes it out of its queue, or the
 * selecting task does so before it returns.
 *
 * Others.  The task looks at the other cases whenever it is woken, and claims
 * its own wait if one has come.  An alarm or the end of a task wakes it.  For a
 * descriptor a task of its own waits, which claims the wait itself.  An event
 * that came without a claim is still there: a task that has ended, a descriptor
 * that is ready.
 *
 * Threads.  A thread that runs no task selects channels and times alone: it
 * sleeps on the word of its wait until the earliest time, instead of with an
 * alarm.
 *
 *   SEL1  A waiter is looked at under its channel's lock alone, and the task
 *       takes each of those locks before it returns.
 *   SEL2  Only the task that has claimed the wait writes `won`.
 *   SEL3  The task suspends only after it has looked at the others once more,
 *       when they were marked and armed, and has found the wait open.  Before
 *       it returns with one of them it has claimed the wait, so that no value
 *       is on its way to it.
 *   SEL4  When the call returns no task is marked for it, no alarm is armed,
 *       and none of its waiters is in a queue.
 *
 * Modelled in tests/model/model_select.c and model_select_cases.c.
 */
#ifndef WEFT_RUNTIME_SYNC_SELECT_H
#define WEFT_RUNTIME_SYNC_SELECT_H

#include <weft/select.h>

#include "runtime/sync/chan.h"

struct weft__select {
	struct weft_case *cases;
	uint32_t count;
	uint32_t channels;
	struct weft__chan *order[WEFT_CASES_MAX]; /* by address, each once */
	uint64_t first;		  /* the case to look at first */
	struct weft__waiter *met; /* the other side of the case that was done */
	bool others;		  /* there are cases without a channel */
	bool needs_task;	  /* some of them are only for tasks */
	struct weft__wait wait;
	/* For the others, while the task waits for them. */
	struct weft__alarm alarm;
	/* A scope's words without its alignment: a stack that a sanitizer fakes
	 * is not aligned for it. */
	uint64_t polls[sizeof(struct weft_scope) / sizeof(uint64_t)];
	bool polls_open;
};

/* Looks for an other case that has come.  Returns its index, with its result
 * set, or -EAGAIN.  Looks at descriptors with a system call, or, once tasks
 * wait for them, not at all. */
int weft__cases_look(struct weft__select *select, struct weft__worker *worker,
		     bool descriptors);

/* Makes the other cases wake the task when they come.  -errno from starting a
 * task; call end in either case. */
int weft__cases_begin(struct weft__select *select,
		      struct weft__worker *worker);
void weft__cases_end(struct weft__select *select);

/* Blocks a thread, whose other cases are times: until one has come (its index),
 * or until the wait is claimed (-EAGAIN). */
int weft__cases_watch_thread(struct weft__select *select);

/* The waiter of a case. */
struct weft__select_case_words {
	union {
		struct weft__waiter waiter; /* of a channel's */
		uint64_t marked;	    /* of a task that is joined */
	};
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__select_case_words) <=
		       sizeof(((struct weft_case *)0)->private_words),
	       "the public struct has room for it");

static inline struct weft__select_case_words *
weft__select_case_words(struct weft_case *which)
{
	return (void *)which->private_words;
}

#endif
