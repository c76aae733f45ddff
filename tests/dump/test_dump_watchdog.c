/* SPDX-License-Identifier: MIT */
/*
 * Suite dump/watchdog: dumps without a call of weft_dump().
 *
 * Such a dump is made on a signal (dump_signal), when a task runs for too long
 * without a pause (a stall), and when no task of the runtime can go on (a
 * standstill).  Each test runs a program in a child process and reads its
 * stderr.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "runtime/dump/dump.h"
#include "tests/support/dump_scene.h"
#include "tests/support/needs.h"

/* ---- The output on stderr ------------------------------------------------ */

/* Runs a program in a child and kills it when the text has appeared; if the
 * child ends by itself, the output is read to its end. */
struct said {
	int from;
	int to; /* the child's let_go */
	pid_t child;
	size_t used;
	char text[1 << 16];
};

/* A child sees an event there when it is let go, or this process has ended. */
static struct pollfd let_go = { .events = POLLIN };

static void said_begin(struct said *said, void (*program)(void))
{
	int fds[2], go[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	let_go.fd = go[0];
	said->to = go[1];
	said->used = 0;
	said->child = fork();
	ck_assert_int_ge(said->child, 0);
	if (said->child == 0) {
		dup2(fds[1], STDERR_FILENO);
		close(go[1]);
		program();
		_exit(0);
	}
	close(fds[1]);
	close(go[0]);
	said->from = fds[0];
}

/* Returns false if the child ended before the text appeared. */
static bool said_until(struct said *said, const char *what)
{
	said->text[said->used] = '\0';
	while (!strstr(said->text, what)) {
		ssize_t n = read(said->from, said->text + said->used,
				 sizeof(said->text) - 1 - said->used);

		if (n <= 0)
			return false;
		said->used += (size_t)n;
		said->text[said->used] = '\0';
	}
	return true;
}

/* Like said_until(), but asks again and again: a first request may come too
 * early. */
static void said_when_asked(struct said *said, const char *what, int number)
{
	struct pollfd more = { .fd = said->from, .events = POLLIN };

	do {
		kill(said->child, number);
		said->used = 0;
		said->text[0] = '\0';
		while (!strstr(said->text, what) && poll(&more, 1, 200) > 0) {
			ssize_t n = read(said->from, said->text + said->used,
					 sizeof(said->text) - 1 - said->used);

			ck_assert_int_gt(n, 0);
			said->used += (size_t)n;
			said->text[said->used] = '\0';
		}
	} while (!strstr(said->text, what));
}

static void said_let_go(struct said *said)
{
	ck_assert_int_eq(write(said->to, "", 1), 1);
}

static int said_end(struct said *said, int number)
{
	int status = 0;

	if (number)
		kill(said->child, number);
	ck_assert_int_eq(waitpid(said->child, &status, 0), said->child);
	close(said->from);
	close(said->to);
	return status;
}

static int run_with(weft_fn fn, struct weft_opts *opts)
{
	return (int)weft_run(fn, NULL, opts);
}

/* ---- On a signal --------------------------------------------------------- */

static int64_t wait_for_ever(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_NEVER);
}

static void dumps_at_usr1(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	sigset_t set;

	/* The signal is blocked in all of the program's own threads. */
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	opts.dump_signal = SIGUSR1;
	fprintf(stderr, "ready\n");
	run_with(wait_for_ever, &opts);
}

START_TEST(signal_asks_for_a_dump)
{
	static struct said said;

	said_begin(&said, dumps_at_usr1);
	ck_assert(said_until(&said, "ready\n"));
	for (int i = 0; i < 3; i++)
		said_when_asked(&said, " main (", SIGUSR1);
	said_when_asked(&said, ": waits for ever\n", SIGUSR1);
	if (dump_has_backtraces(said.text))
		ck_assert_msg(strstr(said.text, " main (wait_for_ever), "),
			      "%s", said.text);
	said_end(&said, SIGKILL);
}
END_TEST

static void program_handler(int number)
{
	(void)number;
}

