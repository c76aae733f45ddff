/* SPDX-License-Identifier: MIT */
/*
 * Select - the locks of all channels, the look under them, and the wait.  The
 * header has the model and SEL1 to SEL4; select_cases.c has the other cases.
 */
#include "runtime/sync/select.h"

static struct weft__waiter *waiter_of(struct weft_case *which)
{
	return &weft__select_case_words(which)->waiter;
}

static bool is_channel(const struct weft_case *which)
{
	return which->kind == WEFT_CASE_SEND || which->kind == WEFT_CASE_RECV;
}

static struct weft__waiters *queue_of(struct weft_case *which)
{
	struct weft__chan *c = weft__chan(which->chan);

	return which->kind == WEFT_CASE_SEND ? &c->senders : &c->receivers;
}

/* ---- Locks --------------------------------------------------------------- */

static void order_add(struct weft__select *s, struct weft__chan *c)
{
	uint32_t i = s->channels;

	for (uint32_t k = 0; k < s->channels; k++)
		if (s->order[k] == c)
			return;
	for (; i > 0 && (uintptr_t)s->order[i - 1] > (uintptr_t)c; i--)
		s->order[i] = s->order[i - 1];
	s->order[i] = c;
	s->channels++;
}

static int case_add(struct weft__select *s, struct weft_case *which)
{
	if (is_channel(which)) {
		if (!which->chan)
			return -EINVAL;
		order_add(s, weft__chan(which->chan));
		return 0;
	}
	if ((unsigned)which->kind > WEFT_CASE_AT)
		return -EINVAL;
	if (which->kind == WEFT_CASE_NONE)
		return 0;
	weft__select_case_words(which)->marked = 0;
	s->others = true;
	s->needs_task |= which->kind != WEFT_CASE_AT;
	return 0;
}

static int select_init(struct weft__select *s, struct weft_case *cases,
		       size_t count)
{
	int error = 0;

	if (count > WEFT_CASES_MAX || (count && !cases))
		return -EINVAL;
	s->cases = cases;
	s->count = (uint32_t)count;
	s->channels = 0;
	s->met = NULL;
	s->others = s->needs_task = false;
	s->alarm.armed = false;
	s->polls_open = false;
	for (size_t i = 0; i < count && error == 0; i++)
		error = case_add(s, &cases[i]);
	return error;
}

static void lock_all(struct weft__select *s)
{
	for (uint32_t i = 0; i < s->channels; i++)
		weft__lock_take(&s->order[i]->lock);
}

static void unlock_all(struct weft__select *s)
{
	for (uint32_t i = s->channels; i-- > 0;)
		weft__lock_drop(&s->order[i]->lock);
}

/* ---- Under the locks ----------------------------------------------------- */

static int case_now(struct weft__select *s, struct weft_case *which)
{
	struct weft__chan *c = weft__chan(which->chan);

	if (which->kind == WEFT_CASE_SEND)
		return weft__chan_send_now(c, which->item, &s->met);
	if (which->kind == WEFT_CASE_RECV)
		return weft__chan_recv_now(c, which->item, &s->met);
	return WEFT__CHAN_WAITS;
}

/* Does the first channel case that can be done; its index, or -EAGAIN. */
static int select_now(struct weft__select *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t k = (uint32_t)((s->first + i) % s->count);
		int r = case_now(s, &s->cases[k]);

		if (r != WEFT__CHAN_WAITS) {
			s->cases[k].result = r;
			return (int)k;
		}
	}
	return -EAGAIN;
}

static void select_queue(struct weft__select *s, struct weft__worker *worker)
{
	weft__wait_init(&s->wait, worker);
	weft__wait_on(&s->wait, WEFT__ON_SELECT, s);
	for (uint32_t i = 0; i < s->count; i++) {
		struct weft_case *which = &s->cases[i];
		struct weft__waiter *w = waiter_of(which);

		if (!is_channel(which))
			continue;
		w->wait = &s->wait;
		w->item = which->item;
		w->want = i;
		w->one_of_many = true;
		weft__waiters_add(queue_of(which), w);
	}
}

/* ---- Waiting ------------------------------------------------------------- */

