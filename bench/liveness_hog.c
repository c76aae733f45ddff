/* SPDX-License-Identifier: MIT */
/*
 * One task computes for a second and never waits: how long do others wait?
 *
 *	hog_echo    connections whose tasks wait on the computing task's worker
 *	hog_submit  a connection whose read was queued just before, and not yet
 *		    submitted
 *	hog_lifo    a task that the computing task started just before, in the
 *		    slot for the newest task
 *	hog_timer   sleepers: those of the computing task's worker, which is
 *		    worker 0 and advances the timers, and 5 ms beats elsewhere
 *
 * Method.  Each worker has a pinned task, its home; the homes take turns to
 * compute.  The home makes the connections (real TCP, both ends) and starts
 * their echo tasks, while the other workers are kept busy: so the tasks wait on
 * the home's worker.  A client thread, which is not a worker, sends over the
 * other ends and measures; it is the instrument, so it has real-time priority
 * if the kernel allows it.  Each connection serves once only, because a task
 * that was moved to another worker is no longer delayed.  Before it computes,
 * the home sleeps 1 to 400 ms, so that the threads that help late workers may
 * have gone to sleep (not in hog_submit: they have just been kept busy); in
 * every other turn there is also no request in the first half of the second.
 * hog_submit and hog_lifo end the computation when they have their answer.
 *
 * _busy: every other worker has tasks that yield for ever, so none is idle.
 *
 * What would fool it.  A client that waits for an answer before it sends the
 * next request: a request that is late for this reason counts from its due
 * time.  A machine with fewer cores than workers.
 */
#include "bench/liveness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
	CONNS = 50,
	SLEEPERS = 100,
	BEATS = 4,
	REPS_LONG = 20,
	REPS_SHORT = 100,
	YIELDERS = 3, /* a worker; the first is pinned */
	SAMPLES_MAX = 1 << 20,
	OUTLIERS_SHOWN = 10,
};

#define HOG_NS UINT64_C(1000000000)
#define BEAT_NS UINT64_C(5000000)
#define PLACING_NS UINT64_C(20000000)
#define P99_US 5000.0
#define MAX_US 15000.0

struct samples {
	weft__atomic(size_t) count;
	uint64_t ns[SAMPLES_MAX];
};

/* The client's work: send over fds[i] at at_ns[i]. */
struct job {
	int fds[CONNS];
	uint64_t at_ns[CONNS];
	int count;
};

static struct {
	const char *what;
	void (*rep)(unsigned rep, unsigned home); /* a worker's number */
	unsigned workers, reps;
	bool busy;
	int baton[LIVE_WORKERS_MAX]; /* eventfds */
	weft__atomic(bool) over;       /* ends the yielders */
	weft__atomic(bool) beats_over; /* ends the beats */
	weft__atomic(uint64_t) from_ns, to_ns; /* a home computes */
	struct weft_scope *others;
	struct job job;
	sem_t job_begin;
	weft__atomic(bool) job_done;
	weft__atomic(unsigned) outliers;
	unsigned turn;
	struct samples main, beats;
} hog;

/* Prints the time of the first samples that exceed the limit. */
static void outlier(const char *whose, uint64_t ns)
{
	/* relaxed: a count and a hint. */
	uint64_t from_ns = weft__load(&hog.from_ns, relaxed);

	if (weft__add(&hog.outliers, 1u, relaxed) < OUTLIERS_SHOWN)
		fprintf(stderr, "%s: turn %u, at %.1f ms: %s took %.1f ms\n",
			hog.what, hog.turn,
			(double)(int64_t)(now_ns() - ns - from_ns) / 1e6, whose,
			(double)ns / 1e6);
}

static void sample(struct samples *to, uint64_t ns)
{
	/* relaxed: read when all tasks and threads have ended. */
	size_t i = weft__add(&to->count, (size_t)1, relaxed);

	if (i < SAMPLES_MAX)
		to->ns[i] = ns;
	if (ns > (uint64_t)(MAX_US * 1e3))
		outlier(to == &hog.beats ? "a beat" : "a sample", ns);
}

/* Computes until end_ns or *done: it reads the clock and never waits. */
static void compute(uint64_t end_ns, weft__atomic(bool) *done)
{
	uint64_t now;

	/* relaxed: a range that publishes nothing. */
	weft__store(&hog.to_ns, end_ns, relaxed);
	weft__store(&hog.from_ns, now_ns(), relaxed);
	do
		now = now_ns();
	/* relaxed: a flag that publishes nothing. */
	while (now < end_ns && !(done && weft__load(done, relaxed)));
	weft__store(&hog.to_ns, now, relaxed);
}

