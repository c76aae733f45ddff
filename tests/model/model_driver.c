/* SPDX-License-Identifier: MIT */
/*
 * Model of how a worker sleeps in its ring and is woken (io/driver.c,
 * io/request/shard.c, io/ring/uring/uring.c, under runtime/sched/sched.c and
 * dispatch.c).
 *
 *   MD1  A waker that made a worker's word NOTIFIED, and found that the worker
 *       sleeps, ends that sleep: with a message, or with the eventfd where the
 *       message is refused or fails.  (The worker that reaps the waker's ring
 *       handles the failure.)
 *   MD2  No worker sleeps for ever with a completion in the ring or kept aside,
 *       or with an entry that was not submitted.
 *   MD3  While a worker sleeps for ever its eventfd is polled, or the end of
 *       that poll is a completion of its ring (MD2).  A worker with nothing to
 *       do sleeps for a bounded time only after the poll was refused.
 *   MD4  A task is made ready after the lock of a shard was dropped, by a tick,
 *       a sleep and a helper.
 *   MD5  Other workers submit the requests of a worker that computes, and take
 *       their completions.
 *   MD6  All this holds for a worker that rests while its thread waits for the
 *       ring's descriptor (io/ring/uring/attach.c).
 *
 * A sleep that no waker ends is a deadlock.  Worker 0 sleeps, worker 1 wakes
 * it, worker 2 helps at any time, late or not; thread 3 is a thread from
 * outside.
 */
#include "tests/model/rings.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "io/request/op.h"
#include "io/request/reactor.h"
#include "io/os/sigpipe.h"
#include "io/ring/uring/probe.h"
#include "tests/model/alone.h"
#include "tests/model/outside.h"

#define write(fd, p, size) kernel_write(fd, p, size)
#define sched_yield() kernel_yield()
#define weft__heavy_barrier() (kernel_membarrier() == 0)
#define clock_gettime(clock, ret) ((ret)->tv_sec = 0, (ret)->tv_nsec = 1000)
#include "io/driver.c"
#include "io/shards.c"
#include "io/ring/ring.c"
#include "io/ring/uring/attach.c"
#include "io/ring/uring/encode.c"
#include "io/ring/uring/register.c"
#include "io/ring/uring/uring.c"
#include "io/request/fixed_files.c"
#include "io/request/send_buffer.c"
#include "io/request/shard.c"
#include "runtime/base/own_fd.c"
#undef write
#undef sched_yield
#undef weft__heavy_barrier
#undef clock_gettime

enum { SLEEPER = 0, WAKER = 1, HELPER = 2 };

static struct weft__reactor reactor;
static struct weft__shard shards[WORKERS_MAX];
static struct weft__uring urings[WORKERS_MAX];
/* The reason to wake, as a count: how often the sleeper was informed.  relaxed:
 * the word orders it. */
static weft__atomic(uint32_t) notified;
static weft__atomic(uint32_t) heard;
/* A request of the sleeper. */
static struct model_event ended;

/* No other thread takes a lock. */
static bool takes_locks_alone;

#include "tests/model/completes.h"

/* ---- Setting up --------------------------------------------------------- */

static void setup_shard(unsigned i)
{
	struct io_uring *uring = &urings[i].uring;
	struct kernel_ring *ring = &kernel_rings[i];

	urings[i].wait_flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
	ring->sq_mask = ENTRIES - 1;
	ring->cq_mask = COMPLETIONS - 1;
	uring->ring_fd = uring->enter_ring_fd = (int)i;
	uring->sq.khead = &ring->sq_head;
	uring->sq.ktail = &ring->sq_tail;
	uring->sq.kflags = &ring->sq_flags;
	uring->sq.sqes = ring->sqes;
	uring->sq.kring_mask = &ring->sq_mask;
	uring->cq.khead = &ring->cq_head;
	uring->cq.ktail = &ring->cq_tail;
	uring->cq.kring_mask = &ring->cq_mask;
	uring->cq.cqes = (void *)ring->cqes;
	ring_share(&shards[i].ring, &urings[i]);
	shards[i].wake_fd = EVENTFDS + (int)i;
	shards[i].schedstat.seen = true;
	/* As after its first sleep. */
	shards[i].wake_armed = true;
	ring->polled = true;
	pool[i].shard = &shards[i];
	pool[i].ops = weft__driver_default();
}

/* One worker counts as searching: a worker that parks does not look through the
 * queues. */
