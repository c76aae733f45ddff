/* SPDX-License-Identifier: MIT */
/*
 * Check, or what stands in for it, and what tests on virtual time share.
 */
#ifndef WEFT_TESTS_FAKE_FAKE_CHECK_H
#define WEFT_TESTS_FAKE_FAKE_CHECK_H

#ifdef WEFT_TEST_SHIM
#include "tests/fake/check_shim.h"
#else
#include <check.h>
#endif

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fake/fake_run.h"
#include "tests/support/expect.h"
#include "tests/support/few.h"

/* Runs main and insists that it came to an end in order. */
static inline struct fake_result must_run(const struct fake_config *config,
					  weft_fn main_fn, void *arg)
{
	struct fake_result result;

	fake_run(config, main_fn, arg, &result);
	ck_assert_msg(!result.trouble,
		      "%s (seed %" PRIu64 ", %u workers, %" PRIu64 " steps)",
		      result.trouble, config->seed, config->workers,
		      result.steps);
	/* Nothing was found that somebody should have been woken for. */
	ck_assert_msg(result.stats.total.rescues == 0,
		      "%" PRIu64 " rescues (seed %" PRIu64 ")",
		      result.stats.total.rescues, config->seed);
	return result;
}

static inline int64_t fake_note_time(void *arg)
{
	**(uint64_t **)arg = weft_now();
	return 0;
}

/* The running task starts another, and computes: how long until the other one
 * ran, elsewhere. */
static inline uint64_t compute_beside_one(struct weft_scope *scope,
					  uint64_t length_ns)
{
	static uint64_t ran_ns;
	uint64_t *at = &ran_ns, start_ns;

	ran_ns = 0;
	EXPECT(WEFT_GO(scope, fake_note_time, at) == 0);
	start_ns = weft_now();
	fake_compute(length_ns);
	EXPECT(ran_ns != 0);
	return ran_ns - start_ns;
}

/* WEFT_TEST_SEED=n shifts all seeds. */
static inline uint64_t seed_of(int i)
{
	const char *text = getenv("WEFT_TEST_SEED");

	uint64_t base = text ? strtoull(text, NULL, 0) : 0;

	return base * 1000 + (uint64_t)i;
}

/* How many of n seeds: WEFT_TEST_FEW=m takes one in m, where a tool makes all
 * of it slow and other builds try them all. */
static inline int seeds(int n)
{
	int few = (int)test_few();

	return (n + few - 1) / few;
}

static inline int run_suites(Suite *(*const make[])(void), int count)
{
	SRunner *runner = srunner_create(make[0]());
	int failed;

	for (int i = 1; i < count; i++)
		srunner_add_suite(runner, make[i]());
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
