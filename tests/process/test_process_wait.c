/* SPDX-License-Identifier: MIT */
/*
 * The end of a child: its status, and what is done to a child that has not
 * ended when its task does.
 */
#include <sys/prctl.h>

#include "tests/support/process_kit.h"

/* ---- Status -------------------------------------------------------------- */

static struct weft_exit exit_of(const char *name, const char *arg)
{
	struct weft_exit exit, again;
	struct role role;
	struct weft_process *process;

	role_init(&role, name, arg);
	process = role_start(&role);
	ck_assert_int_eq(weft_process_wait(process, &exit), 0);
	ck_assert_int_eq(weft_process_wait(process, &again), 0);
	ck_assert_mem_eq(&exit, &again, sizeof(exit));
	ck_assert_int_eq(weft_process_signal(process, SIGTERM), -ESRCH);
	ck_assert_int_eq(weft_process_close(process, &again), 0);
	ck_assert_mem_eq(&exit, &again, sizeof(exit));
	return exit;
}

PROCESS_TEST(status_and_signal_are_told)
{
	struct weft_exit exit = exit_of("exit", "0");

	ck_assert_int_eq(exit.status, 0);
	ck_assert_int_eq(exit.signal, 0);
	ck_assert_int_eq(exit_of("exit", "255").status, 255);
	exit = exit_of("fall", "9");
	ck_assert_int_eq(exit.status, -1);
	ck_assert_int_eq(exit.signal, SIGKILL);
	ck_assert(!exit.killed);
	ck_assert_int_eq(exit_of("fall", "10").signal, SIGUSR1);
	return 0;
}

PROCESS_TEST(usage_is_the_childs)
{
	struct weft_exit exit = exit_of("compute", "15");

	ck_assert_uint_ge(exit.user_ns + exit.system_ns, 14000000);
	ck_assert_uint_gt(exit.resident_bytes_max, 4096);
	ck_assert_uint_lt(exit_of("exit", "0").user_ns, WEFT_SEC(10));
	return 0;
}

/* ---- Waiting ------------------------------------------------------------- */

PROCESS_TEST(wait_that_is_given_up_leaves_the_child)
{
	struct weft_exit exit = { .status = 77 };
	struct weft_process *process;
	struct role role;
	int r = 0;

	role_init(&role, "hold", "");
	process = role_start_ready(&role);
	WEFT_WITHIN(WEFT_MS(2))
		r = weft_process_wait(process, &exit);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_eq(exit.status, 77);
	ck_assert_int_eq(kill(weft_process_pid(process), 0), 0);
	ck_assert_int_eq(weft_process_signal(process, 0), -EINVAL);
	ck_assert_int_eq(weft_process_signal(process, 65), -EINVAL);
	ck_assert_int_eq(weft_process_signal(process, SIGUSR1), 0);
	ck_assert_int_eq(weft_process_wait(process, &exit), 0);
	ck_assert_int_eq(exit.signal, SIGUSR1);
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
	expect_end(role.fd);
	return 0;
}

PROCESS_TEST(descriptor_is_ready_when_the_child_has_ended)
{
	struct weft_process *process;
	struct role role;

	role_init(&role, "hold", "");
	process = role_start_ready(&role);
	if (weft_process_fd(process) >= 0) {
		struct weft_case cases[] = {
			WEFT_READY(weft_process_fd(process), POLLIN),
			WEFT_AT(weft_now() + WEFT_SEC(50)),
		};

		ck_assert_int_eq(weft_try_select(cases, 1), -EAGAIN);
		ck_assert_int_eq(weft_process_signal(process, SIGKILL), 0);
		ck_assert_int_eq(weft_select(cases, 2), 0);
	} else {
		ck_assert_int_eq(weft_process_fd(process), -ENOSYS);
	}
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
	expect_end(role.fd);
	return 0;
}

static int64_t use_anothers(void *arg)
{
	struct weft_process *process = *(struct weft_process **)arg;

	ck_assert_int_eq(weft_process_wait(process, NULL), -EPERM);
	ck_assert_int_eq(weft_process_close(process, NULL), -EPERM);
	ck_assert_int_eq(weft_process_signal(process, SIGUSR2), 0);
	return 0;
}

