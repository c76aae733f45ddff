/* SPDX-License-Identifier: MIT */
/*
 * Model of closing a descriptor while a task or a future begins to read from it
 * (io/request/fd_table.h, io/request/close.c, io/request/op.c).  The closer is
 * a task or a future, too.  The read ends, whenever it began.  A read that
 * began before the close is cancelled, and the kernel closes nothing that is in
 * use.  A read during the close is refused.  A later read gets the kernel's
 * answer for the number as it is by then.
 *
 * The old file stays open while a request is on it, and never has data: a read
 * of it waits until it is cancelled.  When the old file is closed, the number
 * may become that of a new file, which has data when the close has returned.
 * The close must not wait for a reader of the new file.
 *
 * Also of closing while a transfer is in the blocking pool (io/position.c),
 * which no close can cancel: the file stays open until it has ended.
 */
#include "tests/model/requests.h"
#include "tests/model/alone.h"

#include "io/position.c"
#include "io/request/close.c"
#include "io/request/op.c"

enum file { FILE_OLD, FILE_NONE, FILE_NEW };

enum { COMPLETIONS = 4, NEW_DATA = 5 };

/* Under the kernel's lock, which stands for those of the shards too. */
static struct model_mutex kernel;
static enum file file;
static const struct asked *pending; /* waits for data, or NULL */
static enum file pending_on;
static bool data_came; /* to the new file */
static struct weft__completion completions[COMPLETIONS];
static unsigned completed, reaped;
static uint64_t paused[RECORDS]; /* the tasks that let time pass, or 0 */
static bool armed[RECORDS]; /* tasks with an alarm, which may have gone off */
static unsigned refusals;
static bool several_close; /* and there is no reader */
static bool in_call;	   /* a thread of the pool, on the old file */

static struct model_event news; /* for the reaper */

/*
 * The kernel.
 */

static void complete(uint64_t user_data, int32_t result)
{
	model_assert(completed < COMPLETIONS, "requests have an end");
	completions[completed++] = (struct weft__completion){
		.user_data = user_data, .result = result
	};
	model_post(&news);
}

/* A request on the old file came too late to be cancelled before the close. */
static void carry_out_close(const struct asked *at)
{
	model_assert(file == FILE_OLD || several_close, "it is closed once");
	if (file == FILE_NONE) {
		complete(at->user_data, -EBADF);
		return;
	}
	model_assert(!pending ||
			     (weft__op_of(&records[0])->flags & WEFT__OP_LATE),
		     "a file is closed that is in use");
	model_assert(!in_call, "a file is closed that a call is on");
	file = model_choose(2) ? FILE_NEW : FILE_NONE;
	complete(at->user_data, 0);
}

static void carry_out_read(const struct asked *at)
{
	pending = NULL;
	if (file == FILE_NONE) {
		complete(at->user_data, -EBADF);
	} else if (file == FILE_NEW && data_came) {
		*(int32_t *)(uintptr_t)at->request.memory = NEW_DATA;
		complete(at->user_data, sizeof(buffer));
	} else {
		pending = at;
		pending_on = file;
	}
}

static void data_comes(void)
{
	model_lock(&kernel);
	data_came = true;
	if (pending && pending_on == FILE_NEW)
		carry_out_read(pending);
	model_unlock(&kernel);
}

/* Under the lock; any thread may call it. */
static void submit_all(struct weft__shard *shard)
{
	struct weft__ring *ring = &shard->ring;

	/* relaxed: under the lock. */
	unsigned head = weft__load(ring->head, relaxed);

	for (; head != weft__load(ring->published, acquire); head++) {
		const struct asked *at =
			&asked[shard - shards][head % ENTRIES];

		if (at->request.opcode == WEFT__OPCODE_CLOSE)
			carry_out_close(at);
		else
			carry_out_read(at);
	}
	weft__store(ring->head, head, release);
}

void weft__shard_flush(struct weft__shard *shard)
{
	model_lock(&kernel);
	submit_all(shard);
	model_unlock(&kernel);
}

/* All is submitted immediately; a worker does so when it parks. */
void weft__shard_relieve(struct weft__shard *shard)
{
	weft__shard_flush(shard);
}

