/* SPDX-License-Identifier: MIT */
/*
 * The driver: implements runtime/sched/driver.h with a ring (a shard) and a
 * timer shard for each worker.
 *
 *	poll   at each tick: due timers, then the worker's own ring
 *	help   the same for a late worker, by another one
 *	park   begin takes the shard's lock (SH2); the wait is in the ring,
 *	       until a completion or, on worker 0, the next alarm; the lock is
 *	       dropped
 *	rest   the same without the wait: until rouse the lock is held, and the
 *	       descriptor for the foreign loop shows what would end the wait
 *	wake   a message from the waker's ring, or the sleeper's eventfd
 *
 * A batch of completions is copied out under a shard's lock, and
 * weft__complete() makes its tasks ready after the lock was dropped (SH1).
 */
#include "runtime/sched/driver.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "io/os/cpu_idle.h"
#include "io/os/interrupt.h"
#include "io/os/mask.h"
#include "io/os/sigpipe.h"
#include "io/request/op.h"
#include "io/request/reactor.h"
#include "io/request/upcalls.h"
#include "io/rest.h"
#include "io/shards.h"
#include "io/stream/stream.h"
#include "runtime/base/memory.h"
#include "runtime/base/thread_number.h"
#include "runtime/dump/signal_notify.h"
#include "runtime/dump/snapshot.h"
#include "runtime/sched/runtime.h"
#include "runtime/stack/fiber.h"
#include "runtime/stack/overflow.h"
#include "timer/timer_shard.h"

enum { ENTRIES_DEFAULT = 256 };

/* Threads of the pool that transfer at the positions of files. */
enum { FILES_MAX = 64, CHILDREN_MAX = 8 };

/* How long a worker sleeps if its eventfd could not be polled. */
#define UNARMED_NS 1000000u

static uint64_t rings_now(struct weft_runtime *runtime)
{
	struct timespec now;

	(void)runtime;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Life ------------------------------------------------------------- */

/* In a child after fork() no task runs: every call is refused. */
static void forget_runtimes(void)
{
	weft__worker_set(NULL);
	weft__reactors_forget();
	weft__interrupt_forget();
	weft__overflow_forget();
	weft__thread_number_forget();
	weft__signal_notify_forget();
	weft__snapshot_end();
}

static void prepare_for_fork(void)
{
	pthread_atfork(NULL, NULL, forget_runtimes);
}

static int reactor_open(struct weft_runtime *runtime, unsigned entries,
			const struct weft__engine *engine)
{
	struct weft__reactor *reactor =
		weft__memory_zeroed(runtime->memory, sizeof(*reactor));
	int r;

	if (!reactor)
		return -ENOMEM;
	reactor->runtime = runtime;
	reactor->engine = *engine;
	r = weft__fd_table_init(&reactor->fds, runtime->memory);
	if (r < 0)
		goto fail_reactor;
	r = weft__shards_open(runtime, entries, &reactor->engine);
	if (r < 0)
		goto fail_fds;
	r = weft__timer_shards_open(runtime, rings_now(runtime));
	if (r < 0)
		goto fail_shards;
	/* A single worker has no use for it. */
	reactor->cpu_idle_fd =
		runtime->workers_count > 1 ? weft__cpu_idle_open() : -1;
	reactor->nosignal = !weft__is_masked(WEFT__FEATURE_RWF_NOSIGNAL) &&
			    weft__sigpipe_is_avoidable();
	reactor->files = (struct weft_lane)WEFT_LANE_INIT("files", FILES_MAX);
	reactor->children =
		(struct weft_lane)WEFT_LANE_INIT("children", CHILDREN_MAX);
	reactor->waits = (struct weft_lane)WEFT_LANE_INIT("waits", 0);
	reactor->pooled = (struct weft_lane)WEFT_LANE_INIT("names", FILES_MAX);
	runtime->driver = reactor;
	weft__reactor_join(reactor);
	return 0;

fail_shards:
	weft__shards_close(runtime);
fail_fds:
	weft__fd_table_fini(&reactor->fds);
fail_reactor:
	weft__memory_free(runtime->memory, reactor, sizeof(*reactor));
	return r;
}

#ifdef WEFT__TSAN
/* ThreadSanitizer does not see that the ring of the probe is unmapped, and
 * takes another thread's ring at the same address for it; so runtimes open one
 * after the other. */
static int reactor_open_in_turn(struct weft_runtime *runtime, unsigned entries,
				const struct weft__engine *engine)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int r;

	pthread_mutex_lock(&lock);
	r = reactor_open(runtime, entries, engine);
	pthread_mutex_unlock(&lock);
	return r;
}
#else
#define reactor_open_in_turn reactor_open
#endif

