/* SPDX-License-Identifier: MIT */
/*
 * Streams - a connection as a model: the kernel has a stream's request to
 * receive and one to send, and whoever reaps carries them out under the shard's
 * lock, one completion at a time.  What it says is in the model's hand.
 *
 * Thread 0 is a task that has the stream, and goes on with another worker, of
 * the same ring, whenever it was suspended.  Worker 2 has a ring of its own.
 */
#ifndef WEFT_TESTS_MODEL_STREAMS_H
#define WEFT_TESTS_MODEL_STREAMS_H

#define TASKS_WAITS
#include "tests/model/requests.h"
#include "tests/model/waits.h"

#include "io/op.c"
/* Its memory is the model's own. */
#undef mmap
#undef munmap
#define mmap(at, bytes, ...) ((void)(bytes), MAP_FAILED)
#define munmap(...) ((void)0)
#include "io/pool.c"
/* All is submitted at once; a worker does so when it parks. */
#define WEFT__PENDING_MOST 1u
#define malloc(bytes) own_take()
#define free(memory) own_free(memory)
static void *own_take(void);
static void own_free(void *memory);
#include "io/out.c"
#include "io/stream.c"
#include "io/stream_put.c"
#include "io/stream_send.c"
#include "io/stream_told.c"
#undef malloc
#undef free

enum {
	OWNER = 2,	/* the worker of ring 1 */
	READER_TOO = 4, /* the other worker of thread 0 */
	OWNER_TOO = 6,	/* of thread 2 */
	BUFFERS = 8,
	BUFFER_BYTES = 8,
	NOTHING_MORE = INT32_MIN, /* an end that does not come */
};

static struct weft_stream stream;
static struct weft__shard *served; /* by who reaps */
static char memory[WEFT__POOLS][BUFFERS * (BUFFER_BYTES + WEFT__LINE_BYTES)];
static char own[1];
static struct weft__piece pieces[WEFT__POOLS][BUFFERS];
static struct io_uring_buf entries[WEFT__POOLS][BUFFERS];

/* The kernel's, under the shard's lock. */
enum { RECEIVES, SENDS, REQUESTS };

static struct request {
	struct io_uring_sqe sqe;
	bool live;
	/* By anybody.  relaxed: the kernel's orders are not modelled. */
	weft__atomic(uint32_t) cancelled;
} in_kernel[REQUESTS];
static uint16_t taken[WEFT__POOLS];
static uint8_t sent;
static unsigned no_completions[3];
static struct model_event due; /* something to reap, perhaps */

/* What each model chooses. */
static uint8_t to_send;
static uint32_t piece_bytes;
static int32_t end;	    /* what comes behind that */
static bool end_has_buffer; /* that is named, with nothing in it */
static int32_t fault;	    /* what the first completion says, if it is not 0 */
static unsigned deaths;	    /* requests that may end with a piece */
static unsigned refusals;   /* to cancel, or to take a request */
static unsigned failures;   /* to have memory */

/* The reader's, whoever it is. */
static uint8_t read_so_far;
static unsigned closed;

static bool happens(unsigned *left)
{
	if (*left == 0 || model_choose(2) == 0)
		return false;
	--*left;
	return true;
}

/*
 * The kernel.
 */

static struct weft__pool *pool_of(unsigned group)
{
	return &served->pools[group];
}

/* False: no buffer is there. */
static bool kernel_picks(unsigned group, struct weft__completion *completion,
			 char **ret_at)
{
	struct weft__pool *buffers = pool_of(group);
	const struct io_uring_buf *buf;

	if (taken[group] == io_uring_smp_load_acquire(&buffers->ring->tail))
		return false;
	buf = &buffers->ring->bufs[taken[group]++ & (buffers->most - 1)];
	completion->flags = IORING_CQE_F_BUFFER |
			    (uint32_t)buf->bid << IORING_CQE_BUFFER_SHIFT;
	*ret_at = (void *)(uintptr_t)buf->addr;
	return true;
}

static void kernel_receives(const struct io_uring_sqe *sqe,
			    struct weft__completion *completion)
{
	bool selects = sqe->flags & IOSQE_BUFFER_SELECT;
	char *at = (void *)(uintptr_t)sqe->addr;

	if (selects && !kernel_picks(sqe->buf_group, completion, &at)) {
		completion->result = -ENOBUFS;
		return;
	}
	*at = (char)++sent;
	completion->result = (int32_t)piece_bytes;
	if ((sqe->ioprio & IORING_RECV_MULTISHOT) && !happens(&deaths))
		completion->flags |= IORING_CQE_F_MORE;
}

static void kernel_ends(const struct io_uring_sqe *sqe,
			struct weft__completion *completion)
{
	char *at;

