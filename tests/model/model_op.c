/* SPDX-License-Identifier: MIT */
/*
 * Model of the hand-over of completions (io/op.[ch]), and of closing a
 * descriptor (io/fd.h, io/close.c): a call returns with its result after its
 * completion, however it was woken meanwhile, and its memory is then its own; a
 * stale completion ends nothing; a closer is woken when the last operation has
 * ended.
 *
 * One thread is the kernel and the worker that reaps: it carries out a request
 * as soon as that was submitted, which here is at once.
 */
#define TASKS_TIME
#include "tests/model/tasks.h"

#include <liburing.h>

#undef io_uring_smp_load_acquire
#undef io_uring_smp_store_release
#define io_uring_smp_load_acquire(p) weft__load(p, acquire)
#define io_uring_smp_store_release(p, v) weft__store(p, v, release)

#include "io/close.c"
#include "io/op.c"

enum { ENTRIES = 4, FD = 3 };

static struct weft__reactor reactor;
static struct weft__shard shards[2];
static unsigned heads[2], tails[2];
static struct io_uring_sqe sqes[2][ENTRIES];
static struct weft__fd fds[FD + 1];
static struct weft__fd *fd_chunks[1] = { fds };
static struct weft__listener listener;
static struct model_event submitted;
static int32_t buffer;
/* relaxed: the kernel's own orders are not modelled. */
static weft__atomic(uint32_t) cancelled;
static unsigned refusals;
static unsigned carried; /* requests, by the kernel */

/*
 * The ring.
 */

void weft__shard_flush(struct weft__shard *shard)
{
	(void)shard;
	model_post(&submitted);
}

unsigned weft__shard_serve(struct weft__worker *worker,
			   struct weft__shard *shard)
{
	(void)worker, (void)shard;
	return 0;
}

