/* SPDX-License-Identifier: MIT */
/*
 * Suite dump/states: how a dump reports tasks that do not wait.
 *
 * Such a task runs, is ready to run, or has ended and is not joined yet.  A
 * running task is interrupted with a signal so that its stack can be unwound;
 * several tests make that hard.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "tests/support/dump_scene.h"
#include "tests/support/errno_now.h"

enum { DUMPS = 20 };

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static weft__atomic(bool) spins, spun;

static __attribute__((noinline)) int64_t spin(void *arg)
{
	(void)arg;
	weft__store(&spun, true, release);
	/* Makes a library call now and then: some tools deliver signals only
	 * there. */
	while (weft__load(&spins, acquire))
		(void)getppid();
	return 0;
}

static void *dump_from_thread(void *arg)
{
	return dump_text(arg);
}

/* Dumps from another thread while this task keeps its worker; the caller frees
 * the text. */
static char *dump_beside(void)
{
	pthread_t thread;
	void *result;

	ck_assert_int_eq(pthread_create(&thread, NULL, dump_from_thread,
					weft_runtime_self()),
			 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	return result;
}

/* There is one such task for every worker. */
IO_TEST(tasks_that_compute_are_told_of)
{
	unsigned workers = weft_runtime_self()->workers_count;
	char head[64], *text;

	weft__store(&spins, true, relaxed);
	weft__store(&spun, false, relaxed);
	text = dump_beside();
	/* This task runs: it is in pthread_join(). */
	snprintf(head, sizeof(head), "weft: 1 task (1 run, 0 wait");
#ifndef WEFT__TSAN /* TSan delays a signal until an interceptor returns */
	ck_assert_msg(strstr(text, head), "%s", text);
	if (dump_has_calls_of_running(text))
		ck_assert_msg(strstr(text, "tasks_that_compute_are_told_of"),
			      "%s", text);
#endif
	free(text);
	/* This task's yield hands its worker to the spinner, so the other
	 * worker must then steal this task. */
	if (workers == 1 || weft_runtime_self()->monitor_off)
		return 0;
	WEFT_SUPERVISE(all) {
		named(all, "spinner", spin, NULL);
		wait_until(weft__load(&spun, acquire));
		text = dump_text(NULL);
		ck_assert_msg(strstr(text, " spinner ("), "%s", text);
#ifndef WEFT__TSAN
		ck_assert_msg(strstr(text, "runs on worker"), "%s", text);
		if (dump_has_calls_of_running(text))
			ck_assert_msg(strstr(text, "    spin  "), "%s", text);
#endif
		free(text);
		weft__store(&spins, false, release);
	}
	return 0;
}

#if defined(__x86_64__)
/* Spins at a point where the function has already restored a callee-saved
 * register from its stack while its unwind table still says that the register
 * is on the stack.  Compilers leave tables like this at the end of functions.
 * The saved value is then just below the stack pointer, where a signal's frame
 * does not overwrite it. */
void spin_at_end(weft__atomic(bool) *while_true);
__asm__("	.text\n"
	"	.type	spin_at_end, @function\n"
	"spin_at_end:\n"
	"	.cfi_startproc\n"
	"	pushq	%rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	popq	%rbp\n"
	"	.cfi_def_cfa_offset 8\n"
	"1:	pause\n"
	"	cmpb	$0, (%rdi)\n"
	"	jne	1b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	spin_at_end, .-spin_at_end\n");

/* The unwinder needs that register to find this function's caller, because the
 * frame's size varies. */
static __attribute__((noinline)) void spin_in_frame(size_t bytes)
{
	volatile char room[bytes];

	room[0] = 0;
	weft__store(&spun, true, release);
	spin_at_end(&spins);
	__asm__ volatile("" ::"m"(room[0]) : "memory");
}

static void *dump_and_let_go(void *arg)
{
	char *text;

	while (!weft__load(&spun, acquire))
		sched_yield();
	text = dump_text(arg);
	weft__store(&spins, false, release);
	return text;
}

IO_TEST(callers_are_found_from_the_end_of_a_function)
{
	pthread_t thread;
	void *result;
	char *text;

	weft__store(&spins, true, relaxed);
	weft__store(&spun, false, relaxed);
	ck_assert_int_eq(pthread_create(&thread, NULL, dump_and_let_go,
					weft_runtime_self()),
			 0);
	spin_in_frame(weft_runtime_self()->workers_count + 64);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	text = result;
#ifndef WEFT__TSAN
	if (dump_has_calls_of_running(text)) {
		const char *at = after(text, "    spin_in_frame  ");

		(void)after(at, "    callers_are_found_from_the_end_of");
	}
#endif
	free(text);
	return 0;
}
#endif

struct dumper {
	struct weft_runtime *runtime;
	weft__atomic(bool) over;
};

static void *dump_some_times(void *arg)
{
	struct dumper *dumper = arg;

	for (int i = 0; i < DUMPS; i++)
		free(dump_text(dumper->runtime));
	weft__store(&dumper->over, true, release);
	return NULL;
}

/* SA_RESTART does not restart poll().  The calls are short, so that dumps also
 * come when one is about to begin. */
IO_TEST(calls_that_sleep_are_not_cut_by_dumps)
{
	struct dumper dumper = { .runtime = weft_runtime_self() };
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, dump_some_times,
					&dumper),
			 0);
	while (!weft__load(&dumper.over, acquire)) {
		weft_nsec until_ns;

		ck_assert_int_eq(poll(NULL, 0, 1), 0);
		until_ns = weft_now() + WEFT_US(300);
		while (weft_now() < until_ns)
			;
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	return 0;
}

