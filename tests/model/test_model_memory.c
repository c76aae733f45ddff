/* SPDX-License-Identifier: MIT */
/*
 * The memory model of the checker: classic litmus tests, with the outcomes that
 * C11 allows and those that it forbids.
 *
 * A checker that misses behaviour passes every model, so half of these tests
 * claim that something weak is reached.
 */
#include <stdlib.h>

#include "tests/model/litmus.h"

static bool (*outcome)(void);
static unsigned outcome_count;

static void count_outcome(void *arg)
{
	(void)arg;
	outcome_count += outcome();
}

/* How many executions end with the outcome; checks that none is violated. */
static unsigned count(bool (*wanted)(void), model_fn *const threads[], size_t n)
{
	const struct model_opts opts = { .name = "litmus", .quiet = true };
	struct model_result result;

	outcome = wanted;
	outcome_count = 0;
	result = model_run(&opts, setup, threads, n, count_outcome);
	ck_assert_msg(!result.violated, "%s", result.text);
	ck_assert(result.complete);
	return outcome_count;
}

#define COUNT(wanted, ...)                                                   \
	count((wanted), (model_fn *const[]){ __VA_ARGS__ },                  \
	      sizeof((model_fn *const[]){ __VA_ARGS__ }) / sizeof(model_fn *))

/* --- Message passing ---------------------------------------------------- */

THREAD(mp_relaxed, weft__store(&m.x, 1, relaxed);
       weft__store(&m.y, 1, relaxed);)
THREAD(mp_release, weft__store(&m.x, 1, relaxed);
       weft__store(&m.y, 1, release);)
THREAD(mp_acquire_y, m.r[0] = weft__load(&m.y, acquire);
       m.r[1] = weft__load(&m.x, relaxed);)
THREAD(mp_relaxed_y, m.r[0] = weft__load(&m.y, relaxed);
       m.r[1] = weft__load(&m.x, relaxed);)

static bool flag_without_message(void)
{
	return m.r[0] == 1 && m.r[1] == 0;
}

START_TEST(release_and_acquire_pass_a_message)
{
	ck_assert_uint_eq(COUNT(flag_without_message, mp_release, mp_acquire_y),
			  0);
}
END_TEST

START_TEST(either_side_relaxed_loses_the_message)
{
	ck_assert_uint_gt(COUNT(flag_without_message, mp_relaxed, mp_acquire_y),
			  0);
	ck_assert_uint_gt(COUNT(flag_without_message, mp_release, mp_relaxed_y),
			  0);
}
END_TEST

THREAD(sequence_head, weft__store(&m.x, 1, relaxed);
       weft__store(&m.y, 1, release);)
THREAD(sequence_rmw, weft__add(&m.y, 1, relaxed);)
THREAD(sequence_broken, if (weft__load(&m.y, relaxed) == 1)
       weft__store(&m.y, 2, relaxed);)
THREAD(sequence_reader, m.r[0] = weft__load(&m.y, acquire) == 2;
       m.r[1] = weft__load(&m.x, relaxed);)

START_TEST(release_sequence_continues_through_an_rmw)
{
	ck_assert_uint_eq(COUNT(flag_without_message, sequence_head,
				sequence_rmw, sequence_reader),
			  0);
}
END_TEST

START_TEST(release_sequence_ends_at_a_store_of_another_thread)
{
	ck_assert_uint_gt(COUNT(flag_without_message, sequence_head,
				sequence_broken, sequence_reader),
			  0);
}
END_TEST

THREAD(cas_fails, uint32_t seven = 7; weft__cas(&m.y, &seven, 8, relaxed);
       m.r[0] = seven; m.r[1] = weft__load(&m.x, relaxed);)
THREAD(cas_fails_acquire, uint32_t seven = 7;
       weft__cas_acquire(&m.y, &seven, 8, relaxed);
       m.r[0] = seven; m.r[1] = weft__load(&m.x, relaxed);)

