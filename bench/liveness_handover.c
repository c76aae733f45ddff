/* SPDX-License-Identifier: MIT */
/*
 * Is a wake-up ever lost?
 *
 * Method.  A million times one worker wakes a task of another worker, which is
 * asleep, about to sleep, or just waking up.  Parks have no time-out, and the
 * monitor, which would repair a lost wake-up, is off.  A random time of 0 to
 * 30 us before each hand-over varies the moment of the wake-up.
 *
 *	cancel	two tasks on two workers: each joins a task that sleeps for an
 *		hour, until the other side cancels that task
 *	byte	two tasks on two workers and a socket pair
 *	join	a scope of three tasks, which the other worker may steal, is
 *		joined
 *	thread	a thread that is not a worker submits a task and waits for it
 *
 * An onlooker thread counts one `lost` whenever there was no hand-over for 1 s,
 * and submits a task, so that the program goes on.  Then a tenth of the
 * hand-overs are made again with the monitor on; it must not rescue any task:
 * `rescues`.
 *
 * What would fool it: a hand-over within one worker, so only those between two
 * threads count (cancel, byte); a machine on which no program runs for 1 s.
 */
#include "bench/liveness.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum {
	CANCELS = 400000,
	BYTES = 400000,
	JOINS = 100000,
	SUBMITS = 100000,
	KICKS_MAX = 3,
	SHARE_WITH_MONITOR = 10,
};

#define SPIN_NS_MAX 30000u
#define STALL_NS UINT64_C(1000000000)

static struct {
	unsigned workers, share; /* makes 1/share of the hand-overs */
	const char *mode;
	weft__atomic(uint64_t) handed; /* grows with every hand-over */
	weft__atomic(uint64_t) across; /* those between two threads */
	weft__atomic(pid_t) last_thread;
	weft__atomic(uint64_t) sleepers[2]; /* the tasks to cancel */
	weft__atomic(struct weft_runtime *) runtime;
	uint64_t target;
	int fds[2], done;
	unsigned lost, rescues;
} ho;

/* Counts one more hand-over, by the calling thread. */
static uint64_t handed(void)
{
	pid_t thread = live_thread();

	/* relaxed: counts that publish nothing. */
	weft__add(&ho.handed, (uint64_t)1, relaxed);
	if (weft__swap(&ho.last_thread, thread, relaxed) == thread)
		return weft__load(&ho.across, relaxed);
	return weft__add(&ho.across, (uint64_t)1, relaxed) + 1;
}

static void spin_at_random(void)
{
	static __thread uint64_t seed;
	uint64_t end_ns = now_ns();

	seed = (seed ? seed : end_ns) * 6364136223846793005u + 1;
	if (seed >> 63)
		for (end_ns += (seed >> 33) % SPIN_NS_MAX; now_ns() < end_ns;)
			weft__spin_hint();
}

/*
 * cancel: each side joins a sleeper of its own, until the other side cancels
 * that sleeper.
 */

static int64_t sleeper(void *arg)
{
	(void)arg;
	if (weft_sleep(WEFT_SEC(3600)) != -ECANCELED)
		live_fail("handover", "a cancelled sleep gave another result");
	return 0;
}

/* Returns false if the sleeper has ended. */
static bool sleeper_cancel(unsigned side)
{
	/* relaxed: an id that publishes nothing. */
	struct weft_task task = { weft__load(&ho.sleepers[side], relaxed) };

	return weft_cancel(task) == 0;
}

/* Side 1 begins, once side 0 waits. */
static int64_t cancel_body(unsigned side, void *arg)
{
	bool begins = side == 1;

	(void)arg;
	if (side > 1)
		return 0;
	/* relaxed: an id that publishes nothing. */
	while (begins && !weft__load(&ho.sleepers[0], relaxed))
		bench_must("weft_sleep", weft_sleep(WEFT_MS(1)));
	WEFT_SUPERVISE(scope)
		for (bool first = !begins;; first = false) {
			struct weft_task task =
				bench_fork(scope, sleeper, NULL, 0);

			weft__store(&ho.sleepers[side], task.id, relaxed);
			if (!first && !sleeper_cancel(!side))
				live_fail("handover", "a sleeper has ended");
			bench_join(task);
			if (handed() >= ho.target)
				break;
			spin_at_random();
		}
	sleeper_cancel(!side);
	return 0;
}

/*
 * byte: a byte goes back and forth.
 */

static int64_t byte_body(unsigned side, void *arg)
{
	char byte = 0;

	(void)arg;
	if (side > 1)
		return 0;
	if (side == 0)
		bench_must("weft_write", weft_write(ho.fds[0], &byte, 1));
	while (weft_read(ho.fds[side], &byte, 1) == 1) {
		spin_at_random();
		if (handed() >= ho.target)
			break;
		bench_must("weft_write", weft_write(ho.fds[side], &byte, 1));
	}
	weft_shutdown(ho.fds[side], SHUT_RDWR);
	return 0;
}

