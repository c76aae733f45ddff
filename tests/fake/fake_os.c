/* SPDX-License-Identifier: MIT */
/*
 * Fake OS: what io/driver.c asks the system for, besides its rings, in a run on
 * virtual time.
 *
 * The linker replaces calls of the C library with those named __wrap_ here
 * (--wrap in tests/meson.build).  Outside of a run they do what they always do.
 * The functions of weft stand here in place of those of io/os/.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "io/os/cpu_idle.h"
#include "io/os/schedstat.h"
#include "io/os/slice.h"
#include "runtime/sched/worker.h"
#include "tests/fake/fake_accounts.h"
#include "tests/fake/fake_inside.h"
#include "tests/fake/fake_ring.h"

#define WRAPPED __attribute__((used, visibility("default")))

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);
ssize_t __real_getrandom(void *ret_bytes, size_t count, unsigned flags);
ssize_t __wrap_getrandom(void *ret_bytes, size_t count, unsigned flags);
ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);

WRAPPED int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	uint64_t now_ns;

	if (clock != CLOCK_MONOTONIC || !fake_runs())
		return __real_clock_gettime(clock, ret_time);
	now_ns = fake_look();
	ret_time->tv_sec = (time_t)(now_ns / 1000000000u);
	ret_time->tv_nsec = (long)(now_ns % 1000000000u);
	return 0;
}

WRAPPED ssize_t __wrap_getrandom(void *ret_bytes, size_t count, unsigned flags)
{
	uint64_t number;

	if (!fake_runs() || count != sizeof(number))
		return __real_getrandom(ret_bytes, count, flags);
	number = fake_number();
	memcpy(ret_bytes, &number, count);
	return (ssize_t)count;
}

/* A worker that runs sends a message to wake another, and writes to its eventfd
 * if its own ring is locked.  Here no other thread can have locked it. */
WRAPPED ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
	ssize_t written = __real_write(fd, bytes, count);

	if (fake_runs() && fake_rings_written(fake_rings(), fd) &&
	    weft__worker_self() && fake_is_locked(weft__worker_self()))
		fake_trouble("a worker woke another with its ring locked");
	return written;
}

/* ---- io/os/ ------------------------------------------------------------- */

void weft__schedstat_open(struct weft__schedstat *stat)
{
	stat->fd = -1;
}

void weft__schedstat_close(struct weft__schedstat *stat)
{
	(void)stat;
}

void weft__schedstat_own(struct weft__schedstat *stat)
{
	stat->seen = true;
}

uint64_t weft__schedstat_waited_ns(struct weft__schedstat *stat)
{
	(void)stat;
	return fake_waited();
}

int weft__cpu_idle_open(void)
{
	return -1;
}

uint64_t weft__cpu_idle_ns(int fd)
{
	(void)fd;
	return fake_idle();
}

void weft__slice_shorten(struct weft__slice *slice, uint64_t now_ns)
{
	(void)slice, (void)now_ns;
	fake_watches(true);
}

void weft__slice_restore(struct weft__slice *slice)
{
	(void)slice;
	fake_watches(false);
}
