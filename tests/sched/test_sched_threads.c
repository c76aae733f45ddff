/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/threads: many tasks on real threads, many workers, and what
 * happens when a task outgrows its stack or memory is short (ledger Z01, Z02,
 * V56).
 *
 * With WEFT_TEST_LONG in the environment it starts ten million tasks instead of
 * one million.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "runtime/sched/spin.h"
#include "runtime/stack/fiber.h"
#include "tests/support/death.h"
#include "tests/support/expect.h"
#include "tests/support/fall.h"
#include "tests/support/guards.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

/* A sanitizer keeps more for each task than its stack. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN)
enum { SLOWLY = 10 };
#else
enum { SLOWLY = 1 };
#endif

/* ---- Counting ---------------------------------------------------------- */

enum { MANY = 100000 };

static weft__atomic(uint64_t) cell;

static int64_t add_one(void *arg)
{
	(void)arg;
	/* relaxed: read when all are joined. */
	weft__add(&cell, (uint64_t)1, relaxed);
	return 1;
}

/* Z01: as many as 100,000 tasks at a time, each joined by its handle. */
static int64_t count_many(void *arg)
{
	static struct weft_task tasks[MANY];
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int before = threads_now();
	int64_t sum = 0;

	(void)arg;
	WEFT_SUPERVISE(scope) {
		for (int i = 0; i < MANY; i++) {
			opts.ret_task = &tasks[i];
			EXPECT(weft_go_opts(scope, add_one, NULL, 0, &opts) ==
			       0);
		}
		for (int i = 0; i < MANY; i++) {
			int64_t r = 0;

			EXPECT(weft_join(tasks[i], &r) == 0);
			sum += r;
		}
	}
	ck_assert_int_eq(sum, MANY);
	ck_assert_uint_eq(weft__load(&cell, relaxed), MANY);
	/* No task had a thread to itself, and no thread was added for waiting
	 * tasks. */
	ck_assert_int_eq(threads_now(), before);
	return 0;
}

START_TEST(hundred_thousand_tasks_are_counted)
{
	static const unsigned workers[] = { 1, 2, 4 };

	weft__store(&cell, (uint64_t)0, relaxed);
	io_run(count_many, NULL, workers[_i]);
}
END_TEST

/* ---- Many workers ------------------------------------------------------ */

static unsigned many_workers;
static int threads_before;

static int64_t yield_and_add(void *arg)
{
	for (int i = 0; i < 3; i++)
		EXPECT(weft_yield() == 0);
	return add_one(arg);
}

static int64_t sleep_and_add(void *arg)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return add_one(arg);
}

static int64_t use_many_workers(void *arg)
{
	struct weft_stats stats;

	(void)arg;
	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &stats), 0);
	ck_assert_uint_eq(stats.workers, many_workers);
	ck_assert_int_eq(threads_now(),
			 threads_before + (int)many_workers - 1);
	WEFT_SUPERVISE(scope)
		for (int i = 0; i < 10000; i++)
			EXPECT(weft_go(scope,
				       i % 4 ? yield_and_add : sleep_and_add,
				       NULL, 0) == 0);
	return 0;
}

/* Z02: more workers than one word has bits, and more than one word of such
 * words. */
START_TEST(runtime_of_many_workers_runs_and_ends)
{
	static const unsigned workers[] = { 64, 200 };

	many_workers = workers[_i];
	threads_before = threads_alone();
	weft__store(&cell, (uint64_t)0, relaxed);
	io_run(use_many_workers, NULL, many_workers);
	ck_assert_uint_eq(weft__load(&cell, relaxed), 10000);
	threads_become(threads_before);
}
END_TEST

/* ---- Starting, stealing, overflowing ----------------------------------- */

enum { BURST = 4000, BURSTS_AT_ONCE = 5 };

static weft__atomic(uint64_t) sum, mixed;

/* splitmix64's last step (Steele, Lea, Flood 2014): one to one. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Half of the tasks wait until all of those do: far more tasks than fit into a
 * ring are then woken together. */