START_TEST(action_of_the_signal_comes_back)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct sigaction action = { .sa_handler = program_handler }, now;

	ck_assert_int_eq(sigaction(SIGUSR2, &action, NULL), 0);
	opts.dump_signal = SIGUSR2;
	/* Both together fit where 64 KiB may be locked. */
	opts.workers = 1;
	opts.ring_entries = 2;
	for (int i = 0; i < 3; i++) {
		struct weft_runtime *first, *second;

		ck_assert_int_eq(weft_start(&opts, &first), 0);
		ck_assert_int_eq(weft_start(&opts, &second), 0);
		ck_assert_int_eq(weft_stop(first), 0);
		sigaction(SIGUSR2, NULL, &now);
		ck_assert(now.sa_handler != program_handler);
		ck_assert_int_eq(weft_stop(second), 0);
		sigaction(SIGUSR2, NULL, &now);
		ck_assert(now.sa_handler == program_handler);
	}
}
END_TEST

static void later_handler(int number)
{
	(void)number;
}

START_TEST(action_that_is_set_meanwhile_stays)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	struct sigaction now;

	opts.dump_signal = SIGUSR2;
	opts.workers = 1;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	signal(SIGUSR2, later_handler);
	ck_assert_int_eq(weft_stop(runtime), 0);
	sigaction(SIGUSR2, NULL, &now);
	ck_assert(now.sa_handler == later_handler);
}
END_TEST

/* ---- Stalls -------------------------------------------------------------- */

static int64_t hog(void *arg)
{
	(void)arg;
	while (poll(&let_go, 1, 0) == 0)
		;
	return 0;
}

static int64_t has_a_hog(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	opts.name = "the hog";
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, hog, NULL, 0, &opts), 0);
		/* Other tasks go on meanwhile, and are not reported as
		 * stalls. */
		for (int i = 0; i < 400; i++)
			ck_assert_int_eq(weft_sleep(WEFT_MS(2)), 0);
	}
	return 0;
}

static unsigned times_in(const char *text, const char *what)
{
	unsigned count = 0;

	for (; (text = strstr(text, what)); text++)
		count++;
	return count;
}

static void stalls(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 2;
	/* A worker of a busy machine may be held up for less than that. */
	opts.stall_ns = WEFT_MS(500);
	run_with(has_a_hog, &opts);
}

START_TEST(task_that_does_not_pause_is_named)
{
	static struct said said;
	const char *at;

	said_begin(&said, stalls);
	ck_assert_msg(said_until(&said, " the hog ("), "%s", said.text);
	at = strstr(said.text, "has been in one task for ");
	ck_assert_ptr_nonnull(at);
	/* Without backtraces the next line gives the reason. */
	if (dump_has_backtraces(said.text))
		ck_assert_ptr_nonnull(strstr(at, " the hog (hog), "));
	else
		ck_assert_ptr_eq(strstr(at, "\nweft: no backtraces: "),
				 strchr(at, '\n'));
	/* The stall goes on for a while, and is reported once. */
	thread_pause_ns(WEFT_SEC(1));
	said_let_go(&said);
	(void)said_until(&said, "never said");
	ck_assert_uint_eq(times_in(said.text, " the hog ("), 1);
	ck_assert_int_eq(said_end(&said, 0), 0);
}
END_TEST

/* A task that blocks the signal with which its worker would be interrupted. */
static int64_t hog_deaf(void *arg)
{
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	return hog(arg);
}

static void stalls_deaf(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	opts.stall_ns = WEFT_MS(100);
	run_with(hog_deaf, &opts);
}

START_TEST(worker_that_does_not_answer_is_told_of)
{
	static struct said said;

	said_begin(&said, stalls_deaf);
	ck_assert_msg(said_until(&said,
				 "runs on worker 0, which does not answer\n"),
		      "%s", said.text);
	(void)after(said.text, "worker 0: does not answer, for ");
	(void)after(said.text, " main (");
	said_end(&said, SIGKILL);
}
END_TEST

/* SA_RESTART does not restart poll(). */
static __attribute__((noinline)) int64_t sleep_in_a_call(void *arg)
{
	int r = poll(&let_go, 1, -1);

	(void)arg;
	fprintf(stderr, "slept %s\n", r < 0 ? "less" : "all");
	return 0;
}

