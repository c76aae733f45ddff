/* SPDX-License-Identifier: MIT */
/*
 * Rest: the timer in the descriptor that a foreign loop waits for.
 *
 *	timer_ns	0	it is not set
 *			1	it has expired: the descriptor stays readable
 *			later	the time to which it was set; it has expired if
 *				that has passed
 *
 * A timer that would expire too early stays as it is, if it has not expired: a
 * deadline that is set and disarmed in each turn then costs no system call, and
 * one useless turn at the end.
 */
#include "io/rest.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>

#include "runtime/base/assert.h"
#include "runtime/base/own_fd.h"

enum { UNSET, EXPIRED };

static void timer_set(struct weft__shard *shard, uint64_t at_ns)
{
	struct itimerspec at = { .it_value = {
					 (time_t)(at_ns / 1000000000u),
					 (long)(at_ns % 1000000000u),
				 } };
	bool set = timerfd_settime(shard->timer_fd, TFD_TIMER_ABSTIME, &at,
				   NULL) == 0;

	weft__assert(set, "a descriptor of weft's own was closed");
	shard->timer_ns = at_ns;
}

int weft__rest_open(struct weft__shard *shard)
{
	shard->timer_fd = weft__fd_above_stdio(
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (shard->timer_fd < 0)
		return shard->timer_fd;
	return weft__ring_attach(&shard->ring, shard->timer_fd);
}

void weft__rest_until(struct weft__shard *shard, uint64_t until_ns,
		      uint64_t now_ns)
{
	bool expired = shard->timer_ns && shard->timer_ns <= now_ns;

	if (!expired && (until_ns == UINT64_MAX ||
			 (shard->timer_ns && shard->timer_ns <= until_ns)))
		return;
	timer_set(shard, until_ns == UINT64_MAX ? UNSET : until_ns);
}

void weft__rest_persist(struct weft__shard *shard)
{
	if (shard->timer_ns != EXPIRED)
		timer_set(shard, EXPIRED);
}

void weft__rest_end(struct weft__shard *shard)
{
	timer_set(shard, UNSET);
}
