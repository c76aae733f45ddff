/* SPDX-License-Identifier: MIT */
/*
 * Child - the header has the model and the invariants CHD1 to CHD3.
 *
 * The code of the child is not instrumented: a sanitizer would take it for a
 * part of the thread that waits.
 */
#include "process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/os/mask.h"
#include "runtime/base/own_fd.h"
#include "runtime/stack/fiber.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum {
	SIGNALS = 64,
	/* Newer than the headers of some C libraries. */
	RANGE_CLOEXEC = 4, /* CLOSE_RANGE_CLOEXEC */
	ID_PIDFD = 3,	   /* P_PIDFD */
	/* The headers of some C libraries hide it: a restorer is given. */
	RESTORER = 0x04000000, /* SA_RESTORER */
	/* Of the descriptors' folder, when close_range(2) is missing. */
	ENTRIES_BYTES = 1024,
};

/* The kernel's, on all architectures that weft knows. */
struct action {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	uint64_t mask;
};

struct entry {
	uint64_t number;
	int64_t offset;
	unsigned short bytes;
	unsigned char kind;
	char name[];
};

#if defined(__clang__) || !defined(__GNUC__)
#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define IN_CHILD                                                \
	__attribute__((no_sanitize_address, no_sanitize_thread, \
		       no_sanitize_undefined))
#endif

/* ---- In the child -------------------------------------------------------- */

IN_CHILD static inline int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

/* CHD3.  The execution makes the action the default one. */
IN_CHILD static void stop_drop(int number)
{
	(void)number;
}

/* Where a handler returns to: rt_sigreturn(2).  Elsewhere the kernel has code
 * of its own for that. */
#if defined(__x86_64__)
void weft__child_sigreturn(void);
__asm__("	.text\n"
	"	.hidden	weft__child_sigreturn\n"
	"	.globl	weft__child_sigreturn\n"
	"	.type	weft__child_sigreturn, @function\n"
	"weft__child_sigreturn:\n"
	"	movq	$15, %rax\n"
	"	syscall\n"
	"	.size	weft__child_sigreturn, .-weft__child_sigreturn\n");
#endif

/* SIGSTOP cannot be caught. */
IN_CHILD static bool is_stop(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

IN_CHILD static void action_set(struct action *action, int number, bool ignored)
{
	action->handler = ignored ? (uintptr_t)SIG_IGN : (uintptr_t)SIG_DFL;
	action->flags = 0;
	if (ignored || !is_stop(number))
		return;
	action->handler = (uintptr_t)stop_drop;
	action->flags = SA_RESTART;
#if defined(__x86_64__)
	action->flags |= RESTORER;
	action->restorer = (uintptr_t)weft__child_sigreturn;
#endif
}

IN_CHILD static int signals_reset(const struct weft__child_plan *plan)
{
	/* One handler at a time: the stack is small. */
	struct action action = { .mask = UINT64_MAX };

	for (int number = 1; number <= SIGNALS; number++) {
		if (number == SIGKILL || number == SIGSTOP)
			continue;
		action_set(&action, number,
			   plan->ignored >> (number - 1) & 1);
		if (syscall(SYS_rt_sigaction, number, &action, NULL,
			    sizeof(uint64_t)) < 0)
			return -errno;
	}
	return 0;
}

/* The caller may have died before the child asked for the signal. */
IN_CHILD static int place_set(const struct weft__child_plan *plan)
{
	int r = 0;

	if (plan->flags & WEFT_SPAWN_SESSION)
		r = result(syscall(SYS_setsid));
	else if (plan->flags & WEFT_SPAWN_GROUP)
		r = result(syscall(SYS_setpgid, 0, 0));
	if (r >= 0 && (plan->flags & WEFT_SPAWN_DIES_WITH_CALLER)) {
		r = result(syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0,
				   0));
		if (syscall(SYS_getppid) != plan->caller)
			r = -ESRCH;
	}
	if (r >= 0 && plan->directory)
		r = result(syscall(SYS_chdir, plan->directory));
	return r < 0 ? r : 0;
}

/* A name of digits; -1 for others. */
IN_CHILD static int number_of(const char *name)
{
	int number = 0;

	for (; *name; name++) {
		if (*name < '0' || *name > '9')
			return -1;
		number = number * 10 + (*name - '0');
	}
	return number;
}

/* A number that is out of use by now does no harm. */
IN_CHILD static void entries_keep(const char *entries, long bytes)
{
	for (long at = 0; at < bytes;) {
		const struct entry *entry =
			(const struct entry *)(const void *)(entries + at);
		int fd = number_of(entry->name);

		if (fd > STDERR_FILENO)
			(void)syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
		at += entry->bytes;
	}
}

