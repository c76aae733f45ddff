/* SPDX-License-Identifier: MIT */
#include "tests/support/child_kit.h"

#include <check.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/io_kit.h"
#include "tests/support/refuse_calls.h"

void child_run(weft_fn fn, void *arg)
{
	pid_t child = fork();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(fn(arg) != 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(!WIFSIGNALED(status), "signal %d", WTERMSIG(status));
	ck_assert_msg(WEXITSTATUS(status) == 0,
		      "exit status %d: 1, or the line + 1 (modulo 255)",
		      WEXITSTATUS(status));
}

struct refused_run {
	const unsigned *calls;
	unsigned count, error;
	weft_fn fn;
	void *arg;
};

static int64_t run_refused(void *arg)
{
	const struct refused_run *run = arg;

	NEED(refuse_calls(run->calls, run->count, run->error));
	return weft_run(run->fn, run->arg, NULL);
}

void child_run_refused(const unsigned *calls, unsigned count, unsigned error,
		       weft_fn fn, void *arg)
{
	struct refused_run run = { calls, count, error, fn, arg };

	child_run(run_refused, &run);
}

void child_run_without_openat2(unsigned error, weft_fn fn, void *arg)
{
	const unsigned calls[] = { SYS_openat2 };

	child_run_refused(calls, 1, error, fn, arg);
}

bool child_may_refuse(void)
{
	const unsigned calls[] = { SYS_openat2 };

	return refuse_calls(calls, 1, ENOSYS);
}

void child_kill(weft_fn fn, const struct weft_opts *opts, long after_ns)
{
	pid_t child = fork();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!weft_run(fn, NULL, opts);
		_exit(0);
	}
	thread_pause_ns(after_ns);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	/* SIGKILL alone: one that crashed before has not done its work. */
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		      "the child ended with status %#x", (unsigned)status);
}
