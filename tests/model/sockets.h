/* SPDX-License-Identifier: MIT */
/*
 * Sockets - a connection as a model, and the functions of io/ that streams
 * call.
 *
 * The kernel has up to three requests of a stream: to receive, to send the
 * bytes that were put, and to send for a task that waits until it has sent.  A
 * worker that reaps a ring carries out the requests in it under the shard's
 * lock, one completion at a time.  The model chooses the results.
 *
 * The peer looks at the bytes it gets: the bytes that were put are 1, 2, 3,
 * ...; zeroes are of no interest to it.
 */
#ifndef WEFT_TESTS_MODEL_SOCKETS_H
#define WEFT_TESTS_MODEL_SOCKETS_H

#define TASKS_WAITS
#include "tests/model/requests.h"
#include "tests/model/waits.h"

#include "io/request/op.c"
/* Its memory is the model's own. */
#undef mmap
#undef munmap
#define mmap(at, bytes, ...) ((void)(bytes), MAP_FAILED)
#define munmap(...) ((void)0)
#include "io/request/recv_buffers.c"

#define weft__memory_new(from, bytes) ((void)(from), memory_take(bytes))
#define weft__memory_free(from, memory, bytes) \
	((void)(from), (void)(bytes), memory_free(memory))
static void *memory_take(size_t bytes);
static void memory_free(void *memory);
#include "io/request/send_buffer.c"
#include "io/stream/stream.c"
#include "io/stream/stream_close.c"
#include "io/stream/stream_read.c"
#include "io/stream/stream_file.c"
/* Small enough to be full. */
#define WEFT__SEND_BUFFER_BYTES 2u
#define memcpy copy_announced
#include "io/stream/stream_put.c"
#undef memcpy
#include "io/stream/stream_send.c"
#include "io/stream/stream_complete.c"
#include "io/stream/stream_look.c"
#undef weft__memory_new
#undef weft__memory_free

/* A stream over something else has no requests: nothing to interleave. */
int weft__stream_fill(struct weft__stream *it)
{
	(void)it;
	abort();
}

int weft__stream_write_over(struct weft__stream *it, const void *buf,
			    size_t bytes, size_t *ret_done)
{
	(void)it, (void)buf, (void)bytes, (void)ret_done;
	abort();
}

int weft__stream_drain_over(struct weft__stream *it)
{
	(void)it;
	abort();
}

void weft__stream_push_over(struct weft__stream *it)
{
	(void)it;
	abort();
}

enum {
	OWNER = 2,	/* the worker of ring 1 */
	READER_TOO = 4, /* the other worker of thread 0 */
	OWNER_TOO = 6,	/* of thread 2 */
	BUFFERS = 8,
	BUFFER_BYTES = 8,
	OUTS = 4,
	NOTHING_MORE = INT32_MIN, /* an end that does not come */
};

static struct weft_stream stream;
static struct weft__shard *served; /* has the ring that receives */
static struct weft__shard reapers; /* worker 1's own */
static char memory[WEFT__POOLS][BUFFERS * (BUFFER_BYTES + WEFT__LINE_BYTES)];
static char own[1];
static struct weft__send_buffer outs[OUTS];
static bool out_is_used[OUTS];
static struct weft__piece pieces[WEFT__POOLS][BUFFERS];
static struct weft__ring_buffer entries[WEFT__POOLS][BUFFERS];

/* The kernel's, under the shard's lock. */
enum { RECEIVES, SENDS, PUTS, REQUESTS };

static struct request {
	struct asked asked;
	bool live;
	/* Any thread sets it.  relaxed: the kernel's orders are not
	 * modelled. */
	weft__atomic(uint32_t) cancelled;
} in_kernel[2][REQUESTS];
static uint16_t taken[WEFT__POOLS];
static uint8_t sent; /* by the peer */
static uint8_t got;  /* by the peer, of the bytes put */
static bool failed;  /* to send, once */
static unsigned no_completions[3];
static struct model_event due[2]; /* something to reap, perhaps */

/* The choices of each model. */
static uint8_t to_send;
static uint32_t piece_bytes;
static int32_t end;	    /* the end, behind the bytes */
static bool end_has_buffer; /* the end names an empty buffer */
static int32_t fault;	    /* the first completion's result, if not 0 */
static unsigned deaths;	    /* requests that may end with a piece */
static unsigned refusals;   /* to cancel, or to take a request */
static unsigned failures;   /* to have memory */
static uint8_t end_after;   /* bytes put, and got, before the end */
static bool deaf;	    /* the peer takes nothing, */
static unsigned shorts;	    /* or not all, */
static unsigned blocks;	    /* or nothing now, */
static unsigned breaks;	    /* or it fails */
static unsigned directs;      /* sends that need not wait */

/* The reader's, whichever task reads. */
static uint8_t read_so_far;
static uint8_t put_so_far;
static unsigned closed;
static struct model_event handed; /* from one task to the other */

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
	const struct weft__ring_buffer *buf;

	if (taken[group] == weft__load(&buffers->ring->tail, acquire))
		return false;
	buf = &buffers->ring[taken[group]++ & (buffers->max - 1)];
	completion->flags = WEFT__COMPLETION_BUFFER |
			    (uint32_t)buf->id << WEFT__COMPLETION_BUFFER_SHIFT;
	*ret_at = (void *)(uintptr_t)buf->address;
	return true;
}

