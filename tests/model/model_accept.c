/* SPDX-License-Identifier: MIT */
/*
 * Model of accepting (io/listen/accept.c, io/listen/listener.c,
 * io/listen/multishot_accept.c).  Connections meet waiting futures or a waiting
 * task, cancellations and a close.  Each connection is taken once, is kept for
 * the next call, or is closed with the listener.  A call that was given a
 * connection returns it, however it was interrupted.  No task is left asleep.
 *
 * The request of the listener is armed from the start.  Thread 0 is a task, or
 * polls a future; thread 2 polls another.
 */
#include "tests/model/requests.h"

/* Names that two sources have. */
#include "io/request/op.c"
#define begin begin_to_accept
#define await_begin await_begin_to_accept
#define await_end await_end_of_accept
#include "io/listen/accept.c"
#define wake wake_by_id
#include "io/listen/multishot_accept.c"
#undef wake
#include "io/listen/listener.c"

/* Connections are numbers below that of the listener. */
enum { FIRST = 1, SECOND = 2 };

static struct weft__listener listener;
static unsigned arrived, taken[FD], discarded[FD];
static bool closed;
/* The facts about a connection that are known when it is given. */
static uint64_t known[FD];

/*
 * The kernel, and time.
 */

void weft__shard_lock(struct weft__shard *shard)
{
	(void)shard;
	model_assert(false, "the request is armed");
}

void weft__shard_flush(struct weft__shard *shard)
{
	(void)shard;
}

void weft__shard_relieve(struct weft__shard *shard)
{
	(void)shard;
}

bool weft__shard_submit(struct weft__shard *shard,
			const struct weft__request *request, uint64_t user_data)
{
	(void)shard, (void)request, (void)user_data;
	return false;
}

bool weft__syscall_is_open(int fd)
{
	(void)fd;
	return true;
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

void weft__fd_discard(struct weft__fd_table *of, int fd)
{
	(void)of;
	if (fd >= 0)
		discarded[fd]++;
}

static void complete(int32_t result, uint32_t flags)
{
	struct weft__completion completion = {
		.user_data =
			weft__multishot_accept_user_data(listener.number, FD),
		.result = result,
		.flags = flags,
	};

	(void)weft__multishot_accept_complete(weft__worker_self(), &completion);
}

/* That is the last completion. */
int weft__shard_cancel(struct weft__shard *shard, uint64_t user_data)
{
	(void)shard, (void)user_data;
	complete(-ECANCELED, 0);
	return 0;
}

/* There is no deadline, and no pause. */
static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	(void)worker, (void)alarm, (void)deadline_ns;
	model_assert(false, "nothing is to be tried again");
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	(void)of, (void)alarm;
	return false;
}

/*
 * The threads.
 */

static void accepted(int r)
{
	model_assert(r >= 0 || r == -ECANCELED || (r == -EBADF && closed),
		     "it has a connection, or none");
	if (r < 0)
		return;
	model_assert(known[r] == 1, "what came with it is seen");
	taken[r]++;
}

static int64_t accepts(void)
{
	int r = weft_await_accept(FD, NULL);

	if (r == WEFT_PENDING)
		return r;
	accepted(r);
	return 0;
}

static void setup(void)
{
	requests_setup();
	memset(&listener, 0, sizeof(listener));
	memset(known, 0, sizeof(known));
	memset(taken, 0, sizeof(taken));
	memset(discarded, 0, sizeof(discarded));
	arrived = 0;
	closed = false;
	listener.fd = FD;
	listener.number = 7;
	listener.state = WEFT__LISTENER_ARMED;
	listener.waiting_end = &listener.waiting;
	listener.link = &reactor.listeners;
	reactor.listeners = &listener;
	fds[FD].listener = &listener;
	model_name(&listener, "listener");
	model_name(known, "known");
}

/* Task 0 accepts. */
static void setup_task(void *arg)
{
	(void)arg;
	setup();
}