/*
 * join: the children may be stolen, and are waited for.
 */

static int64_t join_child(void *arg)
{
	(void)arg;
	spin_at_random();
	return 0;
}

static int64_t join_body(unsigned side, void *arg)
{
	(void)arg;
	for (uint64_t i = 0; side == 0 && i < ho.target; i++) {
		WEFT_SUPERVISE(scope)
			for (int k = 0; k < 3; k++)
				bench_go(scope, join_child, NULL, 0);
		handed();
	}
	return 0;
}

static void crew_mode(const char *mode, live_body body, uint64_t target)
{
	ho.mode = mode;
	ho.target = target / ho.share;
	/* relaxed: the tasks are started later, and see it. */
	weft__store(&ho.across, (uint64_t)0, relaxed);
	WEFT_SUPERVISE(scope)
		live_crew(scope, ho.workers, body, NULL);
}

/*
 * thread: a task is submitted from outside and waited for there.
 */

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void *submitter(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	uint64_t one = 1;

	opts.ret_task = &task;
	for (uint64_t i = 0; i < SUBMITS / ho.share; i++) {
		bench_must("weft_submit",
			   weft_submit(arg, nothing, NULL, 0, &opts));
		bench_must("weft_wait", weft_wait(arg, task, NULL));
		handed();
		spin_at_random();
	}
	if (write(ho.done, &one, sizeof(one)) != sizeof(one))
		bench_die("write", -errno);
	return NULL;
}

static void thread_mode(void)
{
	pthread_t thread;
	uint64_t done;

	ho.mode = "thread";
	ho.done = (int)bench_must("eventfd", eventfd(0, EFD_CLOEXEC));
	if (pthread_create(&thread, NULL, submitter, weft_runtime_self()) != 0)
		live_fail("handover", "no thread");
	bench_must("weft_read", weft_read(ho.done, &done, sizeof(done)));
	pthread_join(thread, NULL);
	weft_close(ho.done);
}

/*
 * The onlooker.
 */

static void kick(unsigned kicks)
{
	/* acquire: the runtime is complete before its pointer is set. */
	struct weft_runtime *runtime = weft__load(&ho.runtime, acquire);

	fprintf(stderr,
		"handover (%s): no hand-over for 1 s, after %llu of %llu\n",
		ho.mode, (unsigned long long)weft__load(&ho.across, relaxed),
		(unsigned long long)ho.target);
	ho.lost++;
	if (kicks > KICKS_MAX) {
		live_emit("handover", "lost", ho.lost, "count");
		live_fail("handover", "no hand-over even after new tasks");
	}
	if (runtime)
		bench_must("weft_submit",
			   weft_submit(runtime, nothing, NULL, 0, NULL));
}

static void *onlooker(void *arg)
{
	uint64_t seen = 0, since_ns = now_ns();
	unsigned kicks = 0;

	for (;;) {
		uint64_t count = weft__load(&ho.handed, relaxed);

		usleep(20000);
		/* acquire: see kick. */
		if (count != seen || !weft__load(&ho.runtime, acquire)) {
			kicks = 0;
			since_ns = now_ns();
		} else if (now_ns() - since_ns > STALL_NS) {
			kick(++kicks);
			since_ns = now_ns();
		}
		seen = count;
	}
	return arg;
}

static int64_t handover_main(void *arg)
{
	struct weft_stats stats;

	(void)arg;
	/* release: see kick. */
	weft__store(&ho.runtime, weft_runtime_self(), release);
	weft__store(&ho.sleepers[0], (uint64_t)0, relaxed);
	crew_mode("cancel", cancel_body, CANCELS);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ho.fds) < 0)
		bench_die("socketpair", -errno);
	crew_mode("byte", byte_body, BYTES);
	weft_close(ho.fds[0]);
	weft_close(ho.fds[1]);
	crew_mode("join", join_body, JOINS);
	thread_mode();
	weft__store(&ho.runtime, NULL, release);
	bench_must("weft_stats", weft_stats_get(weft_runtime_self(), &stats));
	ho.rescues += (unsigned)stats.total.rescues;
	return 0;
}

void live_handover(const char *what, const struct live_opts *opts)
{
	pthread_t thread;
	unsigned share = opts->reps ? opts->reps : 1;

	ho.workers = opts->workers;
	if (ho.workers < 2)
		live_fail(what, "needs two workers");
	if (pthread_create(&thread, NULL, onlooker, NULL) != 0)
		live_fail(what, "no thread for the onlooker");
	setenv("WEFT_TEST_MONITOR", "off", 1);
	ho.share = share;
	live_run(handover_main, NULL);
	unsetenv("WEFT_TEST_MONITOR");
	ho.share = share * SHARE_WITH_MONITOR;
	live_run(handover_main, NULL);
	live_figure(what, "lost", ho.lost, 0, "count");
	live_figure(what, "rescues", ho.rescues, 0, "count");
}