static int64_t has_a_sleeper(void *arg)
{
	WEFT_SUPERVISE(scope)
		named(scope, "sleeper", sleep_in_a_call, arg);
	return 0;
}

static void stalls_in_a_call(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	/* Any user may lock that much. */
	opts.ring_entries = 2;
	opts.stall_ns = WEFT_MS(100);
	if (run_with(has_a_sleeper, &opts) < 0)
		fprintf(stderr, "did not run\n");
}

START_TEST(call_that_sleeps_is_named_and_not_cut)
{
	static struct said said;
	const char *at;

	said_begin(&said, stalls_in_a_call);
	(void)said_until(&said, "runs on worker 0");
	said_let_go(&said);
	(void)said_until(&said, "never said");
	(void)after(said.text, "slept all\n");
	at = after(said.text, "has been in one task for ");
	at = after(at, " sleeper (");
	at = after(at, "runs on worker 0");
	/* A C library whose poll() has a frame pointer hides the caller. */
	if (dump_has_calls_of_running(said.text) &&
	    !strstr(at, "asleep: the other calls cannot be found"))
		(void)after(at, "\n    sleep_in_a_call  ");
	ck_assert_int_eq(said_end(&said, 0), 0);
}
END_TEST

/* A process that may not be dumped cannot read its threads' registers, unless
 * it is root's. */
static bool hide_registers(void)
{
	return become_unprivileged() &&
	       prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
	       open("/proc/thread-self/syscall", O_RDONLY) < 0;
}

static void stalls_hidden(void)
{
	if (hide_registers())
		stalls_in_a_call();
}

START_TEST(call_that_sleeps_is_named_without_its_registers)
{
	static struct said said;
	const char *at;

	if (!test_needs(test_can(hide_registers),
			"call_that_sleeps_is_named_without_its_registers",
			"registers that a process can hide"))
		return;
	said_begin(&said, stalls_hidden);
	(void)said_until(&said, "runs on worker 0");
	said_let_go(&said);
	(void)said_until(&said, "never said");
	(void)after(said.text, "slept all\n");
	at = after(said.text, " sleeper (");
	(void)after(at, "runs on worker 0, asleep: no backtrace, since "
		    "/proc/self/task/*/syscall cannot be read\n");
	ck_assert_int_eq(said_end(&said, 0), 0);
}
END_TEST

/* Reports a stall of the worker that runs the calling task.  `later`: the task
 * began after the stall. */
struct report {
	struct weft__worker *worker;
	bool later;
	int fd;
};

static void *report_stall(void *arg)
{
	struct report *report = arg;
	uint64_t polls = weft__load(
		&report->worker->counts[WEFT__N_POLLS], relaxed);

	ck_assert_int_eq(weft__dump_stall(report->worker->runtime,
					  report->worker->index,
					  polls - report->later, WEFT_SEC(1),
					  report->fd),
			 0);
	return NULL;
}

