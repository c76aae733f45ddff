/* SPDX-License-Identifier: MIT */
/*
 * The size of terminals, and passwords.
 *
 * A handler of SIGWINCH adds to an eventfd of each task that waits.  A signalfd
 * would need the signal blocked in all threads, and in each child.
 *
 * Concurrency: `lock` guards the table and the handler; the handler of the
 * signal reads each place of the table in one piece.
 */
#include <weft/terminal.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <weft/io.h>

#include "io/request/call.h"
#include "runtime/base/handler.h"
#include "runtime/base/lock.h"

enum { SIZES_MAX = 8 };

/* ---- The size ------------------------------------------------------------ */

int weft_terminal_size(int fd, unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0)
		return -errno;
	if (!size.ws_col || !size.ws_row)
		return -ENODATA;
	*ret_columns = size.ws_col;
	*ret_rows = size.ws_row;
	return 0;
}

static void on_resize(int number, siginfo_t *info, void *context);

static struct weft__handler handler = { .fn = on_resize, .flags = SA_RESTART };
static struct weft__lock lock;
static int sizes_count;

/* The eventfd of a place stays open: a handler may be about to write to it.
 * The caller has a duplicate. */
static struct {
	weft__atomic(int) events; /* + 1; 0: none yet */
	int fd;			  /* + 1; under lock; 0: the place is free */
} sizes[SIZES_MAX];

static void on_resize(int number, siginfo_t *info, void *context)
{
	static const uint64_t one = 1;
	int error = errno;

	for (int i = 0; i < SIZES_MAX; i++) {
		/* relaxed: the number is all there is. */
		int events = weft__load(&sizes[i].events, relaxed) - 1;

		if (events >= 0)
			(void)!write(events, &one, sizeof(one));
	}
	errno = error;
	if (!weft__handler_is_default(&handler))
		weft__handler_pass(&handler, number, info, context);
}

/* Under the lock. */
static int place_of(int fd)
{
	int i = 0;

	while (i < SIZES_MAX && sizes[i].fd != fd + 1)
		i++;
	return i;
}

/* Its eventfd, without what came before. */
static int place_events(int place)
{
	/* relaxed: the lock is held. */
	int events = weft__load(&sizes[place].events, relaxed) - 1;
	uint64_t count;

	if (events < 0) {
		events = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (events < 0)
			return -errno;
		/* relaxed: the number is all there is. */
		weft__store(&sizes[place].events, events + 1, relaxed);
	}
	(void)!read(events, &count, sizeof(count));
	return events;
}

int weft_terminal_resize_open(void)
{
	int place, r;

	weft__lock_take(&lock);
	place = place_of(-1);
	r = place == SIZES_MAX ? -EMFILE : place_events(place);
	if (r >= 0) {
		r = fcntl(r, F_DUPFD_CLOEXEC, 0);
		r = r < 0 ? -errno : r;
	}
	if (r >= 0) {
		int error = weft__handler_set(&handler, SIGWINCH);

		weft__assert(error == 0, "SIGWINCH takes no handler");
		sizes[place].fd = r + 1;
		sizes_count++;
	}
	weft__lock_drop(&lock);
	return r;
}

static bool size_remove(int fd)
{
	int place;

	weft__lock_take(&lock);
	place = fd < 0 ? SIZES_MAX : place_of(fd);
	if (place < SIZES_MAX) {
		sizes[place].fd = 0;
		if (--sizes_count == 0)
			weft__handler_reset(&handler, SIGWINCH);
	}
	weft__lock_drop(&lock);
	return place < SIZES_MAX;
}

int weft_terminal_resize_wait(int fd)
{
	uint64_t count;
	ssize_t n = weft_read(fd, &count, sizeof(count));

	return n < 0 ? (int)n : 0;
}

int weft_terminal_resize_close(int fd)
{
	if (!weft__running(weft__worker_self()))
		return -EPERM;
	return size_remove(fd) ? weft_close(fd) : -EBADF;
}

/* ---- Passwords ----------------------------------------------------------- */

/* The terminal gives a line at a time. */
static ssize_t line_read(int fd, char *buf, size_t room)
{
	size_t bytes = 0;
	bool fits = true;

	for (;;) {
		char byte;
		ssize_t n = weft_read(fd, &byte, 1);

		if (n < 0)
			return n;
		if (n == 0 && bytes == 0)
			return -ENODATA;
		if (n == 0 || byte == '\n')
			break;
		if (bytes + 1 < room)
			buf[bytes++] = byte;
		else
			fits = false;
	}
	buf[bytes] = 0;
	return fits ? (ssize_t)bytes : -EMSGSIZE;
}

ssize_t weft_terminal_password(int fd, const char *prompt, char *buf,
			       size_t room)
{
	struct weft__worker *worker;
	ssize_t n = weft__call_begin(&worker);

	if (n < 0)
		return n;
	if (!prompt || !buf)
		return -EFAULT;
	if (room == 0)
		return -EINVAL;
	n = weft_terminal_hide(fd);
	if (n < 0)
		return n;
	(void)tcflush(fd, TCIFLUSH);
	n = weft_write_all(fd, prompt, strlen(prompt), NULL);
	if (n == 0)
		n = line_read(fd, buf, room);
	/* A part of a line is no input of the next reader. */
	if (n < 0)
		(void)tcflush(fd, TCIFLUSH);
	(void)weft_terminal_restore(fd);
	if (n >= 0)
		(void)weft_write_all(fd, "\n", 1, NULL);
	else
		explicit_bzero(buf, room);
	return n;
}
