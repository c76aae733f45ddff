/* SPDX-License-Identifier: MIT */
/*
 * The way of a call on datagrams: a system call, and a wait if it was in vain.
 *
 * A system call counts as a wait: deadlines and cancellation apply, and a task
 * that never has to wait yields once its budget is used up.
 *
 * A report that no task takes would end each poll at once, and have its place
 * in the receive buffer.  So where the program takes none, a call that has to
 * wait drops those that have ended a call, and no other: the kernel makes the
 * next one, if it has one, the socket's error.
 */
#include <poll.h>

#include "net/udp.h"

static int udp_begin(struct weft__udp *udp, int *ret_fd,
		     struct weft__fd **ret_entry)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	*ret_fd = weft__udp_fd(udp);
	return weft__call_entry(worker, *ret_fd, ret_entry);
}

/* Between two steps, of which the first has moved something: 0, or the reason
 * to end. */
static int udp_goes_on(struct weft__fd *entry, uint8_t closes)
{
	struct weft__worker *worker = weft__worker_self();

	if (weft__fd_closes(entry) != closes)
		return -ECANCELED;
	return weft__interrupted(worker, worker->current);
}

static bool drops_reports(struct weft__udp *udp)
{
	/* relaxed: a call that sees it later drops what came before. */
	return udp->has_errors && !weft__load(&udp->reports, relaxed);
}

/* A step has failed: if it was a report that failed it, this has been told. */
static void report_told(struct weft__udp *udp)
{
	if (drops_reports(udp))
		/* relaxed: a number; only its value counts. */
		weft__add(&udp->told, 1u, relaxed);
}

/* A poll has found something, but the step after it no error.  There may be
 * reports that were never an error. */
static void reports_drop(struct weft__udp *udp, int fd, int polled)
{
	uint32_t told;

	if (polled < 0 || !(polled & POLLERR) || !drops_reports(udp))
		return;
	/* relaxed: see report_told(). */
	told = weft__swap(&udp->told, 0u, relaxed);
	weft__udp_drop_reports(fd, told ? told : 1);
}

int weft__udp_run(struct weft__udp *udp, weft__udp_step step, void *arg,
		  int flags, unsigned events)
{
	struct weft__fd *entry;
	unsigned tries = 0;
	uint8_t closes;
	int polled = 0, fd, r = udp_begin(udp, &fd, &entry);

	if (r < 0)
		return r;
	closes = weft__fd_closes(entry);
	for (;;) {
		struct weft__worker *worker = weft__worker_self();
		bool waits;

		weft__wait_begin(worker, worker->current);
		r = step(udp, fd, arg);
		waits = r == -EAGAIN && !(flags & MSG_DONTWAIT);
		if (r < 0 && r != -EAGAIN)
			report_told(udp);
		if (r <= 0 && !waits) {
			(void)weft__call_ready(worker, 0);
			break;
		}
		tries = waits ? tries + 1 : 0;
		if (waits) {
			reports_drop(udp, fd, polled);
			r = weft__op_await_ready(fd, entry, events, tries - 1);
		} else {
			(void)weft__call_ready(worker, 0);
		}
		polled = waits ? r : 0;
		if (r >= 0)
			r = udp_goes_on(entry, closes);
		if (r < 0)
			break;
	}
	return (int)weft__call_overtaken(r, weft__fd_closes(entry) != closes);
}

void weft__udp_charge(unsigned messages, size_t bytes)
{
	struct weft__worker *worker = weft__worker_self();

	weft__charge_ops(worker, messages - 1);
	weft__call_charge(worker, bytes);
}
