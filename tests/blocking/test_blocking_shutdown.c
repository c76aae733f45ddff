/* SPDX-License-Identifier: MIT */
/*
 * Suite blocking/shutdown: shutdown_ns bounds the end of weft_run() while the
 * first task itself waits for a job that does not return (ledger L20).
 *
 * The end begins when the first task's outermost scope is cancelled, or the
 * first task itself.  The job waits at a gate, which no test opens before
 * weft_run() has to return.
 */
#include "runtime/sched/runtime.h"
#include "runtime/sched/worker.h"
#include "tests/support/blocking_scene.h"
#include "tests/support/stderr_capture.h"

#define SHUTDOWN_NS WEFT_MS(200)

static struct gate held;
static struct weft_runtime *thread_runtime;

static int start_passer(struct weft_scope *scope)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct passer passer = { &held, NULL, NULL };

	opts.name = "resolver";
	return weft_go_opts(scope, pass, &passer, sizeof(passer), &opts);
}

static void start_job(struct weft_scope *scope)
{
	ck_assert_int_eq(start_passer(scope), 0);
	wait_until(weft__load(&held.came, acquire) == 1);
}

/* ---- Ways to end --------------------------------------------------------- */

/* weft_scope_cancel() by the first task. */
static void cancel_scope(void)
{
	WEFT_SUPERVISE(tasks) {
		start_job(tasks);
		weft_scope_cancel(tasks);
	}
}

static int64_t cancel_later(void *arg)
{
	wait_until(weft__load(&held.came, acquire) == 1);
	/* The first task waits in the scope's end by now, most often. */
	ck_assert_int_eq(weft_sleep(WEFT_MS(20)), 0);
	weft_scope_cancel(*(struct weft_scope **)arg);
	return 0;
}

/* weft_scope_cancel() by a task of the scope. */
static void cancel_scope_from_inside(void)
{
	WEFT_SUPERVISE(tasks) {
		ck_assert_int_eq(start_passer(tasks), 0);
		ck_assert_int_eq(WEFT_GO(tasks, cancel_later, tasks), 0);
	}
}

static int64_t fail_later(void *arg)
{
	(void)arg;
	wait_until(weft__load(&held.came, acquire) == 1);
	return -EINTR;
}

/* A task of a group fails, as one does that waits for a signal. */
static void fail_group(void)
{
	WEFT_SCOPE(tasks, NULL) {
		ck_assert_int_eq(start_passer(tasks), 0);
		ck_assert_int_eq(weft_go(tasks, fail_later, NULL, 0), 0);
	}
}

static int64_t win_later(void *arg)
{
	(void)arg;
	wait_until(weft__load(&held.came, acquire) == 1);
	return 0;
}

static void win_race(void)
{
	WEFT_RACE(tasks, NULL) {
		ck_assert_int_eq(start_passer(tasks), 0);
		ck_assert_int_eq(weft_go(tasks, win_later, NULL, 0), 0);
	}
}

/* The first task is in a scope that is not cancelled. */
static int64_t cancel_all_later(void *arg)
{
	(void)arg;
	wait_until(weft__load(&held.came, acquire) == 1);
	weft_cancel_all(weft_runtime_self());
	return 0;
}

static void cancel_all(void)
{
	WEFT_SUPERVISE(tasks) {
		ck_assert_int_eq(start_passer(tasks), 0);
		ck_assert_int_eq(weft_go(tasks, cancel_all_later, NULL, 0), 0);
	}
}

/* The first task runs the job itself, without any scope. */
static void cancel_all_beside_job(void)
{
	ck_assert_int_eq(weft_submit(weft_runtime_self(), cancel_all_later,
				     NULL, 0, NULL),
			 0);
	ck_assert_int_eq(weft_blocking(gate_pass, &held), 7);
}

static int64_t cancel_one_later(void *arg)
{
	wait_until(weft__load(&held.came, acquire) == 1);
	ck_assert_int_eq(weft_cancel(*(struct weft_task *)arg), 0);
	return 0;
}

static void cancel_first_task(void)
{
	struct weft_task self = weft_self();

	ck_assert_int_eq(weft_submit(weft_runtime_self(), cancel_one_later,
				     &self, sizeof(self), NULL),
			 0);
	ck_assert_int_eq(weft_blocking(gate_pass, &held), 7);
}

static void *cancel_in_thread(void *arg)
{
	struct weft_task *task = arg;

	while (weft__load(&held.came, acquire) != 1)
		thread_pause_ns(1000000);
	/* All workers may sleep by now. */
	thread_pause_ns(20000000);
	ck_assert_int_eq(weft_cancel_in(thread_runtime, *task), 0);
	return NULL;
}

static void cancel_first_task_from_thread(void)
{
	struct weft_task self = weft_self();
	pthread_t thread;

	thread_runtime = weft_runtime_self();
	ck_assert_int_eq(pthread_create(&thread, NULL, cancel_in_thread, &self),
			 0);
	/* The first task does not come back to join it. */
	pthread_detach(thread);
	ck_assert_int_eq(weft_blocking(gate_pass, &held), 7);
}

/* A shield does not hide the end from the runtime. */
static void cancel_all_shielded(void)
{
	WEFT_SHIELD
		cancel_all();
}