/* All descriptors above 2 end with the execution: one after the other. */
IN_CHILD static int others_close_slowly(void)
{
	_Alignas(8) char entries[ENTRIES_BYTES];
	int dir = result(syscall(SYS_openat, AT_FDCWD, "/proc/self/fd",
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	long bytes;

	if (dir < 0)
		return dir;
	while ((bytes = syscall(SYS_getdents64, dir, entries,
				sizeof(entries))) > 0)
		entries_keep(entries, bytes);
	bytes = bytes < 0 ? -errno : 0;
	(void)syscall(SYS_close, dir);
	return (int)bytes;
}

IN_CHILD static int others_close(const struct weft__child_plan *plan)
{
	if (!plan->one_by_one &&
	    syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, RANGE_CLOEXEC) ==
		    0)
		return 0;
	return others_close_slowly();
}

IN_CHILD static bool is_listed(const struct weft__child_plan *plan, int fd)
{
	for (unsigned i = 0; i < plan->fds_count; i++)
		if (plan->fds[i].number == fd)
			return true;
	return false;
}

/* To the lowest number that is free, above 2 and not in the list (CHD2): the
 * list may have the highest of all. */
IN_CHILD static int move(const struct weft__child_plan *plan, int fd)
{
	int from = STDERR_FILENO + 1, r;

	for (;; from = r + 1) {
		r = result(syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from));
		if (r < 0 || !is_listed(plan, r))
			return r == -EINVAL ? -EMFILE : r;
		(void)syscall(SYS_close, r);
	}
}

IN_CHILD static int null_open(const struct weft__child_plan *plan)
{
	int fd = result(syscall(SYS_openat, AT_FDCWD, "/dev/null",
				O_RDWR | O_CLOEXEC));
	int moved = fd < 0 ? fd : move(plan, fd);

	if (fd >= 0)
		(void)syscall(SYS_close, fd);
	return moved;
}

IN_CHILD static int sources_move(struct weft__child_plan *plan)
{
	for (unsigned i = 0; i < plan->fds_count; i++) {
		struct weft_child_fd *fd = &plan->fds[i];

		if (fd->source < 0)
			continue;
		fd->source = move(plan, fd->source);
		if (fd->source < 0)
			return fd->source;
	}
	return 0;
}

/* The kernel has one error for a source that is not open, and for a number that
 * is too large. */
IN_CHILD static int source_place(int source, int number)
{
	int r;

	if (source == number)
		return result(syscall(SYS_fcntl, number, F_SETFD, 0));
	r = result(syscall(SYS_dup3, source, number, 0));
	if (r == -EBADF && syscall(SYS_fcntl, source, F_GETFD) >= 0)
		r = -EMFILE;
	return r;
}

IN_CHILD static int descriptors_set(struct weft__child_plan *plan)
{
	int null_fd = -1, r = plan->moves ? sources_move(plan) : 0;

	if (r == 0 && plan->has_null)
		r = null_fd = null_open(plan);
	if (r >= 0)
		r = others_close(plan);
	for (unsigned i = 0; i < plan->fds_count && r >= 0; i++) {
		int source = plan->fds[i].source;

		r = source_place(source < 0 ? null_fd : source,
				 plan->fds[i].number);
	}
	return r < 0 ? r : 0;
}

IN_CHILD static int limits_set(const struct weft__child_plan *plan)
{
	for (unsigned i = 0; i < plan->limits_count; i++) {
		const uint64_t limit[2] = { plan->limits[i].soft,
					    plan->limits[i].hard };

		if (syscall(SYS_prlimit64, 0, plan->limits[i].resource, limit,
			    NULL) < 0)
			return -errno;
	}
	return 0;
}

IN_CHILD static int execute(const struct weft__child_plan *plan,
			    const char *path)
{
	return result(syscall(SYS_execve, path, plan->argv, plan->environment));
}

/* Folder, slash, name.  NULL: it is too long, or the folder has no name, which
 * is this one. */
IN_CHILD static const char *tried_set(struct weft__child_plan *plan,
				      const char *folder)
{
	size_t n = 0;
	const char *name = plan->path;

	for (; *folder && *folder != ':'; folder++)
		if (n < PATH_MAX)
			plan->tried[n++] = *folder;
	if (n >= PATH_MAX)
		return NULL;
	if (n)
		plan->tried[n++] = '/';
	while (*name && n < sizeof(plan->tried) - 1)
		plan->tried[n++] = *name++;
	plan->tried[n] = '\0';
	return *name ? NULL : plan->tried;
}

/* As execvp(3): a file that may not be executed hides no other. */
IN_CHILD static int search(struct weft__child_plan *plan)
{
	const char *folder = plan->search;
	int error = -ENOENT;

	for (;;) {
		const char *path = tried_set(plan, folder);
		int r = path ? execute(plan, path) : -ENAMETOOLONG;

		if (r == -EACCES)
			error = r;
		else if (r != -ENOENT && r != -ENOTDIR && r != -ESTALE &&
			 r != -ENODEV && r != -ETIMEDOUT &&
			 r != -ENAMETOOLONG)
			return r;
		while (*folder && *folder != ':')
			folder++;
		if (!*folder)
			return error;
		folder++;
	}
}

