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
 *   without: a place is written only while it is not active, and a mode only
 *   while `now` is the other one.  `active` is stored last.  A handler that
 *   interrupts a change of a mode may restore the old one just before the new
 *   one is set: the signal then ends the process, and another thread may be
 *   faster; that is as with any program.
 *
 * Orderings
 *   [terminal.active]  a place, store release -> load acquire of a handler.  No
 *       model runs signal handlers.
 *   [terminal.now]  a mode, store release of `now` -> load acquire of a
 *       handler.  No model, as above.
 */
#include <weft/terminal.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
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
	struct termios before, modes[2];
	weft__atomic(const struct termios *) now; /* one of modes */
};

static struct mode modes[MODES_MAX];
static struct weft__lock lock;
static bool at_exit;
static int active_count;

/* ---- Async-signal-safe --------------------------------------------------- */

/* In the background a change would stop the process, or disturb the job in the
 * foreground.  The jobs of another session's terminal, as behind the other side
 * of a pseudo-terminal, are none of this one's. */
static bool in_foreground(const struct mode *mode)
{
	pid_t group = tcgetpgrp(mode->own), session;

	return group < 0 || group == getpgrp() ||
	       ioctl(mode->own, TIOCGSID, &session) < 0 || session != getsid(0);
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
		/* pairs: [terminal.now] */
		(void)tcsetattr(mode->own, TCSANOW,
				before ? &mode->before :
					 weft__load(&mode->now, acquire));
	}
	errno = error;
}

static void on_end(int number, siginfo_t *info, void *context);
static void on_continue(int number, siginfo_t *info, void *context);

/* Or stops. */
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
	ENDS(SIGSYS, true),   ENDS(SIGTSTP, false),
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

/* An ignored signal stays so: programs that this one starts ignore it, too. */
static void handler_set(int i)
{
	struct sigaction now;

	if (!handlers[i].fault &&
	    (sigaction(handlers[i].number, NULL, &now) < 0 ||
	     now.sa_handler == SIG_IGN))
		return;
	(void)weft__handler_set(&handlers[i].handler, handlers[i].number);
}

/* The default action is taken in here.  The process goes on if it was stopped,
 * or if the kernel drops the signal: one that would stop an orphaned group, or
 * end an init process. */
static void take_default(int i, siginfo_t *info)
{
	int error = errno;
	sigset_t one, before;

	modes_apply(true);
	weft__handler_default(handlers[i].number, info);
	sigemptyset(&one);
	sigaddset(&one, handlers[i].number);
	pthread_sigmask(SIG_UNBLOCK, &one, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	handler_set(i);
	modes_apply(false);
	errno = error;
}

static void on_end(int number, siginfo_t *info, void *context)
{
	int i = handler_of(number);

	if (!handlers[i].fault &&
	    weft__handler_is_default(&handlers[i].handler)) {
		take_default(i, info);
		return;
	}
	if (handlers[i].fault)
		modes_apply(true);
	weft__handler_pass(&handlers[i].handler, number, info, context);
}

static void on_continue(int number, siginfo_t *info, void *context)
{
	struct weft__handler *handler = &handlers[handler_of(number)].handler;
	int error = errno;

	/* The stop has set the default action. */
	handler_set(handler_of(SIGTSTP));
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

static bool is_active(const struct mode *mode)
{
	/* relaxed: the lock is held. */
	return weft__load(&mode->active, relaxed) && mode->pid == getpid();
}

static struct mode *mode_find(int fd)
{
	for (int i = 0; i < MODES_MAX; i++)
		if (is_active(&modes[i]) && modes[i].fd == fd)
			return &modes[i];
	return NULL;
}

static struct mode *mode_free(void)
{
	for (int i = 0; i < MODES_MAX; i++)
		if (!is_active(&modes[i]))
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
		handler_set(i);
}

static void handlers_reset(void)
{
	if (--active_count > 0)
		return;
	for (int i = 0; i < HANDLERS; i++)
		weft__handler_reset(&handlers[i].handler, handlers[i].number);
}

/* In a child: the modes of the parent are not its own.  Their duplicates stay
 * open, since the child may have closed all and used the numbers again. */
static void modes_inherited(void)
{
	for (int i = 0; i < MODES_MAX; i++)
		/* relaxed: the lock is held. */
		if (weft__load(&modes[i].active, relaxed) &&
		    modes[i].pid != getpid()) {
			weft__store(&modes[i].active, false, relaxed);
			active_count--;
		}
}

/* A place that is not active yet. */
static int mode_begin(int fd, struct mode **ret_mode)
{
	struct mode *mode = mode_free();

	if (!mode)
		return -EMFILE;
	if (tcgetattr(fd, &mode->before) < 0)
		return -errno;
	mode->own = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
	if (mode->own < 0)
		return -errno;
	mode->fd = fd;
	mode->pid = getpid();
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

/* The last one is kept if this one cannot be set. */
static int mode_change(struct mode *mode, bool begins, bool raw)
{
	/* relaxed: written under the lock. */
	const struct termios *last = weft__load(&mode->now, relaxed);
	struct termios *next = &mode->modes[last == mode->modes];
	int r;

	*next = mode->before;
	if (raw)
		cfmakeraw(next);
	else
		next->c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	/* pairs: [terminal.now] */
	weft__store(&mode->now, next, release);
	if (begins) {
		handlers_set();
		/* pairs: [terminal.active] */
		weft__store(&mode->active, true, release);
	}
	if (tcsetattr(mode->own, TCSANOW, next) == 0)
		return 0;
	r = -errno;
	if (begins)
		mode_end(mode);
	else
		/* pairs: [terminal.now] */
		weft__store(&mode->now, last, release);
	return r;
}

static int mode_set(int fd, bool raw)
{
	struct mode *mode, *begun = NULL;
	int r = 0;

	weft__lock_take(&lock);
	modes_inherited();
	mode = mode_find(fd);
	if (!mode) {
		r = mode_begin(fd, &begun);
		mode = begun;
	}
	if (mode)
		r = mode_change(mode, begun != NULL, raw);
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
		if (in_foreground(mode) &&
		    tcsetattr(mode->own, TCSANOW, &mode->before) < 0)
			r = -errno;
		mode_end(mode);
	}
	weft__lock_drop(&lock);
	return mode ? r : -EBADF;
}