static void kernel_receives(const struct weft__request *request,
			    struct weft__completion *completion)
{
	bool selects = request->flags & WEFT__REQUEST_BUFFERS;
	char *at = (void *)(uintptr_t)request->memory;

	if (selects && !kernel_picks(request->group, completion, &at)) {
		completion->result = -ENOBUFS;
		return;
	}
	*at = (char)++sent;
	completion->result = (int32_t)piece_bytes;
	if ((request->flags & WEFT__REQUEST_MULTISHOT) && !happens(&deaths))
		completion->flags |= WEFT__COMPLETION_MORE;
}

static void kernel_ends(const struct weft__request *request,
			struct weft__completion *completion)
{
	char *at;

	if (end_has_buffer && (request->flags & WEFT__REQUEST_BUFFERS))
		(void)kernel_picks(request->group, completion, &at);
	completion->result = end;
}

/* The peer takes n bytes. */
static int32_t peer_takes(const void *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t byte = ((const uint8_t *)bytes)[i];

		model_assert(!byte || byte == ++got,
			     "what was put is sent in order, and once");
	}
	return (int32_t)n;
}

static int32_t kernel_sends(const void *bytes, uint32_t n)
{
	if (happens(&breaks)) {
		failed = true;
		return -ENOMEM;
	}
	if (happens(&blocks))
		return -EAGAIN;
	return peer_takes(bytes, n > 1 && happens(&shorts) ? n - 1 : n);
}

/* The kernel may have sent a part before. */
static int32_t kernel_gives_up(unsigned i, const struct weft__request *request)
{
	if (i == PUTS && request->opcode == WEFT__OPCODE_SEND &&
	    request->bytes > 1 && happens(&shorts))
		return peer_takes(request->memory, 1);
	return -ECANCELED;
}

static bool kernel_is_able(unsigned ring, unsigned i)
{
	const struct request *request = &in_kernel[ring][i];

	if (!request->live)
		return false;
	if (weft__load(&request->cancelled, relaxed) || fault)
		return true;
	if (i != RECEIVES)
		return !deaf;
	if (sent < to_send)
		return true;
	return end != NOTHING_MORE &&
	       (!end_after || got >= end_after || failed);
}

static void kernel_carries_out(unsigned ring, unsigned i,
			       struct weft__completion *completion)
{
	struct request *at = &in_kernel[ring][i];
	const struct weft__request *request = &at->asked.request;

	*completion = (struct weft__completion){
		.user_data = at->asked.user_data
	};
	if (weft__load(&at->cancelled, relaxed))
		completion->result = kernel_gives_up(i, request);
	else if (request->opcode == WEFT__OPCODE_POLL)
		completion->result = i == RECEIVES ? POLLIN : POLLOUT;
	else if (fault)
		completion->result = fault;
	else if (i != RECEIVES)
		completion->result =
			kernel_sends(request->memory, request->bytes);
	else if (sent < to_send)
		kernel_receives(request, completion);
	else
		kernel_ends(request, completion);
	if (fault)
		fault = 0;
	at->live = completion->flags & WEFT__COMPLETION_MORE;
}

/* Carries out one of the requests that are able to.  False: none is now. */
static bool kernel_completes(unsigned ring, struct weft__completion *completion)
{
	unsigned able[REQUESTS], n = 0;

	for (unsigned i = 0; i < REQUESTS; i++)
		if (kernel_is_able(ring, i))
			able[n++] = i;
	if (n > 0)
		kernel_carries_out(ring, able[n > 1 ? model_choose(n) : 0],
				   completion);
	return n > 0;
}

static unsigned request_of(uint64_t user_data)
{
	if (user_data & WEFT__SENDING)
		return SENDS;
	return user_data & WEFT__PUTTING ? PUTS : RECEIVES;
}

static void kernel_takes(unsigned ring, const struct asked *taken_now)
{
	struct request *at =
		&in_kernel[ring][request_of(taken_now->user_data)];

	model_assert(!at->live, "a stream has one request of a kind");
	at->asked = *taken_now;
	at->live = true;
	weft__store(&at->cancelled, 0, relaxed);
	model_post(&due[ring]);
}

static unsigned ring_of(const struct weft__shard *shard)
{
	return (unsigned)(shard - shards);
}

static void kernel_submits(struct weft__shard *shard)
{
	struct weft__ring *ring = &shard->ring;
	/* relaxed: under the lock. */
	unsigned head = weft__load(ring->head, relaxed);

	for (; head != weft__load(ring->published, acquire); head++)
		kernel_takes(ring_of(shard),
			     &asked[ring_of(shard)][head % ENTRIES]);
	weft__store(ring->head, head, release);
}

/* It may answer that there is nothing to cancel, whatever happens. */
static int kernel_cancels(unsigned ring, uint64_t user_data)
{
	if (happens(&refusals))
		return -ENOENT;
	weft__store(&in_kernel[ring][request_of(user_data)].cancelled, 1,
		    relaxed);
	model_post(&due[ring]);
	return 0;
}