struct burst {
	uint64_t first;
	struct weft_wait_group waiting;
	struct weft_event gate;
};

struct leaf {
	struct burst *burst;
	uint64_t number;
};

static int64_t leaf(void *arg)
{
	struct leaf *l = arg;
	uint64_t number = l->number;

	if (number % 2) {
		weft_wait_group_done(&l->burst->waiting);
		EXPECT(weft_event_wait(&l->burst->gate) == 0);
	}
	/* relaxed: read when all have ended. */
	weft__add(&sum, number, relaxed);
	weft__add(&mixed, mix(number), relaxed);
	if (number % 16 == 0)
		EXPECT(weft_yield() == 0);
	return 0;
}

static int64_t burst(void *arg)
{
	struct burst b = {
		.first = *(uint64_t *)arg,
		.waiting = WEFT_WAIT_GROUP_INIT(BURST / 2),
	};

	WEFT_SUPERVISE(scope) {
		for (uint64_t i = b.first; i < b.first + BURST; i++) {
			struct leaf l = { &b, i };

			EXPECT(WEFT_GO(scope, leaf, l) == 0);
		}
		EXPECT(weft_wait_group_wait(&b.waiting) == 0);
		weft_event_set(&b.gate);
	}
	return 0;
}

static int64_t all_bursts(void *arg)
{
	uint64_t count = *(uint64_t *)arg, expected = 0;
	struct weft_stats stats;

	for (uint64_t i = 0; i < count; i += BURST * BURSTS_AT_ONCE)
		WEFT_SUPERVISE(scope)
			for (uint64_t k = 0; k < BURSTS_AT_ONCE; k++) {
				uint64_t first = i + k * BURST;

				EXPECT(WEFT_GO(scope, burst, first) == 0);
			}
	for (uint64_t i = 0; i < count; i++)
		expected += mix(i);
	ck_assert_uint_eq(weft__load(&sum, relaxed), count * (count - 1) / 2);
	ck_assert_uint_eq(weft__load(&mixed, relaxed), expected);
	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &stats), 0);
	ck_assert_uint_eq(stats.total.spawned, count + count / BURST);
	/* All tasks but main. */
	ck_assert_uint_eq(stats.total.ended, count + count / BURST);
	ck_assert_uint_gt(stats.total.overflowed, count / 10);
	/* Each that overflowed came back out of the injection queue. */
	ck_assert_uint_ge(stats.total.injected, stats.total.overflowed);
	return 0;
}

START_TEST(checksum_of_millions_of_tasks)
{
	static const unsigned workers[] = { 1, 2, 4 };
	uint64_t millions = getenv("WEFT_TEST_LONG") ? 10 : 1;
	uint64_t count = millions * 1000000 / SLOWLY;

	weft__store(&sum, (uint64_t)0, relaxed);
	weft__store(&mixed, (uint64_t)0, relaxed);
	io_run(all_bursts, &count, workers[_i]);
}
END_TEST

/* ---- Stacks ------------------------------------------------------------ */

/* Where guards take mappings, there are not stacks for all. */
static unsigned sleepers(void)
{
	enum { PAGE_BYTES = 4096, FEWER = 20000 };
	void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned count = MANY;

	ck_assert_ptr_ne(page, MAP_FAILED);
	if (madvise(page, PAGE_BYTES, GUARD_INSTALL) < 0)
		count = FEWER;
	munmap(page, PAGE_BYTES);
	return count / SLOWLY;
}

static int64_t sleep_for_long(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(3600)) == -ECANCELED ? 0 : -EPROTO;
}

static int64_t fall_deeply(void *arg)
{
	(void)arg;
	/* The other tasks sleep; their stacks are on both sides of this task's
	 * stack. */
	ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	return fall(1 << 20);
}

static void start_sleepers(struct weft_scope *scope, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		EXPECT(weft_go(scope, sleep_for_long, NULL, 0) == 0);
}

