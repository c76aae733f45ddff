/* SPDX-License-Identifier: MIT */
/*
 * Model of the hand-over of completions (io/request/op.[ch]): a call returns
 * with its result after its completion, however it was woken meanwhile, and its
 * memory is then its own; a stale completion ends nothing.
 *
 * One thread is the kernel and the worker that reaps: it carries out a request
 * as soon as the request is submitted, which is immediately here.
 */
#include "tests/model/requests.h"

#include "io/request/op.c"

static struct model_event submitted;
/* relaxed: the kernel's own orders are not modelled. */
static weft__atomic(uint32_t) cancelled;
static unsigned refusals;
static const struct weft__shard *submitted_to;
/* By task; its own. */
static bool is_armed[RECORDS];

/*
 * The ring.
 */

void weft__shard_flush(struct weft__shard *shard)
{
	submitted_to = shard;
	model_post(&submitted);
}

/* A worker submits when it parks. */
void weft__shard_relieve(struct weft__shard *shard)
{
	weft__shard_flush(shard);
}

/* It may answer once that there is nothing to cancel, whatever happens. */
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

/* Pauses end immediately. */
static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	(void)deadline_ns;
	model_assert(!is_armed[(uint32_t)alarm->task],
		     "an alarm is armed that is armed");
	is_armed[(uint32_t)alarm->task] = true;
	alarm->armed = true;
	(void)weft__wake(worker, &records[(uint32_t)alarm->task], alarm->task);
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	(void)of;
	is_armed[(uint32_t)alarm->task] = false;
	alarm->armed = false;
	return false;
}

/*
 * The threads.
 */

static void setup(void *arg)
{
	(void)arg;
	requests_setup();
	memset(&submitted, 0, sizeof(submitted));
	memset(is_armed, 0, sizeof(is_armed));
	cancelled = 0;
	refusals = 0;
	submitted_to = NULL;
}

static void setup_refused(void *arg)
{
	setup(arg);
	refusals = 1;
}

/* The memory is the caller's again. */
static void read_end(int32_t result)
{
	if (result == 4)
		model_assert(buffer == 5, "what the kernel wrote is seen");
	else
		model_assert(result == -ECANCELED || result == -EBADF,
			     "the result is the completion's, or says why");
	buffer = 6;
	model_free(&buffer, sizeof(buffer));
}

static void read_once(struct weft__fd *entry, unsigned flags)
{
	read_end(operate(entry, flags));
}

static void read_twice(void *arg)
{
	(void)arg;
	model_assert(operate(NULL, 0) == 4 && buffer == 5,
		     "the first one ends");
	buffer = 0;
	model_assert(operate(NULL, 0) == 4 && buffer == 5,
		     "the second one ends");
}

/* The kernel's work on a request, and the reaper's work on its completion. */
static struct weft__completion carry_out(unsigned i)
{
	const struct asked *at = &asked[submitted_to - shards][i];
	struct weft__completion completion = { .user_data = at->user_data,
					       .result = 4 };

	if (weft__load(&cancelled, relaxed))
		completion.result = -ECANCELED;
	else
		*(int32_t *)(uintptr_t)at->request.memory = 5;
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
	requests_check(arg);
	model_assert(reactor.stale == 2, "stale completions are counted");
}

THREAD(read_plain, read_once(NULL, 0);)
THREAD(read_on_fd, read_once(&fds[FD], 0);)
THREAD(read_shielded, read_once(NULL, WEFT__OP_SHIELDED);)
THREAD(wake_0, wake(0);)
THREAD(cancel_0, (void)weft_cancel(handle_of(0));)

MODEL(operation, setup, requests_check, OPTIONS(), read_plain, serve)
MODEL(operation_meets_wakes, setup, requests_check, OPTIONS(),
      read_plain, serve, wake_0)
MODEL(operation_meets_cancel, setup_refused, requests_check, OPTIONS(),
      read_plain, serve, cancel_0)
MODEL(shielded_meets_cancel, setup, requests_check, OPTIONS(),
      read_shielded, serve, cancel_0)
MODEL(two_operations_and_repeats, setup, check_repeats, OPTIONS(), read_twice,
      serve_with_repeats)
MODEL(operation_on_descriptor, setup, requests_check, OPTIONS(),
      read_on_fd, serve, wake_0)

/*
 * A future, which two workers poll.
 */

static unsigned awaited;

static int64_t await_read(struct weft__fd *entry, unsigned flags)
{
	int32_t result = operate_await(entry, flags);

	if (result != WEFT_PENDING)
		read_end(result);
	return result == WEFT_PENDING ? result : 0;
}

static int64_t await_plain(void)
{
	return await_read(NULL, 0);
}

static int64_t await_on_fd(void)
{
	return await_read(&fds[FD], 0);
}

static int64_t await_shielded(void)
{
	return await_read(NULL, WEFT__OP_SHIELDED);
}

/* One read, and then another. */
static int64_t await_twice(void)
{
	int32_t result = operate_await(NULL, 0);

	if (result == WEFT_PENDING)
		return result;
	model_assert(result == 4 && buffer == 5, "each of them ends");
	buffer = 0;
	awaited++;
	return awaited < 2 ? operate_await(NULL, 0) : 0;
}

static void setup_await_twice(void *arg)
{
	setup(arg);
	awaited = 0;
	future_setup(0, await_twice);
}

static void setup_plain(void *arg)
{
	setup(arg);
	future_setup(0, await_plain);
}

static void setup_on_fd(void *arg)
{
	setup(arg);
	future_setup(0, await_on_fd);
}

static void setup_shielded(void *arg)
{
	setup(arg);
	future_setup(0, await_shielded);
}

/* A read with a deadline, which is far off. */
static void setup_plain_refused(void *arg)
{
	setup_plain(arg);
	refusals = 2;
	futures[0].room.own_ns = 2000;
	records[0].flags |= WEFT__TASK_WITHIN;
}

static void check_await(void *arg)
{
	requests_check(arg);
	check_freed_once(0);
	model_assert(!is_armed[0], "no alarm is left");
}

THREAD(polls, future_serve(0);)

MODEL(await_meets_completion, setup_plain, check_await, OPTIONS(), polls,
      serve, polls)
MODEL(await_meets_wakes, setup_plain, check_await,
      OPTIONS(.preemptions = 2, .weak = 1), polls, serve, polls, wake_0)
MODEL(await_meets_cancel, setup_plain, check_await,
      OPTIONS(.preemptions = 2, .weak = 1), polls, serve, polls, cancel_0)
MODEL(await_is_refused, setup_plain_refused, check_await,
      OPTIONS(.preemptions = 2, .weak = 1), polls, serve, cancel_0)
MODEL(shielded_await_meets_cancel, setup_shielded, check_await,
      OPTIONS(.preemptions = 2, .weak = 1), polls, serve, cancel_0)
MODEL(await_on_descriptor, setup_on_fd, check_await,
      OPTIONS(.preemptions = 2, .weak = 1), polls, serve, polls, cancel_0)
MODEL(two_awaits_and_repeats, setup_await_twice, check_repeats, OPTIONS(),
      polls, serve_with_repeats)

int main(void)
{
	const TTest *const tests[] = {
		operation,
		operation_meets_wakes,
		operation_meets_cancel,
		shielded_meets_cancel,
		two_operations_and_repeats,
		operation_on_descriptor,
		await_meets_completion,
		await_meets_wakes,
		await_meets_cancel,
		await_is_refused,
		shielded_await_meets_cancel,
		await_on_descriptor,
		two_awaits_and_repeats,
		NULL,
	};

	return kit_main("op", tests);
}
