/* SPDX-License-Identifier: MIT */
/*
 * Soft ring: entries, events, and waiting; the model is in soft.h.
 *
 * Events are asked for when the worker sleeps, and at most every LOOK_NS while
 * it runs tasks: a look in vain is a system call.
 *
 * Rejected
 *   - Level-triggered events, or EPOLLONESHOT: a call of epoll_ctl() for each
 *     request that waits.
 *   - One epoll set for all workers: each event then wakes a worker that does
 *     not have the task.
 */
#include "io/ring/soft/soft.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "io/os/interrupt.h"
#include "io/os/mask.h"
#include "io/ring/soft/call.h"
#include "io/ring/soft/ops.h"
#include "io/ring/soft/serve.h"
#include "io/ring/soft/work.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"
#include "runtime/sched/runtime.h"

enum { ENTRIES_MIN = 2, ENTRIES_MAX = 32768, COMPLETIONS_PER_ENTRY = 16 };

#define LOOK_NS 20000u
/* See SOFT4. */
#define AGE_NS 100000000u

/* The ring's own descriptors among the events. */
#define OWN_EVENT UINT64_MAX

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Entries ------------------------------------------------------------ */

static void soft_prepare(struct weft__ring *ring,
			 const struct weft__request *request,
			 uint64_t user_data)
{
	weft__soft(ring)->entries[ring->tail & ring->mask] =
		(struct weft__soft_entry){ *request, user_data };
}

static int soft_submit(struct weft__ring *ring)
{
	struct weft__soft *soft = weft__soft(ring);

	while (weft__ring_unsubmitted(ring)) {
		/* relaxed: written under the shard's lock. */
		uint32_t head = weft__load(&soft->head, relaxed);
		int r = weft__soft_submit_one(
			soft, &soft->entries[head & ring->mask]);

		if (r < 0)
			return r;
		/* pairs: [ring.entries] */
		weft__store(&soft->head, head + 1, release);
	}
	return 0;
}

/* ---- Events ------------------------------------------------------------- */

/* Returns how many there were, without the ring's own. */
static unsigned take_events(struct weft__soft *soft, int count)
{
	unsigned others = 0;

	for (int i = 0; i < count; i++) {
		const struct epoll_event *event = &soft->events[i];

		if (event->data.u64 == OWN_EVENT)
			continue;
		others++;
		weft__soft_serve(soft, (int)(uint32_t)event->data.u64,
				 (uint32_t)(event->data.u64 >> 32),
				 event->events);
	}
	return others;
}

