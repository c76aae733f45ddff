/* SPDX-License-Identifier: MIT */
/* The end of a file, and what is added to it. */
#include <errno.h>
#include <stdio.h>

#include "last.h"
#include "tail.h"

int64_t print_last(const struct options *o, const char *name)
{
	int fd = weft_open(name, O_RDONLY, 0);
	char buf[8192];
	off_t at;
	ssize_t n;

	if (fd < 0)
		return complain(name, "cannot open", fd);
	at = last_lines(fd, o->lines);
	n = at < 0 ? at : print(o, name, "", 0);
	while (n >= 0 && (n = weft_pread(fd, buf, sizeof(buf), at)) > 0) {
		at += n;
		n = print(o, name, buf, (size_t)n);
	}
	weft_close(fd);
	return n < 0 ? complain(name, "error reading", (int)n) : at;
}

static void tell(const char *name, unsigned news)
{
	if (news & WEFT_FOLLOW_CUT)
		fprintf(stderr, "tail: %s: file truncated\n", name);
	if (news & WEFT_FOLLOW_MISSING)
		complain(name, "there is no file", 0);
	if (news & WEFT_FOLLOW_NEW)
		complain(name, "following the new file", 0);
}

/* The last lines are looked for in the very file that is followed: the name may
 * mean another one a moment later. */
static int begin(const struct options *o, const char *name,
		 struct weft_follow *file)
{
	int fd = weft_follow_fd(file);
	off_t at = fd < 0 ? 0 : last_lines(fd, o->lines);

	if (fd < 0)
		return 0; /* it is read from its start when it comes */
	if (at < 0)
		return (int)at;
	at = weft_follow_seek(file, at);
	return at < 0 ? (int)at : print(o, name, "", 0);
}

static int file_open(const struct options *o, const char *name,
		     struct weft_follow **ret_file)
{
	int fd, r;

	if (o->follow == 'F')
		return weft_follow_open(name, WEFT_FOLLOW_END, ret_file);
	fd = weft_open(name, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	r = weft_follow_open_fd(fd, WEFT_FOLLOW_END, ret_file);
	if (r < 0)
		weft_close(fd);
	return r;
}

/* A terminal, or /dev/null, with which a program is kept waiting for ever: what
 * comes is printed, and the end is no end. */
static int device_follow(const struct options *o, const char *name)
{
	struct stat now;
	char buf[8192];
	ssize_t n = weft_stat(name, &now);
	int fd;

	if (n < 0 || !S_ISCHR(now.st_mode))
		return n < 0 ? (int)n : -EINVAL;
	n = fd = weft_open(name, O_RDONLY, 0);
	while (n >= 0 && (n = weft_read(fd, buf, sizeof(buf))) >= 0)
		n = n > 0 ? print(o, name, buf, (size_t)n) :
			    weft_sleep(WEFT_SEC(1));
	if (fd >= 0)
		weft_close(fd);
	return (int)n;
}

int64_t follow(void *arg)
{
	const struct options *o = *(struct options **)arg;
	const char *name = ((char **)arg)[1];
	struct weft_follow *file;
	char buf[8192];
	unsigned news;
	ssize_t n = file_open(o, name, &file);

	if (n == -EINVAL && o->follow == 'f')
		n = device_follow(o, name);
	if (n < 0)
		return complain(name, "cannot follow", (int)n);
	n = begin(o, name, file);
	while (n >= 0 &&
	       (n = weft_follow_read(file, buf, sizeof(buf), &news)) >= 0) {
		tell(name, news);
		if (n > 0)
			n = print(o, name, buf, (size_t)n);
	}
	weft_follow_close(file);
	return complain(name, "cannot follow", (int)n);
}
