/* SPDX-License-Identifier: MIT */
/*
 * Child - what happens between the birth of a child and its program.
 *
 *	a thread of the pool		the child
 *	blocks its signals
 *	clone(CLONE_VM|CLONE_VFORK) -->	actions of signals, group, directory,
 *	  ... stopped ...		descriptors, limits, signal mask
 *	goes on	<----------------------	execve(), or an error and _exit()
 *	unblocks its signals
 *
 * The child runs on a stack of its own in the memory of the process, so nothing
 * is copied, and an error is a store to the plan.  It calls the kernel alone:
 * the C library's locks and thread-locals may be in any state.
 *
 * Invariants
 *   CHD1  No handler of the program runs in the child: all signals are blocked
 *       until each has its default action, or is ignored; but see CHD3.
 *   CHD2  No descriptor that the child is given is lost to another of the list:
 *       if a source is a number of the list, all sources are first moved to
 *       numbers that are not.
 *   CHD3  A stop that the terminal sends (SIGTSTP, SIGTTIN, SIGTTOU) does not
 *       stop the child before its program begins.  The thread that waits for
 *       the child cannot stop meanwhile, so the process could not either, and
 *       a shell would wait for both.  Such a signal has a handler that does
 *       nothing, until the execution resets it.  SIGSTOP has no handler.
 *
 * Rejected
 *   posix_spawn(3): it has no limits, returns no pidfd, and knows no way to
 *   close all that is not in a list before glibc 2.34, with musl none at all.
 *   A pipe for the error: a process that another thread forks may hold it open.
 *   Sending the child again, when its program has begun, the stop that it
 *   dropped: the thread that sends it may have been stopped and continued
 *   meanwhile, and then nothing continues the child.
 */
#ifndef WEFT_PROCESS_CHILD_H
#define WEFT_PROCESS_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <weft/process.h>

enum {
	/* With the frame of a signal: 12 KiB, with the largest registers. */
	WEFT__CHILD_STACK_BYTES = 32 << 10,
	WEFT__CHILD_PATH_BYTES = PATH_MAX + NAME_MAX + 2,
};

/* Lies on the heap.  Set by the caller, but for what is marked. */
struct weft__child_plan {
	const char *path;
	const char *const *argv;
	const char *const *environment;
	const char *directory; /* or NULL */
	const char *search; /* folders with colons between them; or NULL */
	const struct weft_child_limit *limits;
	unsigned limits_count, fds_count;
	unsigned flags; /* WEFT_SPAWN_... */
	pid_t caller;
	uint64_t ignored, mask; /* signals */
	bool moves; /* CHD2 */
	bool has_null; /* the list has WEFT_NULL_FD */
	bool one_by_one; /* there is no close_range(2); set by the call */
	struct weft_child_fd fds[WEFT_CHILD_FDS_MAX];

	int error; /* set by the child */
	char tried[WEFT__CHILD_PATH_BYTES]; /* the child's */
	_Alignas(16) unsigned char stack[WEFT__CHILD_STACK_BYTES];
};

/* Makes the child; the thread is stopped until it executes its program.  The
 * pidfd is -1 if the kernel gives none.  0 or an error; then there is no
 * child. */
int weft__child_make(struct weft__child_plan *plan, pid_t *ret_pid,
		     int *ret_pidfd);

/* waitid(2), with the usage: 1 and *ret_exit, 0 (it has not ended), -ECHILD.
 * `options` are WNOHANG, WNOWAIT. */
int weft__child_wait(pid_t pid, int pidfd, int options,
		     struct weft_exit *ret_exit);

/* Sends a signal to a child that has not been reaped. */
int weft__child_signal(pid_t pid, int pidfd, int number);

#endif