static void look(struct weft__soft *soft)
{
	int n;

	do {
		n = epoll_wait(soft->epoll_fd, soft->events, WEFT__SOFT_EVENTS,
			       0);
		take_events(soft, n);
	} while (n == WEFT__SOFT_EVENTS && !weft__soft_is_full(soft));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Checks the descriptors of requests that have waited for a while (SOFT4), and
 * tries those again that are late (SOFT7).  Returns when that is due next;
 * UINT64_MAX: never. */
static uint64_t check(struct weft__soft *soft, uint64_t now_ns)
{
	uint64_t due_ns;
	bool late;

	weft__lock_take(&soft->lock);
	if (soft->oldest && now_ns >= soft->period_ends_ns) {
		soft->period += !soft->checks;
		soft->checks = weft__soft_check(soft);
		soft->period_ends_ns = now_ns + (soft->checks ? 0 : AGE_NS);
	}
	due_ns = soft->oldest ? soft->period_ends_ns : UINT64_MAX;
	late = soft->late.head;
	weft__lock_drop(&soft->lock);
	if (weft__unlikely(late))
		due_ns = least(due_ns, weft__soft_retry_late(soft, now_ns));
	return due_ns;
}

static int soft_turn(struct weft__ring *ring)
{
	struct weft__soft *soft = weft__soft(ring);
	int r;

	weft__soft_resume(soft);
	r = soft_submit(ring);
	if (weft__ring_may_post(ring)) {
		uint64_t now_ns = clock_now();

		if (now_ns - soft->looked_ns >= LOOK_NS) {
			soft->looked_ns = now_ns;
			look(soft);
			check(soft, now_ns);
		}
	}
	return r;
}

/* ---- Waiting ------------------------------------------------------------ */

/* For kernels before 5.11, and filters that do not know epoll_pwait2(). */
static int wait_by_timer(struct weft__soft *soft, uint64_t wait_ns)
{
	struct itimerspec at = { .it_value = {
		(time_t)(wait_ns / 1000000000u),
		(long)(wait_ns % 1000000000u),
	} };

	if (wait_ns != UINT64_MAX && timerfd_settime(soft->timer_fd, 0, &at,
						     NULL) < 0)
		return -1;
	return epoll_wait(soft->epoll_fd, soft->events, WEFT__SOFT_EVENTS, -1);
}

static bool own_add(struct weft__soft *soft, int fd, uint32_t how)
{
	struct epoll_event event = {
		.events = EPOLLIN | how,
		.data.u64 = OWN_EVENT,
	};

	return epoll_ctl(soft->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Waits for events, and returns how many; -1: the timer's end, a signal. */
static int wait_events(struct weft__soft *soft, uint64_t wait_ns)
{
	struct timespec timeout = {
		(time_t)(wait_ns / 1000000000u),
		(long)(wait_ns % 1000000000u),
	};

	if (wait_ns == 0)
		return epoll_wait(soft->epoll_fd, soft->events,
				  WEFT__SOFT_EVENTS, 0);
	if (soft->timer_fd >= 0)
		return wait_by_timer(soft, wait_ns);
	if (wait_ns == UINT64_MAX)
		return epoll_wait(soft->epoll_fd, soft->events,
				  WEFT__SOFT_EVENTS, -1);
	if (!weft__is_masked(WEFT__FEATURE_EPOLL_PWAIT2)) {
		long n = syscall(SYS_epoll_pwait2, soft->epoll_fd, soft->events,
				 WEFT__SOFT_EVENTS, &timeout, NULL, 0);

		if (n >= 0 || errno == EINTR)
			return (int)n;
	}
	/* It was there when the ring was opened: whole milliseconds. */
	return epoll_wait(soft->epoll_fd, soft->events, WEFT__SOFT_EVENTS,
			  wait_ns < 1000000000u ?
				  (int)(wait_ns / 1000000u) + 1 :
				  1000);
}

/* SOFT5.  False: there is something to take already. */
static bool sleep_begin(struct weft__soft *soft)
{
	bool sleeps;

	weft__lock_take(&soft->lock);
	sleeps = !weft__ring_completed(soft->ring) && !soft->held.head &&
		 soft->watches.again < 0;
	soft->sleeping = sleeps;
	weft__lock_drop(&soft->lock);
	return sleeps;
}

static void sleep_end(struct weft__soft *soft)
{
	weft__lock_take(&soft->lock);
	soft->sleeping = false;
	weft__lock_drop(&soft->lock);
}

static int soft_wait(struct weft__ring *ring, uint64_t wait_ns)
{
	struct weft__soft *soft = weft__soft(ring);
	uint64_t now_ns = clock_now();
	uint64_t until_ns = wait_ns < UINT64_MAX - now_ns ? now_ns + wait_ns :
							    UINT64_MAX;
	int n, r;

	weft__soft_resume(soft);
	r = soft_submit(ring);
	/* Entries that were not taken: for want of memory, or of room. */
	if (r < 0)
		look(soft);
	while (r == 0 && sleep_begin(soft)) {
		uint64_t due_ns = least(until_ns, check(soft, now_ns));
		uint64_t left_ns = due_ns == UINT64_MAX ? UINT64_MAX :
				   due_ns > now_ns	? due_ns - now_ns :
							  0;
		unsigned others;

		n = wait_events(soft, left_ns);
		sleep_end(soft);
		others = take_events(soft, n);
		now_ns = soft->looked_ns = clock_now();
		/* An event of the ring's own, or a signal; or time is up. */
		if (n < 0 || (unsigned)n > others || now_ns >= until_ns)
			break;
	}
	return weft__ring_completed(ring) ? 0 : r;
}

/* The set itself is what a foreign loop waits for.  It is readable while there
 * is an event that was not taken, and a sleeper is kicked by an event (SOFT5).
 * Level-triggered: the timer, since events are also taken when the set must
 * stay readable. */
static int soft_attach(struct weft__ring *ring, int timer_fd)
{
	struct weft__soft *soft = weft__soft(ring);

	return own_add(soft, timer_fd, 0) ? soft->epoll_fd : -ENOMEM;
}

static uint64_t soft_rest(struct weft__ring *ring)
{
	struct weft__soft *soft = weft__soft(ring);

	weft__soft_resume(soft);
	if (soft_submit(ring) < 0 || !sleep_begin(soft))
		return 0;
	return check(soft, clock_now());
}

static void soft_rouse(struct weft__ring *ring)
{
	struct weft__soft *soft = weft__soft(ring);

	sleep_end(soft);
	soft->looked_ns = clock_now();
	look(soft);
}

/* ---- Cancelling --------------------------------------------------------- */

static int soft_cancel(struct weft__ring *ring, uint64_t user_data)
{
	struct weft__soft *soft = weft__soft(ring);
	struct weft__soft_op *op;
	int r = -ENOENT;

	weft__lock_take(&soft->lock);
	op = weft__soft_op_find(soft, user_data);
	if (op && op->state == WEFT__SOFT_POOLED)
		r = weft__soft_work_cancel(soft, op);
	else if (op)
		r = weft__soft_cancel_linked(soft, op);
	weft__lock_drop(&soft->lock);
	return r;
}

/* Only requests that nobody waits for are left: those of streams that were not
 * closed. */
static void soft_cancel_all(struct weft__ring *ring)
{
	(void)ring;
}

static void soft_forget(struct weft__ring *ring, int fd, bool closes)
{
	struct weft__soft *soft = weft__soft(ring);

	weft__lock_take(&soft->lock);
	weft__soft_forget(soft, fd, closes);
	weft__lock_drop(&soft->lock);
}

/* ---- Registered --------------------------------------------------------- */

static int soft_add_buffers(struct weft__ring *ring,
			    struct weft__ring_buffer *buffers, uint32_t count,
			    uint8_t group)
{
	if (group >= WEFT__SOFT_GROUPS)
		return -EINVAL;
	weft__soft(ring)->groups[group] =
		(struct weft__soft_buffers){ buffers, count, 0 };
	return 0;
}

static int soft_add_files(struct weft__ring *ring, uint32_t places)
{
	(void)ring, (void)places;
	return -EOPNOTSUPP;
}

static bool soft_set_file(struct weft__ring *ring, uint32_t place, int fd)
{
	(void)ring, (void)place, (void)fd;
	return false;
}

static void soft_drop_files(struct weft__ring *ring)
{
	(void)ring;
}

/* ---- Life --------------------------------------------------------------- */

static size_t completions_bytes(uint32_t entries)
{
	return entries * COMPLETIONS_PER_ENTRY *
	       sizeof(struct weft__completion);
}

static void soft_free(struct weft__soft *soft, uint32_t entries)
{
	const struct weft_allocator *memory = soft->runtime->memory;

	weft__memory_free(memory, soft->entries,
			  entries * sizeof(*soft->entries));
	weft__memory_free(memory, soft->completions,
			  completions_bytes(entries));
	weft__memory_apart_free(memory, soft, sizeof(*soft));
}

static void sets_close(struct weft__soft *soft)
{
	close(soft->epoll_fd);
	if (soft->timer_fd >= 0)
		close(soft->timer_fd);
}

static void soft_close(struct weft__ring *ring)
{
	struct weft__soft *soft = weft__soft(ring);

	weft__interrupt_end();
	weft__soft_ops_fini(soft);
	weft__soft_watches_fini(&soft->watches);
	sets_close(soft);
	close(ring->fd);
	soft_free(soft, ring->mask + 1);
	ring->own = NULL;
}

static const struct weft__carrier carrier = {
	.name = "epoll",
	.wants_nonblock = true,
	.close = soft_close,
	.prepare = soft_prepare,
	.submit = soft_submit,
	.turn = soft_turn,
	.wait = soft_wait,
	.attach = soft_attach,
	.rest = soft_rest,
	.rouse = soft_rouse,
	.cancel = soft_cancel,
	.cancel_all = soft_cancel_all,
	.forget = soft_forget,
	.add_buffers = soft_add_buffers,
	.add_files = soft_add_files,
	.set_file = soft_set_file,
	.drop_files = soft_drop_files,
};

static void share(struct weft__ring *ring, struct weft__soft *soft)
{
	ring->carrier = &carrier;
	ring->own = soft;
	ring->head = &soft->head;
	ring->published = &soft->published;
	ring->flags = &soft->flags;
	ring->reaped = &soft->reaped;
	ring->posted = &soft->posted;
	ring->completions = soft->completions;
	ring->reports_ends = true;
	soft->ring = ring;
}

/* As io_uring does it: a power of two in range. */
static uint32_t entries_of(unsigned entries)
{
	uint32_t count = ENTRIES_MIN;

	while (count < entries && count < ENTRIES_MAX)
		count *= 2;
	return count;
}

/* Tried while the set is empty, so that no event is lost. */
static bool has_pwait2(struct weft__soft *soft)
{
	struct timespec none = { 0, 0 };

	return !weft__is_masked(WEFT__FEATURE_EPOLL_PWAIT2) &&
	       (syscall(SYS_epoll_pwait2, soft->epoll_fd, soft->events,
			WEFT__SOFT_EVENTS, &none, NULL, 0) == 0 ||
		errno == EINTR);
}

/* A timer in place of epoll_pwait2().  It is not opened later: it could take
 * the one descriptor that the program has left. */
static int timer_open(struct weft__soft *soft)
{
	int fd = weft__fd_above_stdio(
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));

	if (fd < 0)
		return fd;
	if (!own_add(soft, fd, EPOLLET)) {
		close(fd);
		return -ENOMEM;
	}
	soft->timer_fd = fd;
	return 0;
}

/* Opens what is closed by soft_close(), but the eventfd. */
static int soft_make(struct weft__soft *soft, uint32_t entries)
{
	const struct weft_allocator *memory = soft->runtime->memory;
	int r;

	soft->timer_fd = -1;
	weft__soft_watches_init(&soft->watches, memory);
	soft->entries = weft__memory_zeroed(memory,
					    entries * sizeof(*soft->entries));
	soft->completions =
		weft__memory_zeroed(memory, completions_bytes(entries));
	if (!soft->entries || !soft->completions)
		return -ENOMEM;
	soft->epoll_fd = weft__fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
	if (soft->epoll_fd < 0)
		return soft->epoll_fd;
	r = has_pwait2(soft) ? 0 : timer_open(soft);
	if (r < 0)
		close(soft->epoll_fd);
	return r;
}

/* -ENOSPC: the user has all the watches that it may have. */
static int kick_open(struct weft__soft *soft, struct weft__ring *ring)
{
	ring->fd = weft__fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (ring->fd < 0)
		return ring->fd;
	if (own_add(soft, ring->fd, EPOLLET))
		return 0;
	close(ring->fd);
	return -ENOMEM;
}

int weft__ring_open_soft(struct weft__ring *ring, unsigned entries, bool alone,
			 struct weft_runtime *runtime)
{
	struct weft__soft *soft =
		weft__memory_apart(runtime->memory, sizeof(*soft));
	int r;

	memset(ring, 0, sizeof(*ring));
	if (!soft)
		return -ENOMEM;
	soft->runtime = runtime;
	entries = entries_of(entries);
	r = soft_make(soft, entries);
	if (r == 0) {
		r = kick_open(soft, ring);
		if (r < 0)
			sets_close(soft);
	}
	if (r < 0) {
		soft_free(soft, entries);
		return r;
	}
	soft->lane = (struct weft_lane)WEFT_LANE_INIT("files", 0);
	ring->memory = runtime->memory;
	ring->alone = alone;
	ring->mask = entries - 1;
	ring->completions_mask = entries * COMPLETIONS_PER_ENTRY - 1;
	share(ring, soft);
	weft__interrupt_begin(&runtime->signals);
	return 0;
}