/* It may say once that there is nothing to be cancelled, whatever happens. */
int weft__shard_cancel(struct weft__shard *shard, uint64_t user_data)
{
	(void)shard, (void)user_data;
	if (refusals && model_choose(2)) {
		refusals--;
		return -ENOENT;
	}
	weft__store(&cancelled, 1, relaxed);
	return 0;
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
 * What is not modelled.
 */

/* True: nobody will wake the closer for it, or its accept was cancelled. */
bool weft__listener_end(struct weft__worker *worker, struct weft__fd *entry)
{
	(void)worker;
	return entry->listener->state == WEFT__LISTENER_IDLE;
}

void weft__listener_free(struct weft__reactor *of,
			 struct weft__listener *freed)
{
	(void)of;
	model_assert(freed == &listener, "the listener of the descriptor");
	model_free(freed, sizeof(*freed));
}

void weft__listeners_feed(struct weft__worker *worker)
{
	(void)worker;
}

int weft__fd_make(struct weft__fds *of, int fd, struct weft__fd **ret_entry)
{
	(void)of, (void)fd, (void)ret_entry;
	return -ENOMEM;
}

/*
 * The threads.
 */

static void setup(void *arg)
{
	(void)arg;
	tasks_setup(1);
	memset(&reactor, 0, sizeof(reactor));
	memset(shards, 0, sizeof(shards));
	memset(heads, 0, sizeof(heads));
	memset(tails, 0, sizeof(tails));
	memset(sqes, 0, sizeof(sqes));
	memset(fds, 0, sizeof(fds));
	memset(&listener, 0, sizeof(listener));
	memset(&submitted, 0, sizeof(submitted));
	buffer = 0;
	cancelled = 0;
	refusals = 0;
	carried = 0;
	reactor.runtime = &runtime;
	reactor.fds.chunks = fd_chunks;
	runtime.driver = &reactor;
	for (unsigned i = 0; i < 2; i++) {
		pool[2 * i].shard = &shards[i];
		shards[i].ring.mask = ENTRIES - 1;
		shards[i].ring.uring.sq.khead = &heads[i];
		shards[i].ring.uring.sq.ktail = &tails[i];
		shards[i].ring.uring.sq.sqes = sqes[i];
	}
	/* As after its first wait. */
	weft__scope_link(&records[0]);
	model_name(&records[0].op, "op");
	model_name(&records[0], "task 0");
	model_name(&records[2], "task 2");
	model_name(&fds[FD], "entry");
	model_name(&buffer, "buffer");
}

static void setup_refused(void *arg)
{
	setup(arg);
	refusals = 1;
}

static void setup_close(void *arg)
{
	setup(arg);
	/* Task 2, which closes, is started as well. */
	records[2].state = WEFT__GENERATION;
	pool[2].current = &records[2];
	weft__scope_link(&records[2]);
}

/* Something listens on the descriptor, and accepts nothing just now. */
static void setup_listener(void *arg)
{
	setup(arg);
	listener.state = WEFT__LISTENER_IDLE;
	fds[FD].listener = &listener;
}

static void check_end(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(!(records[0].op & WEFT__OP_PENDING), "nothing is pending");
	model_assert(!fds[FD].waiting && !fds[FD].closing,
		     "nobody is known to wait");
}

static int32_t operate(unsigned flags)
{
	struct io_uring_sqe sqe = { .fd = FD,
				    .addr = (uintptr_t)&buffer };

	return weft__op_run(&sqe, flags | WEFT__OP_AT_ONCE);
}

/* The memory is the caller's again. */
static void read_once(unsigned flags)
{
	int32_t result = operate(flags);

	if (result == 4)
		model_assert(buffer == 5, "what the kernel wrote is seen");
	else
		model_assert(result == -ECANCELED || result == -EBADF,
			     "the result is the completion's, or says why");
	buffer = 6;
	model_free(&buffer, sizeof(buffer));
}

static void read_twice(void *arg)
{
	(void)arg;
	model_assert(operate(0) == 4 && buffer == 5, "the first one ends");
	buffer = 0;
	model_assert(operate(0) == 4 && buffer == 5, "the second one ends");
}

/* What the kernel does with a request, and the reaper with its completion. */
static struct weft__completion carry_out(unsigned i)
{
	const struct io_uring_sqe *sqe = &sqes[0][i];
	struct weft__completion completion = { .user_data = sqe->user_data,
					       .result = 4 };

	carried++;
	if (weft__load(&cancelled, relaxed))
		completion.result = -ECANCELED;
	else
		*(int32_t *)(uintptr_t)sqe->addr = 5;
	return completion;
}

static void serve(void *arg)
{
	struct weft__completion completion;

	(void)arg;
	model_daemon();
	(void)model_wait(&submitted);
	completion = carry_out(0);
	(void)weft__op_complete(weft__worker_self(), &completion);
}

/* The first completion comes three times. */
static void serve_with_repeats(void *arg)
{
	struct weft__completion completion;

	(void)arg;
	(void)model_wait(&submitted);
	completion = carry_out(0);
	(void)weft__op_complete(weft__worker_self(), &completion);
	(void)weft__op_complete(weft__worker_self(), &completion);
	(void)model_wait(&submitted);
	(void)weft__op_complete(weft__worker_self(), &completion);
	completion = carry_out(1);
	(void)weft__op_complete(weft__worker_self(), &completion);
}

static void check_repeats(void *arg)
{
	check_end(arg);
	model_assert(reactor.stale == 2, "stale completions are counted");
}

static void close_it(void *arg)
{
	struct weft__worker *worker = weft__worker_self();

	(void)arg;
	model_assert(close_drain(worker, worker->current, &fds[FD]) == 0,
		     "a descriptor can be closed");
	/* What was in flight is done; relaxed: this thread set it. */
	if (weft__load(&cancelled, relaxed))
		model_assert(carried == 1, "its operations have ended");
}

THREAD(read_plain, read_once(0);)
THREAD(read_on_fd, read_once(WEFT__OP_ON_FD);)
THREAD(read_shielded, read_once(WEFT__OP_SHIELDED);)
THREAD(wake_0, wake(0);)
THREAD(cancel_0, (void)weft_cancel(handle_of(0));)

MODEL(operation, setup, check_end, OPTIONS(), read_plain, serve)
MODEL(operation_meets_wakes, setup, check_end, OPTIONS(), read_plain, serve,
      wake_0)
MODEL(operation_meets_cancel, setup_refused, check_end, OPTIONS(), read_plain,
      serve, cancel_0)
MODEL(shielded_meets_cancel, setup, check_end, OPTIONS(), read_shielded, serve,
      cancel_0)
MODEL(two_operations_and_repeats, setup, check_repeats, OPTIONS(), read_twice,
      serve_with_repeats)
MODEL(operation_on_descriptor, setup, check_end, OPTIONS(), read_on_fd, serve,
      wake_0)
MODEL(operation_meets_close, setup_close, check_end,
      OPTIONS(.preemptions = 2, .weak = 3), read_on_fd, serve, close_it)
MODEL(close_of_idle_listener, setup_listener, check_end, OPTIONS(), close_it)

int main(void)
{
	const TTest *const tests[] = {
		operation,
		operation_meets_wakes,
		operation_meets_cancel,
		shielded_meets_cancel,
		two_operations_and_repeats,
		operation_on_descriptor,
		operation_meets_close,
		close_of_idle_listener,
		NULL,
	};

	return kit_main("op", tests);
}
