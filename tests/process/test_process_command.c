/* SPDX-License-Identifier: MIT */
/*
 * Commands and pipelines: input and output at the same time, limits, deadlines,
 * and pipes that others hold.
 */
#include <sys/epoll.h>

#include "tests/support/process_kit.h"

enum { LARGE = 1 << 20 };

/* Every fourth byte tells its place. */
static void fill(uint32_t *numbers, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*numbers); i++)
		numbers[i] = (uint32_t)i * 2654435761u;
}

static struct weft_spawn_opts cat_opts(void)
{
	static const char *const argv[] = { "cat", NULL };
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;

	opts.argv = argv;
	return opts;
}

static struct weft_spawn_opts shell(const char **argv, const char *text)
{
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;

	argv[0] = "sh", argv[1] = "-c", argv[2] = text, argv[3] = NULL;
	opts.argv = argv;
	return opts;
}

/* ---- Input and output ---------------------------------------------------- */

/* More than the pipes hold, both ways at the same time; cat stops if its output
 * is not read.  The buffer is as large as the output. */
PROCESS_TEST(large_input_and_output_go_both_ways)
{
	struct weft_spawn_opts opts[3] = { cat_opts(), cat_opts(), cat_opts() };
	struct weft_command command = WEFT_COMMAND_INIT;
	uint32_t *in = malloc(LARGE), *out = malloc(LARGE);
	struct weft_exit exits[3];

	fill(in, LARGE);
	command.input = in, command.input_bytes = LARGE;
	command.output = out, command.output_bytes_max = LARGE;
	for (unsigned count = 1; count <= 3; count += 2) {
		memset(out, 0, LARGE);
		ck_assert_int_eq(weft_run_commands(opts, count, &command,
						   exits),
				 0);
		ck_assert_uint_eq(command.input_bytes_done, LARGE);
		ck_assert_uint_eq(command.output_bytes, LARGE);
		ck_assert(!command.output_cut && !command.output_open);
		ck_assert(memcmp(in, out, LARGE) == 0);
		for (unsigned i = 0; i < count; i++)
			ck_assert_int_eq(exits[i].status, 0);
	}
	free(in), free(out);
	return 0;
}

PROCESS_TEST(errors_and_status_are_collected)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	char out[100] = { 0 }, err[100] = { 0 };
	const char *argv[4];
	struct weft_spawn_opts opts =
		shell(argv, "read x; echo o$x; echo e$x >&2; exit 3");
	struct weft_exit exit;

	command.input = "12\n34\n", command.input_bytes = 6;
	command.output = out, command.output_bytes_max = sizeof(out);
	command.errors = err, command.errors_bytes_max = sizeof(err);
	ck_assert_int_eq(weft_run_command(&opts, &command, &exit), 0);
	ck_assert_int_eq(exit.status, 3);
	ck_assert_str_eq(out, "o12\n");
	ck_assert_str_eq(err, "e12\n");
	ck_assert_uint_eq(command.output_bytes, 4);
	ck_assert_uint_eq(command.errors_bytes, 4);
	return 0;
}

/* Its input is at its end, its output goes nowhere. */
PROCESS_TEST(command_without_input_and_output_runs)
{
	const char *argv[4];
	struct weft_spawn_opts opts =
		shell(argv, "test -z \"$(cat)\" && echo none");
	struct weft_exit exit;

	ck_assert_int_eq(weft_run_command(&opts, NULL, &exit), 0);
	ck_assert_int_eq(exit.status, 0);
	return 0;
}

/* Nothing raises SIGPIPE, and what was read counts. */
PROCESS_TEST(input_that_is_not_read_is_no_error)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	const char *argv[4];
	struct weft_spawn_opts opts = shell(argv, "exec <&-; exit 4");
	char *in = calloc(1, LARGE);
	struct weft_exit exit;

	command.input = in, command.input_bytes = LARGE;
	ck_assert_int_eq(weft_run_command(&opts, &command, &exit), 0);
	ck_assert_int_eq(exit.status, 4);
	ck_assert_uint_lt(command.input_bytes_done, LARGE);
	free(in);
	return 0;
}