PROCESS_TEST(other_tasks_may_only_signal)
{
	struct weft_exit exit;
	struct weft_process *process;
	struct role role;

	role_init(&role, "hold", "");
	process = role_start_ready(&role);
	WEFT_SUPERVISE(scope)
		ck_assert_int_eq(WEFT_GO(scope, use_anothers, process), 0);
	ck_assert_int_eq(weft_process_wait(process, &exit), 0);
	ck_assert_int_eq(exit.signal, SIGUSR2);
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
	expect_end(role.fd);
	return 0;
}

/* Root may become itself again. */
static bool become_stranger(void)
{
	return setresuid(20000, 20000, 0) == 0;
}

PROCESS_TEST(child_of_another_user_gets_no_signal)
{
	struct weft_process *process;
	struct role role;
	int r;

	role_init(&role, "hold", "");
	process = role_start_ready(&role);
	ck_assert(become_stranger());
	r = weft_process_signal(process, SIGUSR2);
	ck_assert_int_eq(setresuid(0, 0, 0), 0);
	/* A search for leaks at the end traces the process. */
	ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0);
	ck_assert_int_eq(r, -EPERM);
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
	expect_end(role.fd);
	return 0;
}

/* ---- Ending a child ------------------------------------------------------ */

/* Closes it, with a grace. */
static struct weft_exit end_of(const char *name, const char *arg,
			       weft_nsec grace_ns, bool stopped)
{
	struct weft_exit exit;
	struct weft_process *process;
	struct role role;

	role_init(&role, name, arg);
	role.opts.grace_ns = grace_ns;
	process = role_start_ready(&role);
	if (stopped)
		ck_assert_int_eq(weft_process_signal(process, SIGSTOP), 0);
	ck_assert_int_eq(weft_process_close(process, &exit), 0);
	if (exit.status == 0)
		expect_bytes(role.fd, arg);
	expect_end(role.fd);
	return exit;
}

PROCESS_TEST(close_asks_and_then_kills)
{
	struct weft_exit exit = end_of("hold", "", WEFT_SEC(100), false);

	ck_assert_int_eq(exit.signal, SIGTERM);
	ck_assert(!exit.killed);
	exit = end_of("hold", "stubborn", WEFT_MS(5), false);
	ck_assert_int_eq(exit.signal, SIGKILL);
	ck_assert(exit.killed);
	exit = end_of("part", "bye", WEFT_SEC(100), false);
	ck_assert_int_eq(exit.status, 0);
	/* The handler of a child that is stopped runs, too. */
	exit = end_of("part", "bye", WEFT_SEC(10), true);
	ck_assert_int_eq(exit.status, 0);
	return 0;
}

struct owner {
	struct weft_event ready;
	const char *role, *arg;
	int fd;
	bool waits;
	pid_t pid;
};

/* Never closes its child. */
static int64_t own(void *arg)
{
	struct owner *owner = *(struct owner **)arg;
	struct weft_process *process;
	struct role role;
	int r = 0;

	role_init(&role, owner->role, owner->arg);
	role.opts.grace_ns = WEFT_MS(*owner->arg == 's' ? 5 : 100000);
	process = role_start_ready(&role);
	owner->fd = role.fd;
	owner->pid = weft_process_pid(process);
	weft_event_set(&owner->ready);
	if (owner->waits)
		r = weft_process_wait(process, NULL);
	ck_assert_int_eq(r, owner->waits ? -ECANCELED : 0);
	return 0;
}

static void own_and_end(const char *name, const char *arg, bool waits)
{
	struct owner owner = {
		.ready = WEFT_EVENT_INIT,
		.role = name,
		.arg = arg,
		.waits = waits,
	};

	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, own, &owner), 0);
		ck_assert_int_eq(weft_event_wait(&owner.ready), 0);
		if (waits)
			weft_scope_cancel(scope);
	}
	/* Ended, and reaped. */
	ck_assert_int_eq(kill(owner.pid, 0), -1);
	if (strcmp(name, "part") == 0)
		expect_bytes(owner.fd, arg);
	expect_end(owner.fd);
}

PROCESS_TEST(child_ends_with_its_task)
{
	own_and_end("hold", "", false);
	own_and_end("part", "bye", false);
	return 0;
}