static int64_t fall_among_sleepers(void *arg)
{
	unsigned count = *(unsigned *)arg;
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = "icarus";
	WEFT_SUPERVISE(scope) {
		start_sleepers(scope, count / 2);
		ck_assert_int_eq(weft_go_opts(scope, fall_deeply, NULL, 0,
					      &opts),
				 0);
		start_sleepers(scope, count / 2);
	}
	return 0;
}

static void fall_in_runtime(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 2;
	weft_run(fall_among_sleepers, arg, &opts);
}

/* The process dies from the signal, and the message names the task. */
static void expect_fall(unsigned sleepers)
{
	struct death death = death_of(fall_in_runtime, &sleepers);

	ck_assert_msg(WIFSIGNALED(death.status) &&
			      (WTERMSIG(death.status) == SIGSEGV ||
			       WTERMSIG(death.status) == SIGBUS),
		      "status %#x, it said: %s", (unsigned)death.status,
		      death.text);
	ck_assert_msg(strstr(death.text, "stack overflow in task 'icarus'"),
		      "it said: %s", death.text);
}

START_TEST(task_that_overflows_its_stack_is_named)
{
	expect_fall(0);
}
END_TEST

START_TEST(each_of_many_sleepers_has_its_guard)
{
	expect_fall(sleepers());
}
END_TEST

static int64_t crowd_of_sleepers(void *arg)
{
	unsigned count = sleepers();
	struct weft_stats stats;

	(void)arg;
	WEFT_SUPERVISE(scope) {
		start_sleepers(scope, count);
		/* Waits until all of them have run and sleep. */
		do {
			ck_assert_int_eq(weft_sleep(WEFT_MS(10)), 0);
			ck_assert_int_eq(
				weft_stats_get(weft_runtime_self(), &stats), 0);
		} while (stats.stacks < count + 1);
		ck_assert_uint_eq(stats.stacks, count + 1);
		ck_assert_uint_ge(stats.tasks, count);
		weft_scope_cancel(scope);
	}
	/* main is left, and perhaps one task that is on its way back. */
	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &stats), 0);
	ck_assert_uint_le(stats.stacks, 2);
	return 0;
}

START_TEST(many_sleep_and_are_cancelled)
{
	io_run(crowd_of_sleepers, NULL, _i ? 2 : 1);
}
END_TEST

/* ---- Without memory ----------------------------------------------------- */

#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN)

static int64_t run_at_all(void *arg)
{
	(void)arg;
	return 1;
}

/* The memory suffices for all but a stack of that size.  If the task waited for
 * it, it would wait for ever.  The default is mapped 64 at a time, but need not
 * be. */
START_TEST(without_memory_for_a_stack_it_does_not_start)
{
	enum { ENOUGH_BYTES = 12 << 20, LARGE_BYTES = 16 << 20 };
	struct weft_opts opts = WEFT_OPTS_INIT;

	(void)limit_set(RLIMIT_AS, address_space_used() + ENOUGH_BYTES);
	opts.workers = 1;
	opts.stack_bytes = LARGE_BYTES;
	ck_assert_int_eq(weft_run(run_at_all, NULL, &opts), -ENOMEM);
	opts.stack_bytes = 0;
	ck_assert_int_eq(weft_run(run_at_all, NULL, &opts), 1);
}
END_TEST

#endif

/* ---- Waiting --------------------------------------------------------- */

static int64_t takes_long(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_MS(1));
}

static void wait_for_one(struct weft_runtime *runtime, weft_fn fn, int64_t is)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t r = -1;

	opts.ret_task = &task;
	ck_assert_int_eq(weft_submit(runtime, fn, NULL, 0, &opts), 0);
	ck_assert_int_eq(weft_wait(runtime, task, &r), 0);
	ck_assert_int_eq(r, is);
}

static uint64_t ever_later(struct weft_runtime *runtime)
{
	static uint64_t now_ns;

	(void)runtime;
	return now_ns += 100;
}

