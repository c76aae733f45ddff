/* SPDX-License-Identifier: MIT */
/*
 * Select cases - those without a channel: points in time, ends of tasks,
 * descriptors.  select.h has the model and SEL3 and SEL4.
 */
#include <poll.h>

#include "runtime/base/futex.h"
#include "runtime/base/nsec.h"
#include "runtime/sched/runtime.h"
#include "runtime/sync/select.h"
#include "runtime/task/join.h"

static struct weft_task task_of(const struct weft_case *which)
{
	return (struct weft_task){ which->number };
}

/* ---- Looking ------------------------------------------------------------- */

/* Asks with a system call that does not wait. */
static int look_at_descriptor(const struct weft_case *which)
{
	struct pollfd p = {
		.fd = (int)which->number,
		.events = which->events,
	};
	int n = poll(&p, 1, 0);

	if (p.fd < 0 || (n > 0 && (p.revents & POLLNVAL)))
		return -EBADF;
	return n > 0 ? p.revents : -EAGAIN;
}

static int case_look(struct weft__worker *worker, struct weft_case *which,
		     bool descriptors)
{
	switch (which->kind) {
	case WEFT_CASE_AT:
		return weft_now() >= weft__nsec_point(which->number) ?
			       0 :
			       -EAGAIN;
	case WEFT_CASE_JOINED:
		return weft__join_look(worker, task_of(which));
	case WEFT_CASE_READY:
		return descriptors ? look_at_descriptor(which) : -EAGAIN;
	default:
		return -EAGAIN;
	}
}

int weft__cases_look(struct weft__select *s, struct weft__worker *worker,
		     bool descriptors)
{
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t k = (uint32_t)((s->first + i) % s->count);
		int r = case_look(worker, &s->cases[k], descriptors);

		if (r != -EAGAIN) {
			s->cases[k].result = r;
			return (int)k;
		}
	}
	return -EAGAIN;
}

/* ---- Descriptors --------------------------------------------------------- */

struct poll_arg {
	struct weft__select *select;
	uint32_t index;
};

/* The task that waits for a descriptor; it ends before the select does. */
static int64_t poll_body(void *arg)
{
	struct poll_arg *a = arg;
	struct weft__select *s = a->select;
	struct weft_case *which = &s->cases[a->index];
	struct weft__waiter *w = &weft__select_case_words(which)->waiter;
	int r = which->poll((int)which->number, which->events);
	struct weft__worker *worker = weft__worker_self();

	/* The select has ended, unless it was the descriptor that was
	 * closed. */
	if (r == -ECANCELED && weft__interrupted(worker, worker->current))
		return 0;
	if (!weft__wait_claim(&s->wait)) /* mutate: recheck=false */
		return 0;
	s->wait.won = a->index;
	which->result = r;
	w->wait = &s->wait;
	weft__waiter_grant(worker, w, WEFT__CHAN_DONE); /* mutate: wake */
	return 0;
}

static struct weft_scope *polls_of(struct weft__select *s)
{
	return (struct weft_scope *)(void *)s->polls;
}

static int poll_start(struct weft__select *s, uint32_t index)
{
	const struct poll_arg arg = { s, index };
	int error;

	if (!s->polls_open) {
		error = weft_supervisor_begin(polls_of(s));
		if (error < 0)
			return error;
		s->polls_open = true;
	}
	return weft_go(polls_of(s), poll_body, &arg, sizeof(arg));
}

/* ---- Waiting ------------------------------------------------------------- */

static uint64_t earliest_time(const struct weft__select *s)
{
	uint64_t earliest_ns = WEFT_NEVER;

	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t at_ns = weft__nsec_point(s->cases[i].number);

		if (s->cases[i].kind == WEFT_CASE_AT && at_ns < earliest_ns)
			earliest_ns = at_ns;
	}
	return earliest_ns;
}

static void alarm_set(struct weft__select *s, struct weft__worker *worker)
{
	uint64_t earliest_ns = earliest_time(s);

	if (earliest_ns == WEFT_NEVER)
		return;
	s->alarm = (struct weft__alarm){
		.task = s->wait.id,
		.kind = WEFT__ALARM_WAKE,
		.armed = true,
	};
	worker->ops->arm(worker, &s->alarm, earliest_ns); /* mutate: wake */
}

int weft__cases_watch_thread(struct weft__select *s)
{
	uint64_t now_ns, at_ns = earliest_time(s);

	/* mutate: recheck=false */
	while (weft__wait_is_open(&s->wait)) {
		now_ns = weft_now();
		if (now_ns >= at_ns)
			return weft__cases_look(s, NULL, false);
		weft__futex_wait_for(&s->wait.word, WEFT__WAIT_OPEN,
				     at_ns - now_ns);
	}
	return -EAGAIN;
}

/* Whether an earlier case has marked the same task. */
static bool is_marked(struct weft__select *s, const struct weft_case *which)
{
	for (struct weft_case *other = s->cases; other != which; other++)
		if (other->kind == WEFT_CASE_JOINED &&
		    other->number == which->number)
			return true;
	return false;
}

int weft__cases_begin(struct weft__select *s, struct weft__worker *worker)
{
	int error = 0;

	alarm_set(s, worker);
	for (uint32_t i = 0; i < s->count; i++) {
		struct weft_case *which = &s->cases[i];

		if (which->kind == WEFT_CASE_JOINED)
			/* mutate: wake */
			weft__select_case_words(which)->marked =
				!is_marked(s, which) &&
				weft__join_mark(worker, task_of(which));
		else if (which->kind == WEFT_CASE_READY && error == 0)
			error = poll_start(s, i);
	}
	return error;
}

void weft__cases_end(struct weft__select *s)
{
	struct weft__worker *worker = weft__worker_self();

	for (uint32_t i = 0; i < s->count; i++) {
		struct weft_case *which = &s->cases[i];

		if (which->kind == WEFT_CASE_JOINED &&
		    weft__select_case_words(which)->marked)
			/* mutate: wake */
			weft__join_unmark(worker, task_of(which));
	}
	if (s->alarm.armed) /* mutate: recheck=false */
		(void)worker->ops->disarm(worker->runtime, &s->alarm);
	if (s->polls_open) {
		weft_scope_cancel(polls_of(s));
		(void)weft_scope_end(polls_of(s));
	}
}
