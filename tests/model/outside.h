/* SPDX-License-Identifier: MIT */
/*
 * Outside - the functions of io/ and timer/ that io/driver.c calls and its
 * model does not need: there are no alarms, pools or signals.
 */
#ifndef WEFT_TESTS_MODEL_OUTSIDE_H
#define WEFT_TESTS_MODEL_OUTSIDE_H

#include "io/ring/uring/probe.h"
#include "io/request/reactor.h"
#include "io/request/op.h"
#include "io/os/mask.h"
#include "io/os/sigpipe.h"
#include "io/stream/stream.h"
#include "timer/timer_shard.h"

bool weft__is_masked(enum weft__feature feature)
{
	(void)feature;
	return false;
}

int weft__ring_open_soft(struct weft__ring *ring, unsigned entries, bool alone,
			 struct weft_runtime *runtime)
{
	(void)ring, (void)entries, (void)alone, (void)runtime;
	return -ENOSYS;
}

void weft__interrupt_end(void)
{
}

void weft__interrupt_forget(void)
{
}

int weft__engine_asked(const struct weft_opts *opts,
		       struct weft__engine *ret_engine)
{
	(void)opts, (void)ret_engine;
	return -EINVAL;
}

void weft__engine_opened(struct weft__engine *engine, unsigned used, int r,
			 const char *refusal)
{
	(void)engine, (void)used, (void)r, (void)refusal;
}

int weft__timer_shards_open(struct weft_runtime *of, uint64_t now_ns)
{
	(void)of, (void)now_ns;
	return 0;
}

void weft__timer_shards_close(struct weft_runtime *of)
{
	(void)of;
}

void weft__timer_shards_arm(struct weft__worker *worker,
			    struct weft__alarm *alarm, uint64_t deadline_ns)
{
	(void)worker, (void)alarm, (void)deadline_ns;
}

bool weft__timer_shards_disarm(struct weft_runtime *of,
			       struct weft__alarm *alarm)
{
	(void)of, (void)alarm;
	return false;
}

uint64_t weft__timer_shards_sleep(struct weft_runtime *of)
{
	(void)of;
	return UINT64_MAX;
}

void weft__timer_shards_wake(struct weft_runtime *of)
{
	(void)of;
}

unsigned weft__timer_shards_turn(struct weft_runtime *of,
				 struct weft__worker *here, uint64_t now_ns)
{
	(void)of, (void)here, (void)now_ns;
	return 0;
}

unsigned weft__timer_shards_turn_own(struct weft__worker *here, uint64_t now_ns)
{
	(void)here, (void)now_ns;
	return 0;
}

bool weft__timer_shards_due(struct weft__worker *here, uint64_t now_ns)
{
	(void)here, (void)now_ns;
	return false;
}

int weft__fd_table_init(struct weft__fd_table *of,
			const struct weft_allocator *memory)
{
	(void)of, (void)memory;
	return 0;
}

void weft__fd_table_fini(struct weft__fd_table *of)
{
	(void)of;
}

void weft__pool_close(struct weft__pool *pool_of_shard,
		      const struct weft__ring *ring)
{
	(void)pool_of_shard, (void)ring;
}

int weft__op_describe(uint64_t number, char *ret_text, size_t bytes)
{
	(void)number, (void)ret_text, (void)bytes;
	return 0;
}

int weft__cpu_idle_open(void)
{
	return -1;
}

uint64_t weft__cpu_idle_ns(int fd)
{
	(void)fd;
	return 0;
}

void weft__overflow_forget(void)
{
}

void weft__thread_number_forget(void)
{
}

void weft__signal_notify_forget(void)
{
}

void weft__snapshot_end(void)
{
}

bool weft__sigpipe_is_avoidable(void)
{
	return true;
}

/* No stream receives. */
void weft__streams_look(struct weft__shard *shard, uint64_t now_ns)
{
	(void)shard, (void)now_ns;
	abort();
}

uint64_t weft__streams_look_wait(const struct weft__shard *shard,
				 uint64_t now_ns, uint64_t wait_ns)
{
	(void)shard, (void)now_ns;
	return wait_ns;
}

bool weft__probe_reports_ends(void)
{
	return true;
}

void weft__schedstat_open(struct weft__schedstat *stat)
{
	(void)stat;
}

void weft__schedstat_close(struct weft__schedstat *stat)
{
	(void)stat;
}

void weft__schedstat_own(struct weft__schedstat *stat)
{
	(void)stat;
}

uint64_t weft__schedstat_waited_ns(struct weft__schedstat *stat)
{
	(void)stat;
	return 0;
}

void weft__slice_shorten(struct weft__slice *slice, uint64_t now_ns)
{
	(void)slice, (void)now_ns;
}

void weft__slice_restore(struct weft__slice *slice)
{
	(void)slice;
}

/* The rings are the model's own. */

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
			       struct io_uring_params *params)
{
	(void)entries, (void)ring, (void)params;
	return -ENOSYS;
}

void io_uring_queue_exit(struct io_uring *ring)
{
	(void)ring;
}

int io_uring_register_probe(struct io_uring *ring,
			    struct io_uring_probe *probe, unsigned count)
{
	(void)ring, (void)probe, (void)count;
	return -ENOSYS;
}

int io_uring_ring_dontfork(struct io_uring *ring)
{
	(void)ring;
	return 0;
}

int io_uring_register_buf_ring(struct io_uring *ring,
			       struct io_uring_buf_reg *reg, unsigned flags)
{
	(void)ring, (void)reg, (void)flags;
	return -EINVAL;
}

int io_uring_register_ring_fd(struct io_uring *ring)
{
	(void)ring;
	return 0;
}

int io_uring_register(unsigned fd, unsigned opcode, const void *arg,
		      unsigned count)
{
	(void)fd, (void)opcode, (void)arg, (void)count;
	return -ENOENT;
}

#endif
