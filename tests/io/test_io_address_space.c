/* SPDX-License-Identifier: MIT */
/*
 * Suite io/address_space: a runtime that does not start for want of address
 * space (ulimit -v) names that limit.
 *
 * The kernel refuses a thread's stack with EAGAIN, and other memory with
 * ENOMEM; an error alone would not tell.
 */
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/stderr_capture.h"

enum { STEP_KIB = 1 << 10, STEPS = 100, WORKERS = 4 };

static int64_t do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int start_run(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = WORKERS;
	return (int)weft_run(do_nothing, NULL, &opts);
}

static int start_and_stop(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	int r;

	opts.workers = WORKERS;
	r = weft_start(&opts, &runtime);
	return r < 0 ? r : weft_stop(runtime);
}

/* The result of a start with so much more address space, and what it said. */
static const char *start_with(int (*start)(void), rlim_t more_bytes, int *ret_r)
{
	struct rlimit before;

	said_begin();
	before = limit_set(RLIMIT_AS, address_space_used() + more_bytes);
	*ret_r = start();
	limit_reset(RLIMIT_AS, before);
	return said_end();
}

START_TEST(start_that_fails_names_the_address_space)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		int r;
		const char *text = start_with(_i ? start_and_stop : start_run,
					      (rlim_t)i * STEP_KIB << 10, &r);

		ck_assert_msg(r == 0 || r == -ENOMEM || r == -EAGAIN,
			      "step %u: %d", i, r);
		if (r == 0)
			continue;
		failed++;
		ck_assert_msg(strstr(text, "RLIMIT_AS (ulimit -v) allows "),
			      "step %u: %d: '%s'", i, r, text);
	}
	ck_assert_uint_gt(failed, 0);
}
END_TEST

START_TEST(start_that_succeeds_says_nothing)
{
	int r;
	const char *text = start_with(start_run, (rlim_t)1 << 32, &r);

	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(text, "");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/address_space");
	TCase *tc = tcase_create("limit");

	tcase_set_timeout(tc, 60);
	if (test_needs(TEST_CAN_LIMIT_ADDRESS_SPACE, "io/address_space",
		       "a build without sanitizers")) {
		tcase_add_loop_test(
			tc, start_that_fails_names_the_address_space, 0, 2);
		tcase_add_test(tc, start_that_succeeds_says_nothing);
	}
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
