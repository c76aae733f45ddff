/* SPDX-License-Identifier: MIT */
/*
 * Suite dump/cycles: the search for cycles of waits.
 *
 * The input is a list of tasks: the task's id, the task that it waits for, and
 * the task that owns its scope.  A task waits for one other task, or, at the
 * end of its scope, for all tasks of that scope.  The search reports each
 * cycle, as ids in the order in which they wait.  Hand-made cases come first;
 * then random ones are compared with a second, simpler search.
 */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dump/cycles.h"

enum { MOST = 64, GRAPHS = 2000, TASKS = 9 };

static struct {
	unsigned cycles;
	size_t length;	    /* of all cycles together */
	uint64_t ids[MOST]; /* of all cycles, one after the other */
	size_t first[MOST]; /* of each cycle, an index into ids */
} told;

static void tell(void *arg, const uint64_t *ids, size_t count)
{
	ck_assert_ptr_eq(arg, &told);
	ck_assert_uint_gt(count, 0);
	ck_assert_uint_le(told.length + count, MOST);
	told.first[told.cycles++] = told.length;
	memcpy(told.ids + told.length, ids, count * sizeof(*ids));
	told.length += count;
}

static void find(const struct weft__edge *edges, size_t count)
{
	struct weft__edge copy[MOST * 4];

	ck_assert_uint_le(count, MOST * 4);
	if (count)
		memcpy(copy, edges, count * sizeof(*edges));
	memset(&told, 0, sizeof(told));
	ck_assert_int_eq(weft__cycles_find(copy, count, NULL, tell, &told), 0);
}

#define FIND(...)                                                \
	find((const struct weft__edge[]){ __VA_ARGS__ },         \
	     sizeof((const struct weft__edge[]){ __VA_ARGS__ }) / \
		     sizeof(struct weft__edge))

START_TEST(nothing_has_no_cycle)
{
	find(NULL, 0);
	ck_assert_uint_eq(told.cycles, 0);
}
END_TEST

START_TEST(chain_has_no_cycle)
{
	FIND({ 1, 2, 0 }, { 2, 3, 0 }, { 3, 4, 0 }, { 7, 2, 0 });
	ck_assert_uint_eq(told.cycles, 0);
}
END_TEST

START_TEST(two_wait_for_each_other)
{
	FIND({ 5, 3, 0 }, { 3, 5, 0 }, { 9, 3, 0 });
	ck_assert_uint_eq(told.cycles, 1);
	ck_assert_uint_eq(told.length, 2);
	ck_assert_uint_eq(told.ids[0] + told.ids[1], 8);
}
END_TEST

/* The ids come in the order in which the tasks wait. */
START_TEST(cycle_is_told_in_order)
{
	FIND({ 1, 4, 0 }, { 4, 2, 0 }, { 2, 3, 0 }, { 3, 1, 0 });
	ck_assert_uint_eq(told.cycles, 1);
	ck_assert_uint_eq(told.length, 4);
	for (size_t i = 0; i < 4; i++) {
		static const uint64_t next[] = { 0, 4, 3, 1, 2 };

		ck_assert_uint_eq(told.ids[(i + 1) % 4], next[told.ids[i]]);
	}
}
END_TEST

START_TEST(cycles_apart_are_told_each)
{
	FIND({ 1, 2, 0 }, { 2, 1, 0 }, { 3, 4, 0 }, { 4, 3, 0 }, { 5, 1, 0 });
	ck_assert_uint_eq(told.cycles, 2);
	ck_assert_uint_eq(told.length, 4);
}
END_TEST

/* The owner waits for all tasks of its scope, and one of them waits for the
 * owner. */
START_TEST(scope_may_be_part_of_a_cycle)
{
	FIND({ 1, 2, 77 }, { 1, 3, 77 }, { 3, 1, 0 }, { 1, 0, 77 });
	ck_assert_uint_eq(told.cycles, 1);
	ck_assert_uint_eq(told.length, 2);
	ck_assert_uint_eq(told.ids[0] + told.ids[1], 4);
}
END_TEST