static void setup(void *arg)
{
	(void)arg;
	workers_setup(3);
	memset(&reactor, 0, sizeof(reactor));
	memset(shards, 0, sizeof(shards));
	memset(urings, 0, sizeof(urings));
	memset(kernel_rings, 0, sizeof(kernel_rings));
	memset(&kernel_lock, 0, sizeof(kernel_lock));
	memset(works_n, 0, sizeof(works_n));
	memset(&kernel_reads, 0, sizeof(kernel_reads));
	memset(&ended, 0, sizeof(ended));
	notified = heard = 0;
	room = COMPLETIONS;
	refusals = message_failures = 0;
	naps = refused = 0;
	takes_locks_alone = false;
	reactor.runtime = &runtime;
	reactor.nosignal = true;
	runtime.driver = &reactor;
	runtime.ops = weft__driver_default();
	runtime.idle.counts = WEFT__IDLE_SEARCHING;
	for (unsigned i = 0; i < WORKERS_MAX; i++)
		setup_shard(i);
	model_name(&kernel_lock, "the kernel");
	model_name(&notified, "notified");
	model_name(&pool[0].park_word, "park_word 0");
	model_name(&pool[1].park_word, "park_word 1");
	model_name(&shards[0].lock, "lock 0");
	model_name(&shards[1].lock, "lock 1");
	model_name(&shards[2].lock, "lock 2");
	model_name(&kernel_rings[0].wakes, "sleep in ring 0");
	model_name(&kernel_rings[1].wakes, "sleep in ring 1");
	model_name(&kernel_rings[0].cq_tail, "cq_tail 0");
	model_name(&kernel_rings[0].cq_head, "cq_head 0");
	model_name(&kernel_rings[0].sq_tail, "sq_tail 0");
	model_name(&kernel_rings[0].sq_head, "sq_head 0");
}

static void setup_unarmed(void *arg)
{
	setup(arg);
	shards[SLEEPER].wake_armed = false;
	kernel_rings[SLEEPER].polled = false;
}

static void setup_told(void *arg)
{
	setup(arg);
	tasks[1].state = WEFT__GENERATION | WEFT__PARKED;
	model_name(&tasks[1], "task 1");
}

static void setup_alone(void *arg)
{
	setup(arg);
	takes_locks_alone = true;
}

static void setup_failing(void *arg)
{
	setup(arg);
	message_failures = 1;
}

static void setup_refusing(void *arg)
{
	setup_unarmed(arg);
	refusals = 1;
}

/* Completions are taken one at a time, or kept aside. */
static void setup_narrow(void *arg)
{
	setup(arg);
	room = 1;
}

static void check(void *arg)
{
	(void)arg;
	model_assert(naps <= refused, "who may sleep for ever does");
	for (unsigned i = 0; i < WORKERS_MAX; i++) {
		bool held = weft__load(&shards[i].lock.word, relaxed) &
			    WEFT__TRYLOCK_HELD;

		model_assert(held == kernel_rings[i].sleeps,
			     "who sleeps holds his lock, and nobody else");
		model_assert(!held || !weft__ring_unsubmitted(&shards[i].ring),
			     "who sleeps has submitted all");
		model_assert(shards[i].wake_armed == kernel_rings[i].polled ||
				     weft__ring_completed(&shards[i].ring) ||
				     weft__ring_held_back(&shards[i].ring),
			     "an eventfd is polled, or known not to be");
	}
}

static void check_submitted(void *arg)
{
	check(arg);
	model_assert(!weft__ring_unsubmitted(&shards[SLEEPER].ring),
		     "what was asked for is submitted");
}

/* ---- The threads -------------------------------------------------------- */

/* A sleep that was not for ever is not repeated without end. */
static void sleep_until_notified(uint32_t times)
{
	while (weft__load(&notified, relaxed) < times) {
		unsigned before = naps;

		park(weft__worker_self());
		if (naps != before && weft__load(&notified, relaxed) < times)
			weft__spin_hint();
	}
	weft__store(&heard, times, relaxed);
}

/* Informs the sleeper; a worker or a thread from outside calls it. */
static void tell(uint32_t times)
{
	weft__store(&notified, times, relaxed);
	weft__unpark(weft__worker_self(), &pool[SLEEPER]);
}

static void next_tick(void)
{
	rings_poll(weft__worker_self(), time_ns);
}

/* As a worker with nothing to do. */
static void sleep_for_ever(void)
{
	model_daemon();
	for (;;)
		park(weft__worker_self());
}

