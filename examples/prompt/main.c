/* SPDX-License-Identifier: MIT */
/*
 * prompt - starts, lists and cancels jobs in the background, and prints what
 * they say above a line that can be edited meanwhile.  "help" prints its
 * commands.
 *
 * Shows	GNU readline as a part of a program that does not wait for it:
 *		a task waits until the terminal has input and calls
 *		rl_callback_read_char().  Modes of the terminal that another
 *		library sets, and that weft restores at exit() and before a
 *		signal ends the process, but for SIGKILL and a few more
 *		(weft/terminal.h).  Readline's mark of pastes is no mode: it
 *		stays on after a crash.
 * Threads	Readline is not thread-safe, and keeps state in variables.  So
 *		one task makes all calls of it (editor.c), and is pinned to its
 *		worker.  The jobs send their lines to that task through a
 *		channel.
 * Waits	Readline itself would wait to read and to write.  It gets its
 *		keys from a task that suspends, and writes into memory.  On a
 *		serial line it still waits until all output is sent when it sets
 *		the modes.
 * Run		build/examples/prompt
 *		printf 'after 1 hello\n' | build/examples/prompt
 *
 * Readline is under the GPL, and so is a program that is linked with it.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "prompt.h"

enum { STACK_BYTES = 256 << 10 };

struct session {
	sigset_t ends, others;
	bool has_terminal;
};

/* The signals of the terminal are for the prompt, but for ^\, which ends it;
 * without a terminal, SIGINT ends the program, and the others take their usual
 * action. */
static void signals_block(struct session *session)
{
	sigset_t *keys = session->has_terminal ? &session->others :
						 &session->ends;

	sigemptyset(&session->ends);
	sigemptyset(&session->others);
	sigaddset(&session->ends, SIGTERM);
	sigaddset(&session->ends, SIGHUP);
	sigaddset(keys, SIGINT);
	if (session->has_terminal) {
		sigaddset(&session->ends, SIGQUIT);
		sigaddset(keys, SIGTSTP);
		sigaddset(keys, SIGCONT);
	}
	pthread_sigmask(SIG_BLOCK, &session->ends, NULL);
	pthread_sigmask(SIG_BLOCK, &session->others, NULL);
}

static int64_t await_end(void *arg)
{
	struct session *session = *(struct session **)arg;
	int number = 0, fd = weft_signal_open(&session->ends), r = fd;

	if (fd >= 0) {
		r = weft_signal_wait(fd, &number);
		weft_close(fd);
	}
	return r < 0 ? r : 128 + number;
}

static int64_t prompt(void *arg)
{
	struct session *session = *(struct session **)arg;

	return prompt_run(session->has_terminal ? &session->others : NULL);
}

/* The first to end cancels the other. */
static int64_t session_run(void *arg)
{
	struct session *session = arg;
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int64_t status = 1;

	opts.name = "prompt";
	opts.stack_bytes = STACK_BYTES;
	opts.flags = WEFT_PINNED;
	WEFT_RACE(first, &status) {
		int r = WEFT_GO(first, await_end, session);

		if (r == 0)
			r = weft_go_opts(first, prompt, &session,
					 sizeof(session), &opts);
		if (r < 0)
			weft_scope_cancel(first);
	}
	return status < 0 ? 1 : status;
}

int main(void)
{
	struct session session = {
		.has_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
	};

	signals_block(&session);
	return (int)weft_run(session_run, &session, NULL);
}
