/* SPDX-License-Identifier: MIT */
/*
 * A connection to Redis over a stream without a descriptor, such as one that
 * encrypts.  Each write waits at a gate until the test lets it pass, so that
 * the test knows which task sends, and how much.
 */
#ifndef WEFT_TESTS_SUPPORT_REDIS_GATE_H
#define WEFT_TESTS_SUPPORT_REDIS_GATE_H

#include "tests/support/redis_scene.h"

struct gate {
	struct scene scene;
	int fd;
	struct weft_sem permits; /* one for each write */
	int error;		 /* of writes that pass; set before */
	pthread_mutex_t lock;
	/* Under lock: */
	struct weft_task sender; /* the last to come to the gate ... */
	size_t bytes;		 /* ... and what it has to write */
};

static inline ssize_t gate_read(void *arg, void *buf, size_t bytes)
{
	struct gate *gate = arg;

	return weft_read(gate->fd, buf, bytes);
}

static inline int gate_write_all(void *arg, const void *buf, size_t bytes,
				 size_t *ret_done)
{
	struct gate *gate = arg;
	int r;

	*ret_done = 0;
	pthread_mutex_lock(&gate->lock);
	gate->sender = weft_self();
	gate->bytes = bytes;
	pthread_mutex_unlock(&gate->lock);
	r = weft_sem_acquire(&gate->permits, 1);
	if (r == 0)
		r = gate->error;
	if (r < 0)
		return r;
	WEFT_SHIELD
		r = weft_write_all(gate->fd, buf, bytes, ret_done);
	return r;
}

static inline int gate_close(void *arg)
{
	struct gate *gate = arg;

	return weft_close(gate->fd);
}

static inline void gate_begin(struct gate *gate)
{
	static const struct weft_stream_ops ops = {
		.read = gate_read,
		.write_all = gate_write_all,
		.close = gate_close,
	};
	int fds[2];

	*gate = (struct gate){ .permits = WEFT_SEM_INIT(0) };
	pthread_mutex_init(&gate->lock, NULL);
	socket_pair(fds);
	gate->fd = fds[0];
	gate->scene.server = fds[1];
	weft_stream_init_over(&gate->scene.stream, &ops, gate);
	ck_assert_int_eq(weft_redis_over(&gate->scene.stream,
					 &gate->scene.redis),
			 0);
}

static inline void gate_pass(struct gate *gate)
{
	weft_sem_release(&gate->permits, 1);
}

/* Is that task the last that came to the gate?  Then *ret_bytes is what it has
 * to write. */
static inline bool gate_has(struct gate *gate, struct weft_task task,
			    size_t *ret_bytes)
{
	bool is;

	pthread_mutex_lock(&gate->lock);
	is = gate->sender.id == task.id;
	*ret_bytes = gate->bytes;
	pthread_mutex_unlock(&gate->lock);
	return is;
}

/* Waits until it is there, and returns how much it has to write. */
static inline size_t gate_wait(struct gate *gate, struct weft_task task)
{
	size_t bytes;

	wait_until(gate_has(gate, task, &bytes));
	return bytes;
}

#endif