/* As a task does, in the middle of a tick. */
static void ask_for(enum weft__tag tag, uint8_t opcode)
{
	struct weft__ring *ring = &weft__shard(weft__worker_self())->ring;
	struct weft__request request = { .opcode = opcode };

	model_assert(weft__ring_has_room(ring), "there is a free entry");
	weft__ring_prepare(ring, &request, weft__user_data(tag, 0, 0));
	weft__ring_publish(ring);
}

static void ask(uint8_t opcode)
{
	ask_for(WEFT__TAG_OP, opcode);
}

static void ask_2(void)
{
	ask(WEFT__OPCODE_NONE);
	ask(WEFT__OPCODE_NONE);
}

static void flush(void)
{
	weft__shard_flush(weft__shard(weft__worker_self()));
}

static void wait_for_ends(unsigned n)
{
	while (n > 0)
		n -= (unsigned)model_wait(&ended);
}

static void end_read(void)
{
	(void)model_wait(&kernel_reads);
	kernel_read_ends(SLEEPER);
}

static unsigned help_with(unsigned late)
{
	return rings_help(weft__worker_self(), &pool[late], time_ns);
}

/* Helps again and again, until the sleeper has heard. */
static void help_on(unsigned late)
{
	while (!weft__load(&heard, relaxed))
		if (!help_with(late))
			weft__spin_hint();
}

/* A worker that computes; the thread after it is one from outside. */
THREAD(nothing, )

/* ---- One sleeps, one wakes ---------------------------------------------- */

THREAD(sleep_1, sleep_until_notified(1);)
THREAD(sleep_2, sleep_until_notified(2);)
THREAD(tell_1, tell(1);)
THREAD(tell_2, tell(1); tell(2);)
THREAD(tell_and_sleep, tell(1); sleep_for_ever();)

MODEL(message_meets_sleep, setup, check, OPTIONS(), sleep_1, tell_1)
MODEL(messages_meet_sleeps, setup, check, OPTIONS(), sleep_2, tell_2)
/* The first sleep has the eventfd polled. */
MODEL(eventfd_meets_sleep, setup_unarmed, check, OPTIONS(), sleep_1, nothing,
      nothing, tell_1)
MODEL(eventfd_meets_sleeps, setup_unarmed, check, OPTIONS(), sleep_2, nothing,
      nothing, tell_2)
MODEL(message_and_eventfd_meet_sleep, setup, check, OPTIONS(.preemptions = 2),
      sleep_1, tell_1, nothing, tell_1)
/* The poll is refused, or the message, or what the sleep would submit. */
MODEL(refusals_meet_message, setup_refusing, check, OPTIONS(), sleep_1, tell_1)
MODEL(refusals_meet_eventfd, setup_refusing, check, OPTIONS(), sleep_2, nothing,
      nothing, tell_2)

/* ---- One rests, a thread from outside wakes ----------------------------- */

#include "tests/model/rests.h"

MODEL(eventfd_meets_rest, setup_unarmed, check, OPTIONS(), rest_1, nothing,
      nothing, tell_1)
MODEL(eventfd_meets_rests, setup_unarmed, check, OPTIONS(), rest_2, nothing,
      nothing, tell_2)
MODEL(eventfd_meets_completion_and_rest, setup_narrow, check, OPTIONS(),
      ask_and_rest, nothing, nothing, tell_1)
MODEL(refusals_meet_eventfd_and_rest, setup_refusing, check,
      OPTIONS(.preemptions = 2), rest_2, nothing, nothing, tell_2)

/* ---- A message that fails ----------------------------------------------- */

THREAD(tell_and_tick, tell(1); next_tick();)
THREAD(help_waker, help_on(WAKER);)

MODEL(failure_is_met_at_the_next_tick, setup_failing, check, OPTIONS(),
      sleep_1, tell_and_tick)
MODEL(failure_is_met_by_sleep, setup_failing, check, OPTIONS(), sleep_1,
      tell_and_sleep)
MODEL(failure_is_met_by_helper, setup_failing, check, OPTIONS(.preemptions = 2),
      sleep_1, tell_1, help_waker)

MODEL(failure_is_met_by_helper_and_sleep, setup_failing, check,
      OPTIONS(.preemptions = 2, .weak = 1), sleep_1, tell_and_sleep, help_waker)

/* ---- A helper comes late, as the worker goes to sleep ------------------- */

THREAD(help_sleeper, (void)help_with(SLEEPER);)
THREAD(ask_and_sleep, ask(WEFT__OPCODE_NONE); sleep_until_notified(1);)
THREAD(ask_and_sleep_2, ask(WEFT__OPCODE_NONE); sleep_until_notified(2);)

MODEL(message_meets_helper, setup, check, OPTIONS(.preemptions = 2), sleep_1,
      tell_1, help_sleeper)