static uint64_t pause_ns(unsigned rep)
{
	static const unsigned ms[] = { 1, 20, 150, 400, 5 };

	return WEFT_MS(ms[rep % (sizeof(ms) / sizeof(*ms))]);
}

/* Sleeps, at least until the home that passed the turn sleeps too.  The kernel
 * may put its thread and this one on one core, and then that thread would wait
 * for a clock tick in the middle of a call. */
static void pause_before(unsigned rep)
{
	bench_must("weft_sleep", weft_sleep(pause_ns(rep)));
}

/* The due time of the i-th of n requests in the second that begins at t0. */
static uint64_t due_ns(uint64_t t0, unsigned rep, int i, int n)
{
	uint64_t first = rep & 1 ? HOG_NS / 2 : 5000000;

	return t0 + first + (HOG_NS * 19 / 20 - first) / (uint64_t)n *
				    (uint64_t)i;
}

/*
 * The client.
 */

static void client_priority(void)
{
	struct sched_param param = { .sched_priority = 1 };

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) != 0)
		(void)setpriority(PRIO_PROCESS, (id_t)live_thread(), -20);
}

static void sleep_until(uint64_t at_ns)
{
	struct timespec at = { .tv_sec = (time_t)(at_ns / 1000000000u),
			       .tv_nsec = (long)(at_ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
		;
}

/* Makes one request.  Returns the time of its answer. */
static uint64_t client_ask(int fd)
{
	char buf[64] = "ping";

	if (send(fd, buf, sizeof(buf), MSG_NOSIGNAL) != sizeof(buf) ||
	    recv(fd, buf, sizeof(buf), MSG_WAITALL) != sizeof(buf))
		live_fail(hog.what, "a connection gave no answer in 5 s");
	return now_ns();
}

static void *client(void *arg)
{
	client_priority();
	for (;;) {
		uint64_t last_ns = 0;

		while (sem_wait(&hog.job_begin) != 0)
			;
		for (int i = 0; i < hog.job.count; i++) {
			uint64_t at_ns = hog.job.at_ns[i], from_ns;

			sleep_until(at_ns);
			/* A request that the one before delayed counts from
			 * its due time; else the client's own lateness does not
			 * count. */
			from_ns = last_ns > at_ns ? at_ns : now_ns();
			last_ns = client_ask(hog.job.fds[i]);
			sample(&hog.main, last_ns - from_ns);
			close(hog.job.fds[i]);
		}
		/* release: the home may use the job again. */
		weft__store(&hog.job_done, true, release);
	}
	return arg;
}

static void job_start(void)
{
	/* relaxed: the semaphore orders it. */
	weft__store(&hog.job_done, false, relaxed);
	sem_post(&hog.job_begin);
}

static void job_wait(void)
{
	/* acquire: see the client. */
	while (!weft__load(&hog.job_done, acquire))
		bench_must("weft_sleep", weft_sleep(WEFT_MS(1)));
}

/*
 * Connections that live on the home's worker.
 */

static void tcp_pair(int *ret_ours, int *ret_client)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr *addr = (struct sockaddr *)&a;
	socklen_t bytes = sizeof(a);
	struct timeval patience = { .tv_sec = 5 };
	int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*ret_client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, addr, bytes) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, addr, &bytes) < 0 ||
	    connect(*ret_client, addr, bytes) < 0)
		bench_die("a connection", -errno);
	*ret_ours = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (*ret_ours < 0)
		bench_die("accept", -errno);
	close(listener);
	setsockopt(*ret_ours, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(*ret_client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(*ret_client, SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
}

struct conn {
	int fd;
	weft__atomic(pid_t) *thread; /* where the task began to wait */
};

static int64_t echo_task(void *arg)
{
	struct conn conn = *(struct conn *)arg;
	char buf[256];
	ssize_t n;

	/* relaxed: read on the same thread, or not equal to it. */
	weft__store(conn.thread, live_thread(), relaxed);
	while ((n = weft_read(conn.fd, buf, sizeof(buf))) > 0)
		if (weft_write_all(conn.fd, buf, (size_t)n, NULL) < 0)
			break;
	weft_close(conn.fd);
	return 0;
}

/* Until a task that was started here has run here; the other workers are
 * kept. */
static void await_place(weft__atomic(pid_t) *thread)
{
	/* relaxed: see echo_task. */
	do
		bench_must("weft_yield", weft_yield());
	while (!weft__load(thread, relaxed));
	if (weft__load(thread, relaxed) != live_thread())
		live_fail(hog.what, "a task does not run where it was started");
}

/* Makes a connection whose task waits on this worker; returns its other end. */
static int conn_new(struct weft_scope *scope)
{
	weft__atomic(pid_t) thread = 0;
	struct conn conn = { .thread = &thread };
	int client_fd;

	tcp_pair(&conn.fd, &client_fd);
	bench_go(scope, echo_task, &conn, sizeof(conn));
	await_place(&thread);
	return client_fd;
}

static void rep_echo(unsigned rep, unsigned home)
{
	WEFT_SUPERVISE(scope) {
		uint64_t t0;

		live_keep_others(hog.workers, home);
		for (int i = 0; i < CONNS; i++)
			hog.job.fds[i] = conn_new(scope);
		live_let_others_go();
		hog.job.count = CONNS;
		bench_must("weft_sleep", weft_sleep(WEFT_MS(2)));
		pause_before(rep);
		t0 = now_ns();
		for (int i = 0; i < CONNS; i++)
			hog.job.at_ns[i] = due_ns(t0, rep, i, CONNS);
		job_start();
		compute(t0 + HOG_NS, NULL);
		job_wait();
	}
}

static void rep_submit(unsigned rep, unsigned home)
{
	pause_before(rep);
	WEFT_SUPERVISE(scope) {
		live_keep_others(hog.workers, home);
		hog.job.fds[0] = conn_new(scope);
		live_let_others_go();
		hog.job.at_ns[0] = 0;
		hog.job.count = 1;
		job_start();
		compute(now_ns() + HOG_NS, &hog.job_done);
		job_wait();
	}
}

/*
 * A task in the slot for the newest task.
 */

struct newest {
	uint64_t t0_ns;
	weft__atomic(bool) *started;
};

static int64_t newest_task(void *arg)
{
	struct newest *newest = arg;

	sample(&hog.main, now_ns() - newest->t0_ns);
	/* relaxed: a flag that publishes nothing. */
	weft__store(newest->started, true, relaxed);
	return 0;
}

static void rep_lifo(unsigned rep, unsigned home)
{
	weft__atomic(bool) started = false;
	struct newest newest = { .started = &started };

	(void)home;
	pause_before(rep);
	WEFT_SUPERVISE(scope) {
		newest.t0_ns = now_ns();
		bench_go(scope, newest_task, &newest, sizeof(newest));
		compute(newest.t0_ns + HOG_NS, &started);
	}
}

/*
 * Sleepers.
 */

struct sleeper {
	uint64_t due_ns;
	weft__atomic(pid_t) *thread;
};

static int64_t sleeper_task(void *arg)
{
	struct sleeper *sleeper = arg;
	uint64_t now;

	/* relaxed: see echo_task. */
	weft__store(sleeper->thread, live_thread(), relaxed);
	bench_must("weft_sleep_until", weft_sleep_until(sleeper->due_ns));
	now = now_ns();
	if (now < sleeper->due_ns)
		live_fail(hog.what, "a sleeper woke early");
	sample(&hog.main, now - sleeper->due_ns);
	return 0;
}

/* Starts a sleeper that waits on this worker. */
static void sleeper_new(struct weft_scope *scope, uint64_t due)
{
	weft__atomic(pid_t) thread = 0;
	struct sleeper sleeper = { due, &thread };

	bench_go(scope, sleeper_task, &sleeper, sizeof(sleeper));
	await_place(&thread);
}

/* Wakes every 5 ms, on any worker; counts while a home computes. */
static int64_t beat_task(void *arg)
{
	(void)arg;
	/* relaxed: flags and a range that publish nothing. */
	while (!weft__load(&hog.beats_over, relaxed)) {
		uint64_t due = now_ns() + BEAT_NS, now;

		bench_must("weft_sleep", weft_sleep(BEAT_NS));
		now = now_ns();
		if (due > weft__load(&hog.from_ns, relaxed) &&
		    due < weft__load(&hog.to_ns, relaxed))
			sample(&hog.beats, now - due);
	}
	return 0;
}

static void rep_timer(unsigned rep, unsigned home)
{
	/* relaxed: the tasks are started later, and see it. */
	weft__store(&hog.beats_over, false, relaxed);
	WEFT_SUPERVISE(scope) {
		uint64_t t0;

		/* In half of the turns: beats keep the helpers awake. */
		for (int i = 0; i < BEATS && rep & 2; i++)
			bench_go(scope, beat_task, NULL, 0);
		live_keep_others(hog.workers, home);
		/* After the pause, and when all of them are there. */
		t0 = now_ns() + pause_ns(rep) + PLACING_NS;
		for (int i = 0; i < SLEEPERS; i++)
			sleeper_new(scope, due_ns(t0, rep, i, SLEEPERS));
		live_let_others_go();
		pause_before(rep);
		compute(t0 + HOG_NS, NULL);
		weft__store(&hog.beats_over, true, relaxed);
	}
}

/*
 * Homes, and the tasks of the other workers.
 */

static int64_t yielder_task(void *arg)
{
	(void)arg;
	/* relaxed: a flag that publishes nothing. */
	while (!weft__load(&hog.over, relaxed))
		bench_must("weft_yield", weft_yield());
	return 0;
}

static void start_yielders(void)
{
	for (int i = 0; i < YIELDERS; i++) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

		opts.flags = i == 0 ? WEFT_PINNED : 0;
		bench_must("weft_go_opts",
			   weft_go_opts(hog.others, yielder_task, NULL, 0,
					&opts));
		bench_must("weft_yield", weft_yield());
	}
}

/* In hog_timer only worker 0 computes. */
static unsigned homes(void)
{
	return hog.rep == rep_timer ? 1 : hog.workers;
}

static int64_t home_body(unsigned worker, void *arg)
{
	uint64_t turn, one = 1;

	(void)arg;
	live_keeper_start(hog.others, worker);
	if (hog.busy)
		start_yielders();
	if (worker >= homes())
		return 0;
	for (unsigned rep = worker; rep < hog.reps; rep += homes()) {
		bench_must("weft_read",
			   weft_read(hog.baton[worker], &turn, sizeof(turn)));
		live_watch(hog.what, 30);
		hog.turn = rep;
		hog.rep(rep, worker);
		bench_must("weft_write",
			   weft_write(hog.baton[(worker + 1) % homes()], &one,
				      sizeof(one)));
	}
	return 0;
}

static int64_t hog_main(void *arg)
{
	uint64_t one = 1;

	(void)arg;
	for (unsigned i = 0; i < hog.workers; i++)
		hog.baton[i] = (int)bench_must("eventfd",
					       eventfd(0, EFD_CLOEXEC));
	live_watch(hog.what, 30);
	WEFT_SUPERVISE(others) {
		hog.others = others;
		WEFT_SUPERVISE(crew) {
			live_crew(crew, hog.workers, home_body, NULL);
			bench_must("weft_write", weft_write(hog.baton[0], &one,
							    sizeof(one)));
		}
		/* relaxed: a flag that publishes nothing. */
		weft__store(&hog.over, true, relaxed);
		live_keepers_end(hog.workers);
	}
	live_rescues(hog.what);
	live_watch(NULL, 0);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The 99th percentile and the maximum, in us. */
static void quantiles(struct samples *of, double *p99, double *max)
{
	/* relaxed: all tasks have ended. */
	size_t n = weft__load(&of->count, relaxed);

	if (n > SAMPLES_MAX)
		n = SAMPLES_MAX;
	if (n == 0)
		live_fail(hog.what, "nothing was measured");
	qsort(of->ns, n, sizeof(*of->ns), by_value);
	*p99 = (double)of->ns[(n * 99 + 99) / 100 - 1] / 1e3;
	*max = (double)of->ns[n - 1] / 1e3;
	fprintf(stderr, "%s: %zu samples, p50 %.0f p99 %.0f max %.0f us\n",
		hog.what, n, (double)of->ns[n / 2] / 1e3, *p99, *max);
}

static void report(void)
{
	double p99, max, beats_p99, beats_max;

	quantiles(&hog.main, &p99, &max);
	if (hog.rep == rep_timer && hog.reps > 2) {
		quantiles(&hog.beats, &beats_p99, &beats_max);
		p99 = beats_p99 > p99 ? beats_p99 : p99;
		max = beats_max > max ? beats_max : max;
	}
	live_figure(hog.what, "p99", p99, P99_US, "us");
	live_figure(hog.what, "max", max, MAX_US, "us");
}

void live_hog(const char *what, const struct live_opts *opts)
{
	static const struct {
		const char *name;
		void (*rep)(unsigned rep, unsigned home);
		unsigned reps;
	} cases[] = {
		{ "hog_echo", rep_echo, REPS_LONG },
		{ "hog_lifo", rep_lifo, REPS_SHORT },
		{ "hog_submit", rep_submit, REPS_SHORT },
		{ "hog_timer", rep_timer, REPS_LONG },
	};
	const char *rest = NULL;
	pthread_t thread;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (strncmp(what, cases[i].name, strlen(cases[i].name)) == 0) {
			rest = what + strlen(cases[i].name);
			hog.rep = cases[i].rep;
			hog.reps = opts->reps ? opts->reps : cases[i].reps;
		}
	if (!rest || (*rest && strcmp(rest, "_busy") != 0))
		live_fail(what, "no such case");
	if (opts->workers < 2)
		live_fail(what, "needs two workers: a lone one has no helper");
	hog.what = what;
	hog.busy = *rest != '\0';
	hog.workers = opts->workers;
	sem_init(&hog.job_begin, 0, 0);
	if (pthread_create(&thread, NULL, client, NULL) != 0)
		live_fail(what, "no thread for the client");
	live_run(hog_main, NULL);
	report();
}
