/* SPDX-License-Identifier: MIT */
/*
 * Model of the first accept on a socket while the socket is closed
 * (io/listen/accept.c, io/listen/listener.c, io/listen/multishot_accept.c,
 * io/request/close.c).  The request is refused, or is cancelled before the
 * kernel closes the socket: a request between the two would keep the socket
 * open, and never end.  A task that accepts later leaves no listener behind.
 *
 * Thread 0 is a task, or polls a future, that accepts; thread 2 is a task that
 * closes.  No new file gets the number.
 */
#include "tests/model/requests.h"

/* Names that two sources have. */
#include "io/request/op.c"
#include "io/request/close.c"
#define begin begin_to_accept
#define await_begin await_begin_to_accept
#define await_end await_end_of_accept
#define await_late await_accept_late
#include "io/listen/accept.c"
#define wake wake_by_id
#include "io/listen/multishot_accept.c"
#undef wake

enum { LISTENERS = 4 };

static struct weft__listener listeners[LISTENERS];
static unsigned made, freed;

static struct weft__listener *listener_memory(void)
{
	model_assert(made < LISTENERS, "there is an end of making listeners");
	return &listeners[made++];
}

static void listener_memory_free(struct weft__listener *listener)
{
	freed++;
	model_free(listener, sizeof(*listener));
}

#define calloc(count, bytes) ((void)(bytes), listener_memory())
#define free(listener) listener_memory_free(listener)
#include "io/listen/listener.c"
#undef calloc
#undef free

/* The socket, and the request on it; under the kernel's lock. */
static struct model_mutex kernel;
static bool is_open, armed, has_ended;
static uint64_t armed_data;
static unsigned submissions;
/* The task that waits for time to pass, or 0: until something happens. */
static uint64_t paused[RECORDS];

/*
 * The kernel.
 */

static void complete(uint64_t user_data, int32_t result)
{
	struct weft__completion completion = {
		.user_data = user_data,
		.result = result,
	};

	(void)weft__multishot_accept_complete(weft__worker_self(), &completion);
}

static void time_passes(void)
{
	uint64_t ids[RECORDS];

	model_lock(&kernel);
	memcpy(ids, paused, sizeof(ids));
	memset(paused, 0, sizeof(paused));
	model_unlock(&kernel);
	for (unsigned i = 0; i < RECORDS; i++)
		if (ids[i])
			(void)weft__wake(weft__worker_self(), &records[i],
					 ids[i]);
}

void weft__shard_lock(struct weft__shard *shard)
{
	model_assert(weft__trylock_try(&shard->lock), "nobody else submits");
}

bool weft__shard_submit(struct weft__shard *shard,
			const struct weft__request *request, uint64_t user_data)
{
	bool accepts;

	(void)shard, (void)request;
	model_lock(&kernel);
	accepts = is_open;
	if (accepts) {
		armed = true;
		armed_data = user_data;
	}
	submissions++;
	model_unlock(&kernel);
	if (!accepts)
		complete(user_data, -EBADF);
	time_passes();
	return true;
}

int weft__shard_cancel(struct weft__shard *shard, uint64_t user_data)
{
	bool cancelled;

	(void)shard;
	model_lock(&kernel);
	cancelled = armed && armed_data == user_data;
	if (cancelled)
		armed = false;
	model_unlock(&kernel);
	if (cancelled)
		complete(user_data, -ECANCELED);
	return cancelled ? 0 : -ENOENT;
}

bool weft__syscall_lingers(int fd)
{
	(void)fd;
	return false;
}

int weft__syscall_close(int fd)
{
	(void)fd;
	model_lock(&kernel);
	model_assert(!armed, "no socket is closed that a request is on");
	is_open = false;
	model_unlock(&kernel);
	return 0;
}

bool weft__syscall_is_open(int fd)
{
	bool open;

	(void)fd;
	model_lock(&kernel);
	open = is_open;
	model_unlock(&kernel);
	return open;
}

void weft__shard_flush(struct weft__shard *shard)
{
	(void)shard;
}

void weft__shard_relieve(struct weft__shard *shard)
{
	(void)shard;
}

int weft__syscall_peer(int fd, struct sockaddr_storage *ret_address,
		      socklen_t *ret_bytes)
{
	(void)fd, (void)ret_address, (void)ret_bytes;
	return -ENOTCONN;
}

int weft_addr_from_sockaddr(const struct sockaddr *sockaddr, socklen_t bytes,
			    struct weft_addr *ret_addr)
{
	(void)sockaddr, (void)bytes, (void)ret_addr;
	return -EINVAL;
}

/* There are no connections. */
void weft__fd_discard(struct weft__fd_table *of, int fd)
{
	(void)of;
	model_assert(fd < 0, "there is no connection");
}

/*
 * Time passes until the request is submitted, or the close has ended.
 */

static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	bool passed;

	(void)worker, (void)deadline_ns;
	alarm->armed = true;
	model_lock(&kernel);
	passed = has_ended || submissions;
	if (!passed)
		paused[(uint32_t)alarm->task] = alarm->task;
	model_unlock(&kernel);
	if (passed)
		(void)weft__wake(weft__worker_self(),
				 &records[(uint32_t)alarm->task], alarm->task);
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	(void)of;
	alarm->armed = false;
	model_lock(&kernel);
	paused[(uint32_t)alarm->task] = 0;
	model_unlock(&kernel);
	return false;
}

/*
 * The threads.
 */

static void accepted(int r)
{
	model_assert(r == -ECANCELED || r == -EBADF, "it was closed");
}

static int64_t accepts(void)
{
	int r = weft_await_accept(FD, NULL);

	if (r == WEFT_PENDING)
		return r;
	accepted(r);
	return 0;
}

static void setup(void *arg)
{
	(void)arg;
	requests_setup();
	memset(listeners, 0, sizeof(listeners));
	memset(&kernel, 0, sizeof(kernel));
	memset(paused, 0, sizeof(paused));
	made = freed = submissions = 0;
	is_open = true;
	armed = has_ended = false;
	/* Task 2, which closes, is started as well. */
	records[2].state = WEFT__GENERATION;
	pool[2].current = &records[2];
	weft__scope_link(&records[2]);
	model_name(listeners, "listener");
	model_name(&kernel, "kernel");
}

static void setup_future(void *arg)
{
	setup(arg);
	future_setup(0, accepts);
}

static void check(void *arg)
{
	(void)arg;
	requests_check(arg);
	model_assert(!is_open && !armed, "the socket is closed");
	model_assert(made == freed && !fds[FD].listener,
		     "each listener is freed, and none is made later");
}

static void close_it(void *arg)
{
	(void)arg;
	model_assert(weft__socket_close(FD) == 0, "a socket can be closed");
	model_lock(&kernel);
	has_ended = true;
	model_unlock(&kernel);
	time_passes();
}

THREAD(accepts_0, accepted(weft_accept(FD, NULL));)
THREAD(polls_0, future_serve(0);)
THREAD(nothing, ;)

#define NEWEST OPTIONS(.preemptions = 3, .weak = MODEL_NONE)

MODEL(accept_meets_close, setup, check, NEWEST, accepts_0, nothing, close_it)
MODEL(await_accept_meets_close, setup_future, check, NEWEST, polls_0, nothing,
      close_it)

int main(void)
{
	const TTest *const tests[] = {
		accept_meets_close,
		await_accept_meets_close,
		NULL,
	};

	return kit_main("accept_close", tests);
}