/* It may answer once that there is nothing to cancel, whatever happens. */
int weft__shard_cancel(struct weft__shard *shard, uint64_t user_data)
{
	int r = -ENOENT;

	model_lock(&kernel);
	submit_all(shard);
	if (refusals && model_choose(2)) {
		refusals--;
	} else if (pending && pending->user_data == user_data) {
		pending = NULL;
		complete(user_data, -ECANCELED);
		r = 0;
	}
	model_unlock(&kernel);
	return r;
}

/*
 * Time passes when there is nothing to reap.
 */

static void wake_paused(void)
{
	for (unsigned i = 0; i < RECORDS; i++) {
		uint64_t id = paused[i];

		paused[i] = 0;
		if (id)
			(void)weft__wake(weft__worker_self(), &records[i], id);
	}
}

static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	(void)worker, (void)deadline_ns;
	alarm->armed = true;
	model_lock(&kernel);
	model_assert(!armed[(uint32_t)alarm->task],
		     "an alarm is armed that is armed");
	armed[(uint32_t)alarm->task] = true;
	paused[(uint32_t)alarm->task] = alarm->task;
	if (reaped == completed)
		wake_paused();
	model_unlock(&kernel);
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	(void)of;
	alarm->armed = false;
	model_lock(&kernel);
	armed[(uint32_t)alarm->task] = false;
	paused[(uint32_t)alarm->task] = 0;
	model_unlock(&kernel);
	return false;
}

/* The worker that reaps. */
static void reap(void *arg)
{
	struct weft__completion completion;

	(void)arg;
	model_daemon();
	for (;;) {
		(void)model_wait(&news);
		for (model_lock(&kernel); reaped < completed; reaped++) {
			completion = completions[reaped];
			model_unlock(&kernel);
			(void)weft__op_complete(weft__worker_self(),
						&completion);
			model_lock(&kernel);
		}
		wake_paused();
		model_unlock(&kernel);
	}
}

void weft__starving_wake(struct weft__worker *worker)
{
	(void)worker;
}

int64_t weft__waits_run(weft_fn fn, void *arg, bool *ret_ran)
{
	(void)fn, (void)arg;
	*ret_ran = false;
	return -EAGAIN;
}

enum weft__close weft__syscall_close_kind(int fd)
{
	(void)fd;
	return WEFT__CLOSE_ANY;
}

/* The model's descriptors are no local files. */
int weft__look_fd(int fd, unsigned mask, struct statx *ret_status)
{
	(void)fd, (void)mask, (void)ret_status;
	return -EBADF;
}

/* Only streams call it. */
int weft__syscall_close(int fd)
{
	(void)fd;
	return 0;
}

/*
 * The pool; the task's thread plays that of the pool.
 */

int weft__blocking_begin(struct weft_lane *lane, struct weft__job *job)
{
	(void)lane, (void)job;
	return 0;
}

enum weft__follows weft__blocking_follow(struct weft__job *ahead,
					 struct weft__job *job)
{
	model_assert(!ahead->over, "the one ahead is alive");
	job->follows = true;
	return WEFT__FOLLOWS;
}

/* A number that is being closed has no file here. */
int weft_sleep(weft_nsec ns)
{
	(void)ns;
	return 0;
}

/* It may be interrupted before a thread has begun it. */
int64_t weft__blocking_finish(struct weft__job *job)
{
	return model_choose(2) ? job->fn(job->arg) : -ECANCELED;
}

bool weft__sigpipe_block(void)
{
	return false;
}

void weft__sigpipe_restore(bool blocked, bool raised)
{
	(void)blocked, (void)raised;
}

/* A call that begins when the kernel is about to close the file may meet the
 * file that goes, or what comes after it; it is not followed. */
ssize_t weft__request_wait(const struct weft__request *request)
{
	ssize_t r;

	weft__lock_take(&fds[FD].lock);
	model_lock(&kernel);
	in_call = !fds[FD].going;
	r = file == FILE_NONE ? -EBADF : (ssize_t)request->bytes;
	model_unlock(&kernel);
	weft__lock_drop(&fds[FD].lock);
	model_lock(&kernel);
	in_call = false;
	model_unlock(&kernel);
	return r;
}

