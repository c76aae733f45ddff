/* SPDX-License-Identifier: MIT */
/*
 * weft_copy_tree() that ends early, at any point: a file that has its name is
 * whole, and a tree that was not there before has its name only if it is whole,
 * or if the call could still say that it is not.
 */
#include "tests/support/child_kit.h"
#include "tests/support/copied_kit.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

static int copy(const char *from, const char *to, uint32_t flags)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = flags;
	return weft_copy_tree(from, to, &opts, NULL);
}

/* ---- Ends at any point ------------------------------------------------- */

enum { ENDS = 15 };

static void yield_call(const struct weft_copy_counts *counts, void *arg)
{
	int r = weft_yield();

	(void)counts, (void)arg;
	ck_assert(r == 0 || r == -ETIMEDOUT || r == -ECANCELED);
}

static void late_copy(uint64_t within_ns)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	int r = 0;

	opts.on_progress = yield_call;
	opts.jobs_max = 3;
	opts.flags = WEFT_COPY_LINKS;
	WEFT_WITHIN (within_ns)
		r = weft_copy_tree("from", "to", &opts, NULL);
	ck_assert_msg(r == 0 || r == -ETIMEDOUT, "%d", r);
}

/* With what is complete, and nothing else. */
IO_TEST(late_copy_leaves_whole_files)
{
	copied_broad("from", 10, 15);
	ck_assert_int_eq(link("from/dir-0/a file of number 1", "from/link"), 0);
	for (uint64_t i = 0; i < ENDS; i++) {
		uint64_t within_ns = WEFT_US(20) * i * i;

		late_copy(within_ns);
		ck_assert_uint_eq(copied_count_names(".", ".weft-copy-"), 0);
		if (!copied_is_there("to"))
			continue;
		copied_expect_same("from", "to", COPIED_PART);
		copied_remove("to");
	}
	return 0;
}

struct cancelling {
	uint32_t jobs;
	unsigned after; /* files */
};

static void cancel_call(const char *path, void *arg)
{
	struct cancelling *cancelling = arg;

	(void)path;
	if (cancelling->after-- == 0)
		ck_assert_int_eq(weft_cancel(weft_self()), 0);
}

/* The task that is cancelled is that of a runner. */
static int64_t copy_cancelled(void *arg)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	struct cancelling *cancelling = arg;

	opts.jobs_max = cancelling->jobs;
	opts.on_copied = cancel_call;
	opts.arg = cancelling;
	ck_assert_int_eq(weft_copy_tree("from", "to", &opts, NULL), -ECANCELED);
	return 0;
}

IO_TEST(cancelled_copy_leaves_whole_files)
{
	copied_broad("from", 10, 30);
	for (unsigned i = 0; i < 9; i++) {
		struct cancelling cancelling = { 1 + i % 3, i * i };

		WEFT_SUPERVISE (scope)
			ck_assert_int_eq(
				WEFT_GO(scope, copy_cancelled, cancelling), 0);
		ck_assert(copied_is_there("to"));
		copied_expect_same("from", "to", COPIED_PART);
		ck_assert_uint_eq(copied_count_names(".", ".weft-copy-"), 0);
		copied_remove("to");
	}
	return 0;
}

static int64_t copy_for_ever(void *arg)
{
	char name[32];

	/* A new tree, and one into a directory that is there. */
	for (int i = 0;; i++) {
		snprintf(name, sizeof(name), "new-%d", i);
		NEED(copy("from", name, 0) == 0);
		NEED(copy("from", "to", WEFT_COPY_OVERWRITE) == 0);
	}
	(void)arg;
	return 0;
}

/* A tree that has its name is whole, and so is each file in one that was there
 * before. */
START_TEST(killed_copy_leaves_nothing_that_looks_whole)
{
	copied_broad("from", 4, 25);
	for (long i = 0; i < ENDS; i++) {
		char name[32];

		child_kill(copy_for_ever, NULL, 2000000 * i);
		if (copied_is_there("to"))
			copied_expect_same("from", "to", COPIED_PART);
		for (int j = 0;; j++) {
			snprintf(name, sizeof(name), "new-%d", j);
			if (!copied_is_there(name))
				break;
			copied_expect_same("from", name, COPIED_MODES);
			copied_remove(name);
		}
		if (i % 3 == 0)
			copied_remove("to");
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/copy_ends");
	TCase *ends = tcase_create("ends");

	tcase_add_checked_fixture(ends, copied_setup_quick, copied_teardown);
	suite_add_tcase(suite, ends);
	io_add_test(ends, late_copy_leaves_whole_files);
	io_add_test(ends, cancelled_copy_leaves_whole_files);
	tcase_add_test(ends, killed_copy_leaves_nothing_that_looks_whole);
	return io_tests_run(suite);
}