/* ---- Limits -------------------------------------------------------------- */

PROCESS_TEST(too_much_output_ends_the_command)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	struct weft_exit exit;
	struct role role;
	char out[1000];

	role_init(&role, "flood", "-1");
	command.output = out, command.output_bytes_max = sizeof(out);
	ck_assert_int_eq(weft_run_command(&role.opts, &command, &exit),
			 -EMSGSIZE);
	ck_assert_uint_eq(command.output_bytes, sizeof(out));
	ck_assert(command.output_cut);
	ck_assert_int_eq(exit.signal, SIGTERM);
	ck_assert_int_eq(out[999], 'f');
	/* As much as there is room is not too much. */
	role_init(&role, "flood", "1000");
	ck_assert_int_eq(weft_run_command(&role.opts, &command, &exit), 0);
	ck_assert_uint_eq(command.output_bytes, sizeof(out));
	ck_assert(!command.output_cut);
	return 0;
}

PROCESS_TEST(output_is_cut_on_request)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	struct weft_exit exit;
	struct role role;
	char out[1000];

	role_init(&role, "flood", "300000");
	command.output = out, command.output_bytes_max = sizeof(out);
	command.flags = WEFT_COMMAND_CUT;
	ck_assert_int_eq(weft_run_command(&role.opts, &command, &exit), 0);
	ck_assert_int_eq(exit.status, 0);
	ck_assert_uint_eq(command.output_bytes, sizeof(out));
	ck_assert(command.output_cut);
	return 0;
}

/* ---- Deadlines ----------------------------------------------------------- */

static struct weft_exit run_out_of_time(struct role *role, char *out,
					struct weft_command *command)
{
	struct weft_exit exit;
	int r = 0;

	*command = (struct weft_command)WEFT_COMMAND_INIT;
	command->output = out, command->output_bytes_max = 99;
	WEFT_WITHIN(WEFT_MS(60))
		r = weft_run_command(&role->opts, command, &exit);
	ck_assert_int_eq(r, -ETIMEDOUT);
	expect_no_children();
	return exit;
}

/* Whatever it writes until its end is kept.  (A child that was slow to start
 * has not written, or was not even started.) */
PROCESS_TEST(deadline_ends_the_child_and_loses_nothing)
{
	struct weft_command command;
	struct weft_exit exit;
	char out[100] = { 0 };
	struct role role;

	role_init(&role, "part", "bye");
	role.opts.grace_ns = WEFT_SEC(100);
	exit = run_out_of_time(&role, out, &command);
	if (exit.status == 0)
		ck_assert_ptr_nonnull(strstr(out, "bye"));
	else
		ck_assert(exit.signal == SIGTERM || exit.signal == 0);
	memset(out, 0, sizeof(out));
	role_init(&role, "hold", "stubborn");
	role.opts.grace_ns = WEFT_MS(5);
	exit = run_out_of_time(&role, out, &command);
	ck_assert(exit.killed || exit.signal == SIGTERM || exit.signal == 0);
	ck_assert(strcmp(out, "r") == 0 || out[0] == '\0');
	return 0;
}

static int64_t run_for_ever(void *arg)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	struct weft_exit exits[2];
	struct role roles[2];
	struct weft_spawn_opts opts[2];
	char out[100];
	int r;

	role_init(&roles[0], "hold", "");
	role_init(&roles[1], "hold", "");
	opts[0] = roles[0].opts;
	opts[1] = roles[1].opts;
	command.output = out, command.output_bytes_max = sizeof(out);
	weft_event_set(*(struct weft_event **)arg);
	r = weft_run_commands(opts, 2, &command, exits);
	ck_assert_int_eq(r, -ECANCELED);
	return 0;
}