/*
 * The threads.
 */

static void setup(void *arg)
{
	(void)arg;
	requests_setup();
	memset(&kernel, 0, sizeof(kernel));
	memset(&news, 0, sizeof(news));
	file = FILE_OLD;
	pending = NULL;
	data_came = false;
	completed = reaped = 0;
	memset(paused, 0, sizeof(paused));
	memset(armed, 0, sizeof(armed));
	refusals = 0;
	several_close = false;
	in_call = false;
	/* Task 2, which closes, is started as well. */
	records[2].state = WEFT__GENERATION;
	pool[2].current = &records[2];
	weft__scope_link(&records[2]);
	model_name(&kernel, "kernel");
	model_name(&news, "news");
}

static void setup_refused(void *arg)
{
	setup(arg);
	refusals = 1;
}

static void check_open(void *arg)
{
	requests_check(arg);
	for (unsigned i = 0; i < RECORDS; i++)
		model_assert(!armed[i], "no alarm is left");
	model_assert(!pending, "the kernel has nothing left");
	model_assert(reactor.stale == 0, "each completion is some request's");
}

static void check_end(void *arg)
{
	check_open(arg);
	model_assert(file != FILE_OLD, "the file is closed");
	model_assert(!weft__fd_pooled(&fds[FD]), "the pool is done with it");
	model_assert(!fds[FD].last_write, "no write is left");
}

static void read_end(struct weft__task *task, int32_t result, bool cancelled)
{
	if (result == sizeof(buffer))
		model_assert(buffer == NEW_DATA, "what was read is seen");
	else if (result == -ECANCELED)
		model_assert(cancelled ||
				     weft__op_of(task)->flags & WEFT__OP_CLOSED,
			     "what came too late is not cancelled for good");
	else
		model_assert(result == -EBADF, "the result says why");
	buffer = 0;
	model_free(&buffer, sizeof(buffer));
}

static void read_once(bool cancelled)
{
	int32_t result = operate(&fds[FD], 0);

	read_end(task_self(), result, cancelled);
}

static void transfer_once(void)
{
	struct weft__request request = read_request();
	ssize_t r;

	request.bytes = sizeof(buffer);
	r = weft__position_run(&fds[FD], &request, true);
	model_assert(r == sizeof(buffer) || r == -EBADF || r == -ECANCELED,
		     "the result says why");
}

static void close_it(void *arg)
{
	(void)arg;
	model_assert(weft_close(FD) == 0, "a descriptor can be closed");
	data_comes();
}

THREAD(read_it, read_once(false);)
THREAD(read_cancelled, read_once(true);)
THREAD(transfer_it, transfer_once();)
THREAD(wake_0, wake(0);)
THREAD(cancel_0, (void)weft_cancel(handle_of(0));)
THREAD(nothing, ;)

MODEL(close_meets_read, setup, check_end,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE), read_it, reap, close_it)
MODEL(close_meets_read_and_is_refused, setup_refused, check_end,
      OPTIONS(.preemptions = 1, .weak = 1), read_it, reap, close_it)
MODEL(close_meets_read_and_wakes, setup, check_end,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE),
      read_it, reap, close_it, wake_0)
MODEL(close_meets_read_and_cancel, setup, check_end,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE),
      read_cancelled, reap, close_it, cancel_0)
MODEL(close_meets_transfer_in_the_pool, setup, check_end,
      OPTIONS(.preemptions = 3, .weak = MODEL_NONE),
      transfer_it, reap, close_it)

/* There is no closer: the cancellation alone ends the read. */
MODEL(cancel_meets_read, setup_refused, check_open,
      OPTIONS(.preemptions = 2, .weak = 1), read_cancelled, reap, cancel_0)

/*
 * With futures: 0 reads, 2 closes.
 */

static int64_t await_read(bool cancelled)
{
	int32_t result = operate_await(&fds[FD], 0);

	if (result == WEFT_PENDING)
		return result;
	read_end(future_self(), result, cancelled);
	return 0;
}

static int64_t await_read_plain(void)
{
	return await_read(false);
}

