/* SPDX-License-Identifier: MIT */
/*
 * A file system of FUSE with one file, "file", of a server that does not answer
 * a read or a write before it is let.  The server is a process of its own: it
 * ends with the test, and the kernel then ends what waits for it.
 */
#ifndef WEFT_TESTS_SUPPORT_FUSE_KIT_H
#define WEFT_TESTS_SUPPORT_FUSE_KIT_H

#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

enum { FUSE_FILE_BYTES = 100000, FUSE_ROOT = 1, FUSE_FILE = 2 };

#define NEEDS_FUSE "mounts of FUSE"

struct fuse {
	char dir[64], file[80];
	int asked; /* a byte for each read or write that the server has */
	int let;   /* a byte lets it answer one; the error, or 0 */
	pid_t server;
};

/* ---- The server ---------------------------------------------------------- */

struct fuse_served {
	int fd, asked, let;
};

static inline void fuse_reply(int fd, uint64_t unique, int error,
			      const void *data, size_t bytes)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + bytes),
		.error = error,
		.unique = unique,
	};
	struct iovec iov[2] = { { &header, sizeof(header) },
				{ (void *)(uintptr_t)data, bytes } };

	if (writev(fd, iov, bytes ? 2 : 1) < 0 && errno != ENOENT)
		_exit(1);
}

static inline struct fuse_attr fuse_attr_of(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == FUSE_ROOT ? S_IFDIR | 0755 : S_IFREG | 0666,
		.nlink = 1,
		.size = node == FUSE_ROOT ? 0 : FUSE_FILE_BYTES,
		.blksize = 4096,
	};
}

/* ETIME: nobody lets it, since all wait for the answer. */
static inline int fuse_wait(const struct fuse_served *served)
{
	struct pollfd let = { served->let, POLLIN, 0 };
	unsigned char byte = 0;

	if (write(served->asked, &byte, 1) != 1)
		_exit(0);
	if (poll(&let, 1, 20000) == 0)
		return ETIME;
	if (read(served->let, &byte, 1) != 1)
		_exit(0);
	return byte;
}

static inline void fuse_find(int fd, uint64_t unique, const char *name)
{
	struct fuse_entry_out entry = {
		.nodeid = FUSE_FILE,
		.entry_valid = 1000,
		.attr_valid = 1000,
		.attr = fuse_attr_of(FUSE_FILE),
	};

	if (strcmp(name, "file"))
		fuse_reply(fd, unique, -ENOENT, NULL, 0);
	else
		fuse_reply(fd, unique, 0, &entry, sizeof(entry));
}

static inline void fuse_transfer(const struct fuse_served *served,
				 const struct fuse_in_header *header,
				 const void *body)
{
	static const char data[FUSE_FILE_BYTES];
	const struct fuse_read_in *in = body; /* as fuse_write_in */
	struct fuse_write_out out = { .size = in->size };
	uint64_t left = in->offset < FUSE_FILE_BYTES ?
				FUSE_FILE_BYTES - in->offset :
				0;

	int error = fuse_wait(served);

	if (error)
		fuse_reply(served->fd, header->unique, -error, NULL, 0);
	else if (header->opcode == FUSE_WRITE)
		fuse_reply(served->fd, header->unique, 0, &out, sizeof(out));
	else
		fuse_reply(served->fd, header->unique, 0, data,
			   in->size < left ? in->size : left);
}

static inline void fuse_answer(const struct fuse_served *served,
			       const struct fuse_in_header *header)
{
	struct fuse_init_out init = { .major = 7, .minor = 31,
				      .max_write = 131072 };
	struct fuse_attr_out attr = { .attr_valid = 1000,
				      .attr = fuse_attr_of(header->nodeid) };
	struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO };
	const void *body = header + 1;
	int fd = served->fd;

	switch (header->opcode) {
	case FUSE_INIT:
		fuse_reply(fd, header->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		fuse_find(fd, header->unique, body);
		break;
	case FUSE_GETATTR:
		fuse_reply(fd, header->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		fuse_reply(fd, header->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
	case FUSE_WRITE:
		fuse_transfer(served, header, body);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		fuse_reply(fd, header->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		fuse_reply(fd, header->unique, -ENOSYS, NULL, 0);
	}
}

static inline void fuse_serve(const struct fuse_served *served)
{
	static uint64_t request[40000];
	ssize_t n;

	for (;;) {
		n = read(served->fd, request, sizeof(request));
		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			fuse_answer(served, (const void *)request);
		else if (n >= 0 || (errno != EINTR && errno != ENOENT))
			_exit(0);
	}
}

/* ---- The test's side ----------------------------------------------------- */

/* For a process without threads; false: it may not. */
static inline bool fuse_begin(struct fuse *fuse)
{
	int fd, asked[2], let[2];
	pid_t test = getpid();
	char options[128];

	snprintf(fuse->dir, sizeof(fuse->dir), "/tmp/weft-fuse-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(fuse->dir));
	snprintf(fuse->file, sizeof(fuse->file), "%s/file", fuse->dir);
	fd = become_mount_owner() ? open("/dev/fuse", O_RDWR | O_CLOEXEC) : -1;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd,
		 (unsigned)geteuid(), (unsigned)getegid());
	if (fd < 0 || mount("weft", fuse->dir, "fuse", 0, options) < 0) {
		close(fd);
		rmdir(fuse->dir);
		return false;
	}
	ck_assert_int_eq(pipe2(asked, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(let, O_CLOEXEC), 0);
	fuse->server = fork();
	ck_assert_int_ge(fuse->server, 0);
	if (fuse->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != test)
			_exit(0);
		close(asked[0]);
		close(let[1]);
		fuse_serve(&(struct fuse_served){ fd, asked[1], let[0] });
	}
	close(fd);
	close(asked[1]);
	close(let[0]);
	fuse->asked = asked[0];
	fuse->let = let[1];
	return true;
}

/* All that waits for the server ends. */
static inline void fuse_end(struct fuse *fuse)
{
	close(fuse->asked);
	close(fuse->let);
	umount2(fuse->dir, MNT_DETACH);
	rmdir(fuse->dir);
	kill(fuse->server, SIGKILL);
	waitpid(fuse->server, NULL, 0);
}

#endif
