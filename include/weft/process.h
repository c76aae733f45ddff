/* SPDX-License-Identifier: MIT */
/*
 * Child processes.
 *
 *	const char *argv[] = { "sort", "-n", NULL };
 *	struct weft_spawn_opts sort = WEFT_SPAWN_OPTS_INIT;
 *	struct weft_command command = WEFT_COMMAND_INIT;
 *	struct weft_exit exit;
 *
 *	sort.argv = argv;
 *	command.input = text, command.input_bytes = bytes;
 *	command.output = sorted, command.output_bytes_max = sizeof(sorted);
 *	WEFT_WITHIN(WEFT_SEC(5))
 *		r = weft_run_command(&sort, &command, &exit);
 *
 * The task that starts a child owns it: when the task ends, the child is ended
 * and reaped.  So the end of a scope is the end of its children.  A handler of
 * SIGCHLD is neither set nor needed, and weft waits for no child but its own.
 * If the program ignores SIGCHLD, or waits for all its children itself, the
 * status of a child is lost (-ECHILD).
 */
#ifndef WEFT_PROCESS_H
#define WEFT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/config.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

/* A descriptor of a child, and where it comes from: `source` is a descriptor of
 * the caller or one of the values below.  *ret_fd receives the caller's end of
 * a pipe, which is close-on-exec, in O_NONBLOCK mode, and closed by the caller
 * with weft_close().  With other sources ret_fd is NULL. */
struct weft_child_fd {
	int number; /* in the child */
	int source;
	int *ret_fd;
};

enum {
	WEFT_NULL_FD = -2,     /* /dev/null */
	WEFT_PIPE_READ = -3,   /* a pipe: the child reads, the caller writes */
	WEFT_PIPE_WRITTEN = -4, /* a pipe: the child writes, the caller reads */
};

/* A limit as of setrlimit(2), for the child alone. */
struct weft_child_limit {
	int resource; /* RLIMIT_NOFILE, ... */
	unsigned reserved;
	uint64_t soft, hard; /* UINT64_MAX: no limit */
};

/* The child leads a process group of its own, and signals go to all of it. */
#define WEFT_SPAWN_GROUP (1u << 0)
/* The same, and it leads a session without a terminal. */
#define WEFT_SPAWN_SESSION (1u << 1)
/* The kernel kills the child when the runtime's threads end, even if that is by
 * SIGKILL.  Such a child is started by the worker itself, which stops for about
 * a millisecond. */
#define WEFT_SPAWN_DIES_WITH_CALLER (1u << 2)
/* The child has the signal mask of the thread that started the runtime.
 * Without this, it blocks no signal. */
#define WEFT_SPAWN_KEEP_MASK (1u << 3)

/* Options of a child.  Start from WEFT_SPAWN_OPTS_INIT; argv is needed. */
struct weft_spawn_opts {
	size_t size;
	const char *const *argv; /* ends with NULL */
	const char *path; /* the program; NULL: argv[0] */
	const char *const *environment; /* ends with NULL; NULL: the caller's */
	const char *directory; /* NULL: the caller's */
	const struct weft_child_fd *fds;
	const struct weft_child_limit *limits;
	unsigned fds_count, limits_count;
	unsigned flags; /* WEFT_SPAWN_... */
	unsigned reserved;
	uint64_t ignored; /* signals: WEFT_SIGNAL_BIT(SIGINT) | ... */
	weft_nsec grace_ns; /* between SIGTERM and SIGKILL; 0: 5 s */
};

#define WEFT_SPAWN_OPTS_INIT                                                 \
	{                                                                    \
		sizeof(struct weft_spawn_opts), NULL, NULL, NULL, NULL, NULL, \
			NULL, 0, 0, 0, 0, 0, 0                                \
	}

#define WEFT_SIGNAL_BIT(number) (WEFT__NUMBER(uint64_t, 1) << ((number) - 1))
#define WEFT_CHILD_FDS_MAX 64u
#define WEFT_CHILD_LIMITS_MAX 16u

/* A child.  Allocated by weft_spawn(), freed by weft_process_close(). */
struct weft_process;

/* The end of a child.  Times are those of the child, and of its children that
 * it waited for. */
struct weft_exit {
	int status; /* 0 to 255; -1: a signal ended it */
	int signal; /* that one, or 0 */
	bool dumped_core;
	bool killed; /* weft sent SIGKILL: the grace had passed */
	uint64_t user_ns, system_ns;
	uint64_t resident_bytes_max; /* at least as large as the caller was */
	uint64_t reserved[4];
};

/*
 * Starts a program.  The path is searched for in the caller's PATH if it has no
 * slash; it is resolved in the directory of the child.  The child has the
 * descriptors of the list; 0, 1 and 2 are those of the caller unless the list
 * names them or they are close-on-exec; all others are closed.  Sources may be
 * numbers of the list, in any order.  Signals have their default actions, but
 * for those to be ignored.
 * SIGTSTP, SIGTTIN and SIGTTOU are dropped if they come before the program
 * begins.
 *
 * Suspends.  A thread of the blocking pool makes the child, which shares the
 * caller's memory until it executes the program: nothing is copied, however
 * large the caller is.  Once begun, the call is done in full.  Meanwhile all
 * that the options point to must stay the same, and so must the environment: no
 * other task or thread calls setenv(3), unsetenv(3) or putenv(3).
 *
 * Returns 0, or with nothing left open or running: -EINVAL (options), -EBADF (a
 * source is not open), -ENOENT, -EACCES, -ENOEXEC, -E2BIG and others of
 * execve(2), or of chdir(2) (the directory), -EPERM or -EINVAL of setrlimit(2)
 * (a limit), -EMFILE, -ENFILE, -EAGAIN (RLIMIT_NPROC), -ENOMEM, -ECANCELED,
 * -ETIMEDOUT, -EPERM (not in a task).  -ETXTBSY, a process has the program open
 * for writing, is returned if that lasts for 63 ms: a program that was just
 * written may for a moment be open in a child that another task starts.
 */