/* At any moment: while they are started, too. */
PROCESS_TEST(cancelled_pipeline_leaves_no_child)
{
	for (int i = 0; i < 4; i++) {
		struct weft_event began = WEFT_EVENT_INIT;

		WEFT_SUPERVISE(scope) {
			ck_assert_int_eq(WEFT_GO(scope, run_for_ever, &began),
					 0);
			ck_assert_int_eq(weft_event_wait(&began), 0);
			ck_assert_int_eq(weft_sleep(WEFT_US(100 << 2 * i)), 0);
			weft_scope_cancel(scope);
		}
		expect_no_children();
	}
	return 0;
}

/* ---- Others that hold the pipe ------------------------------------------- */

/* A process that the child left behind has its output open. */
PROCESS_TEST(output_that_another_process_holds_is_not_waited_for)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	const char *argv[4];
	struct weft_spawn_opts opts = shell(
		argv, "(exec sleep 1000) & echo $!; exec >/dev/null");
	char out[100] = { 0 };
	struct weft_exit exit;
	int pid;

	command.output = out, command.output_bytes_max = sizeof(out) - 1;
	command.linger_ns = WEFT_MS(1);
	ck_assert_int_eq(weft_run_command(&opts, &command, &exit), 0);
	ck_assert_int_eq(exit.status, 0);
	ck_assert(command.output_open);
	pid = atoi(out);
	ck_assert_int_gt(pid, 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	return 0;
}

/* A deadline is not made longer by the linger.  (A child that was slow to start
 * may have left no process.) */
PROCESS_TEST(deadline_ends_the_linger)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	const char *argv[4];
	struct weft_spawn_opts opts =
		shell(argv, "(exec sleep 30) & echo $!; exit 0");
	char out[100] = { 0 };
	struct weft_exit exit;
	int r = 0;

	command.output = out, command.output_bytes_max = sizeof(out) - 1;
	command.linger_ns = WEFT_NEVER;
	WEFT_WITHIN(WEFT_MS(50))
		r = weft_run_command(&opts, &command, &exit);
	ck_assert_int_eq(r, -ETIMEDOUT);
	if (exit.status != 0)
		return 0;
	ck_assert_int_gt(atoi(out), 1);
	ck_assert_int_eq(kill(atoi(out), SIGKILL), 0);
	ck_assert(command.output_open);
	return 0;
}

/* However short the linger: what the child wrote is read, and is too much. */
PROCESS_TEST(linger_does_not_cut_what_the_child_wrote)
{
	for (int i = 0; i < 10; i++) {
		struct weft_command command = WEFT_COMMAND_INIT;
		struct role role;
		char out[1000];

		role_init(&role, "flood", "60000");
		command.output = out, command.output_bytes_max = sizeof(out);
		command.flags = WEFT_COMMAND_CUT;
		command.linger_ns = 1;
		ck_assert_int_eq(weft_run_command(&role.opts, &command, NULL),
				 0);
		ck_assert(command.output_cut);
		ck_assert(!command.output_open);
	}
	return 0;
}

/* The output of a process that outlives the child is waited for if it comes to
 * its end. */
PROCESS_TEST(output_after_the_end_of_the_child_is_not_lost)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	const char *argv[4];
	struct weft_spawn_opts opts =
		shell(argv, "(exec 3<&-; i=0; while test $i -lt 99; do "
			    "i=$((i+1)); echo $i; done) & exit 0");
	char out[400] = { 0 };

	command.output = out, command.output_bytes_max = sizeof(out) - 1;
	command.linger_ns = WEFT_SEC(50);
	ck_assert_int_eq(weft_run_command(&opts, &command, NULL), 0);
	ck_assert(!command.output_open);
	ck_assert_ptr_nonnull(strstr(out, "\n99\n"));
	return 0;
}

/* ---- Pipelines ----------------------------------------------------------- */

