/* SPDX-License-Identifier: MIT */
/*
 * Select - one wait, with a waiter in the queue of each channel, and cases of
 * other kinds beside them.
 *
 * Channels.  Whether something can be done at once is looked at with the locks
 * of all of them held, and so is queueing: nothing can come in between.  They
 * are taken in the order of their addresses.  Once queued the wait goes to the
 * one who claims it, under the lock of his channel; the rest of the waiters is
 * stale from then on, and is taken out of the queues by whoever meets them, or
 * by the task itself before it returns.
 *
 * Others.  The task looks at them whenever it is woken, and claims its own wait
 * if one has come: an alarm and the end of a task wake it, and for a descriptor
 * a task of its own waits, which claims the wait itself.  What came without
 * having been claimed is still there: a task that has ended, a descriptor that
 * is ready.
 *
 *   S1  A waiter is looked at under its channel's lock alone, and the task
 *       takes each of those locks before it returns.
 *   S2  Who has claimed the wait, and no other, writes `won`.
 *   S3  The task suspends only after it has looked at the others once more,
 *       marked and armed as they are by then, and has found the wait open; and
 *       before it returns with one of them it has claimed the wait, so that no
 *       value is on its way to it.
 *   S4  When the call returns no task is marked for it, no alarm is armed, and
 *       none of its waiters is in a queue.
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
	uint64_t first;		  /* where to begin to look */
	struct weft__waiter *met; /* who had waited for what was done */
	bool others;		  /* cases that are no channels */
	struct weft__wait wait;
	/* Of the others, while they are waited for. */
	struct weft__alarm alarm;
	/* A scope's words, but not its alignment, which a stack that a
	 * sanitizer fakes does not have. */
	uint64_t polls[sizeof(struct weft_scope) / sizeof(uint64_t)];
	bool polls_open;
};

/* Has one come that is no channel?  Its index, with its result set; or -EAGAIN.
 * Descriptors are looked at by a system call, or, once others wait for them,
 * not at all. */
int weft__cases_look(struct weft__select *select, struct weft__worker *worker,
		     bool descriptors);

/* Sees to it that the task is woken when one comes.  -errno from starting a
 * task; end is to be called all the same. */
int weft__cases_begin(struct weft__select *select,
		      struct weft__worker *worker);
void weft__cases_end(struct weft__select *select);

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
