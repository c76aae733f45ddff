/* SPDX-License-Identifier: MIT */
/*
 * Suite dump/storm: dumps under load.
 *
 * Tasks talk, sleep, are cancelled, start and end, while threads and tasks dump
 * all of them again and again.  Dumps must not disturb the tasks, and every
 * line of a dump must be whole.
 */
#include <pthread.h>

#include "runtime/dump/collect.h"
#include "runtime/sched/runtime_ref.h"
#include "tests/support/dump_scene.h"

enum { PAIRS = 8, TURNS = 400, NAPS = 8, NAPPERS = 8, STARTERS = 2,
       STARTED = 300, WAITERS = 40, ROUNDS = 3, ROUNDS_LONG = 60 };

static struct {
	weft__atomic(bool) over;
	weft__atomic(unsigned) dumps, received, napped, ended, cancelled;
} storm;

static void *dump_again(void *arg)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	while (!weft__load(&storm.over, acquire)) {
		ck_assert_int_eq(weft_dump(arg, fd), 0);
		weft__add(&storm.dumps, 1u, relaxed);
	}
	close(fd);
	return NULL;
}

/* Holds one task at a time.  A dump holds a task like this, but rarely. */
static void *hold_again(void *arg)
{
	struct weft_runtime *runtime = arg;
	struct weft__task_info info;

	weft__runtime_ref(runtime);
	while (!weft__load(&storm.over, acquire)) {
		uint32_t used = weft__load(&runtime->tasks.used, acquire);

		for (uint32_t i = 0; i < used; i++)
			(void)weft__collect_waits(runtime, i, &info);
		weft__add(&storm.dumps, 1u, relaxed);
	}
	weft__runtime_unref(runtime);
	return NULL;
}

struct pair {
	struct weft_chan to, fro;
};

static int64_t answer(void *arg)
{
	struct pair *pair = *(struct pair **)arg;
	int item;

	for (int i = 0; i < TURNS; i++) {
		ck_assert_int_eq(weft_chan_recv(&pair->to, &item), 0);
		ck_assert_int_eq(item, i);
		ck_assert_int_eq(weft_chan_send(&pair->fro, &item), 0);
	}
	return 0;
}

static int64_t ask(void *arg)
{
	struct pair own, *pair = &own;
	int item;

	(void)arg;
	ck_assert_int_eq(weft_chan_init(&own.to, NULL, 0, sizeof(int)), 0);
	ck_assert_int_eq(weft_chan_init(&own.fro, NULL, 0, sizeof(int)), 0);
	WEFT_SUPERVISE(both) {
		ck_assert_int_eq(WEFT_GO(both, answer, pair), 0);
		for (int i = 0; i < TURNS; i++) {
			ck_assert_int_eq(weft_chan_send(&own.to, &i), 0);
			ck_assert_int_eq(weft_chan_recv(&own.fro, &item), 0);
			ck_assert_int_eq(item, i);
			weft__add(&storm.received, 1u, relaxed);
		}
	}
	return 0;
}

static int64_t nap(void *arg)
{
	(void)arg;
	for (int i = 0; i < NAPS; i++) {
		weft_nsec by = weft_now() + WEFT_MS(1);

		ck_assert_int_eq(weft_sleep_until(by), 0);
		ck_assert(weft_now() >= by);
		weft__add(&storm.napped, 1u, relaxed);
	}
	return 0;
}

static int64_t end_soon(void *arg)
{
	unsigned number = *(unsigned *)arg;

	if (number % 3 == 0)
		ck_assert_int_eq(weft_yield(), 0);
	weft__add(&storm.ended, 1u, relaxed);
	return number;
}

/* Starts and joins tasks one after the other; a task usually runs while it is
 * joined. */
static int64_t start_many(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(all)
		for (unsigned i = 0; i < STARTED; i++) {
			struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
			struct weft_task task;
			int64_t result;

			opts.name = "short";
			opts.ret_task = &task;
			ck_assert_int_eq(weft_go_opts(all, end_soon, &i,
						      sizeof(i), &opts),
					 0);
			ck_assert_int_eq(weft_join(task, &result), 0);
			ck_assert_int_eq(result, i);
		}
	return 0;
}

static int64_t wait_to_be_cancelled(void *arg)
{
	struct weft_mutex mutex = WEFT_MUTEX_INIT;
	struct weft_event never = WEFT_EVENT_INIT;
	int r = weft_mutex_lock(&mutex);

	(void)arg;
	if (r == 0) {
		r = weft_event_wait(&never);
		weft_mutex_unlock(&mutex);
	}
	ck_assert_int_eq(r, -ECANCELED);
	weft__add(&storm.cancelled, 1u, relaxed);
	return 0;
}

static int64_t cancel_many(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(all) {
		for (int i = 0; i < WAITERS; i++)
			ck_assert_int_eq(weft_go(all, wait_to_be_cancelled,
						 NULL, 0),
					 0);
		ck_assert_int_eq(weft_sleep(WEFT_MS(2)), 0);
		weft_scope_cancel(all);
	}
	return 0;
}

static int64_t dump_myself(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		char *text = dump_text(NULL);

		/* A task that hold_again() holds at this moment is not listed
		 * as waiting. */
		ck_assert_msg(strstr(text, " (dump_myself), ") ||
				      !dump_has_backtraces(text),
			      "%s", text);
		free(text);
	}
	return 0;
}