IN_CHILD static int child_steps(struct weft__child_plan *plan)
{
	int r = signals_reset(plan);

	if (r == 0)
		r = place_set(plan);
	if (r == 0)
		r = descriptors_set(plan);
	if (r == 0)
		r = limits_set(plan);
	if (r == 0)
		r = result(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &plan->mask,
				   NULL, sizeof(plan->mask)));
	if (r == 0)
		r = plan->search ? search(plan) : execute(plan, plan->path);
	return r;
}

IN_CHILD static int child_main(void *arg)
{
	struct weft__child_plan *plan = arg;

	plan->error = child_steps(plan);
	(void)syscall(SYS_exit_group, 127);
	__builtin_unreachable();
}

/* ---- In the parent ------------------------------------------------------- */

/* ThreadSanitizer takes clone() for fork(), and would go on in the child. */
#ifdef WEFT__TSAN
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

static int child_clone(struct weft__child_plan *plan, int flags, int *ret_pidfd)
{
	int pid = clone(child_main, plan->stack + sizeof(plan->stack),
			CLONE_VM | CLONE_VFORK | SIGCHLD | flags, plan,
			ret_pidfd);

	return pid < 0 ? -errno : pid;
}

/* A kernel that does not know CLONE_PIDFD ignores it; others refuse it. */
static int child_clone_any(struct weft__child_plan *plan, int *ret_pidfd)
{
	int r = -EINVAL;

	*ret_pidfd = -1;
	if (!weft__is_masked(WEFT__FEATURE_PIDFD))
		r = child_clone(plan, CLONE_PIDFD, ret_pidfd);
	return r == -EINVAL ? child_clone(plan, 0, ret_pidfd) : r;
}

static void child_discard(pid_t pid, int pidfd)
{
	struct weft_exit exit;

	(void)weft__child_wait(pid, pidfd, 0, &exit);
	if (pidfd >= 0)
		close(pidfd);
}

int weft__child_make(struct weft__child_plan *plan, pid_t *ret_pid,
		     int *ret_pidfd)
{
	uint64_t all = UINT64_MAX, before;
	int pid, pidfd;

	plan->one_by_one = weft__is_masked(WEFT__FEATURE_CLOSE_RANGE);
	plan->error = 0;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
	pid = child_clone_any(plan, &pidfd);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(all));
	if (pid < 0)
		return pid;
	if (plan->error < 0) {
		child_discard(pid, pidfd);
		return plan->error;
	}
	if (pidfd >= 0)
		pidfd = weft__fd_above_stdio(pidfd);
	if (pidfd < -1) {
		(void)weft__child_signal(pid, -1, SIGKILL);
		child_discard(pid, -1);
		return pidfd;
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}

static uint64_t time_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u +
	       (uint64_t)time->tv_usec * 1000u;
}

static void exit_from(const siginfo_t *info, const struct rusage *usage,
		      struct weft_exit *ret_exit)
{
	bool exited = info->si_code == CLD_EXITED;

	*ret_exit = (struct weft_exit){
		.status = exited ? info->si_status : -1,
		.signal = exited ? 0 : info->si_status,
		.dumped_core = info->si_code == CLD_DUMPED,
		.user_ns = time_ns(&usage->ru_utime),
		.system_ns = time_ns(&usage->ru_stime),
		.resident_bytes_max = (uint64_t)usage->ru_maxrss * 1024u,
	};
}

/* P_PIDFD is newer than the descriptor. */
int weft__child_wait(pid_t pid, int pidfd, int options,
		     struct weft_exit *ret_exit)
{
	siginfo_t info;
	struct rusage usage;
	long r;

	memset(&info, 0, sizeof(info));
	memset(&usage, 0, sizeof(usage));
	do {
		r = pidfd >= 0 ? syscall(SYS_waitid, ID_PIDFD, pidfd, &info,
					 WEXITED | options, &usage) :
				 -1;
		if (pidfd < 0 || (r < 0 && errno == EINVAL))
			r = syscall(SYS_waitid, P_PID, pid, &info,
				    WEXITED | options, &usage);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -ECHILD;
	if (info.si_pid == 0)
		return 0;
	exit_from(&info, &usage, ret_exit);
	return 1;
}

int weft__child_signal(pid_t pid, int pidfd, int number)
{
	long r = -1;

	if (pidfd >= 0)
		r = syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
	if (pidfd < 0 || (r < 0 && errno == ENOSYS))
		r = kill(pid, number);
	return r < 0 ? -errno : 0;
}
