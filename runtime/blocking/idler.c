/* SPDX-License-Identifier: MIT */
#include "runtime/blocking/idler.h"

#include "runtime/base/futex.h"
#include "runtime/base/nsec.h"
#include "runtime/sched/spin.h"

/* The time of two wakes on idle processors: the thread still looks when the
 * task, which was woken, has its next job. */
#define IDLE_LOOK_NS 50000u

enum { SLEEPS, LOOKS, CALLED };

void weft__idler_add(struct weft__idlers *idlers, struct weft__idler *self,
		     bool called, bool looks)
{
	uint32_t state = called ? CALLED : looks ? LOOKS : SLEEPS;

	/* relaxed: under the lock. */
	weft__store(&self->state, state, relaxed);
	if (called) /* mutate: recheck=false */
		return;
	self->next = idlers->first;
	self->link = &idlers->first;
	if (self->next)
		self->next->link = &self->next;
	idlers->first = self;
}

void weft__idler_remove(struct weft__idler *self)
{
	*self->link = self->next;
	if (self->next)
		self->next->link = self->link;
}

bool weft__idler_call(struct weft__idlers *idlers,
		      weft__atomic(uint32_t) **ret_futex)
{
	struct weft__idler *idler = idlers->first;
	uint32_t state;

	*ret_futex = NULL;
	if (!idler)
		return false;
	weft__idler_remove(idler);
	/* relaxed: the job that the thread is called for is under the lock. */
	state = weft__swap(&idler->state, (uint32_t)CALLED, relaxed);
	if (state != LOOKS)
		*ret_futex = &idler->state;
	return true;
}

/* The futex is woken by its address only: its thread may have gone on. */
void weft__idler_wake(weft__atomic(uint32_t) *futex)
{
	if (futex)
		weft__futex_wake(futex, 1); /* mutate: wake */
}

bool weft__idler_is_called(struct weft__idler *self)
{
	/* relaxed: the thread looks again under the lock. */
	return weft__load(&self->state, relaxed) == CALLED;
}

static bool found(void *self)
{
	return weft__idler_is_called(self);
}

static void look(struct weft_runtime *runtime, struct weft__idler *self)
{
	uint32_t looks = LOOKS;

	/* relaxed: the thread's own, until it is called. */
	if (weft__load(&self->state, relaxed) == looks &&
	    !weft__spin(runtime, &self->spin, IDLE_LOOK_NS, found, self))
		/* relaxed: publishes nothing. */
		(void)weft__cas(&self->state, &looks, (uint32_t)SLEEPS,
				relaxed);
}

void weft__idler_wait(struct weft_runtime *runtime, struct weft__idler *self,
		      uint64_t idle_ns)
{
	uint64_t now_ns = runtime->ops->now(runtime);
	uint64_t by_ns = weft__nsec_after(now_ns, idle_ns);

	look(runtime, self);
	while (!weft__idler_is_called(self) && now_ns < by_ns) {
		weft__futex_wait_for(&self->state, SLEEPS, by_ns - now_ns);
		now_ns = runtime->ops->now(runtime);
	}
}