START_TEST(failed_cas_is_a_load_of_its_failure_order)
{
	ck_assert_uint_gt(COUNT(flag_without_message, mp_release, cas_fails),
			  0);
	ck_assert_uint_eq(COUNT(flag_without_message, mp_release,
				cas_fails_acquire),
			  0);
}
END_TEST

/* Reads y and passes it to a third thread, which then knows what both knew. */
THREAD(relay, if (weft__load(&m.y, acquire)) weft__store(&m.z, 1, release);)
THREAD(relayed, m.r[0] = weft__load(&m.z, acquire);
       m.r[1] = weft__load(&m.x, relaxed);)

START_TEST(happens_before_is_transitive)
{
	ck_assert_uint_eq(COUNT(flag_without_message, mp_release, relay,
				relayed),
			  0);
}
END_TEST

/* --- Coherence ---------------------------------------------------------- */

THREAD(count_up, weft__store(&m.x, 1, relaxed); weft__store(&m.x, 2, relaxed);)
THREAD(read_twice, m.r[0] = weft__load(&m.x, relaxed);
       m.r[1] = weft__load(&m.x, relaxed);)
THREAD(read_and_tell, m.r[0] = weft__load(&m.x, relaxed);
       weft__store(&m.y, 1, release);)
THREAD(hear_and_read, if (weft__load(&m.y, acquire))
       m.r[1] = weft__load(&m.x, relaxed); else m.r[1] = 2;)

static bool went_back(void)
{
	return m.r[0] > m.r[1];
}

static bool read_old_then_new(void)
{
	return m.r[0] == 0 && m.r[1] == 2;
}

START_TEST(reads_of_one_location_never_go_back)
{
	ck_assert_uint_eq(COUNT(went_back, count_up, read_twice), 0);
	ck_assert_uint_gt(COUNT(read_old_then_new, count_up, read_twice), 0);
}
END_TEST

START_TEST(what_was_read_before_in_happens_before_is_not_undone)
{
	ck_assert_uint_eq(COUNT(went_back, count_up, read_and_tell,
				hear_and_read),
			  0);
}
END_TEST

THREAD(add_thrice, weft__add(&m.x, 1, relaxed); weft__add(&m.x, 1, relaxed);
       weft__add(&m.x, 1, relaxed);)

static bool sum_is_wrong(void)
{
	return m.x != 6;
}

START_TEST(read_modify_writes_lose_no_update)
{
	ck_assert_uint_eq(COUNT(sum_is_wrong, add_thrice, add_thrice), 0);
}
END_TEST

THREAD(xy, weft__store(&m.x, 1, release); weft__store(&m.y, 2, release);)
THREAD(yx, weft__store(&m.y, 1, release); weft__store(&m.x, 2, release);)

static bool both_firsts_last(void)
{
	return m.x == 1 && m.y == 1;
}

START_TEST(modification_order_need_not_be_execution_order)
{
	ck_assert_uint_gt(COUNT(both_firsts_last, xy, yx), 0);
}
END_TEST

/* --- Sequential consistency --------------------------------------------- */

#define SB(name, mine, other, i, stored, loaded)                             \
	THREAD(name, weft__store(&m.mine, 1, stored);                        \
	       m.r[i] = weft__load(&m.other, loaded);)

SB(sb_x, x, y, 0, seq_cst, seq_cst)
SB(sb_y, y, x, 1, seq_cst, seq_cst)
SB(sb_x_release, x, y, 0, release, acquire)
SB(sb_y_release, y, x, 1, release, acquire)
SB(sb_x_release_only, x, y, 0, release, seq_cst)
SB(sb_x_acquire_only, x, y, 0, seq_cst, acquire)
SB(sb_x_light, x, y, 0, relaxed, relaxed)
THREAD(sb_y_heavy, weft__store(&m.y, 1, relaxed); model_heavy_barrier();
       m.r[1] = weft__load(&m.x, relaxed);)
THREAD(sb_x_rmw, weft__swap(&m.x, 1, seq_cst);
       m.r[0] = weft__load(&m.y, seq_cst);)

