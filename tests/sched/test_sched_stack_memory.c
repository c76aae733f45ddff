/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/stack_memory: stacks where the address space is short
 * (ulimit -v), or the number of mappings.
 *
 * Stacks are mapped many at a time, and one by one where there is no room for
 * many.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/support/child_kit.h"
#include "tests/support/guards.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_calls.h"

enum {
	MAPPED = 64, /* stacks in one mapping */
	MORE = 8,
	SOME_BYTES = 8 << 20, /* for more than MORE stacks, less than MAPPED */
};

static struct weft_event over;
static unsigned waiting;

static int64_t wait_for_the_end(void *arg)
{
	(void)arg;
	waiting++;
	return weft_event_wait(&over);
}

static void start(struct weft_scope *scope, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ck_assert_int_eq(weft_go(scope, wait_for_the_end, NULL, 0), 0);
}

/* Then there is so much more address space; returns the limit from before.  The
 * task itself has a stack of the first mapping. */
static struct rlimit use_up_one_mapping(struct weft_scope *scope, rlim_t bytes)
{
	waiting = 0;
	start(scope, MAPPED - 1);
	wait_until(waiting == MAPPED - 1);
	return limit_set(RLIMIT_AS, address_space_used() + bytes);
}

static int64_t start_more_than_one_mapping(void *arg)
{
	struct rlimit before;

	(void)arg;
	WEFT_SCOPE(all, NULL) {
		before = use_up_one_mapping(all, SOME_BYTES);
		start(all, MORE);
		wait_until(waiting == MAPPED - 1 + MORE);
		limit_reset(RLIMIT_AS, before);
		weft_event_set(&over);
	}
	return 0;
}

START_TEST(room_for_a_few_stacks_is_used)
{
	io_run(start_more_than_one_mapping, NULL, 1);
}
END_TEST

/* More tasks than there is room for wait for stacks, while others map. */
static int64_t map_beside_waiting_tasks(void *arg)
{
	enum { MAP_BYTES = 1 << 20 };
	struct rlimit before;
	void *map;

	(void)arg;
	WEFT_SCOPE(all, NULL) {
		before = use_up_one_mapping(all, SOME_BYTES);
		start(all, 2 * MAPPED);
		wait_until(waiting >= MAPPED - 1 + MORE);
		ck_assert_int_eq(weft_sleep(WEFT_MS(20)), 0);
		map = mmap(NULL, MAP_BYTES, PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		limit_reset(RLIMIT_AS, before);
		ck_assert_ptr_ne(map, MAP_FAILED);
		ck_assert_int_eq(munmap(map, MAP_BYTES), 0);
		weft_event_set(&over);
	}
	return 0;
}

START_TEST(stacks_leave_room_for_others)
{
	io_run(map_beside_waiting_tasks, NULL, 1);
}
END_TEST

/* None is refused; those without a stack run when there is memory again. */
static int64_t start_without_memory(void *arg)
{
	struct rlimit before;

	(void)arg;
	WEFT_SCOPE(all, NULL) {
		before = use_up_one_mapping(all, 0);
		start(all, MORE);
		ck_assert_int_eq(weft_sleep(WEFT_MS(20)), 0);
		ck_assert_uint_eq(waiting, MAPPED - 1);
		limit_reset(RLIMIT_AS, before);
		wait_until(waiting == MAPPED - 1 + MORE);
		weft_event_set(&over);
	}
	return 0;
}

START_TEST(tasks_without_a_stack_run_when_there_is_memory)
{
	io_run(start_without_memory, NULL, 1);
}
END_TEST

/* ---- Mappings ------------------------------------------------------------ */

enum {
	PAGE_BYTES = 4096,
	/* Of mappings: fewer give no room for a test, more take memory. */
	MAPPINGS_MIN = 20000,
	MAPPINGS_MAX = 150000,
};

static unsigned mappings_max(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned max = 0;

	if (file && fscanf(file, "%u", &max) != 1)
		max = 0;
	if (file)
		fclose(file);
	return max;
}

/* A 32nd of all.  No two of them can become one. */
static void map_others(void)
{
	static char *pages[MAPPINGS_MAX / 32];
	unsigned others = mappings_max() / 32;

	for (unsigned i = 0; i < others; i++) {
		pages[i] = mmap(NULL, PAGE_BYTES,
				i % 2 ? PROT_READ : PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		NEED(pages[i] != MAP_FAILED);
	}
	for (unsigned i = 0; i < others; i++)
		NEED(munmap(pages[i], PAGE_BYTES) == 0);
}

/* More tasks than can have stacks. */
static int64_t map_in_a_crowd(void *arg)
{
	unsigned count = mappings_max() / 2 + 1000, before;

	(void)arg;
	waiting = 0;
	WEFT_SCOPE(all, NULL) {
		for (unsigned i = 0; i < count; i++)
			NEED(weft_go(all, wait_for_the_end, NULL, 0) == 0);
		/* Until no more have a stack. */
		do {
			before = waiting;
			NEED(weft_sleep(WEFT_MS(50)) == 0);
		} while (waiting != before || waiting < 1000);
		map_others();
		weft_event_set(&over);
	}
	NEED(waiting == count);
	return 0;
}

static int64_t map_without_cheap_guards(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	(void)arg;
	NEED(refuse_call_with(SYS_madvise, 2, GUARD_INSTALL, EINVAL));
	opts.workers = 1;
	return weft_run(map_in_a_crowd, NULL, &opts);
}

/* As before Linux 6.13, where each guard makes two mappings of one. */
START_TEST(guards_leave_mappings_to_others)
{
	child_run(map_without_cheap_guards, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched/stack_memory");
	TCase *tc = tcase_create("limit");

	tcase_set_timeout(tc, 60);
	if (test_needs(TEST_CAN_LIMIT_ADDRESS_SPACE, "sched/stack_memory",
		       "a build without sanitizers")) {
		tcase_add_test(tc, room_for_a_few_stacks_is_used);
		tcase_add_test(tc, stacks_leave_room_for_others);
		tcase_add_test(tc,
			       tasks_without_a_stack_run_when_there_is_memory);
		if (test_needs(test_can(child_may_refuse) &&
				       mappings_max() >= MAPPINGS_MIN &&
				       mappings_max() <= MAPPINGS_MAX,
			       "guards_leave_mappings_to_others",
			       NEEDS_REFUSED_CALLS " and a vm.max_map_count of "
						   "20000 to 150000"))
			tcase_add_test(tc, guards_leave_mappings_to_others);
	}
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