/* The owner does not wait for the end of this scope: it waits for a task, or
 * for the end of another scope. */
START_TEST(scope_whose_end_is_not_awaited_is_none)
{
	FIND({ 1, 2, 77 }, { 2, 1, 0 });
	ck_assert_uint_eq(told.cycles, 0);
	FIND({ 1, 2, 77 }, { 2, 1, 0 }, { 1, 0, 78 });
	ck_assert_uint_eq(told.cycles, 0);
	FIND({ 1, 2, 77 }, { 2, 1, 0 }, { 1, 9, 0 });
	ck_assert_uint_eq(told.cycles, 0);
	/* A wait of one task is not taken for a wait of another task in the
	 * scope. */
	FIND({ 1, 0, 77 }, { 2, 3, 77 }, { 3, 2, 0 });
	ck_assert_uint_eq(told.cycles, 0);
}
END_TEST

/* ---- Compared with a second algorithm ------------------------------------ */

static bool edge[TASKS][TASKS], reaches[TASKS][TASKS];

static void graph_make(unsigned seed)
{
	unsigned sparse = seed % 7 + 2;

	memset(edge, 0, sizeof(edge));
	srand(seed);
	for (int i = 0; i < TASKS; i++)
		for (int k = 0; k < TASKS; k++)
			edge[i][k] = (unsigned)rand() % (sparse * 2) == 0;
	memcpy(reaches, edge, sizeof(edge));
	for (int via = 0; via < TASKS; via++)
		for (int i = 0; i < TASKS; i++)
			for (int k = 0; k < TASKS; k++)
				reaches[i][k] |= reaches[i][via] &&
						 reaches[via][k];
}

static void graph_find(void)
{
	struct weft__edge edges[TASKS * TASKS];
	size_t count = 0;

	for (uint64_t i = 0; i < TASKS; i++)
		for (uint64_t k = 0; k < TASKS; k++)
			if (edge[i][k])
				edges[count++] = (struct weft__edge){
					i + 1, k + 1, 0
				};
	find(edges, count);
}

/* Each reported task waits for the next one, and no task is reported twice. */
static void expect_cycles(bool *is_told)
{
	for (unsigned c = 0; c < told.cycles; c++) {
		size_t first = told.first[c];
		size_t end = c + 1 < told.cycles ? told.first[c + 1] :
						   told.length;

		for (size_t i = first; i < end; i++) {
			size_t next = i + 1 < end ? i + 1 : first;

			ck_assert(edge[told.ids[i] - 1][told.ids[next] - 1]);
			ck_assert(!is_told[told.ids[i] - 1]);
			is_told[told.ids[i] - 1] = true;
		}
	}
}

START_TEST(some_cycle_is_told_of_all_that_wait_for_each_other)
{
	bool is_told[TASKS] = { false };

	graph_make((unsigned)_i);
	graph_find();
	expect_cycles(is_told);
	for (int i = 0; i < TASKS; i++) {
		bool some = !reaches[i][i];

		for (int k = 0; k < TASKS; k++)
			some |= is_told[k] && reaches[i][k] && reaches[k][i];
		ck_assert_msg(some, "seed %d: task %d", _i, i + 1);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dump/cycles");
	TCase *tcase = tcase_create("cycles");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, nothing_has_no_cycle);
	tcase_add_test(tcase, chain_has_no_cycle);
	tcase_add_test(tcase, two_wait_for_each_other);
	tcase_add_test(tcase, cycle_is_told_in_order);
	tcase_add_test(tcase, cycles_apart_are_told_each);
	tcase_add_test(tcase, scope_may_be_part_of_a_cycle);
	tcase_add_test(tcase, scope_whose_end_is_not_awaited_is_none);
	tcase_add_loop_test(
		tcase, some_cycle_is_told_of_all_that_wait_for_each_other, 0,
		GRAPHS);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