	if (end_has_buffer && (sqe->flags & IOSQE_BUFFER_SELECT))
		(void)kernel_picks(sqe->buf_group, completion, &at);
	completion->result = end;
}

/* False: nothing now. */
static bool kernel_carries_out(unsigned i, struct weft__completion *completion)
{
	struct request *request = &in_kernel[i];

	if (!request->live)
		return false;
	*completion =
		(struct weft__completion){ .user_data =
						   request->sqe.user_data };
	if (weft__load(&request->cancelled, relaxed))
		completion->result = -ECANCELED;
	else if (fault)
		completion->result = fault;
	else if (i == SENDS)
		completion->result = (int32_t)request->sqe.len;
	else if (sent < to_send)
		kernel_receives(&request->sqe, completion);
	else if (end == NOTHING_MORE)
		return false;
	else
		kernel_ends(&request->sqe, completion);
	fault = 0;
	request->live = completion->flags & IORING_CQE_F_MORE;
	return true;
}

static unsigned request_of(uint64_t user_data)
{
	return user_data & WEFT__SENDING ? SENDS : RECEIVES;
}

static void kernel_takes(const struct io_uring_sqe *sqe)
{
	struct request *request = &in_kernel[request_of(sqe->user_data)];

	model_assert(!request->live, "a stream has one request of a kind");
	request->sqe = *sqe;
	request->live = true;
	weft__store(&request->cancelled, 0, relaxed);
	model_post(&due);
}

static void kernel_submits(struct weft__shard *shard)
{
	struct io_uring_sq *sq = &shard->ring.uring.sq;
	/* relaxed: under the lock. */
	unsigned head = weft__load(sq->khead, relaxed);

	model_assert(shard == served, "who reaps knows of this ring");
	for (; head != io_uring_smp_load_acquire(sq->ktail); head++)
		kernel_takes(&sq->sqes[head % ENTRIES]);
	io_uring_smp_store_release(sq->khead, head);
}

static int kernel_cancels(uint64_t user_data)
{
	if (happens(&refusals))
		return -ENOENT;
	weft__store(&in_kernel[request_of(user_data)].cancelled, 1, relaxed);
	model_post(&due);
	return 0;
}

int weft__ring_cancel(struct weft__ring *ring, uint64_t user_data)
{
	model_assert(ring == &served->ring, "it is cancelled where it is");
	return kernel_cancels(user_data);
}

int io_uring_register_buf_ring(struct io_uring *uring,
			       struct io_uring_buf_reg *reg, unsigned flags)
{
	(void)uring, (void)reg, (void)flags;
	return -EINVAL;
}

/*
 * The shard.
 */

void weft__shard_lock(struct weft__shard *shard)
{
	while (!weft__trylock_take(&shard->lock, 1))
		;
}

void weft__shard_flush(struct weft__shard *shard)
{
	weft__shard_lock(shard);
	kernel_submits(shard);
	(void)weft__trylock_drop(&shard->lock);
}

struct io_uring_sqe *weft__shard_entry(struct weft__shard *shard)
{
	return weft__ring_next(&shard->ring);
}

bool weft__shard_submit(struct weft__shard *shard)
{
	weft__ring_publish(&shard->ring);
	if (!happens(&refusals))
		kernel_submits(shard);
	return !weft__ring_withdraw(&shard->ring);
}

/* It may say that there is nothing to be cancelled, whatever happens. */
int weft__shard_cancel(struct weft__shard *shard, uint64_t user_data)
{
	model_assert(shard == served, "it is cancelled where it is");
	return kernel_cancels(user_data);
}

/* Pauses are over at once. */
static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	(void)deadline_ns;
	(void)weft__wake(worker, &records[(uint32_t)alarm->task], alarm->task);
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	(void)of, (void)alarm;
	return false;
}

/*
 * What else a stream asks for.
 */

int32_t weft__op_await_ready(int fd, unsigned events, unsigned tries)
{
	(void)fd, (void)events, (void)tries;
	return POLLIN;
}

bool weft__direct_is_tcp(int fd)
{
	(void)fd;
	return true;
}

/* It is full just now. */
ssize_t weft__direct_send(int fd, const void *buf, size_t bytes, int flags)
{
	(void)fd, (void)buf, (void)bytes, (void)flags;
	return -EAGAIN;
}

/* A stream is never busy. */
int weft__files_enter(struct weft__files *files, struct weft__ring *ring,
		      int fd)
{
	(void)files, (void)ring, (void)fd;
	return -1;
}

void weft__files_leave(struct weft__files *files, struct weft__ring *ring,
		       int place)
{
	(void)files, (void)ring, (void)place;
}