static int64_t await_read_cancelled(void)
{
	return await_read(true);
}

static int64_t await_close_it(void)
{
	int r = weft_await_close(FD);

	if (r == WEFT_PENDING)
		return r;
	model_assert(r == 0, "a descriptor can be closed");
	data_comes();
	return 0;
}

/* One of two closers: the other is closing, or has closed. */
static int64_t await_close_too(void)
{
	int r = weft_await_close(FD);

	model_assert(r == WEFT_PENDING || r == 0 || r == -EBADF,
		     "a descriptor is closed, or was");
	return r == WEFT_PENDING ? r : 0;
}

static void closer_setup(future_step *step)
{
	weft__scope(&runtime.root)->pending++;
	future_setup(2, step);
}

static void setup_reader(void *arg)
{
	setup(arg);
	future_setup(0, await_read_plain);
}

static void setup_cancelled(void *arg)
{
	setup_refused(arg);
	future_setup(0, await_read_cancelled);
}

static void setup_closer(void *arg)
{
	setup(arg);
	closer_setup(await_close_it);
}

static void setup_both(void *arg)
{
	setup_reader(arg);
	closer_setup(await_close_it);
}

static void setup_both_refused(void *arg)
{
	setup_both(arg);
	refusals = 2;
}

static void setup_both_cancelled(void *arg)
{
	setup_cancelled(arg);
	refusals = 0;
	closer_setup(await_close_it);
}

static void setup_two_closers(void *arg)
{
	setup(arg);
	several_close = true;
	future_setup(0, await_close_too);
	closer_setup(await_close_too);
}

static void setup_task_closes_too(void *arg)
{
	setup(arg);
	several_close = true;
	closer_setup(await_close_too);
}

/* A task that closes the descriptor too. */
static void close_too(void *arg)
{
	int r = weft_close(FD);

	(void)arg;
	model_assert(r == 0 || r == -EBADF, "a descriptor is closed, or was");
}

THREAD(polls_0, future_serve(0);)
THREAD(polls_2, future_serve(2);)
THREAD(wake_2, wake(2);)
THREAD(cancel_both, (void)weft_cancel(handle_of(2));
       (void)weft_cancel(handle_of(0));)

MODEL(cancel_meets_await, setup_cancelled, check_open,
      OPTIONS(.preemptions = 2, .weak = 1), polls_0, reap, cancel_0)
MODEL(close_meets_await, setup_reader, check_end,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE), polls_0, reap, close_it)
MODEL(await_close_meets_read, setup_closer, check_end,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE), read_it, reap, polls_2)
MODEL(await_close_meets_transfer_in_the_pool, setup_closer, check_end,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE),
      transfer_it, reap, polls_2)
MODEL(await_close_meets_await, setup_both, check_end,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE), polls_0, reap, polls_2)
MODEL(await_close_meets_await_and_is_refused, setup_both_refused, check_end,
      OPTIONS(.preemptions = 1, .weak = 1), polls_0, reap, polls_2)
MODEL(await_close_meets_await_and_wakes, setup_both, check_end,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), polls_0, reap, polls_2,
      wake_2)
MODEL(await_close_meets_await_and_cancel, setup_both_cancelled, check_end,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), polls_0, reap, polls_2,
      cancel_both)
MODEL(two_await_close, setup_two_closers, check_end,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE), polls_0, reap, polls_2)
MODEL(await_close_meets_close, setup_task_closes_too, check_end,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE), close_too, reap, polls_2)

int main(void)
{
	const TTest *const tests[] = {
		close_meets_read,
		close_meets_read_and_is_refused,
		close_meets_read_and_wakes,
		close_meets_read_and_cancel,
		close_meets_transfer_in_the_pool,
		cancel_meets_read,
		cancel_meets_await,
		close_meets_await,
		await_close_meets_read,
		await_close_meets_transfer_in_the_pool,
		await_close_meets_await,
		await_close_meets_await_and_is_refused,
		await_close_meets_await_and_wakes,
		await_close_meets_await_and_cancel,
		two_await_close,
		await_close_meets_close,
		NULL,
	};

	return kit_main("close", tests);
}
