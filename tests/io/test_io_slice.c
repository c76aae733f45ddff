/* SPDX-License-Identifier: MIT */
/*
 * Scheduler slices: the monitor's thread has a short slice, and a thread that
 * runs tasks has its own one.  Kernels before 6.12 have no slices per thread;
 * on these, nothing is changed.
 */
#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>

#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

enum { ROUNDS = 50 };

#define OWN_NS 5000000u
#define SHORT_NS 100000u

struct attr {
	uint32_t bytes, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t slice_ns, deadline_ns, period_ns;
};

/* The attributes of a thread; 0 is the calling thread. */
static struct attr attr_of(long thread)
{
	struct attr attr = { 0 };

	ck_assert_int_eq(
		syscall(SYS_sched_getattr, thread, &attr, sizeof(attr), 0), 0);
	return attr;
}

/* Gives this thread, and the threads that it will start, a slice that the tests
 * recognize.  Returns that slice, or 0 on a kernel without slices. */
static uint64_t own_slice(void)
{
	struct attr attr = attr_of(0);
	uint64_t own_ns = attr.slice_ns ? OWN_NS : 0;

	attr.slice_ns = OWN_NS;
	ck_assert_int_eq(syscall(SYS_sched_setattr, 0, &attr, 0), 0);
	ck_assert_uint_eq(attr_of(0).slice_ns, own_ns);
	return own_ns;
}

static unsigned threads_with_short_slices(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned count = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    attr_of(atol(entry->d_name)).slice_ns == SHORT_NS)
			count++;
	closedir(dir);
	return count;
}

/* Sleeps, so that this task's worker may have been the monitor, then computes
 * until another worker is the monitor. */
static int64_t compute(void *arg)
{
	uint64_t own_ns = *(uint64_t *)arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t by_ns;

		ck_assert_int_eq(weft_sleep(WEFT_MS(i % 5)), 0);
		by_ns = weft_now() + WEFT_SEC(10);
		ck_assert_uint_eq(attr_of(0).slice_ns, own_ns);
		while (own_ns && threads_with_short_slices() != 1)
			ck_assert_uint_lt(weft_now(), by_ns);
		ck_assert_uint_eq(attr_of(0).slice_ns, own_ns);
	}
	return 0;
}

START_TEST(monitor_has_a_short_slice_and_tasks_do_not)
{
	uint64_t own_ns = own_slice();

	io_run(compute, &own_ns, 2);
	ck_assert_uint_eq(attr_of(0).slice_ns, own_ns);
}
END_TEST

static weft__atomic(bool) begun;

static bool on_worker_0(void)
{
	return gettid() == getpid();
}

static int64_t see_worker_0_watch(void *arg)
{
	uint64_t own_ns = *(uint64_t *)arg;
	uint64_t by_ns = weft_now() + WEFT_SEC(10);

	ck_assert(!on_worker_0());
	/* This task's worker was the monitor, and helped. */
	ck_assert_uint_eq(attr_of(0).slice_ns, own_ns);
	weft__store(&begun, true, relaxed);
	while (own_ns && attr_of(getpid()).slice_ns != SHORT_NS)
		ck_assert_uint_lt(weft_now(), by_ns);
	return 0;
}

/* Worker 0 keeps the timers, so tasks that sleep wake there. */
static void go_to_worker_0(void)
{
	do
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	while (!on_worker_0());
}

/* When the other worker has stolen the child, worker 0 has nothing left to
 * run. */
static int64_t run_elsewhere(weft_fn child, void *arg)
{
	int64_t r = 0;

	go_to_worker_0();
	WEFT_SCOPE(scope, &r) {
		ck_assert_int_eq(weft_go(scope, child, arg, sizeof(uint64_t)),
				 0);
		while (!weft__load(&begun, relaxed))
			weft__spin_hint();
	}
	return r;
}

static int64_t end_elsewhere(void *arg)
{
	return run_elsewhere(see_worker_0_watch, arg);
}

/* The thread that called weft_run() gets its slice back even if it is the
 * monitor when the runtime ends. */
START_TEST(monitor_that_leaves_has_its_own_again)
{
	uint64_t own_ns = own_slice();

	io_run(end_elsewhere, &own_ns, 2);
	ck_assert_uint_eq(attr_of(0).slice_ns, own_ns);
}
END_TEST

/* Some C libraries refuse sched_setscheduler(), since Linux has one for
 * threads. */
static int policy_set(pid_t thread, int policy)
{
	struct sched_param param = { 0 };

	return (int)syscall(SYS_sched_setscheduler, thread, policy, &param);
}

static int64_t change_policy_of_worker_0(void *arg)
{
	(void)see_worker_0_watch(arg);
	ck_assert_int_eq(policy_set(getpid(), SCHED_IDLE), 0);
	return 0;
}

static int64_t change_policy_and_back(void *arg)
{
	uint64_t own_ns = *(uint64_t *)arg, by_ns;
	int64_t r = run_elsewhere(change_policy_of_worker_0, arg);

	go_to_worker_0();
	ck_assert_int_eq(policy_set(0, SCHED_OTHER), 0);
	by_ns = weft_now() + WEFT_SEC(10);
	do {
		ck_assert_uint_lt(weft_now(), by_ns);
		go_to_worker_0();
	} while (attr_of(0).slice_ns != own_ns);
	return r;
}

/* With a nice value, a thread needs a privilege to leave SCHED_IDLE again. */
static bool policy_can_change_back(void)
{
	return policy_set(0, SCHED_IDLE) == 0 &&
	       policy_set(0, SCHED_OTHER) == 0;
}

/* The kernel keeps the slice while the thread has another policy. */
START_TEST(policy_that_changes_meanwhile_loses_no_slice)
{
	uint64_t own_ns = own_slice();

	io_run(change_policy_and_back, &own_ns, 2);
	ck_assert_uint_eq(attr_of(0).slice_ns, own_ns);
}
END_TEST

static int64_t keep_the_policy(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		ck_assert_int_eq(syscall(SYS_sched_getscheduler, 0),
				 SCHED_IDLE);
		ck_assert_uint_eq(threads_with_short_slices(), 0);
	}
	return 0;
}

START_TEST(threads_that_run_when_nothing_else_does_are_left_alone)
{
	ck_assert_int_eq(policy_set(0, SCHED_IDLE), 0);
	io_run(keep_the_policy, NULL, 2);
	ck_assert_int_eq(syscall(SYS_sched_getscheduler, 0), SCHED_IDLE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/slice");
	TCase *slices = tcase_create("slices");

	tcase_set_timeout(slices, 60);
	tcase_set_tags(slices, "monitor");
	tcase_add_test(slices, monitor_has_a_short_slice_and_tasks_do_not);
	tcase_add_test(slices, monitor_that_leaves_has_its_own_again);
	if (test_needs(test_can(policy_can_change_back),
		       "policy_that_changes_meanwhile_loses_no_slice",
		       "the right to leave SCHED_IDLE"))
		tcase_add_test(slices,
			       policy_that_changes_meanwhile_loses_no_slice);
	tcase_add_test(slices,
		       threads_that_run_when_nothing_else_does_are_left_alone);
	suite_add_tcase(suite, slices);
	return io_tests_run(suite);
}