/* Valgrind takes the copy of a stack that is in use for an error, see
 * runtime/dump/optimistic_read.h. */
#ifndef WEFT_VALGRIND

enum { READERS = 32, POLLED_MAX = 1000 };

struct feeding {
	struct dumper dumper;
	int fds[READERS];
	struct pollfd polled[POLLED_MAX];
	nfds_t polled_count;
	unsigned cuts;
	weft__atomic(unsigned) wanted, fed;
};

static int64_t read_number(void *arg)
{
	uint64_t number;
	ssize_t n = weft_read(*(int *)arg, &number, sizeof(number));

	ck_assert(n == sizeof(number) || n == -ECANCELED);
	return 0;
}

static void *feed(void *arg)
{
	struct feeding *feeding = arg;
	static const uint64_t one = 1;
	unsigned fed = 0;

	while (!weft__load(&feeding->dumper.over, acquire)) {
		thread_pause_ns(20000);
		if (fed == weft__load(&feeding->wanted, acquire))
			continue;
		ck_assert_int_eq(write(feeding->fds[fed++ % READERS], &one,
				       sizeof(one)),
				 sizeof(one));
		weft__store(&feeding->fed, fed, release);
	}
	return NULL;
}

static void poll_once(struct feeding *feeding)
{
	int r = poll(feeding->polled, feeding->polled_count, 1);

	ck_assert_msg(r == 0 || (r < 0 && errno_now() == EINTR), "%d: %s", r,
		      strerror(errno_now()));
	feeding->cuts += r < 0;
}

/* Each number that comes interrupts poll(), which the kernel then begins again
 * if there is no signal. */
static void read_and_poll(struct feeding *feeding)
{
	unsigned wanted = weft__load(&feeding->fed, relaxed) + READERS;

	WEFT_SUPERVISE(all) {
		for (int i = 0; i < READERS; i++)
			ck_assert_int_eq(weft_go(all, read_number,
						 &feeding->fds[i],
						 sizeof(int)),
					 0);
		ck_assert_int_eq(weft_sleep(WEFT_US(100)), 0);
		weft__store(&feeding->wanted, wanted, release);
		while (weft__load(&feeding->fed, acquire) != wanted &&
		       !weft__load(&feeding->dumper.over, acquire))
			poll_once(feeding);
		weft_scope_cancel(all);
	}
}

/* With many descriptors a call is long on its way to the sleep; poll(2) takes
 * no more than may be open. */
static void poll_prepare(struct feeding *feeding, int never)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	feeding->polled_count = limit.rlim_cur < POLLED_MAX ? limit.rlim_cur :
							      POLLED_MAX;
	for (nfds_t i = 0; i < feeding->polled_count; i++)
		feeding->polled[i] = (struct pollfd){ never, POLLIN, 0 };
}

IO_TEST(calls_that_are_about_to_sleep_are_not_cut_by_dumps)
{
	static struct feeding feeding;
	int never = eventfd(0, EFD_CLOEXEC);
	pthread_t dumper, feeder;

	memset(&feeding, 0, sizeof(feeding));
	feeding.dumper.runtime = weft_runtime_self();
	poll_prepare(&feeding, never);
	for (int i = 0; i < READERS; i++)
		feeding.fds[i] = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_eq(pthread_create(&dumper, NULL, dump_some_times,
					&feeding.dumper),
			 0);
	ck_assert_int_eq(pthread_create(&feeder, NULL, feed, &feeding), 0);
	while (!weft__load(&feeding.dumper.over, acquire))
		read_and_poll(&feeding);
	ck_assert_int_eq(pthread_join(dumper, NULL), 0);
	ck_assert_int_eq(pthread_join(feeder, NULL), 0);
	/* The kernel may cut one: see timer_begin() in the snapshot. */
	ck_assert_uint_le(feeding.cuts, 1);
	for (int i = 0; i < READERS; i++)
		close(feeding.fds[i]);
	close(never);
	return 0;
}