PROCESS_TEST(child_of_a_cancelled_task_ends_with_it)
{
	own_and_end("hold", "", true);
	own_and_end("hold", "stubborn", true);
	own_and_end("part", "bye", true);
	return 0;
}

/* ---- Groups -------------------------------------------------------------- */

/* Some process still has the other end. */
static void expect_held(int fd)
{
	ssize_t n = 0;
	char byte;

	WEFT_WITHIN(WEFT_MS(2))
		n = weft_read(fd, &byte, 1);
	ck_assert_int_eq(n, -ETIMEDOUT);
}

/* The leader ends; its child stays, and ignores SIGTERM. */
PROCESS_TEST(rest_of_a_group_is_killed)
{
	struct weft_exit exit;
	struct weft_process *process;
	struct role role;

	role_init(&role, "leave", "stubborn");
	role.opts.flags = WEFT_SPAWN_GROUP;
	process = role_start_ready(&role);
	ck_assert_int_eq(weft_process_wait(process, &exit), 0);
	ck_assert_int_eq(exit.status, 0);
	expect_held(role.fd);
	ck_assert_int_eq(weft_process_close(process, &exit), 0);
	ck_assert_int_eq(exit.status, 0);
	ck_assert(!exit.killed);
	expect_end(role.fd);
	return 0;
}

/* Signals that find no group go to the leader; the last one always does. */
PROCESS_TEST(leader_that_leaves_its_group_is_ended)
{
	for (int with_rest = 0; with_rest < 2; with_rest++) {
		struct weft_process *process;
		struct weft_exit exit;
		struct role role;

		role_init(&role, "desert", with_rest ? "rest" : "");
		role.opts.flags = WEFT_SPAWN_GROUP;
		role.opts.grace_ns = with_rest ? WEFT_MS(5) : WEFT_SEC(100);
		process = role_start_ready(&role);
		ck_assert_int_eq(weft_process_close(process, &exit), 0);
		ck_assert_int_eq(exit.signal, with_rest ? SIGKILL : SIGTERM);
		ck_assert_int_eq(exit.killed, with_rest);
		expect_end(role.fd);
	}
	return 0;
}

/* The number may be another group's; here, the rest of the group still has it
 * and tells whether a signal was sent. */
