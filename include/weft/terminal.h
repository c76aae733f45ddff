/* SPDX-License-Identifier: MIT */
/*
 * Terminals: modes that are restored at the end, passwords, the size.
 *
 *	struct weft_stream in = WEFT_STREAM_INIT(STDIN_FILENO);
 *
 * A stream for the numbers 0 to 2 reads and writes them as weft_read() and
 * weft_write() do, which never set O_NONBLOCK: other processes share that flag.
 * Do not close such a stream unless the number itself is to be closed.
 *
 * The modes that weft_terminal_raw() or weft_terminal_hide() sets are undone by
 * weft_terminal_restore(), at exit(), and before a signal ends or stops the
 * process: SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGXCPU,
 * SIGTSTP, where the program has left their default action, and SIGABRT,
 * SIGBUS, SIGFPE, SIGILL, SIGSEGV and SIGSYS in any case.  After a stop they
 * are set again.  Not after _exit() and SIGKILL.  A child after fork() restores
 * nothing.
 */
#ifndef WEFT_TERMINAL_H
#define WEFT_TERMINAL_H

#include <stddef.h>
#include <sys/types.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Raw mode, as of cfmakeraw(3); and a mode that shows no input.  The mode from
 * before the first of these calls is kept.  Do not suspend; from any thread.
 * Return 0, -ENOTTY (no terminal), -EMFILE (too many terminals have modes: 8,
 * or no descriptor is free), or another error of tcsetattr(3). */
WEFT_API int weft_terminal_raw(int fd) WEFT_WARN_UNUSED;
WEFT_API int weft_terminal_hide(int fd) WEFT_WARN_UNUSED;

/* Restores the mode; also after fd was closed.  Returns 0, -EBADF (neither was
 * called for this number, by this process), or an error of tcsetattr(3), as
 * -EIO: it has hung up.  Then the mode is forgotten all the same.  In the
 * background the mode is only forgotten, as at exit(): the terminal is another
 * job's. */
WEFT_API int weft_terminal_restore(int fd);

/* The size of its window.  Does not suspend; from any thread.  Returns 0,
 * -ENOTTY, -EBADF, or -ENODATA: it has none. */
WEFT_API int weft_terminal_size(int fd, unsigned *ret_columns,
				unsigned *ret_rows) WEFT_WARN_UNUSED;

/* A descriptor on which tasks wait until the size of the process's terminal may
 * have changed (SIGWINCH).  Does not suspend; from any thread.  Returns the
 * descriptor, or -EMFILE (also if there are 8 already), -ENFILE, -ENOMEM. */
WEFT_API int weft_terminal_resize_open(void) WEFT_WARN_UNUSED;

/* Waits until it has changed since the last call; or WEFT_READY(fd, POLLIN) in
 * a select, and then this.  Suspends.  Returns 0, or an error of
 * weft_read(). */
WEFT_API int weft_terminal_resize_wait(int fd) WEFT_WARN_UNUSED;

/* As weft_close(); -EBADF: not such a descriptor.  The process keeps an eventfd
 * for the next one. */
WEFT_API int weft_terminal_resize_close(int fd);

/*
 * Writes the prompt to a terminal, and reads a line that it does not show.
 * Input from before is dropped, and a raw mode ends.  The line is stored
 * without its end, with a 0 behind it.  Suspends.  Returns its length, or
 *
 *	-ENODATA	the end of the input
 *	-EMSGSIZE	the line is longer than room - 1: buf is cleared
 *	-EINVAL		room is 0
 *	-EFAULT		a pointer is NULL
 *
 * or an error of weft_terminal_hide(), weft_read() or weft_write_all().
 */
WEFT_API ssize_t weft_terminal_password(int fd, const char *prompt, char *buf,
					size_t room) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
