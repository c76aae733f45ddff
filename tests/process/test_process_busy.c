/* SPDX-License-Identifier: MIT */
/*
 * Programs that are open for writing: a child that another task or thread has
 * just made has copies of all descriptors for a moment, also of the one with
 * which the program was written.
 */
#include "tests/support/process_kit.h"

static char path[32];
static int path_fd;

static void path_make(void)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/weft-busy-XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "x\n", 2), 2);
	ck_assert_int_eq(fchmod(fd, 0700), 0);
	ck_assert_int_eq(close(fd), 0);
}

static int start(void)
{
	struct weft_process *process = NULL;
	struct role role;
	int r;

	role_init(&role, "exit", "0");
	role.opts.path = path;
	r = weft_spawn(&role.opts, &process);
	ck_assert_ptr_null(process);
	return r;
}

static int64_t let_go(void *arg)
{
	(void)arg;
	ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	return close(path_fd);
}

/* One worker: the close is in time, since its sleep ends before the last of the
 * call's. */
static int64_t start_what_is_busy(void *arg)
{
	int64_t closed;
	int r = 0;

	(void)arg;
	path_fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(path_fd, 0);
	ck_assert_int_eq(start(), -ETXTBSY);
	WEFT_WITHIN(WEFT_MS(1))
		r = start();
	ck_assert_int_eq(r, -ETIMEDOUT);
	WEFT_SCOPE (scope, &closed) {
		ck_assert_int_eq(weft_go(scope, let_go, NULL, 0), 0);
		r = start();
	}
	ck_assert_int_eq(closed, 0);
	/* It is no program, but no longer busy. */
	ck_assert_int_eq(r, -ENOEXEC);
	return 0;
}

START_TEST(program_that_was_just_written_is_waited_for)
{
	if (!test_needs(TEST_HAS_VFORK,
			"program_that_was_just_written_is_waited_for",
			"a kernel of its own"))
		return;
	process_test_begin(_i);
	path_make();
	io_run(start_what_is_busy, NULL, 1);
	expect_no_children();
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("process/busy");
	TCase *tc = tcase_create("busy");

	if (argc > 1)
		return child_play(argc, argv);
	process_add_test(tc, program_that_was_just_written_is_waited_for);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
