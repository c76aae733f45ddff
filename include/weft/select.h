/* SPDX-License-Identifier: MIT */
/*
 * Select: waits until one of several operations is possible and does that one
 * alone; all others are left as they were.
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
	WEFT_CASE_NONE, /* never chosen: a case that is left out */
	WEFT_CASE_SEND,
	WEFT_CASE_RECV,
	WEFT_CASE_JOINED,
	WEFT_CASE_READY,
	WEFT_CASE_AT,
};

struct weft_case {
	enum weft_case_kind kind;
	int result; /* set if the case was chosen */
	struct weft_chan *chan;
	void *item;	 /* the value to send, or the place to receive it */
	uint64_t number; /* the deadline, the task's id, the descriptor */
	short events;
	int (*poll)(int fd, short events);
	uint64_t private_words[8];
};

/* As weft_chan_send() and weft_chan_recv().  Result: 0 or -EPIPE. */
#define WEFT_SEND(chan, item) \
	{ WEFT_CASE_SEND, 0, (chan), WEFT__MUTABLE(item), 0, 0, 0, { 0 } }
#define WEFT_RECV(chan, item) \
	{ WEFT_CASE_RECV, 0, (chan), (item), 0, 0, 0, { 0 } }

/* A task has ended, so that weft_join() for it will not wait.  Result: 0, or
 * the error with which weft_join() refuses the handle. */
#define WEFT_JOINED(task) \
	{ WEFT_CASE_JOINED, 0, 0, 0, (task).id, 0, 0, { 0 } }

/* A descriptor is ready, as for weft_poll(); so not for a listening socket that
 * is also used with weft_accept().  Result: the events that hold, or an
 * error. */
#define WEFT_READY(fd, events)                                   \
	{ WEFT_CASE_READY, 0, 0, 0, WEFT__NUMBER(unsigned, fd),  \
	  WEFT__NUMBER(short, events), weft_poll, { 0 } }

/* A time has been reached, such as weft_now() + WEFT_MS(500).  Result: 0. */
#define WEFT_AT(deadline_ns) \
	{ WEFT_CASE_AT, 0, 0, 0, WEFT__NUMBER(weft_nsec, deadline_ns), 0, 0, \
	  { 0 } }

#define WEFT_CASES_MAX 64u

/*
 * Suspends until one of the cases is possible, and does it; returns its index,
 * and sets its result.  A send or receive on a closed channel is possible: its
 * result is -EPIPE.  If several cases are possible, the search begins at a
 * random one, so that each has its turns.  All channels must outlive the call;
 * the array may be used again.  Without cases the call waits until it is
 * interrupted.  A thread that runs no task blocks; WEFT_AT() bounds its wait
 * for a channel.
 *
 * For each descriptor that is not ready, the call starts a task, which ends
 * before the call returns.
 *
 * Errors: -EINVAL (more than WEFT_CASES_MAX, an unknown kind, a NULL channel),
 * -ECANCELED, -ETIMEDOUT, -EAGAIN or -ENOMEM (such a task could not be
 * started), -EPERM (called in a future, or in a thread that runs no task with
 * cases that are neither channels nor times).
 */
WEFT_API int weft_select(struct weft_case *cases,
			 size_t count) WEFT_WARN_UNUSED;
/* The same without waiting; does not suspend, and may be called in a future.
 * Returns -EAGAIN if no case is possible. */
WEFT_API int weft_try_select(struct weft_case *cases,
			     size_t count) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