PROCESS_TEST(pipeline_has_the_status_of_each)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	const char *argv[3][4];
	struct weft_spawn_opts opts[] = {
		shell(argv[0], "cat; echo 1 >&2; exit 1"),
		shell(argv[1], "tr a-z A-Z; echo 2 >&2; kill -KILL $$"),
		shell(argv[2], "sed s/B/-/; echo 3 >&2; exit 7"),
	};
	char out[100] = { 0 }, err[100] = { 0 };
	struct weft_exit exits[3];

	command.input = "abc\n", command.input_bytes = 4;
	command.output = out, command.output_bytes_max = sizeof(out);
	command.errors = err, command.errors_bytes_max = sizeof(err);
	ck_assert_int_eq(weft_run_commands(opts, 3, &command, exits), 0);
	ck_assert_str_eq(out, "A-C\n");
	ck_assert_int_eq(exits[0].status, 1);
	ck_assert_int_eq(exits[1].signal, SIGKILL);
	ck_assert_int_eq(exits[2].status, 7);
	ck_assert_uint_eq(command.errors_bytes, 6);
	return 0;
}

/* A reader that ends ends those before it, by SIGPIPE. */
PROCESS_TEST(writer_of_a_pipeline_ends_with_its_reader)
{
	struct role first, last;
	struct weft_spawn_opts opts[2];
	struct weft_exit exits[2];

	role_init(&first, "flood", "-1");
	role_init(&last, "exit", "0");
	opts[0] = first.opts;
	opts[1] = last.opts;
	ck_assert_int_eq(weft_run_commands(opts, 2, NULL, exits), 0);
	ck_assert_int_eq(exits[0].signal, SIGPIPE);
	ck_assert_int_eq(exits[1].status, 0);
	return 0;
}

PROCESS_TEST(pipeline_that_cannot_start_leaves_no_child)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	struct role roles[3];
	struct weft_spawn_opts opts[3];
	struct weft_exit exits[3];

	if (!test_needs(TEST_HAS_VFORK, __func__, "a kernel of its own"))
		return 0;
	for (int i = 0; i < 3; i++) {
		role_init(&roles[i], "hold", "");
		opts[i] = roles[i].opts;
	}
	opts[2].path = "/nowhere/at all";
	memset(exits, 77, sizeof(exits));
	ck_assert_int_eq(weft_run_commands(opts, 3, &command, exits), -ENOENT);
	ck_assert_uint_eq(command.failed, 2);
	ck_assert_int_eq(exits[0].signal, SIGTERM);
	ck_assert_int_eq(exits[2].status, -1);
	ck_assert_int_eq(exits[2].signal, 0);
	expect_no_children();
	return 0;
}

/* No descriptor that the call makes takes the number.  The number before it is
 * free as well, for a thread that opens a file for a moment. */
PROCESS_TEST(command_with_a_source_that_is_not_open_is_refused)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	struct weft_child_fd fd = { 5, -1, NULL };
	struct role roles[2];
	struct weft_spawn_opts opts[2];
	int before;

	for (int i = 0; i < 2; i++) {
		role_init(&roles[i], "exit", "0");
		opts[i] = roles[i].opts;
	}
	ck_assert_int_eq(weft_run_commands(opts, 2, &command, NULL), 0);
	before = dup(0);
	fd.source = dup(0);
	close_both((int[]){ before, fd.source });
	opts[1].fds = &fd, opts[1].fds_count = 1;
	ck_assert_int_eq(weft_run_commands(opts, 2, &command, NULL), -EBADF);
	ck_assert_uint_eq(command.failed, 1);
	return 0;
}

/* ---- Children that cannot be watched ------------------------------------- */

/* As where the user has no watches left. */
static weft__atomic(bool) refuses_pidfds;

static bool is_pidfd(int fd)
{
	char path[40], name[40] = { 0 };

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name) - 1) > 0 &&
	       strstr(name, "pidfd");
}