WEFT_API int weft_spawn(const struct weft_spawn_opts *opts,
			struct weft_process **ret_process) WEFT_WARN_UNUSED;

/* The child's process id.  It stays the child's until weft_process_wait() or
 * weft_process_close() has returned; then it is still returned here.  Does not
 * suspend. */
WEFT_API pid_t weft_process_pid(const struct weft_process *process);

/* A descriptor that is readable when the child has ended, for WEFT_READY() and
 * weft_poll(); it belongs to the process (pidfd_open(2)).  Does not suspend.
 * Returns -ENOSYS where the kernel has none. */
WEFT_API int weft_process_fd(const struct weft_process *process);

/* Waits for the end of the child, and reaps it.  (The leader of a group is
 * reaped by weft_process_close(), so that the number of the group stays in
 * use.)  May be called again.  ret_exit may be NULL.  Suspends.  Where the
 * kernel has no pidfd, it looks from time to time: it notices the end late, by
 * a sixteenth of the wait, and by 50 ms at most.  Returns 0, -ECANCELED,
 * -ETIMEDOUT (the child goes on), -ECHILD (the child has ended, but its status
 * was lost), or -EPERM (not the task that started the child). */
WEFT_API int weft_process_wait(struct weft_process *process,
			       struct weft_exit *ret_exit) WEFT_WARN_UNUSED;

/* Sends a signal to the child, or to its group.  From any task or thread until
 * the process is closed.  Does not suspend.  Returns 0, -ESRCH (it was reaped),
 * -EINVAL (no such signal), or -EPERM (it is a program of another user). */
WEFT_API int weft_process_signal(struct weft_process *process, int number);

/*
 * Ends the child, if it has not ended: sends SIGTERM and SIGCONT, waits for the
 * grace of its options, sends SIGKILL; and reaps it.  Of a group that the child
 * has left behind, the rest is killed.  Then frees the process.  At the end of
 * the task this is done to each process that is still open.
 *
 * Suspends, but ignores deadlines and cancellation: it is always done in full.
 * ret_exit may be NULL; it is set if the result is 0.  Pipes stay open.
 * Returns 0, -ECHILD (the status was lost), or, with nothing done, -EPERM (not
 * the task that started the child).  NULL is no process: 0, and nothing is set.
 */
WEFT_API int weft_process_close(struct weft_process *process,
				struct weft_exit *ret_exit);

/* ---- Commands ------------------------------------------------------------ */

/* Output that does not fit is read and dropped; without this, it ends the
 * command. */
#define WEFT_COMMAND_CUT (1u << 0)

/* Input and output of a command.  Start from WEFT_COMMAND_INIT.  A NULL input
 * or output is /dev/null; with NULL errors, they go where those of the caller
 * go.  Descriptors 0, 1, 2 that the list of the child names are as the list
 * says, and the fields for them stay NULL. */
struct weft_command {
	size_t size;
	const void *input;
	size_t input_bytes;
	void *output;
	size_t output_bytes_max;
	void *errors; /* what is written to descriptor 2 */
	size_t errors_bytes_max;
	unsigned flags;
	unsigned failed; /* set if a child cannot be started: its index */
	/* How long the end of the output is waited for after the last child has
	 * ended, if another process holds the pipe.  0: 0.2 s.  That is also
	 * the most after a deadline or a cancellation. */
	weft_nsec linger_ns;
	/* Set by the call, unless it returns -EINVAL. */
	size_t input_bytes_done, output_bytes, errors_bytes;
	bool output_cut, errors_cut; /* there was more than that */
	bool output_open; /* a process that is no child of ours holds a pipe */
	bool reserved[5];
};

#define WEFT_COMMAND_INIT                                                    \
	{                                                                    \
		sizeof(struct weft_command), NULL, 0, NULL, 0, NULL, 0, 0, 0, \
			0, 0, 0, 0, false, false, false, { false }            \
	}

#define WEFT_COMMANDS_MAX 32u

/*
 * Runs a program to its end: feeds its input, and collects its output,
 * both at the same time.  command may be NULL: no input, no output.  A program
 * that does not read all of its input is no error.
 *
 * Suspends.  If the call is interrupted, the child is ended as by
 * weft_process_close(), and what it writes before its end is collected, too.
 * Returns 0 (the child has ended by itself, well or not: see *ret_exit, which
 * may be NULL), -EMSGSIZE (too much output; the child was ended), -ETIMEDOUT,
 * -ECANCELED, -ECHILD (a status was lost), or an error of weft_spawn().  The
 * exit of a child that was not started, or whose status was lost, has status -1
 * and signal 0.
 */
WEFT_API int weft_run_command(const struct weft_spawn_opts *opts,
			      struct weft_command *command,
			      struct weft_exit *ret_exit) WEFT_WARN_UNUSED;

/* The same for several programs, each of which reads what the one before it
 * writes: the input is that of the first, the output that of the last, and the
 * errors are those of all.  ret_exits has count elements, or is NULL.  -EINVAL:
 * also 0, or more than WEFT_COMMANDS_MAX. */
WEFT_API int weft_run_commands(const struct weft_spawn_opts *opts,
			       unsigned count, struct weft_command *command,
			       struct weft_exit *ret_exits) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