#endif

IO_TEST(tasks_that_have_not_begun_are_told_of)
{
	char *text;

	if (weft_runtime_self()->workers_count > 1)
		return 0;
	WEFT_SUPERVISE(all) {
		named(all, "later", nothing, NULL);
		text = dump_beside();
		ck_assert_msg(strstr(text, " later ("), "%s", text);
		ck_assert_msg(strstr(text, "): has not begun\n"), "%s", text);
		free(text);
	}
	return 0;
}

static __attribute__((noinline)) int64_t give_way(void)
{
	int64_t r = weft_yield();

	__asm__ volatile("" ::: "memory");
	return r;
}

static int64_t give_way_once(void *arg)
{
	int64_t r = give_way();

	(void)arg;
	__asm__ volatile("" ::: "memory");
	return r;
}

IO_TEST(tasks_that_are_ready_are_told_of)
{
	const char *at;
	char *text;

	if (weft_runtime_self()->workers_count > 1)
		return 0;
	WEFT_SUPERVISE(all) {
		named(all, "polite", give_way_once, NULL);
		/* The child runs, and yields to this task. */
		ck_assert_int_eq(weft_yield(), 0);
		text = dump_beside();
		at = after(text, " polite (");
		at = after(at, " old: is ready to run\n");
		if (dump_has_calls_of_ready(text)) {
			/* The line before names weft_yield(), unless link-time
			 * optimization inlined it into its caller. */
			at = after(at, "    give_way  ");
			at = after(at, "    give_way_once  ");
			at = after(at, "\n");
			ck_assert_msg(strncmp(at, "    ", 4) != 0, "%s", text);
		}
		free(text);
	}
	return 0;
}

/* Under Valgrind every run is long, and a direct switch is not made to a task
 * with long runs. */
#ifndef WEFT_VALGRIND

static char *joined_text;

static int64_t dump_joined(void *arg)
{
	(void)arg;
	joined_text = dump_beside();
	return 0;
}

static __attribute__((noinline)) int64_t join_switched(struct weft_task task)
{
	int64_t r = weft_join(task, NULL);

	__asm__ volatile("" ::: "memory");
	return r;
}

/* Returns the dump that a child makes while this task joins it. */
static char *dump_while_joining(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task child;

	opts.name = "joined";
	opts.ret_task = &child;
	WEFT_SUPERVISE(all) {
		ck_assert_int_eq(weft_go_opts(all, dump_joined, NULL, 0, &opts),
				 0);
		ck_assert_int_eq(join_switched(child), 0);
	}
	return joined_text;
}

IO_TEST(task_that_joins_one_that_runs_is_told_of)
{
	weft_nsec by = weft_now() + WEFT_SEC(20);
	const char *at;
	char *text;
	int tries = 0;

	/* With two workers, a helper may park the child. */
	if (weft_runtime_self()->workers_count > 1)
		return 0;
	/* No direct switch is made where the clock is read after every run,
	 * which happens when runs were long. */
	while (!strstr(text = dump_while_joining(), " old: joins task ")) {
		ck_assert_msg(weft_now() < by, "%s", text);
		free(text);
		/* Another number each time: the clock is read after a fixed
		 * number of runs. */
		for (int i = 0; i < 20000 + tries; i++)
			ck_assert_int_eq(weft_yield(), 0);
		tries++;
	}
	at = after(text, " old: joins task ");
	at = after(at, " joined (");
	at = after(at, "), which runs\n");
	if (dump_has_calls_of_ready(text)) {
		at = after(at, "    join_switched  ");
	}
	free(text);
	return 0;
}

#endif

int main(void)
{
	Suite *suite = suite_create("dump/states");
	TCase *tcase = tcase_create("states");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, tasks_that_compute_are_told_of);
#if defined(__x86_64__)
	io_add_test(tcase, callers_are_found_from_the_end_of_a_function);
#endif
	io_add_test(tcase, calls_that_sleep_are_not_cut_by_dumps);
#ifndef WEFT_VALGRIND
	io_add_test(tcase, calls_that_are_about_to_sleep_are_not_cut_by_dumps);
#endif
	io_add_test(tcase, tasks_that_have_not_begun_are_told_of);
	io_add_test(tcase, tasks_that_are_ready_are_told_of);
#ifndef WEFT_VALGRIND
	io_add_test(tcase, task_that_joins_one_that_runs_is_told_of);
#endif
	return io_tests_run(suite);
}