static bool both_zero(void)
{
	return m.r[0] == 0 && m.r[1] == 0;
}

START_TEST(seq_cst_forbids_store_buffering)
{
	ck_assert_uint_eq(COUNT(both_zero, sb_x, sb_y), 0);
	ck_assert_uint_eq(COUNT(both_zero, sb_x_rmw, sb_y), 0);
}
END_TEST

/* Each of the four orders is needed, so a weaker one is found. */
START_TEST(anything_less_allows_store_buffering)
{
	ck_assert_uint_gt(COUNT(both_zero, sb_x_release, sb_y_release), 0);
	ck_assert_uint_gt(COUNT(both_zero, sb_x_release_only, sb_y), 0);
	ck_assert_uint_gt(COUNT(both_zero, sb_x_acquire_only, sb_y), 0);
}
END_TEST

START_TEST(heavy_barrier_is_a_fence_for_both_sides)
{
	ck_assert_uint_eq(COUNT(both_zero, sb_x_light, sb_y_heavy), 0);
	ck_assert_uint_gt(COUNT(both_zero, sb_x_light, sb_y_release), 0);
}
END_TEST

/* x is seq_cst, but the word that publishes it is not. */
THREAD(tell_relaxed, weft__store(&m.x, 1, seq_cst);
       weft__store(&m.y, 1, relaxed);)
THREAD(told_relaxed, m.r[0] = weft__load(&m.y, relaxed);
       m.r[1] = weft__load(&m.x, seq_cst);)

START_TEST(seq_cst_order_is_not_the_order_of_execution)
{
	ck_assert_uint_gt(COUNT(flag_without_message, tell_relaxed,
				told_relaxed),
			  0);
}
END_TEST

#define IRIW(name, first, second, i, order)                                  \
	THREAD(name, m.r[i] = weft__load(&m.first, order);                   \
	       m.r[i + 1] = weft__load(&m.second, order);)

THREAD(iriw_x, weft__store(&m.x, 1, seq_cst);)
THREAD(iriw_y, weft__store(&m.y, 1, seq_cst);)
IRIW(iriw_xy, x, y, 0, seq_cst)
IRIW(iriw_yx, y, x, 2, seq_cst)
IRIW(iriw_xy_acquire, x, y, 0, acquire)
IRIW(iriw_yx_acquire, y, x, 2, acquire)

static bool readers_disagree(void)
{
	return m.r[0] == 1 && m.r[1] == 0 && m.r[2] == 1 && m.r[3] == 0;
}

START_TEST(seq_cst_readers_agree_on_the_order_of_writes)
{
	ck_assert_uint_eq(COUNT(readers_disagree, iriw_x, iriw_y, iriw_xy,
				iriw_yx),
			  0);
}
END_TEST

START_TEST(acquire_readers_may_disagree)
{
	ck_assert_uint_gt(COUNT(readers_disagree, iriw_x, iriw_y,
				iriw_xy_acquire, iriw_yx_acquire),
			  0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model/memory");
	SRunner *runner = srunner_create(suite);
	int failed;

	add_tests(suite, "messages", (const TTest *const[]){
		release_and_acquire_pass_a_message,
		either_side_relaxed_loses_the_message,
		release_sequence_continues_through_an_rmw,
		release_sequence_ends_at_a_store_of_another_thread,
		failed_cas_is_a_load_of_its_failure_order,
		happens_before_is_transitive, NULL });
	add_tests(suite, "coherence", (const TTest *const[]){
		reads_of_one_location_never_go_back,
		what_was_read_before_in_happens_before_is_not_undone,
		read_modify_writes_lose_no_update,
		modification_order_need_not_be_execution_order, NULL });
	add_tests(suite, "seq_cst", (const TTest *const[]){
		seq_cst_forbids_store_buffering,
		anything_less_allows_store_buffering,
		heavy_barrier_is_a_fence_for_both_sides,
		seq_cst_order_is_not_the_order_of_execution,
		seq_cst_readers_agree_on_the_order_of_writes,
		acquire_readers_may_disagree, NULL });
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