int __real_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	/* relaxed: set before the calls that it concerns. */
	if (op == EPOLL_CTL_ADD && weft__load(&refuses_pidfds, relaxed) &&
	    is_pidfd(fd)) {
		errno = ENOSPC;
		return -1;
	}
	return __real_epoll_ctl(epoll_fd, op, fd, event);
}

PROCESS_TEST(child_that_cannot_be_watched_is_looked_at)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	struct weft_spawn_opts opts[2] = { cat_opts(), cat_opts() };
	struct weft_exit exits[2];
	char out[10] = { 0 };
	int r = 0;

	/* relaxed: as above. */
	weft__store(&refuses_pidfds, true, relaxed);
	command.input = "text", command.input_bytes = 4;
	command.output = out, command.output_bytes_max = sizeof(out);
	WEFT_WITHIN(WEFT_SEC(20))
		r = weft_run_commands(opts, 2, &command, exits);
	weft__store(&refuses_pidfds, false, relaxed); /* relaxed: as above. */
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(out, "text");
	ck_assert_int_eq(exits[0].status, 0);
	ck_assert_int_eq(exits[1].status, 0);
	return 0;
}

PROCESS_TEST(wrong_commands_are_refused)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	struct weft_child_fd fd = { 1, 1, NULL };
	struct role role;
	char out[10];

	role_init(&role, "exit", "0");
	ck_assert_int_eq(weft_run_commands(&role.opts, 0, &command, NULL),
			 -EINVAL);
	ck_assert_int_eq(weft_run_commands(&role.opts, WEFT_COMMANDS_MAX + 1,
					   &command, NULL),
			 -EINVAL);
	ck_assert_int_eq(weft_run_command(NULL, &command, NULL), -EINVAL);
	command.flags = 1u << 9;
	ck_assert_int_eq(weft_run_command(&role.opts, &command, NULL), -EINVAL);
	command.flags = 0;
	/* Both say where the output goes. */
	role.opts.fds = &fd, role.opts.fds_count = 1;
	command.output = out, command.output_bytes_max = sizeof(out);
	ck_assert_int_eq(weft_run_command(&role.opts, &command, NULL), -EINVAL);
	command.output = NULL;
	ck_assert_int_eq(weft_run_command(&role.opts, &command, NULL), 0);
	command.size = 0;
	ck_assert_int_eq(weft_run_command(&role.opts, &command, NULL), -EINVAL);
	return 0;
}

int main(int argc, char **argv)
{
	Suite *suite = suite_create("process/command");
	TCase *all = tcase_create("all");

	if (argc > 1)
		return child_play(argc, argv);
	process_add_test(all, large_input_and_output_go_both_ways);
	process_add_test(all, errors_and_status_are_collected);
	process_add_test(all, command_without_input_and_output_runs);
	process_add_test(all, input_that_is_not_read_is_no_error);
	process_add_test(all, too_much_output_ends_the_command);
	process_add_test(all, output_is_cut_on_request);
	process_add_test(all, deadline_ends_the_child_and_loses_nothing);
	process_add_test(all, cancelled_pipeline_leaves_no_child);
	process_add_test(all,
			 output_that_another_process_holds_is_not_waited_for);
	process_add_test(all, deadline_ends_the_linger);
	process_add_test(all, linger_does_not_cut_what_the_child_wrote);
	process_add_test(all, output_after_the_end_of_the_child_is_not_lost);
	process_add_test(all, pipeline_has_the_status_of_each);
	process_add_test(all, writer_of_a_pipeline_ends_with_its_reader);
	process_add_test(all, pipeline_that_cannot_start_leaves_no_child);
	process_add_test(all,
			 command_with_a_source_that_is_not_open_is_refused);
	process_add_test(all, child_that_cannot_be_watched_is_looked_at);
	process_add_test(all, wrong_commands_are_refused);
	suite_add_tcase(suite, all);
	return io_tests_run(suite);
}
