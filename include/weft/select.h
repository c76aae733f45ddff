/* SPDX-License-Identifier: MIT */
/*
 * Select: waits until one of several things can be done or has come, and does
 * that one alone; all others are left as they were.
 *
 *	struct weft_case cases[] = {
 *		WEFT_RECV(&jobs, &job),
 *		WEFT_SEND(&results, &result),
 *		WEFT_JOINED(child),
 *		WEFT_READY(fd, POLLIN),
 *		WEFT_AT(next_report_ns),
 *	};
 *
 *	switch (weft_select(cases, 5)) {
 *	case 0:
 *		if (cases[0].result == 0)
 *			...			a job was received
 *	...
 */
#ifndef WEFT_SELECT_H
#define WEFT_SELECT_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/chan.h>
#include <weft/config.h>
#include <weft/io.h>
#include <weft/task.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

enum weft_case_kind {
	WEFT_CASE_NONE, /* never comes: a case that is left out */
	WEFT_CASE_SEND,
	WEFT_CASE_RECV,
	WEFT_CASE_JOINED,
	WEFT_CASE_READY,
	WEFT_CASE_AT,
};

struct weft_case {
	enum weft_case_kind kind;
	int result; /* of the one that was done */
	struct weft_chan *chan;
	void *item;	 /* what is sent, or where it is received */
	uint64_t number; /* the deadline, the task's id, the descriptor */
	short events;
	int (*poll)(int fd, short events);
	uint64_t private_words[8];
};

/* As weft_chan_send() and weft_chan_recv(); result: 0, or -EPIPE. */
#define WEFT_SEND(chan, item)                                             \
	{ WEFT_CASE_SEND, 0, (chan), (void *)(uintptr_t)(item), 0, 0, 0, \
	  { 0 } }
#define WEFT_RECV(chan, item) \
	{ WEFT_CASE_RECV, 0, (chan), (item), 0, 0, 0, { 0 } }

/* A task has ended: weft_join() for it will not wait.  Result: 0, or what that
 * refuses it with. */
#define WEFT_JOINED(task) \
	{ WEFT_CASE_JOINED, 0, 0, 0, (task).id, 0, 0, { 0 } }

/* A descriptor is ready, as for weft_poll(); so not a listener's that is used
 * with weft_accept(), too.  Result: the events that hold, or an error. */
#define WEFT_READY(fd, events)                                   \
	{ WEFT_CASE_READY, 0, 0, 0, (uint64_t)(unsigned)(fd),    \
	  (short)(events), weft_poll, { 0 } }

/* A point in time has come: weft_now() + WEFT_MS(500).  Result: 0. */
#define WEFT_AT(deadline_ns) \
	{ WEFT_CASE_AT, 0, 0, 0, (weft_nsec)(deadline_ns), 0, 0, { 0 } }

#define WEFT_CASES_MAX 64u

/*
 * Suspends until one of the cases can be done, and does it; returns its index,
 * and sets its result.  A closed channel counts as one with which the call can
 * be done.  It looks from a random one on, so that of several which can always
 * be done each has its turns.  All channels must outlive the call; the array
 * may be used again.
 *
 * For descriptors that are not ready it starts a task each, and ends it before
 * it returns.
 *
 * Otherwise -EINVAL (more than WEFT_CASES_MAX, an unknown kind, no channel),
 * -ECANCELED, -ETIMEDOUT, -EAGAIN and -ENOMEM (no such task could be started),
 * -EPERM (in a thread that runs no task, and not only channels).
 */
WEFT_API int weft_select(struct weft_case *cases,
			 size_t count) WEFT_WARN_UNUSED;
/* The same without waiting: -EAGAIN if none can be done. */
WEFT_API int weft_try_select(struct weft_case *cases,
			     size_t count) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