static int64_t innocent(void *arg)
{
	struct report *report = *(struct report **)arg;
	pthread_t thread;

	report->worker = weft__worker_self();
	ck_assert_int_eq(pthread_create(&thread, NULL, report_stall, report),
			 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	return 0;
}

static int64_t has_an_innocent(void *arg)
{
	WEFT_SUPERVISE(scope)
		named(scope, "innocent", innocent, arg);
	return 0;
}

START_TEST(stall_is_not_blamed_on_a_later_task)
{
	struct report report = { .later = _i };
	char text[4096] = "";

	report.fd = memfd_create("report", MFD_CLOEXEC);
	ck_assert_int_ge(report.fd, 0);
	ck_assert_int_eq(weft_run(has_an_innocent, &report, NULL), 0);
	ck_assert_int_gt(pread(report.fd, text, sizeof(text) - 1, 0), 0);
	close(report.fd);
	(void)after(text, "has been in one task for 1.00 s\n");
	if (report.later) {
		(void)after(text, ": has left that task since\n");
		ck_assert_msg(!strstr(text, "innocent"), "%s", text);
	} else {
		(void)after(text, " innocent (");
	}
}
END_TEST

/* ---- Standstills --------------------------------------------------------- */

static struct weft_mutex left = WEFT_MUTEX_INIT, right = WEFT_MUTEX_INIT;
static struct weft_barrier both_have_one = WEFT_BARRIER_INIT(2);

struct order {
	struct weft_mutex *first, *second;
};

static int64_t lock_both(void *arg)
{
	struct order *order = arg;

	ck_assert_int_eq(weft_mutex_lock(order->first), 0);
	ck_assert_int_ge(weft_barrier_wait(&both_have_one), 0);
	return weft_mutex_lock(order->second);
}

static int64_t embrace(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(scope) {
		struct order one = { &left, &right }, other = { &right, &left };

		ck_assert_int_eq(WEFT_GO(scope, lock_both, one), 0);
		ck_assert_int_eq(WEFT_GO(scope, lock_both, other), 0);
	}
	return 0;
}

static void stands_still(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.stall_ns = WEFT_MS(40);
	run_with(embrace, &opts);
}

START_TEST(deadlock_is_told_with_its_cycle)
{
	static struct said said;

	said_begin(&said, stands_still);
	ck_assert(said_until(&said, "deadlock: 2 tasks wait for each other\n"));
	ck_assert(strstr(said.text, "weft: no task can go on"));
	said_end(&said, SIGKILL);
}
END_TEST

/* A select stands still if none of its cases can be done from outside. */
static int64_t select_channels(void *arg)
{
	struct weft_chan chan = WEFT_CHAN_DIRECT(int);
	struct weft_case cases[] = {
		WEFT_RECV(&chan, &(int){ 0 }),
		WEFT_AT(WEFT_NEVER),
	};

	(void)arg;
	return weft_select(cases, 2);
}

static void selects_for_ever(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.stall_ns = WEFT_MS(40);
	run_with(select_channels, &opts);
}

START_TEST(select_of_what_no_one_does_is_a_standstill)
{
	static struct said said;

	said_begin(&said, selects_for_ever);
	ck_assert(said_until(&said, "waits for one of 2 cases"));
	ck_assert(strstr(said.text, "weft: no task can go on"));
	said_end(&said, SIGKILL);
}
END_TEST

/* A task that waits for a descriptor or for time does not stand still. */
static int select_for_a_while(int fd)
{
	struct weft_case cases[] = {
		WEFT_READY(fd, POLLIN),
		WEFT_AT(weft_now() + WEFT_MS(300)),
	};

	return weft_select(cases, 2);
}

static int64_t waits_for_outside(void *arg)
{
	int fds[2];

	(void)arg;
	socket_pair(fds);
	WEFT_WITHIN(WEFT_MS(300))
		ck_assert_int_eq(weft_poll(fds[0], POLLIN), -ETIMEDOUT);
	ck_assert_int_eq(weft_sleep(WEFT_MS(300)), 0);
	ck_assert_int_eq(select_for_a_while(fds[0]), 1);
	weft_close(fds[0]);
	weft_close(fds[1]);
	return 0;
}

static void waits(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.stall_ns = WEFT_MS(40);
	run_with(waits_for_outside, &opts);
}

START_TEST(waiting_for_the_world_is_no_standstill)
{
	static struct said said;

	said_begin(&said, waits);
	(void)said_until(&said, "never said");
	/* A worker that was held up is reported. */
	ck_assert_msg(!strstr(said.text, "no task can go on"), "%s", said.text);
	ck_assert_int_eq(said_end(&said, 0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dump/watchdog");
	TCase *tc = tcase_create("watchdog");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, signal_asks_for_a_dump);
	tcase_add_test(tc, action_of_the_signal_comes_back);
	tcase_add_test(tc, action_that_is_set_meanwhile_stays);
	tcase_add_test(tc, task_that_does_not_pause_is_named);
	tcase_add_test(tc, worker_that_does_not_answer_is_told_of);
	tcase_add_test(tc, call_that_sleeps_is_named_and_not_cut);
	tcase_add_test(tc, call_that_sleeps_is_named_without_its_registers);
	tcase_add_loop_test(tc, stall_is_not_blamed_on_a_later_task, 0, 2);
	tcase_add_test(tc, deadlock_is_told_with_its_cycle);
	tcase_add_test(tc, select_of_what_no_one_does_is_a_standstill);
	tcase_add_test(tc, waiting_for_the_world_is_no_standstill);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
