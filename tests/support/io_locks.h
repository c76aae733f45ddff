/* SPDX-License-Identifier: MIT */
/*
 * Calls of tests/support/io_calls.h on names, directories and locks.
 *
 * Names are waited for only by the disk, so those calls are ready, or wait in
 * the queue of the pool.  Locks are waited for until another open file of the
 * same file gives them up.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_LOCKS_H
#define WEFT_TESTS_SUPPORT_IO_LOCKS_H

#include <sys/file.h>
#include <sys/mman.h>

#include "io/os/statx.h"
#include "tests/support/io_place.h"

static inline ssize_t make_mkdir_all(struct place *place)
{
	(void)place;
	return weft_mkdir_all(AT_FDCWD, "/tmp", 0700, 0);
}
static inline ssize_t make_fchmod(struct place *place)
{
	return weft_fchmod(place->file, 0600);
}
static inline ssize_t make_statx(struct place *place)
{
	struct statx status;

	(void)place;
	return weft_statx(AT_FDCWD, "/", 0, STATX_MODE, &status);
}
static inline ssize_t make_dir_next(struct place *place)
{
	struct weft_dir_entry entry;
	struct weft_dir dir;
	ssize_t r = weft_dir_open(&dir, AT_FDCWD, "/");

	(void)place;
	if (r == 0)
		r = weft_dir_next(&dir, &entry);
	EXPECT(weft_dir_close(&dir) == 0);
	return r;
}

/* To the name that it has. */
static inline void renamed_open(struct place *place)
{
	snprintf(place->address, sizeof(place->address), "/tmp/weft-name-%d",
		 (int)getpid());
	place->file = open(place->address, O_CREAT | O_WRONLY | O_CLOEXEC,
			   0600);
	EXPECT(place->file >= 0);
}
static inline ssize_t make_rename(struct place *place)
{
	return weft_rename(place->address, place->address);
}
static inline void renamed_settle(struct place *place)
{
	EXPECT(unlink(place->address) == 0);
}

/* The other open file has the lock. */
static inline void locked_open(struct place *place)
{
	char path[64];

	place->peer = memfd_create("locked", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place->peer);
	place->fd = open(path, O_RDWR | O_CLOEXEC);
	EXPECT(place->fd >= 0);
	EXPECT(flock(place->peer, LOCK_EX) == 0);
	EXPECT(fcntl(place->peer, F_OFD_SETLK,
		     &(struct flock){ .l_type = F_WRLCK }) == 0);
}
static inline void locked_let_go(struct place *place)
{
	EXPECT(flock(place->peer, LOCK_UN) == 0);
	EXPECT(fcntl(place->peer, F_OFD_SETLK,
		     &(struct flock){ .l_type = F_UNLCK }) == 0);
}

/* A call that failed has no lock. */
static inline ssize_t locked(struct place *place, ssize_t r)
{
	place->taken += r == 0;
	return r;
}
static inline void locked_settle(struct place *place)
{
	if (!place->taken)
		EXPECT(flock(place->peer, LOCK_EX | LOCK_NB) == 0 &&
		       fcntl(place->peer, F_OFD_SETLK,
			     &(struct flock){ .l_type = F_WRLCK }) == 0);
}
static inline ssize_t make_flock(struct place *place)
{
	return locked(place, weft_flock(place->fd, LOCK_EX));
}
static inline ssize_t make_fcntl_lock(struct place *place)
{
	struct flock lock = { .l_type = F_WRLCK };

	return locked(place, weft_fcntl_lock(place->fd, F_OFD_SETLKW, &lock));
}

#endif