PROCESS_TEST(group_of_a_leader_reaped_by_others_gets_no_signal)
{
	for (int waits = 0; waits < 2; waits++) {
		struct weft_process *process;
		struct role role;
		pid_t pid;

		role_init(&role, "leave", "");
		role.opts.flags = WEFT_SPAWN_GROUP;
		process = role_start_ready(&role);
		pid = weft_process_pid(process);
		if (waits)
			ck_assert_int_eq(weft_process_wait(process, NULL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ck_assert_int_eq(weft_process_signal(process, SIGTERM), -ESRCH);
		/* A status that is known stays known. */
		ck_assert_int_eq(weft_process_close(process, NULL),
				 waits ? 0 : -ECHILD);
		expect_held(role.fd);
		ck_assert_int_eq(kill(-pid, SIGKILL), 0);
		expect_end(role.fd);
	}
	return 0;
}

PROCESS_TEST(signal_goes_to_all_of_a_group)
{
	struct weft_process *process;
	struct role role;

	role_init(&role, "leave", "");
	role.opts.flags = WEFT_SPAWN_SESSION;
	process = role_start_ready(&role);
	ck_assert_int_eq(weft_process_wait(process, NULL), 0);
	ck_assert_int_eq(weft_process_signal(process, SIGTERM), 0);
	expect_end(role.fd);
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
	return 0;
}

/* ---- The program's own children ------------------------------------------ */

static weft__atomic(int) handled;

static void count_signal(int number)
{
	(void)number;
	/* relaxed: a count. */
	weft__add(&handled, 1, relaxed);
}

static int64_t beside_own(void *arg)
{
	pid_t own = fork();
	int status;

	(void)arg;
	if (own == 0)
		_exit(3);
	ck_assert_int_gt(own, 0);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(exit_of("exit", "4").status, 4);
	ck_assert_int_eq(waitpid(own, &status, 0), own);
	ck_assert_int_eq(WEXITSTATUS(status), 3);
	return 0;
}

/* weft neither takes its children's status nor its handler. */
START_TEST(program_keeps_its_own_children_and_handler)
{
	process_test_begin(_i);
	ck_assert(signal(SIGCHLD, count_signal) != SIG_ERR);
	io_run(beside_own, NULL, _i & 1 ? 2 : 1);
	/* relaxed: a count. */
	ck_assert_int_ge(weft__load(&handled, relaxed), 1);
	expect_no_children();
}
END_TEST

static int64_t lose_status(void *arg)
{
	struct weft_exit exit = { .status = 77 };
	struct weft_process *process;
	struct role role;

	(void)arg;
	role_init(&role, "exit", "4");
	process = role_start(&role);
	ck_assert_int_eq(weft_process_wait(process, &exit), -ECHILD);
	ck_assert_int_eq(weft_process_wait(process, &exit), -ECHILD);
	ck_assert_int_eq(exit.status, 77);
	ck_assert_int_eq(weft_process_close(process, NULL), -ECHILD);
	ck_assert_int_eq(weft_run_command(&role.opts, NULL, NULL), -ECHILD);
	return 0;
}

START_TEST(status_is_lost_where_sigchld_is_ignored)
{
	process_test_begin(_i);
	ck_assert(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	io_run(lose_status, NULL, _i & 1 ? 2 : 1);
}
END_TEST

/* ---- The end of the program ---------------------------------------------- */

static int64_t start_and_die(void *arg)
{
	struct weft_child_fd fds = { 1, *(int *)arg, NULL };
	struct role role;

	role_init(&role, "hold", "stubborn");
	role.opts.flags = WEFT_SPAWN_DIES_WITH_CALLER;
	role.opts.fds = &fds;
	role.opts.fds_count = 1;
	(void)role_start(&role);
	for (;;)
		(void)weft_sleep(WEFT_SEC(1));
	return 0;
}

/* The child has the pipe's other end. */
START_TEST(child_dies_with_a_program_that_is_killed)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int fds[2];
	pid_t program;
	char byte = 0;

	process_test_begin(_i);
	opts.workers = _i & 1 ? 2 : 1;
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	program = fork();
	if (program == 0) {
		(void)!weft_run(start_and_die, &fds[1], &opts);
		_exit(1);
	}
	close(fds[1]);
	ck_assert_int_eq(read(fds[0], &byte, 1), 1);
	ck_assert_int_eq(kill(program, SIGKILL), 0);
	ck_assert_int_eq(waitpid(program, NULL, 0), program);
	ck_assert_int_eq(read(fds[0], &byte, 1), 0);
	close(fds[0]);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("process/wait");
	TCase *wait = tcase_create("wait");
	TCase *end = tcase_create("end");
	TCase *beside = tcase_create("beside");

	if (argc > 1)
		return child_play(argc, argv);
	process_add_test(wait, status_and_signal_are_told);
	process_add_test(wait, usage_is_the_childs);
	process_add_test(wait, wait_that_is_given_up_leaves_the_child);
	process_add_test(wait, descriptor_is_ready_when_the_child_has_ended);
	process_add_test(wait, other_tasks_may_only_signal);
	if (test_needs(test_can(become_stranger),
		       "child_of_another_user_gets_no_signal",
		       NEEDS_ANOTHER_USER))
		process_add_test(wait, child_of_another_user_gets_no_signal);
	process_add_test(end, close_asks_and_then_kills);
	process_add_test(end, child_ends_with_its_task);
	process_add_test(end, child_of_a_cancelled_task_ends_with_it);
	process_add_test(end, rest_of_a_group_is_killed);
	process_add_test(end, leader_that_leaves_its_group_is_ended);
	process_add_test(end,
			 group_of_a_leader_reaped_by_others_gets_no_signal);
	process_add_test(end, signal_goes_to_all_of_a_group);
	process_add_test(beside, program_keeps_its_own_children_and_handler);
	process_add_test(beside, status_is_lost_where_sigchld_is_ignored);
	process_add_test(beside, child_dies_with_a_program_that_is_killed);
	suite_add_tcase(suite, wait);
	suite_add_tcase(suite, end);
	suite_add_tcase(suite, beside);
	return io_tests_run(suite);
}