static void setup_one(void *arg)
{
	(void)arg;
	setup();
	future_setup(0, accepts);
}

static void setup_two(void *arg)
{
	setup_one(arg);
	records[2].state = WEFT__GENERATION;
	future_setup(2, accepts);
}

/* Whether the connection is kept for the next call. */
static unsigned kept(int fd)
{
	int at = listener.accepted_first;
	unsigned count = 0;

	for (unsigned i = 0; i < listener.accepted_count; i++) {
		count += at == fd;
		at = fds[at].next_accepted;
	}
	return count;
}

static void check(void *arg)
{
	(void)arg;
	futures_check();
	model_assert(!listener.waiting, "nobody is left in the queue");
	for (int fd = FIRST; fd < FIRST + (int)arrived; fd++)
		model_assert(taken[fd] + discarded[fd] + kept(fd) == 1,
			     "each connection is taken, kept or closed, once");
	for (int fd = FIRST; fd < FD; fd++)
		model_assert(closed || !discarded[fd],
			     "none is closed that somebody could have");
}

static void connections_arrive(int count)
{
	for (int fd = FIRST; fd < FIRST + count; fd++) {
		arrived++;
		known[fd] = 1;
		complete(fd, WEFT__COMPLETION_MORE);
	}
}

static void close_listener(void)
{
	weft__lock_take(&fds[FD].lock);
	closed = true;
	fds[FD].closing = true;
	weft__lock_drop(&fds[FD].lock);
	(void)weft__listener_end(weft__worker_self(), &fds[FD]);
}

THREAD(accepts_0, accepted(weft_accept(FD, NULL));)
THREAD(polls_0, future_serve(0);)
THREAD(polls_2, future_serve(2);)
THREAD(one_arrives, connections_arrive(1);)
THREAD(two_arrive, connections_arrive(2);)
THREAD(cancels, (void)weft_cancel(handle_of(0));)
THREAD(cancels_both, (void)weft_cancel(handle_of(0));
       (void)weft_cancel(handle_of(2));)
THREAD(wakes, wake(0);)
THREAD(wakes_and_arrives, wake(0); connections_arrive(1);)
THREAD(closes, close_listener();)

#define NEWEST OPTIONS(.preemptions = 2, .weak = MODEL_NONE)

MODEL(accept_meets_connection, setup_one, check,
      OPTIONS(.preemptions = 2, .weak = 1), polls_0, one_arrives, polls_0)
MODEL(accept_meets_wakes, setup_one, check, NEWEST, polls_0, wakes_and_arrives,
      polls_0, wakes)
MODEL(accept_meets_cancel, setup_one, check,
      OPTIONS(.preemptions = 2, .weak = 1), polls_0, one_arrives, cancels)
MODEL(accept_meets_close, setup_one, check,
      OPTIONS(.preemptions = 2, .weak = 1), polls_0, one_arrives, closes)
MODEL(accept_meets_cancel_and_close, setup_one, check, NEWEST, polls_0, closes,
      cancels)
MODEL(task_meets_cancel, setup_task, check,
      OPTIONS(.preemptions = 2, .weak = 1), accepts_0, one_arrives, cancels)
MODEL(task_meets_close, setup_task, check, OPTIONS(.preemptions = 2, .weak = 1),
      accepts_0, one_arrives, closes)
MODEL(two_accept, setup_two, check, NEWEST, polls_0, two_arrive, polls_2)
MODEL(two_accept_and_one_is_cancelled, setup_two, check, NEWEST, polls_0,
      one_arrives, polls_2, cancels_both)

int main(void)
{
	const TTest *const tests[] = {
		accept_meets_connection,
		accept_meets_wakes,
		accept_meets_cancel,
		accept_meets_close,
		accept_meets_cancel_and_close,
		task_meets_cancel,
		task_meets_close,
		two_accept,
		two_accept_and_one_is_cancelled,
		NULL,
	};

	return kit_main("accept", tests);
}