MODEL(message_meets_completion_and_helper, setup, check,
      OPTIONS(.preemptions = 2), ask_and_sleep, tell_1, help_sleeper)
MODEL(eventfd_meets_helper, setup_unarmed, check,
      OPTIONS(.preemptions = 2, .weak = 1),
      ask_and_sleep, nothing, help_sleeper, tell_1)
MODEL(refusals_meet_helper, setup_refusing, check,
      OPTIONS(.preemptions = 2, .weak = 1),
      sleep_2, nothing, help_sleeper, tell_2)

/* ---- The poll of the eventfd ends --------------------------------------- */

/* The poll finds no room in the ring: the completion of the worker's own
 * request takes the place.  The next sleep, if it is for ever, begins the poll
 * again. */
THREAD(tell_2_in_turn, tell(1); while (weft__load(&heard, relaxed) < 1)
       weft__spin_hint(); tell(2);)
THREAD(sleep_twice, ask(WEFT__OPCODE_NONE); sleep_until_notified(1);
       sleep_until_notified(2);)

MODEL(poll_ends, setup_narrow, check, OPTIONS(.weak = 1), sleep_twice, nothing,
      nothing, tell_2_in_turn)
MODEL(poll_ends_with_helper, setup_narrow, check,
      OPTIONS(.preemptions = 1, .weak = 1),
      sleep_twice, nothing, help_sleeper, tell_2_in_turn)
MODEL(message_is_kept_aside, setup_narrow, check, OPTIONS(), ask_and_sleep_2,
      tell_2)

/* ---- Requests ----------------------------------------------------------- */

/* A read that ends.  The thread that submitted it has to post its completion:
 * the owner, or a helper that itself sleeps by then. */
THREAD(read_and_sleep, ask(WEFT__OPCODE_READ); sleep_for_ever();)
THREAD(help_and_sleep, (void)help_with(SLEEPER); sleep_for_ever();)
THREAD(end_and_wait, end_read(); wait_for_ends(1);)

MODEL(read_meets_sleep, setup, check, OPTIONS(), read_and_sleep, nothing,
      nothing, end_and_wait)
MODEL(read_meets_sleep_and_helper, setup, check,
      OPTIONS(.preemptions = 2, .weak = 1),
      read_and_sleep, help_and_sleep, nothing, end_and_wait)

/* The worker computes until its requests are done. */
static void compute_until(unsigned n)
{
	wait_for_ends(n);
	weft__store(&heard, 1, relaxed);
}

THREAD(read_and_compute, ask(WEFT__OPCODE_READ); flush(); compute_until(1);)
THREAD(ask_and_compute, ask(WEFT__OPCODE_NONE); flush(); compute_until(1);)
THREAD(ask_2_and_compute, ask_2(); flush(); compute_until(2);)
THREAD(help_computer, help_on(SLEEPER);)
THREAD(ask_2_and_flush, ask_2(); flush();)
THREAD(ask_2_and_tick, ask_2(); next_tick();)
THREAD(end_only, end_read();)

MODEL(read_is_taken_by_helper, setup, check, OPTIONS(.preemptions = 2),
      read_and_compute, help_computer, nothing, end_only)
MODEL(completion_is_taken_by_helper, setup, check, OPTIONS(), ask_and_compute,
      help_computer)
MODEL(what_is_kept_aside_is_taken_by_helper, setup_narrow, check,
      OPTIONS(.preemptions = 2),
      ask_2_and_compute, help_computer)
/* The helper has the lock, for the first request: it looks once more. */
MODEL(flush_meets_helper, setup, check_submitted, OPTIONS(), ask_2_and_flush,
      help_sleeper)
MODEL(tick_meets_helper, setup, check_submitted, OPTIONS(), ask_2_and_tick,
      help_sleeper)

/* MD4 */
THREAD(ask_and_tick, ask(WEFT__OPCODE_NONE); next_tick(); wait_for_ends(1);)
THREAD(ask_and_nap, ask(WEFT__OPCODE_NONE); park(weft__worker_self());
       wait_for_ends(1);)
THREAD(ask_only, ask(WEFT__OPCODE_NONE); wait_for_ends(1);
       weft__store(&heard, 1, relaxed);)

MODEL(tick_completes_after_the_lock, setup_alone, check, OPTIONS(),
      ask_and_tick)
MODEL(sleep_completes_after_the_lock, setup_alone, check, OPTIONS(),
      ask_and_nap)
MODEL(helper_completes_after_the_lock, setup_alone, check, OPTIONS(), ask_only,
      help_computer)