bool weft__is_masked(enum weft__feature feature)
{
	(void)feature;
	return false;
}

int weft__ring_cancel(struct weft__ring *ring, uint64_t user_data)
{
	model_assert(ring == &served->ring, "it is cancelled where it is");
	return kernel_cancels(ring_of(served), user_data);
}

int weft__ring_add_buffers(struct weft__ring *ring,
			   struct weft__ring_buffer *buffers, uint32_t count,
			   uint8_t group)
{
	(void)ring, (void)buffers, (void)count, (void)group;
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

/* All is submitted immediately; a worker does so when it parks. */
void weft__shard_relieve(struct weft__shard *shard)
{
	weft__shard_flush(shard);
}

bool weft__shard_submit(struct weft__shard *shard,
			const struct weft__request *request, uint64_t user_data)
{
	model_assert(weft__ring_has_room(&shard->ring), "an entry is free");
	weft__ring_prepare(&shard->ring, request, user_data);
	weft__ring_publish(&shard->ring);
	if (!happens(&refusals))
		kernel_submits(shard);
	return !weft__ring_withdraw(&shard->ring);
}

int weft__shard_cancel(struct weft__shard *shard, uint64_t user_data)
{
	return kernel_cancels(ring_of(shard), user_data);
}

/* Pauses end immediately. */
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
 * Stand-ins for the other functions that a stream calls.
 */

/* For a task that writes; the socket is ready when the task runs again. */
int32_t weft__op_await_ready(int fd, struct weft__fd *entry, unsigned events,
			     unsigned tries)
{
	struct weft__worker *worker;
	int r;

	(void)fd, (void)entry, (void)tries;
	suspend_shortly();
	worker = weft__worker_self();
	r = weft__interrupted(worker, worker->current);
	return r < 0 ? r : (int32_t)events;
}

bool weft__syscall_is_tcp(int fd)
{
	(void)fd;
	return true;
}

bool weft__syscall_is_stream(int fd)
{
	(void)fd;
	return true;
}

/* The socket is full, but `directs` sends may go through. */
ssize_t weft__syscall_send(int fd, const void *buf, size_t bytes, int flags)
{
	(void)fd, (void)flags;
	if (!happens(&directs))
		return -EAGAIN;
	return kernel_sends(buf, (uint32_t)bytes);
}

/* A stream is never busy. */
int weft__fixed_files_enter(struct weft__fixed_files *files,
			    struct weft__ring *ring, int fd)
{
	(void)files, (void)ring, (void)fd;
	return -1;
}

void weft__fixed_files_leave(struct weft__fixed_files *files,
			     struct weft__ring *ring, int place)
{
	(void)files, (void)ring, (void)place;
}

/* The stream has learnt the results of all requests before. */
int weft__socket_close(int fd)
{
	model_assert(fd == FD && closed++ == 0, "a descriptor is closed once");
	for (unsigned i = 0; i < REQUESTS; i++)
		model_assert(!in_kernel[0][i].live && !in_kernel[1][i].live,
			     "a request ends before its descriptor");
	return 0;
}

int weft_close(int fd)
{
	return weft__socket_close(fd);
}

static MODEL_UNSEEN struct weft__send_buffer *out_take(void)
{
	unsigned i = 0;

	while (out_is_used[i])
		model_assert(++i < OUTS, "buffers are used again");
	out_is_used[i] = true;
	return &outs[i];
}

static MODEL_UNSEEN bool out_free(const void *freed)
{
	size_t i = (size_t)((const struct weft__send_buffer *)freed - outs);

	if (i >= OUTS)
		return false;
	model_assert(out_is_used[i], "a buffer is freed once");
	out_is_used[i] = false;
	return true;
}

static void *memory_take(size_t bytes)
{
	bool is_out = bytes == sizeof(struct weft__send_buffer);
	void *memory = own;

	if (happens(&failures))
		return NULL;
	if (is_out)
		memory = out_take();
	model_renew(memory, is_out ? bytes : sizeof(own));
	return memory;
}

static void memory_free(void *freed)
{
	if (freed)
		model_free(freed, out_free(freed) ?
					  sizeof(struct weft__send_buffer) :
					  sizeof(own));
}

/* The lock is dropped before the wake-up; then another thread may reap next. */
static void reap_one(unsigned ring)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__completion completion;
	uint64_t id = 0;
	bool more;

	weft__shard_lock(&shards[ring]);
	more = kernel_completes(ring, &completion);
	if (more)
		id = weft__stream_complete(worker, &completion);
	(void)weft__trylock_drop(&shards[ring].lock);
	if (more)
		model_post(&due[ring]);
	if (id)
		(void)weft__wake(worker, weft__task_at(&runtime, id), id);
}

static void reap_ring(unsigned ring)
{
	model_daemon();
	for (;;) {
		(void)model_wait(&due[ring]);
		reap_one(ring);
	}
}

THREAD(reap, reap_ring(ring_of(served));)
THREAD(reap_0, reap_ring(0);)
THREAD(reap_1, reap_ring(1);)

#endif