static bool is_true(void *arg)
{
	return *(bool *)arg;
}

/* Of 40 waits each of a number would be shorter than a look.  How many looks
 * paid? */
static unsigned looks_that_pay(unsigned each)
{
	static const struct weft__driver_ops ops = { .now = ever_later };
	static struct weft_runtime runtime = { .ops = &ops, .spins = true };
	struct weft__spin spin = { 0 };
	unsigned count = 0;

	for (unsigned i = 1; i <= 40; i++) {
		bool pays = i % each == 0;

		count += weft__spin(&runtime, &spin, 1000, is_true, &pays);
	}
	return count;
}

START_TEST(looks_that_seldom_pay_are_given_up)
{
	ck_assert_uint_eq(looks_that_pay(1), 40);
	ck_assert_uint_eq(looks_that_pay(2), 20);
	ck_assert_uint_le(looks_that_pay(4), 2);
	ck_assert_uint_eq(looks_that_pay(5), 0);
}
END_TEST

/* A thread spins before it sleeps while that saves sleeps, and tries spinning
 * again now and then. */
START_TEST(thread_that_waits_long_no_longer_looks)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	bool tries = false;

	opts.workers = 2;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	/* A thread that is held up while it spins may find that it was worth
	 * it. */
	do
		wait_for_one(runtime, takes_long, 0);
	/* relaxed: only this thread waits. */
	while (runtime->spins && weft__load(&runtime->join_spin.misses,
					    relaxed) < WEFT__SPIN_MISSES_MAX);
	for (int i = 0; i < WEFT__SPIN_SKIPS; i++) {
		wait_for_one(runtime, add_one, 1);
		/* relaxed: only this thread waits. */
		tries |= weft__load(&runtime->join_spin.misses, relaxed) <
			 WEFT__SPIN_MISSES_MAX;
	}
	ck_assert(!runtime->spins || tries);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* Z02: by default there are as many workers as processors that the process may
 * use. */
static int64_t count_workers(void *arg)
{
	struct weft_stats stats;

	(void)arg;
	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &stats), 0);
	return (int64_t)stats.workers;
}

START_TEST(each_processor_has_a_worker_by_default)
{
	cpu_set_t all, some;
	int count = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&some);
	for (size_t i = 0; i < CPU_SETSIZE && count < 4; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		CPU_SET(i, &some);
		ck_assert_int_eq(sched_setaffinity(0, sizeof(some), &some), 0);
		ck_assert_int_eq(weft_run(count_workers, NULL, NULL), ++count);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched/threads");
	TCase *waiting = tcase_create("waiting");
	TCase *counting = tcase_create("counting");
	TCase *stacks = tcase_create("stacks");

	tcase_set_timeout(counting, 60);
	tcase_set_timeout(stacks, 60);
	tcase_add_loop_test(counting, hundred_thousand_tasks_are_counted, 0,
			    3);
	if (test_needs(test_has_descriptors(1000),
		       "runtime_of_many_workers_runs_and_ends",
		       "1000 descriptors"))
		tcase_add_loop_test(
			counting, runtime_of_many_workers_runs_and_ends, 0, 2);
	tcase_add_test(counting, each_processor_has_a_worker_by_default);
	tcase_add_loop_test(counting, checksum_of_millions_of_tasks, 0, 3);
	tcase_add_test(stacks, task_that_overflows_its_stack_is_named);
	tcase_add_test(stacks, each_of_many_sleepers_has_its_guard);
	tcase_add_loop_test(stacks, many_sleep_and_are_cancelled, 0,
			    2);
#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN)
	tcase_add_test(stacks, without_memory_for_a_stack_it_does_not_start);
#endif
	suite_add_tcase(suite, counting);
	tcase_add_test(waiting, looks_that_seldom_pay_are_given_up);
	tcase_add_test(waiting, thread_that_waits_long_no_longer_looks);
	suite_add_tcase(suite, stacks);
	suite_add_tcase(suite, waiting);
	return io_tests_run(suite);
}