static void (*const ways[])(void) = {
	cancel_scope,	       cancel_scope_from_inside,
	fail_group,	       win_race,
	cancel_all,	       cancel_all_beside_job,
	cancel_first_task,     cancel_first_task_from_thread,
	cancel_all_shielded,
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static int64_t end_in_way(void *arg)
{
	ways[*(int *)arg]();
	return 5;
}

/* The jobs return after weft_run(); the memory that they use still exists. */
START_TEST(run_is_in_time_though_its_first_task_waits_for_a_job)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	weft_nsec start = weft_now();
	int way = _i / 2;
	const char *text;
	int64_t r;

	opts.workers = _i & 1 ? 2 : 1;
	opts.shutdown_ns = SHUTDOWN_NS;
	opts.blocking_idle_ns = WEFT_MS(1);
	said_begin();
	r = weft_run(end_in_way, &way, &opts);
	text = said_end();
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_uint_ge(weft_now() - start, SHUTDOWN_NS);
	ck_assert_uint_eq(weft__load(&held.done, acquire), 0);
	ck_assert_msg(strstr(text, "task 'main'") &&
			      strstr(text, "has not returned"),
		      "it said: %s", text);
	gate_open(&held);
	expect_threads(0);
	leave_memory();
}
END_TEST

/* ---- An abandoned first task goes on ------------------------------------- */

static weft__atomic(bool) goes_on;
static weft__atomic(bool) leaves; /* the program, weft_run() */

/* Keeps worker 0 for a while, so that another worker takes what it has. */
static int64_t keep_worker_0(void *arg)
{
	(void)arg;
	if (weft__worker_self()->index == 0)
		thread_pause_ns(10000000);
	return 0;
}

/* Computes on worker 1 until weft_run() has returned, and then returns. */
static int64_t outlive_run(void *arg)
{
	struct weft_runtime *runtime = weft_runtime_self();

	*(struct weft_runtime **)arg = runtime;
	while (weft__worker_self()->index == 0) {
		ck_assert_int_eq(weft_submit(runtime, keep_worker_0, NULL, 0,
					     NULL),
				 0);
		ck_assert_int_eq(weft_yield(), 0);
	}
	weft_cancel_all(runtime);
	while (!weft__load(&leaves, acquire))
		thread_pause_ns(1000000);
	weft__store(&goes_on, true, release);
	return 5;
}

/* It writes its result where it still may, and its worker leaves. */
START_TEST(abandoned_first_task_may_return)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	opts.workers = 2;
	opts.shutdown_ns = SHUTDOWN_NS;
	said_begin();
	ck_assert_int_eq(weft_run(outlive_run, &runtime, &opts), -ETIMEDOUT);
	ck_assert(strstr(said_end(), "task 'main'"));
	ck_assert(!weft__load(&goes_on, acquire));
	weft__store(&leaves, true, release);
	for (int i = 0; weft__load(&runtime->left, acquire) == 0; i++) {
		ck_assert_int_lt(i, 20000);
		thread_pause_ns(1000000);
	}
	ck_assert(weft__load(&goes_on, acquire));
	ck_assert_int_eq(runtime->main_call.result, 5);
	leave_memory();
}
END_TEST

/* ---- No end -------------------------------------------------------------- */

/* Longer than the end may take. */
static void pause_past(weft_nsec shutdown_ns)
{
	WEFT_SHIELD
		ck_assert_int_eq(weft_sleep(shutdown_ns + WEFT_MS(300)), 0);
}

static int64_t open_late(void *arg)
{
	(void)arg;
	pause_past(SHUTDOWN_NS);
	gate_open(&held);
	return 0;
}

/* An inner scope is a step of the program. */
static void cancel_inner_scope(void)
{
	WEFT_SUPERVISE(outer) {
		ck_assert_int_eq(weft_go(outer, open_late, NULL, 0), 0);
		WEFT_SUPERVISE(inner) {
			start_job(inner);
			weft_scope_cancel(inner);
		}
	}
}

/* So is the scope of another task. */
static int64_t cancel_own_scope(void *arg)
{
	(void)arg;
	cancel_inner_scope();
	return 0;
}

static void cancel_scope_of_another_task(void)
{
	WEFT_SUPERVISE(outer)
		ck_assert_int_eq(weft_go(outer, cancel_own_scope, NULL, 0), 0);
}

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* Long for a scope that has nothing to wait for. */
#define GENEROUS_NS WEFT_SEC(2)

/* The outermost scope ends within the time, and the program goes on.  Until
 * then tasks may be submitted. */
static void cancel_scope_that_ends(void)
{
	int error = -EPROTO;

	WEFT_SUPERVISE(tasks) {
		weft_scope_cancel(tasks);
		error = weft_submit(weft_runtime_self(), nothing, NULL, 0,
				    NULL);
	}
	ck_assert_int_eq(error, 0);
	pause_past(GENEROUS_NS);
}

static void (*const steps[])(void) = {
	cancel_inner_scope,
	cancel_scope_of_another_task,
	cancel_scope_that_ends,
};

enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

static int64_t go_steps(void *arg)
{
	steps[*(int *)arg]();
	return 5;
}

START_TEST(cancelled_scope_that_is_no_end_is_waited_for)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int step = _i / 2;
	int64_t r;

	opts.workers = _i & 1 ? 2 : 1;
	opts.shutdown_ns = steps[step] == cancel_scope_that_ends ?
				   GENEROUS_NS :
				   SHUTDOWN_NS;
	said_begin();
	r = weft_run(go_steps, &step, &opts);
	ck_assert_str_eq(said_end(), "");
	ck_assert_int_eq(r, 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("blocking/shutdown");
	TCase *tcase = tcase_create("ending");

	tcase_set_timeout(tcase, 30);
	tcase_add_loop_test(
		tcase, run_is_in_time_though_its_first_task_waits_for_a_job, 0,
		2 * WAYS);
	tcase_add_test(tcase, abandoned_first_task_may_return);
	tcase_add_loop_test(tcase, cancelled_scope_that_is_no_end_is_waited_for,
			    0, 2 * STEPS);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