/* What the last completion said was told before. */
int weft_close(int fd)
{
	model_assert(fd == FD && closed++ == 0, "a descriptor is closed once");
	model_assert(!in_kernel[RECEIVES].live && !in_kernel[SENDS].live,
		     "a request ends before its descriptor");
	return 0;
}

static void *own_take(void)
{
	if (happens(&failures))
		return NULL;
	model_renew(own, sizeof(own));
	return own;
}

static void own_free(void *freed)
{
	if (freed)
		model_free(own, sizeof(own));
}

/* The lock was dropped before the wake-up; then another may be the next to
 * reap. */
static void reap_one(void)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__completion completion;
	uint64_t id = 0;
	bool more;

	weft__shard_lock(served);
	more = kernel_carries_out(RECEIVES, &completion) ||
	       kernel_carries_out(SENDS, &completion);
	if (more)
		id = weft__stream_complete(worker, &completion);
	(void)weft__trylock_drop(&served->lock);
	if (more)
		model_post(&due);
	if (id)
		(void)weft__wake(worker, weft__task_at(&runtime, id), id);
}

static void reap(void *arg)
{
	(void)arg;
	model_daemon();
	for (;;) {
		(void)model_wait(&due);
		reap_one();
	}
}

/*
 * Setting up.
 */

static void pool_setup(struct weft__shard *shard, unsigned kind, unsigned made)
{
	struct weft__pool *buffers = &shard->pools[kind];

	buffers->ring = (void *)entries[kind];
	buffers->memory = memory[kind];
	buffers->pieces = pieces[kind];
	buffers->each = BUFFER_BYTES;
	buffers->most = BUFFERS;
	buffers->group = (uint16_t)kind;
	while (buffers->made < made)
		weft__pool_give(buffers, buffers->made++);
}

/* A stream that was not used yet, and so many buffers for it. */
static void setup_stream(unsigned buffers)
{
	requests_setup();
	memset(&stream, 0, sizeof(stream));
	memset(pieces, 0, sizeof(pieces));
	memset(entries, 0, sizeof(entries));
	memset(taken, 0, sizeof(taken));
	memset(&due, 0, sizeof(due));
	memset(in_kernel, 0, sizeof(in_kernel));
	deaths = refusals = failures = 0;
	sent = read_so_far = 0;
	closed = 0;
	fault = 0;
	to_send = 1;
	piece_bytes = 1;
	end = 0;
	end_has_buffer = false;
	served = &shards[0];
	pool[READER_TOO].shard = &shards[0];
	for (unsigned i = 0; i < 2; i++) {
		shards[i].ring.uring.sq.kflags = &no_completions[0];
		shards[i].ring.uring.cq.khead = &no_completions[1];
		shards[i].ring.uring.cq.ktail = &no_completions[2];
	}
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		pool[i].ops_left = WEFT__OPS_BUDGET;
	pool_setup(served, WEFT__POOL_SMALL, buffers);
	weft_stream_init(&stream, FD);
	model_name(&weft__stream(&stream)->word, "word");
	model_name(&weft__stream(&stream)->reader, "reader");
	model_name(&stream, "stream");
	model_name(&shards[0].lock, "lock");
	model_name(&shards[0].pools[0].returned, "returned");
	model_name(&in_kernel[RECEIVES].cancelled, "cancelled");
	model_name(&due, "due");
}

/* The kernel has the request, one for all that comes. */
static void arm(struct weft__worker *home)
{
	struct weft__stream *s = weft__stream(&stream);

	s->owns = s->began = true;
	fds[FD].owned = true;
	s->home = home;
	s->pool = pool_of(WEFT__POOL_SMALL);
	s->said = WEFT__STREAM_SAID_NOTHING;
	s->word = WEFT__STREAM_ARMED;
	in_kernel[RECEIVES].sqe = stream_request(s, true);
	in_kernel[RECEIVES].live = true;
	due.count = 1;
}

/* Where is it, of the pool's buffers? */
static unsigned places(unsigned kind, uint32_t piece)
{
	const struct weft__pool *buffers = pool_of(kind);
	unsigned count = 0;

	for (uint16_t i = taken[kind]; i != (uint16_t)buffers->given; i++)
		count += buffers->ring->bufs[i & (BUFFERS - 1)].bid == piece;
	for (uint32_t i = buffers->returned; i; i = buffers->pieces[i - 1].next)
		count += i - 1 == piece;
	return count;
}

static void check_pools(void)
{
	for (unsigned kind = 0; kind < WEFT__POOLS; kind++)
		for (uint32_t i = 0; i < pool_of(kind)->made; i++)
			model_assert(places(kind, i) == 1,
				     "P1: a buffer is in one place");
}

#endif