static int rings_open(struct weft_runtime *runtime,
		      const struct weft_opts *opts)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned entries = opts ? opts->ring_entries : 0;
	struct weft__engine engine;
	int r = weft__engine_asked(opts, &engine);

	if (r < 0)
		return r;
	pthread_once(&once, prepare_for_fork);
	return reactor_open_in_turn(
		runtime, entries ? entries : ENTRIES_DEFAULT, &engine);
}

static void rings_close(struct weft_runtime *runtime)
{
	struct weft__reactor *reactor = weft__reactor(runtime);
	/* relaxed: all tasks have ended, and this thread waited for that. */
	struct weft__kept *names = weft__load(&reactor->names, relaxed);

	if (names)
		names->end(names);
	weft__reactor_leave(reactor);
	weft__timer_shards_close(runtime);
	weft__shards_close(runtime);
	weft__fd_table_fini(&reactor->fds);
	/* relaxed: no task is left. */
	if (weft__load(&reactor->interrupts, relaxed))
		weft__interrupt_end();
	if (reactor->cpu_idle_fd >= 0)
		close(reactor->cpu_idle_fd);
	weft__memory_free(runtime->memory, reactor, sizeof(*reactor));
	runtime->driver = NULL;
}

static uint64_t rings_random(struct weft_runtime *runtime)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = rings_now(runtime);
	return seed;
}

/* ---- Time ------------------------------------------------------------- */

static void rings_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		      uint64_t deadline_ns)
{
	weft__timer_shards_arm(worker, alarm, deadline_ns);
}

static bool rings_disarm(struct weft_runtime *runtime,
			 struct weft__alarm *alarm)
{
	return weft__timer_shards_disarm(runtime, alarm);
}

/* ---- Waking ----------------------------------------------------------- */

