/* SPDX-License-Identifier: MIT */
/*
 * Many children at a time; and the limits of the process and of the user, which
 * end a call with an error that leaves nothing behind.
 */
#include "tests/support/process_kit.h"

enum { MANY = 1000, MANY_MASKED = 100 };

struct crowd {
	struct weft_wait_group started, ended;
	weft__atomic(unsigned) refused; /* by a limit of the machine */
	int gate_fd; /* the children's input */
};

static int64_t raise_one(void *arg)
{
	struct crowd *crowd = *(struct crowd **)arg;
	struct weft_child_fd fds = { 0, crowd->gate_fd, NULL };
	struct weft_process *process = NULL;
	struct weft_exit exit = { .status = 1 };
	struct role role;
	int r;

	role_init(&role, "-c", "read x");
	role.opts.path = "/bin/sh";
	role.opts.fds = &fds;
	role.opts.fds_count = 1;
	r = weft_spawn(&role.opts, &process);
	weft_wait_group_done(&crowd->started);
	if (r == 0) {
		ck_assert_int_eq(weft_process_wait(process, &exit), 0);
		ck_assert_int_eq(exit.signal, 0);
	} else {
		ck_assert_int_eq(r, -EAGAIN);
		/* relaxed: a count. */
		weft__add(&crowd->refused, 1u, relaxed);
	}
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
	weft_wait_group_done(&crowd->ended);
	return 0;
}

/* All of them live at the same time, and end at the same time. */
static void crowd_live(unsigned count)
{
	struct crowd crowd = {
		.started = WEFT_WAIT_GROUP_INIT((int)count),
		.ended = WEFT_WAIT_GROUP_INIT((int)count),
	};
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	crowd.gate_fd = fds[0];
	WEFT_SUPERVISE(scope) {
		for (unsigned i = 0; i < count; i++)
			ck_assert_int_eq(WEFT_GO(scope, raise_one, &crowd), 0);
		ck_assert_int_eq(weft_wait_group_wait(&crowd.started), 0);
		ck_assert_int_eq(weft_close(fds[1]), 0);
		ck_assert_int_eq(weft_wait_group_wait(&crowd.ended), 0);
	}
	ck_assert_int_eq(weft_close(fds[0]), 0);
	/* relaxed: all have been joined. */
	ck_assert_uint_le(weft__load(&crowd.refused, relaxed), count - 40);
}

static int64_t crowd_task(void *arg)
{
	crowd_live(*(unsigned *)arg);
	return 0;
}

/* Each needs a process and a pidfd. */
static unsigned crowd_size(bool masked)
{
	struct rlimit limit;
	unsigned count = masked ? MANY_MASKED : MANY;

	ck_assert_int_eq(getrlimit(RLIMIT_NPROC, &limit), 0);
	if (geteuid() != 0 && limit.rlim_cur < 2 * count)
		count = 50;
	if (!test_has_descriptors(count + 200))
		count = 50;
	return count;
}

START_TEST(thousand_children_live_at_the_same_time)
{
	unsigned count = crowd_size(_i & 2);

	process_test_begin(_i);
	if (!test_needs(count > 50, __func__, "1000 processes, descriptors"))
		count = 50;
	io_run(crowd_task, &count, 2);
	expect_no_children();
}
END_TEST

/* ---- Limits -------------------------------------------------------------- */

static int start_with_pipes(void)
{
	int ends[2] = { -1, -1 };
	struct weft_child_fd fds[] = {
		{ 0, WEFT_PIPE_READ, &ends[0] },
		{ 1, WEFT_PIPE_WRITTEN, &ends[1] },
	};
	struct weft_process *process = NULL;
	struct role role;
	int r;

	role_init(&role, "exit", "0");
	role.opts.fds = fds;
	role.opts.fds_count = 2;
	r = weft_spawn(&role.opts, &process);
	if (r < 0) {
		ck_assert_ptr_null(process);
		ck_assert(ends[0] == -1 && ends[1] == -1);
		return r;
	}
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
	close_both(ends);
	return 0;
}

/* The lowest limit with which all succeeds is found from below; each that fails
 * has left nothing. */
PROCESS_TEST(missing_descriptors_are_an_error_that_leaves_nothing)
{
	int open_now = fds_open(), r = -EMFILE;

	/* The pool's thread, and its memory, are there from now on. */
	ck_assert_int_eq(start_with_pipes(), 0);
	for (int more = 0; r < 0 && more < 200; more++) {
		struct rlimit old = limit_set(RLIMIT_NOFILE,
					      (rlim_t)(open_now + more));

		r = start_with_pipes();
		limit_reset(RLIMIT_NOFILE, old);
		ck_assert(r == 0 || r == -EMFILE);
		expect_no_children();
		expect_fds(open_now);
	}
	ck_assert_int_eq(r, 0);
	return 0;
}

static int64_t meet_the_limit(void *arg)
{
	struct rlimit old;

	(void)arg;
	ck_assert_int_eq(start_with_pipes(), 0);
	old = limit_set(RLIMIT_NPROC, 1);
	ck_assert_int_eq(start_with_pipes(), -EAGAIN);
	expect_no_children();
	limit_reset(RLIMIT_NPROC, old);
	return 0;
}

START_TEST(missing_processes_are_an_error)
{
	process_test_begin(_i);
	if (!test_needs(test_can(become_another_user), __func__,
			NEEDS_ANOTHER_USER))
		return;
	ck_assert(become_another_user());
	io_run(meet_the_limit, NULL, 2);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("process/many");
	TCase *all = tcase_create("all");

	if (argc > 1)
		return child_play(argc, argv);
	tcase_add_loop_test(all, thousand_children_live_at_the_same_time, 1, 3);
	process_add_test(all,
			 missing_descriptors_are_an_error_that_leaves_nothing);
	process_add_test(all, missing_processes_are_an_error);
	suite_add_tcase(suite, all);
	return io_tests_run(suite);
}
