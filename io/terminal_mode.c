/* SPDX-License-Identifier: MIT */
/*
 * Modes of terminals, and the ways out on which they are restored.
 *
 *	         raw, hide                    restore, exit()
 *	free ------------------> active ------------------------> free
 *	                          |  ^
 *	         SIGTSTP: restored|  |SIGCONT: set again
 *	                          v  |
 *	                         stopped
 *
 * Concurrency
 *   `lock` guards the table against other threads.  Handlers of signals read it
 *   without: a place is written only while it is not active.  `active` is
 *   stored last.  A handler that interrupts a change of a mode may restore the
 *   old one just before the new one is set: the signal then ends the process,
 *   and another thread may be faster; that is as with any program.
 *
 * Orderings
 *   [terminal.active]  a place, store release -> load acquire of a handler.  No
 *       model runs signal handlers.
 */
#include <weft/terminal.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "runtime/base/handler.h"
#include "runtime/base/lock.h"

enum { MODES_MAX = 8, FD_MIN = 3 };

struct mode {
	weft__atomic(bool) active;
	int fd;	 /* the caller's number */
	int own; /* a duplicate: the caller may close its own */
	pid_t pid;
	struct termios before, now;
};

static struct mode modes[MODES_MAX];
static struct weft__lock lock;
static bool at_exit;
static int active_count;

/* ---- Async-signal-safe --------------------------------------------------- */

/* In the background a change would stop the process, or disturb the job in the
 * foreground. */
static bool in_foreground(const struct mode *mode)
{
	pid_t group = tcgetpgrp(mode->own);

	return group < 0 || group == getpgrp();
}

static void modes_apply(bool before)
{
	int error = errno;

	for (int i = 0; i < MODES_MAX; i++) {
		struct mode *mode = &modes[i];

		/* pairs: [terminal.active] */
		if (!weft__load(&mode->active, acquire) ||
		    mode->pid != getpid() || !in_foreground(mode))
			continue;
		/* TCSADRAIN would wait for the output. */
		(void)tcsetattr(mode->own, TCSANOW,
				before ? &mode->before : &mode->now);
	}
	errno = error;
}

static void on_end(int number, siginfo_t *info, void *context);
static void on_stop(int number, siginfo_t *info, void *context);
static void on_continue(int number, siginfo_t *info, void *context);

#define ENDS(number, fault)                           \
	{                                             \
		number, fault, { .fn = on_end }       \
	}

static struct {
	int number;
	bool fault; /* ends the process, whatever the action is */
	struct weft__handler handler;
} handlers[] = {
	ENDS(SIGHUP, false),  ENDS(SIGINT, false),  ENDS(SIGQUIT, false),
	ENDS(SIGTERM, false), ENDS(SIGPIPE, false), ENDS(SIGALRM, false),
	ENDS(SIGXCPU, false), ENDS(SIGABRT, true),  ENDS(SIGBUS, true),
	ENDS(SIGFPE, true),   ENDS(SIGILL, true),   ENDS(SIGSEGV, true),
	ENDS(SIGSYS, true),   { SIGTSTP, false, { .fn = on_stop } },
	{ SIGCONT, false, { .fn = on_continue, .flags = SA_RESTART } },
};

enum { HANDLERS = sizeof(handlers) / sizeof(handlers[0]) };

static int handler_of(int number)
{
	int i = 0;

	while (handlers[i].number != number)
		i++;
	return i;
}

static void on_end(int number, siginfo_t *info, void *context)
{
	int i = handler_of(number);

	if (handlers[i].fault || weft__handler_is_default(&handlers[i].handler))
		modes_apply(true);
	weft__handler_pass(&handlers[i].handler, number, info, context);
}

/* The default action stops the process when this returns. */
static void on_stop(int number, siginfo_t *info, void *context)
{
	struct weft__handler *handler = &handlers[handler_of(number)].handler;

	if (weft__handler_is_default(handler))
		modes_apply(true);
	weft__handler_pass(handler, number, info, context);
}

/* The stop has set the default action. */
static void on_continue(int number, siginfo_t *info, void *context)
{
	struct weft__handler *handler = &handlers[handler_of(number)].handler;
	int error = errno;

	(void)weft__handler_set(&handlers[handler_of(SIGTSTP)].handler,
				SIGTSTP);
	modes_apply(false);
	errno = error;
	if (!weft__handler_is_default(handler))
		weft__handler_pass(handler, number, info, context);
}

/* ---- The table ----------------------------------------------------------- */

static void restore_at_exit(void)
{
	modes_apply(true);
}

static struct mode *mode_find(int fd)
{
	for (int i = 0; i < MODES_MAX; i++)
		/* relaxed: the lock is held. */
		if (weft__load(&modes[i].active, relaxed) && modes[i].fd == fd)
			return &modes[i];
	return NULL;
}

static struct mode *mode_free(void)
{
	for (int i = 0; i < MODES_MAX; i++)
		/* relaxed: the lock is held. */
		if (!weft__load(&modes[i].active, relaxed))
			return &modes[i];
	return NULL;
}

static void handlers_set(void)
{
	if (active_count++ > 0)
		return;
	if (!at_exit)
		at_exit = atexit(restore_at_exit) == 0;
	for (int i = 0; i < HANDLERS; i++)
		(void)weft__handler_set(&handlers[i].handler,
					handlers[i].number);
}

static void handlers_reset(void)
{
	if (--active_count > 0)
		return;
	for (int i = 0; i < HANDLERS; i++)
		weft__handler_reset(&handlers[i].handler, handlers[i].number);
}

static int mode_begin(int fd, struct mode **ret_mode)
{
	struct mode *mode = mode_find(fd);

	if (mode) {
		*ret_mode = mode;
		return 0;
	}
	mode = mode_free();
	if (!mode)
		return -EMFILE;
	if (tcgetattr(fd, &mode->before) < 0)
		return -errno;
	mode->own = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
	if (mode->own < 0)
		return -errno;
	mode->fd = fd;
	mode->pid = getpid();
	mode->now = mode->before;
	handlers_set();
	/* pairs: [terminal.active] */
	weft__store(&mode->active, true, release);
	*ret_mode = mode;
	return 0;
}

static void mode_end(struct mode *mode)
{
	/* relaxed: a handler that still sees it restores it, too. */
	weft__store(&mode->active, false, relaxed);
	handlers_reset();
	close(mode->own);
}

static int mode_set(int fd, bool raw)
{
	struct mode *mode = NULL;
	int r;

	weft__lock_take(&lock);
	r = mode_begin(fd, &mode);
	if (r == 0) {
		struct termios now = mode->before;

		if (raw)
			cfmakeraw(&now);
		else
			now.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
		mode->now = now;
		if (tcsetattr(mode->own, TCSANOW, &now) < 0) {
			r = -errno;
			mode_end(mode);
		}
	}
	weft__lock_drop(&lock);
	return r;
}

int weft_terminal_raw(int fd)
{
	return mode_set(fd, true);
}

int weft_terminal_hide(int fd)
{
	return mode_set(fd, false);
}

int weft_terminal_restore(int fd)
{
	struct mode *mode;
	int r = 0;

	weft__lock_take(&lock);
	mode = mode_find(fd);
	if (mode) {
		if (tcsetattr(mode->own, TCSANOW, &mode->before) < 0)
			r = -errno;
		mode_end(mode);
	}
	weft__lock_drop(&lock);
	return mode ? r : -EBADF;
}