static void storm_round(void)
{
	WEFT_SUPERVISE(all) {
		for (int i = 0; i < PAIRS; i++)
			ck_assert_int_eq(weft_go(all, ask, NULL, 0), 0);
		for (int i = 0; i < NAPPERS; i++)
			ck_assert_int_eq(weft_go(all, nap, NULL, 0), 0);
		for (int i = 0; i < STARTERS; i++)
			ck_assert_int_eq(weft_go(all, start_many, NULL, 0), 0);
		ck_assert_int_eq(weft_go(all, cancel_many, NULL, 0), 0);
		ck_assert_int_eq(weft_go(all, dump_myself, NULL, 0), 0);
	}
}

static int64_t join_thread(void *arg)
{
	return pthread_join(*(pthread_t *)arg, NULL);
}

IO_TEST(nothing_is_lost_while_threads_dump)
{
	unsigned rounds = getenv("WEFT_TEST_LONG") ? ROUNDS_LONG : ROUNDS;
	pthread_t threads[3];

	memset(&storm, 0, sizeof(storm));
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
						i < 2 ? dump_again : hold_again,
						weft_runtime_self()),
				 0);
	for (unsigned i = 0; i < rounds; i++)
		storm_round();
	wait_until(weft__load(&storm.dumps, relaxed) >= 100);
	weft__store(&storm.over, true, release);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(weft_blocking(join_thread, &threads[i]), 0);
	ck_assert_uint_eq(weft__load(&storm.received, relaxed),
			  rounds * PAIRS * TURNS);
	ck_assert_uint_eq(weft__load(&storm.napped, relaxed),
			  rounds * NAPPERS * NAPS);
	ck_assert_uint_eq(weft__load(&storm.ended, relaxed),
			  rounds * STARTERS * STARTED);
	ck_assert_uint_eq(weft__load(&storm.cancelled, relaxed),
			  rounds * WAITERS);
	return 0;
}

/* ---- Call chains of tasks that are not held ------------------------------ */

enum { WALKERS = 6, LOOKS_S = 2, LOOKS_LONG_S = 30 };

/* Suspends at this depth of calls, and at a different depth at other times. */
#define GOES(name, to, wide)                                 \
	static __attribute__((noinline)) void name(void)     \
	{                                                    \
		volatile char room[wide];                    \
                                                             \
		room[0] = 0;                                 \
		to;                                          \
		__asm__ volatile("" ::"m"(room) : "memory"); \
	}

GOES(left_inner, (void)weft_yield(), 16)
GOES(left_middle, left_inner(), 16)
GOES(left_outer, left_middle(), 64)
GOES(right_inner, (void)weft_yield(), 64)
GOES(right_middle, right_inner(), 16)
GOES(right_outer, right_middle(), 16)

static int64_t walk(void *arg)
{
	unsigned pause = *(unsigned *)arg;

	while (!weft__load(&storm.over, acquire)) {
		left_outer();
		for (unsigned i = 0; i < pause; i++)
			weft__spin_hint();
		right_outer();
	}
	return 0;
}

/* The line after the callee's line names the caller. */
static void expect_caller(const char *text, const char *callee,
			  const char *caller, unsigned *count)
{
	for (const char *at = text; (at = strstr(at, callee));) {
		at = strchr(at, '\n') + 1;
		ck_assert_msg(strncmp(at, caller, strlen(caller)) == 0,
			      "%s is called by\n%s\nin\n%s", callee, at, text);
		++*count;
	}
}

#ifdef WEFT__TSAN
/* The innermost calls of running tasks may be in a tool's own code, which has
 * no unwind tables. */
static void leave_out_running(char *text)
{
	for (char *at = text; (at = strstr(at, ": runs on worker"));) {
		char *end;

		at = strchr(at, '\n') + 1;
		end = strstr(at, "task ");
		if (!end)
			end = strchr(at, '\0');
		memmove(at, end, strlen(end) + 1);
	}
}
#else
static void leave_out_running(char *text)
{
	(void)text;
}
#endif

static void *look_at_walkers(void *arg)
{
	weft_nsec by =
		weft_now() +
		WEFT_SEC(getenv("WEFT_TEST_LONG") ? LOOKS_LONG_S : LOOKS_S);
	unsigned count = 0;
	bool traced = true;

	while (traced && (!count || weft_now() < by)) {
		char *text = dump_text(arg);

		traced = dump_has_calls_of_ready(text);
		if (traced) {
			/* No call chain is cut short, not even for a task that
			 * is interrupted in the middle of a switch. */
			leave_out_running(text);
			ck_assert_msg(!strstr(text, "\n    ...\n"), "%s",
				      text);
			expect_caller(text, "    left_inner  ",
				      "    left_middle  ", &count);
			expect_caller(text, "    left_middle  ",
				      "    left_outer  ", &count);
			expect_caller(text, "    right_inner  ",
				      "    right_middle  ", &count);
			expect_caller(text, "    right_middle  ",
				      "    right_outer  ", &count);
		}
		free(text);
	}
	weft__store(&storm.over, true, release);
	return NULL;
}

IO_TEST(calls_are_of_one_moment)
{
	pthread_t thread;

	memset(&storm, 0, sizeof(storm));
	ck_assert_int_eq(pthread_create(&thread, NULL, look_at_walkers,
					weft_runtime_self()),
			 0);
	WEFT_SUPERVISE(all)
		for (unsigned i = 0; i < WALKERS; i++)
			ck_assert_int_eq(WEFT_GO(all, walk, i), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("dump/storm");
	TCase *tcase = tcase_create("storm");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 120);
	io_add_test(tcase, nothing_is_lost_while_threads_dump);
	io_add_test(tcase, calls_are_of_one_moment);
	return io_tests_run(suite);
}