static void wake_by_eventfd(struct weft__shard *to)
{
	uint64_t one = 1;

	/* The write fails only if the counter is full, and then the reader
	 * wakes all the same. */
	if (write(to->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Sends a message from the waker's own ring, immediately.  The send completes
 * visibly only if it fails, and then the eventfd is used. */
static bool wake_by_message(struct weft__shard *from, struct weft__shard *to,
			    uint32_t to_index)
{
	struct weft__request request = {
		.opcode = WEFT__OPCODE_MESSAGE,
		.flags = WEFT__REQUEST_SILENT,
		.fd = to->ring.fd,
		.message = weft__user_data(WEFT__TAG_WAKE, 0, 0),
	};
	bool sent;

	if (!weft__trylock_try(&from->lock)) /* mutate: recheck */
		return false;
	sent = weft__shard_submit(
		from, &request,
		weft__user_data(WEFT__TAG_WAKE_SENT, 0, to_index));
	/* A worker that was refused the lock tries again if this one is
	 * late. */
	weft__trylock_drop(&from->lock);
	return sent;
}

static void rings_wake(struct weft__worker *from, struct weft__worker *to)
{
	if (!from || !wake_by_message(weft__shard(from), weft__shard(to),
				      to->index))
		wake_by_eventfd(weft__shard(to)); /* mutate: wake */
}

/* ---- Completions ------------------------------------------------------ */

static bool wake_reader(struct weft__worker *worker,
			const struct weft__completion *completion)
{
	uint64_t id = weft__stream_wake_id(completion);

	return id && weft__wake(worker, weft__task_at(worker->runtime, id), id);
}

unsigned weft__complete(struct weft__worker *worker,
			const struct weft__completion *batch, unsigned count)
{
	struct weft_runtime *runtime = worker->runtime;
	unsigned made_ready = 0, completions = 0;

	for (unsigned i = 0; i < count; i++)
		if (weft__tag_of(batch[i].user_data) <= WEFT__TAG_STREAM)
			__builtin_prefetch(weft__task_at(runtime,
							 batch[i].user_data),
					   1);
	for (unsigned i = 0; i < count; i++) {
		uint32_t index = (uint32_t)batch[i].user_data;

		switch (weft__tag_of(batch[i].user_data)) {
		case WEFT__TAG_OP:
			completions++;
			made_ready += weft__op_complete(worker, &batch[i]);
			break;
		case WEFT__TAG_WAKE_SENT:
			/* mutate: wake */
			wake_by_eventfd(weft__shard(runtime->workers[index]));
			break;
		case WEFT__TAG_STREAM:
			completions++;
			/* mutate: wake */
			made_ready += wake_reader(worker, &batch[i]);
			break;
		case WEFT__TAG_WAKE:
		case WEFT__TAG_WAKE_FD:
			break;
		}
	}
	if (completions)
		weft__count(worker, WEFT__N_COMPLETIONS, completions);
	return made_ready;
}

/* ---- Ticks ------------------------------------------------------------ */

static void rings_poll(struct weft__worker *worker, uint64_t now_ns)
{
	struct weft__shard *shard = weft__shard(worker);

	if (weft__unlikely(!shard->schedstat.seen))
		weft__schedstat_own(&shard->schedstat);
	if (worker->index == 0)
		weft__timer_shards_turn(worker->runtime, worker, now_ns);
	else
		weft__timer_shards_turn_own(worker, now_ns);
	if (weft__unlikely(weft__shard_looks(shard, now_ns)))
		weft__streams_look(shard, now_ns);
	if (weft__shard_busy(shard)) /* mutate: recheck */
		weft__shard_serve(worker, shard);
}

static bool rings_pending(struct weft__worker *worker)
{
	return weft__shard_pending(weft__shard(worker)) ||
	       weft__timer_shards_due(worker, worker->tick.ended_ns);
}

static unsigned rings_help(struct weft__worker *worker,
			   struct weft__worker *late, uint64_t now_ns)
{
	struct weft__shard *shard = weft__shard(late);
	unsigned made_ready = 0;

	if (late->index == 0)
		made_ready += weft__timer_shards_turn(worker->runtime, worker,
						      now_ns);
	if (weft__shard_busy(shard)) /* mutate: recheck */
		made_ready += weft__shard_help(worker, shard);
	return made_ready;
}

/* ---- Parking ---------------------------------------------------------- */

/* The poll of the eventfd is multishot: it is submitted with its entry (SH3),
 * because its completions come through the thread that submitted it. */
static void shard_arm_wake(struct weft__shard *shard)
{
	struct weft__request request =
		weft__request_poll(shard->wake_fd, POLLIN);

	request.flags = WEFT__REQUEST_MULTISHOT;
	shard->wake_armed = weft__shard_submit(
		shard, &request, weft__user_data(WEFT__TAG_WAKE_FD, 0, 0));
}

static void rings_park_begin(struct weft__worker *worker)
{
	struct weft__shard *shard = weft__shard(worker);

	weft__shard_lock(shard); /* mutate: wake */
	if (weft__unlikely(!shard->wake_armed)) /* mutate: recheck */
		shard_arm_wake(shard);
}

static void rings_park_abort(struct weft__worker *worker)
{
	struct weft__shard *shard = weft__shard(worker);

	if (weft__trylock_drop(&shard->lock))
		weft__shard_serve(worker, shard); /* mutate: wake */
}

static uint64_t until(uint64_t deadline_ns, uint64_t now_ns)
{
	return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

/* Worker 0 sleeps until the next alarm at most. */
static uint64_t park_until_alarm(struct weft_runtime *runtime,
				 uint64_t wait_ns)
{
	uint64_t now_ns, until_ns = weft__timer_shards_sleep(runtime);

	if (until_ns == UINT64_MAX)
		return wait_ns;
	now_ns = rings_now(runtime);
	return until(until_ns, now_ns) < wait_ns ? until(until_ns, now_ns) :
						   wait_ns;
}

/* How long the worker may sleep, but for alarms. */
static uint64_t park_wait_ns(struct weft__worker *worker, uint64_t wait_ns)
{
	struct weft__shard *shard = weft__shard(worker);

	if (weft__unlikely(!shard->wake_armed) &&
	    wait_ns > UNARMED_NS) /* mutate: recheck */
		wait_ns = UNARMED_NS;
	/* relaxed: written with the lock, which the owner has. */
	if (weft__unlikely(weft__load(&shard->look_ns, relaxed) !=
			   WEFT__LOOK_AT_NONE))
		wait_ns = weft__streams_look_wait(
			shard, rings_now(worker->runtime), wait_ns);
	return wait_ns;
}

/* After the wait: takes what has completed. */
static void park_leave(struct weft__worker *worker)
{
	struct weft__shard *shard = weft__shard(worker);
	unsigned count;
	bool again;

	if (worker->index == 0)
		weft__timer_shards_wake(worker->runtime);
	count = weft__shard_take(worker, shard);
	again = weft__trylock_drop(&shard->lock);
	weft__complete(worker, shard->batch, count);
	if (again && weft__shard_busy(shard)) /* mutate: recheck */
		weft__shard_serve(worker, shard);
}

static void rings_park(struct weft__worker *worker, uint64_t wait_ns)
{
	if (worker->index == 0)
		wait_ns = park_until_alarm(worker->runtime, wait_ns);
	wait_ns = park_wait_ns(worker, wait_ns);
	/* On an error (no memory, or too many completions, which are taken now)
	 * the thread yields. */
	if (weft__ring_wait(&weft__shard(worker)->ring, wait_ns) < 0)
		sched_yield();
	park_leave(worker);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* An alarm's time stays as it is, to the nanosecond: the timer is set once for
 * all turns until then. */
static uint64_t rings_rest(struct weft__worker *worker, uint64_t wait_ns)
{
	struct weft__shard *shard = weft__shard(worker);
	uint64_t until_ns = weft__ring_rest(&shard->ring), now_ns;

	until_ns = least(until_ns, weft__timer_shards_sleep(worker->runtime));
	now_ns = rings_now(worker->runtime);
	wait_ns = park_wait_ns(worker, wait_ns);
	if (wait_ns < UINT64_MAX - now_ns)
		until_ns = least(until_ns, now_ns + wait_ns);
	if (until_ns <= now_ns)
		return 0;
	weft__rest_until(shard, until_ns, now_ns);
	return until_ns;
}

static void rings_rouse(struct weft__worker *worker)
{
	weft__ring_rouse(&weft__shard(worker)->ring);
	park_leave(worker);
}

static int rings_attach(struct weft__worker *worker)
{
	return weft__rest_open(weft__shard(worker));
}

static void rings_persist(struct weft__worker *worker)
{
	weft__rest_persist(weft__shard(worker));
}

static void rings_detach(struct weft__worker *worker)
{
	weft__rest_end(weft__shard(worker));
}

static uint64_t rings_waited(struct weft__worker *worker)
{
	return weft__schedstat_waited_ns(&weft__shard(worker)->schedstat);
}

static uint64_t rings_cpu_idle(struct weft_runtime *runtime)
{
	return weft__cpu_idle_ns(weft__reactor(runtime)->cpu_idle_fd);
}

static void rings_watch(struct weft__worker *worker, bool watches)
{
	struct weft__slice *slice = &weft__shard(worker)->slice;

	if (watches)
		weft__slice_shorten(slice, rings_now(worker->runtime));
	else
		weft__slice_restore(slice);
}

static const char *rings_engine(const struct weft_runtime *runtime,
				const char **ret_why)
{
	*ret_why = weft__reactor(runtime)->engine.why;
	return weft__ring_name(&weft__shard(runtime->workers[0])->ring);
}

static const struct weft__driver_ops rings_ops = {
	.engine = rings_engine,
	.open = rings_open,
	.close = rings_close,
	.now = rings_now,
	.arm = rings_arm,
	.disarm = rings_disarm,
	.poll = rings_poll,
	.pending = rings_pending,
	.help = rings_help,
	.park_begin = rings_park_begin,
	.park_abort = rings_park_abort,
	.park = rings_park,
	.attach = rings_attach,
	.rest = rings_rest,
	.rouse = rings_rouse,
	.persist = rings_persist,
	.detach = rings_detach,
	.wake = rings_wake,
	.watch = rings_watch,
	.waited = rings_waited,
	.cpu_idle = rings_cpu_idle,
	.describe = weft__op_describe,
	.random = rings_random,
};

const struct weft__driver_ops *weft__driver_default(void)
{
	return &rings_ops;
}