/* A stream gets its completion, and its reader is woken. */
static bool is_parked(const struct weft__task *task)
{
	/* relaxed: the test only looks at it. */
	return weft__load(&task->state, relaxed) & WEFT__PARKED;
}

static void compute_until_woken(void)
{
	while (is_parked(&tasks[1]))
		weft__spin_hint();
	weft__store(&heard, 1, relaxed);
}

THREAD(ask_told_and_tick, ask_for(WEFT__TAG_STREAM, WEFT__OPCODE_NONE);
       next_tick(); model_assert(!is_parked(&tasks[1]), "it was woken");)
THREAD(ask_told_and_compute, ask_for(WEFT__TAG_STREAM, WEFT__OPCODE_NONE);
       compute_until_woken();)

MODEL(stream_is_told_at_the_next_tick, setup_told, check, OPTIONS(),
      ask_told_and_tick)
MODEL(stream_is_told_by_helper, setup_told, check, OPTIONS(),
      ask_told_and_compute, help_computer)

/* ---- The whole scheduler ------------------------------------------------ */

static void setup_workers(uint32_t count)
{
	setup(NULL);
	runtime.workers_count = count;
	weft__idle_init(&runtime.idle, count);
	runtime.idle.counts = 0;
	for (unsigned i = 0; i < count; i++) {
		shards[i].wake_armed = false;
		kernel_rings[i].polled = false;
	}
}

static void setup_one(void *arg)
{
	(void)arg;
	setup_workers(1);
}

static void setup_two(void *arg)
{
	(void)arg;
	setup_workers(2);
}

static void work_for_ever(void *arg)
{
	(void)arg;
	model_daemon();
	for (;;)
		(void)weft__worker_step(weft__worker_self());
}

/* Task 0 needs task 1 to run meanwhile, on the other worker. */
static int64_t needs_1(void *arg)
{
	(void)arg;
	wait_for(1);
	return 0;
}

static int64_t pushes_1_and_needs_it(void *arg)
{
	(void)arg;
	weft__push(weft__worker_self(), &tasks[1]);
	weft__push(weft__worker_self(), &tasks[2]);
	weft__worker_self()->tick_over = true;
	return 0;
}

static void setup_push(void *arg)
{
	setup_two(arg);
	tasks[0].fn = pushes_1_and_needs_it;
	tasks[2].fn = needs_1;
	weft__runq_push(&pool[0].runq, &tasks[0]);
}

THREAD(submit_2_in_turn, submit(0); wait_for(0); submit(1); wait_for(1);)
THREAD(submit_1, submit(0); wait_for(0);)
THREAD(wait_0_2, wait_for(0); wait_for(2);)

MODEL(one_works, setup_one, workers_check, OPTIONS(.preemptions = 2, .weak = 1),
      work_for_ever, submit_2_in_turn)
MODEL(two_work, setup_two, workers_check, OPTIONS(.preemptions = 1, .weak = 1),
      work_for_ever, work_for_ever, submit_1)
MODEL(one_wakes_the_other, setup_push, workers_check,
      OPTIONS(.preemptions = 1, .weak = 1), work_for_ever, work_for_ever,
      wait_0_2)

int main(void)
{
	const TTest *const tests[] = {
		message_meets_sleep,
		messages_meet_sleeps,
		eventfd_meets_sleep,
		eventfd_meets_sleeps,
		message_and_eventfd_meet_sleep,
		refusals_meet_message,
		refusals_meet_eventfd,
		eventfd_meets_rest,
		eventfd_meets_rests,
		eventfd_meets_completion_and_rest,
		refusals_meet_eventfd_and_rest,
		failure_is_met_at_the_next_tick,
		failure_is_met_by_sleep,
		failure_is_met_by_helper,
		failure_is_met_by_helper_and_sleep,
		message_meets_helper,
		message_meets_completion_and_helper,
		eventfd_meets_helper,
		refusals_meet_helper,
		poll_ends,
		poll_ends_with_helper,
		message_is_kept_aside,
		read_meets_sleep,
		read_meets_sleep_and_helper,
		read_is_taken_by_helper,
		completion_is_taken_by_helper,
		what_is_kept_aside_is_taken_by_helper,
		flush_meets_helper,
		tick_meets_helper,
		tick_completes_after_the_lock,
		sleep_completes_after_the_lock,
		helper_completes_after_the_lock,
		stream_is_told_at_the_next_tick,
		stream_is_told_by_helper,
		one_works,
		two_work,
		one_wakes_the_other,
		NULL,
	};

	return kit_main("driver", tests);
}