/* Takes the waiters that are still queued out of their queues. */
static void select_leave(struct weft__select *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct weft_case *which = &s->cases[i];
		struct weft__lock *lock;

		if (!is_channel(which))
			continue;
		lock = &weft__chan(which->chan)->lock;
		weft__lock_take(lock);
		if (waiter_of(which)->queued) /* mutate: recheck=false */
			weft__waiters_remove(queue_of(which),
					     waiter_of(which));
		weft__lock_drop(lock);
	}
}

/* The task that granted the wait has done a case. */
static int select_granted(struct weft__select *s, int outcome)
{
	struct weft_case *which = &s->cases[s->wait.won];

	if (is_channel(which))
		which->result = outcome == WEFT__CHAN_CLOSED ? -EPIPE : 0;
	return (int)s->wait.won;
}

/* Waits if all cases are channels. */
static int wait_for_channels(struct weft__select *s)
{
	int r = weft__wait(&s->wait, true);

	/* Interrupted, unless another task has claimed the wait before. */
	if (r < 0 && !weft__wait_claim(&s->wait)) /* mutate: recheck=false */
		r = weft__wait(&s->wait, false);
	return r < 0 ? r : select_granted(s, r);
}

/* Waits until another task has claimed the wait (-EAGAIN), or a case without a
 * channel has come (its index), or an interruption (its error). */
static int select_watch(struct weft__select *s, struct weft__task *task)
{
	struct weft__worker *worker = weft__worker_self();
	int r;

	weft__wait_begin(worker, task);
	for (;;) {
		if (!weft__wait_is_open(&s->wait)) /* mutate: recheck=false */
			return -EAGAIN;
		r = weft__cases_look(s, worker, false);
		if (r != -EAGAIN) /* mutate: recheck=false */
			return r;
		r = weft__interrupted(worker, task);
		if (r < 0)
			return r;
		worker = weft__suspend(
			worker, weft__reason(WEFT__REASON_WAIT, &s->wait));
	}
}

static int wait_for_all(struct weft__select *s, struct weft__worker *worker)
{
	int r = weft__cases_look(s, worker, true);

	if (r == -EAGAIN && !worker) {
		r = weft__cases_watch_thread(s);
	} else if (r == -EAGAIN) {
		r = weft__cases_begin(s, worker);
		if (r == 0)
			r = select_watch(s, worker->current);
	}
	if (!weft__wait_claim(&s->wait)) /* mutate: recheck=false */
		r = select_granted(s, weft__wait(&s->wait, false));
	weft__cases_end(s); /* mutate: wake */
	return r;
}

/* ---- Calls --------------------------------------------------------------- */

/* Does a case that can be done now, or queues a select that waits. */
static int select_step(struct weft__select *s, struct weft__worker *worker,
		       bool waits)
{
	/* So that no case is always first. */
	uint64_t random = worker ? weft__random(worker) : weft_now() >> 6;
	int r = -EAGAIN;

	s->first = random >> 1;
	if (s->others && (random & 1))
		r = weft__cases_look(s, worker, true);
	if (r != -EAGAIN)
		return r;
	lock_all(s);
	r = select_now(s);
	if (r == -EAGAIN && waits)
		select_queue(s, worker);
	unlock_all(s);
	if (s->met)
		/* mutate: wake */
		weft__waiter_grant(worker, s->met, WEFT__CHAN_DONE);
	/* mutate: recheck=false */
	if (r == -EAGAIN && !waits && s->others)
		r = weft__cases_look(s, worker, true);
	return r;
}

static int select_run(struct weft_case *cases, size_t count,
		      struct weft__worker *worker, bool waits)
{
	struct weft__select s;
	int r = select_init(&s, cases, count);

	if (r < 0)
		return r;
	if (!worker && s.needs_task)
		return -EPERM;
	r = select_step(&s, worker, waits);
	if (r != -EAGAIN || !waits)
		return r;
	r = s.others ? wait_for_all(&s, worker) : wait_for_channels(&s);
	select_leave(&s);
	return r;
}

int weft_select(struct weft_case *cases, size_t count)
{
	struct weft__worker *worker;
	int error = weft__sync_enter(&worker);

	return error < 0 ? error : select_run(cases, count, worker, true);
}

int weft_try_select(struct weft_case *cases, size_t count)
{
	return select_run(cases, count, weft__sync_worker(), false);
}
