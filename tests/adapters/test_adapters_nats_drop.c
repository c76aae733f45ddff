/* SPDX-License-Identifier: MIT */
/*
 * Connections and subscriptions that are made for a caller that does not take
 * them: it left, or has no memory; queues that are closed while a message is
 * reported for a caller that left; and subscriptions that end without memory,
 * or whose connection is lost.  The functions that destroy them wait for a lock
 * that threads of the C library hold while they send, so a worker must not call
 * them.  Here the linker puts other functions in front of the library's: they
 * hold up the thread that has made the object until its caller has left, and
 * record which kind of thread destroys it.
 */
#include "tests/support/io_future.h"
#include "tests/support/nats_kit.h"

enum { NOWHERE, ON_A_THREAD, ON_A_WORKER };

static weft__atomic(void *) made;
static weft__atomic(int) destroyed;

/* The thread that made the object waits for this; so does one that reports a
 * message. */
static weft__atomic(bool) may_return;
static weft__atomic(bool) reports;

/* The caller, whose next calloc() after the object is made fails; or NULL. */
static struct weft__task *poor;
static weft__atomic(bool) is_refused;

/* The connection that the server closes while it is subscribed to; or NULL. */
static weft__atomic(natsConnection *) to_be_lost;
static struct weft_chan *filled;

static void object_made(void *object)
{
	/* pairs: [test.drop] */
	weft__store(&is_refused, poor != NULL, release);
	weft__store(&made, object, release);
	while (!weft__load(&may_return, acquire))
		thread_pause_ns(50000);
}

static void object_destroyed(const void *object)
{
	/* pairs: [test.drop] */
	if (!object || object != weft__load(&made, acquire))
		return;
	weft__store(&made, NULL, release);
	weft__store(&destroyed,
		    weft__worker_self() ? ON_A_WORKER : ON_A_THREAD, release);
}

/* ---- In front of the library's ---- */

natsStatus __wrap_natsConnection_Connect(natsConnection **ret,
					 natsOptions *options);
natsStatus __real_natsConnection_Connect(natsConnection **ret,
					 natsOptions *options);
natsStatus __wrap_js_PullSubscribe(natsSubscription **ret, jsCtx *js,
				   const char *subject, const char *durable,
				   jsOptions *options, jsSubOptions *more,
				   jsErrCode *ret_error);
natsStatus __real_js_PullSubscribe(natsSubscription **ret, jsCtx *js,
				   const char *subject, const char *durable,
				   jsOptions *options, jsSubOptions *more,
				   jsErrCode *ret_error);
natsStatus __wrap_natsMsg_AckSync(natsMsg *message, jsOptions *options,
				  jsErrCode *ret_error);
natsStatus __real_natsMsg_AckSync(natsMsg *message, jsOptions *options,
				  jsErrCode *ret_error);
void __wrap_natsConnection_Destroy(natsConnection *connection);
void __real_natsConnection_Destroy(natsConnection *connection);
void __wrap_natsSubscription_Destroy(natsSubscription *subscription);
void __real_natsSubscription_Destroy(natsSubscription *subscription);
natsStatus
__wrap_natsSubscription_SetOnCompleteCB(natsSubscription *subscription,
					natsOnCompleteCB fn, void *arg);
natsStatus
__real_natsSubscription_SetOnCompleteCB(natsSubscription *subscription,
					natsOnCompleteCB fn, void *arg);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_calloc(size_t count, size_t bytes);

natsStatus __wrap_natsConnection_Connect(natsConnection **ret,
					 natsOptions *options)
{
	natsStatus status = __real_natsConnection_Connect(ret, options);

	if (status == NATS_OK)
		object_made(*ret);
	return status;
}

natsStatus __wrap_js_PullSubscribe(natsSubscription **ret, jsCtx *js,
				   const char *subject, const char *durable,
				   jsOptions *options, jsSubOptions *more,
				   jsErrCode *ret_error)
{
	natsStatus status = __real_js_PullSubscribe(
		ret, js, subject, durable, options, more, ret_error);

	if (status == NATS_OK)
		object_made(*ret);
	return status;
}

natsStatus __wrap_natsMsg_AckSync(natsMsg *message, jsOptions *options,
				  jsErrCode *ret_error)
{
	/* pairs: [test.drop] */
	weft__store(&reports, true, release);
	while (!weft__load(&may_return, acquire))
		thread_pause_ns(50000);
	return __real_natsMsg_AckSync(message, options, ret_error);
}

void __wrap_natsConnection_Destroy(natsConnection *connection)
{
	object_destroyed(connection);
	__real_natsConnection_Destroy(connection);
}

void __wrap_natsSubscription_Destroy(natsSubscription *subscription)
{
	object_destroyed(subscription);
	__real_natsSubscription_Destroy(subscription);
}

natsStatus
__wrap_natsSubscription_SetOnCompleteCB(natsSubscription *subscription,
					natsOnCompleteCB fn, void *arg)
{
	/* pairs: [test.drop] */
	natsConnection *lost = weft__load(&to_be_lost, acquire);

	if (lost) {
		/* A thread of the library waits in the full channel. */
		for (int i = 0; i < 3; i++)
			ck_assert_int_eq(
				natsConnection_PublishString(lost, "lost", "x"),
				NATS_OK);
		while (weft_chan_count(filled) == 0)
			thread_pause_ns(50000);
		natsConnection_Close(lost);
	}
	return __real_natsSubscription_SetOnCompleteCB(subscription, fn, arg);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	/* pairs: [test.drop] */
	if (weft__load(&is_refused, acquire) && weft__worker_self() &&
	    weft__worker_self()->current == poor) {
		weft__store(&is_refused, false, release);
		return NULL;
	}
	return __real_calloc(count, bytes);
}

/* ---- Callers ---- */

static int64_t connect_for_nothing(void *arg)
{
	struct weft_nats *nats = NULL;
	int r = weft_nats_connect(nats_options(), &nats);

	(void)arg;
	ck_assert_ptr_null(nats);
	return r;
}

static int64_t open_for_nothing(void *arg)
{
	struct weft_nats *nats = *(struct weft_nats **)arg;
	struct weft_nats_queue *queue = NULL;
	int r = weft_nats_queue_open(nats, "for_nothing", "for_nothing",
				     WEFT_SEC(30), &queue);

	ck_assert_ptr_null(queue);
	return r;
}

/* The next calloc() of this task fails. */
static void refuse_memory(void)
{
	poor = weft__worker_self()->current;
	/* pairs: [test.drop] */
	weft__store(&is_refused, true, release);
}

static void begin(struct weft__task *caller)
{
	poor = caller;
	/* relaxed: no other thread uses them now. */
	weft__store(&made, NULL, relaxed);
	weft__store(&destroyed, NOWHERE, relaxed);
	/* pairs: [test.drop] */
	weft__store(&may_return, caller != NULL, release);
}

static void expect_destroyed_on_a_thread(void)
{
	int where = NOWHERE;

	/* pairs: [test.drop] */
	wait_until((where = weft__load(&destroyed, acquire)) != NOWHERE);
	ck_assert_int_eq(where, ON_A_THREAD);
}

/* The object is there when the caller leaves, but its thread has not returned:
 * so the task that waits for that thread drops it. */
static void leave(weft_fn call, struct weft_nats *nats)
{
	begin(NULL);
	WEFT_SUPERVISE (scope) {
		struct weft_task task = start(scope, call, 0, &nats,
					      sizeof(nats));

		/* pairs: [test.drop] */
		wait_until(weft__load(&made, acquire));
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(join(task), -ECANCELED);
		/* pairs: [test.drop] */
		weft__store(&may_return, true, release);
		expect_destroyed_on_a_thread();
	}
}

static void have_no_memory(weft_fn call, struct weft_nats *nats)
{
	begin(weft__worker_self()->current);
	ck_assert_int_eq(call(&nats), -ENOMEM);
	expect_destroyed_on_a_thread();
}

/* nats_connect() makes one that is taken. */
static struct weft_nats *connect_first(void)
{
	begin(NULL);
	/* relaxed: no other thread uses it now. */
	weft__store(&may_return, true, relaxed);
	return nats_connect();
}

/* ---- Tests ---- */

IO_TEST(connection_of_a_caller_that_left_is_destroyed_on_a_thread)
{
	leave(connect_for_nothing, NULL);
	return 0;
}

IO_TEST(queue_of_a_caller_that_left_is_destroyed_on_a_thread)
{
	struct weft_nats *nats = connect_first();

	leave(open_for_nothing, nats);
	return weft_nats_close(nats);
}

IO_TEST(connection_without_memory_is_destroyed_on_a_thread)
{
	have_no_memory(connect_for_nothing, NULL);
	return 0;
}

IO_TEST(queue_without_memory_is_destroyed_on_a_thread)
{
	struct weft_nats *nats = connect_first();

	have_no_memory(open_for_nothing, nats);
	return weft_nats_close(nats);
}

/* The library calls back until it knows of the end. */
IO_TEST(subscription_ends_without_memory)
{
	struct weft_nats *nats = connect_first();
	struct weft_nats_subscription *subscription = NULL;
	natsMsg *room[1], *message;
	struct weft_chan chan = WEFT_CHAN_INIT(room);

	ck_assert_int_eq(weft_nats_subscribe(nats, "no_memory", NULL, &chan,
					     &subscription),
			 0);
	refuse_memory();
	ck_assert_int_eq(weft_nats_unsubscribe(subscription), 0);
	/* pairs: [test.drop] */
	ck_assert(!weft__load(&is_refused, acquire));
	ck_assert_int_eq(weft_chan_recv(&chan, &message), -EPIPE);
	return weft_nats_close(nats);
}

IO_TEST(connection_may_be_lost_in_a_subscribe)
{
	struct weft_nats *nats = connect_first();
	struct weft_nats_subscription *subscription = NULL;
	natsMsg *room[1], *message;
	struct weft_chan chan = WEFT_CHAN_INIT(room);

	filled = &chan;
	/* pairs: [test.drop] */
	weft__store(&to_be_lost, weft_nats_connection(nats), release);
	ck_assert_int_eq(weft_nats_subscribe(nats, "lost", NULL, &chan,
					     &subscription),
			 -ENOTCONN);
	/* pairs: [test.drop] */
	weft__store(&to_be_lost, NULL, release);
	ck_assert_ptr_null(subscription);
	ck_assert_int_eq(weft_chan_recv(&chan, &message), 0);
	natsMsg_Destroy(message);
	ck_assert_int_eq(weft_chan_recv(&chan, &message), -EPIPE);
	return weft_nats_close(nats);
}

/* ---- Deadlines ---- */

weft_nsec __wrap_weft_deadline(void);
weft_nsec __real_weft_deadline(void);

static weft__atomic(bool) is_late;

weft_nsec __wrap_weft_deadline(void)
{
	/* relaxed: for the task that has stored it. */
	return weft__load(&is_late, relaxed) ? weft_now() - 1 :
					       __real_weft_deadline();
}

/* Its job would have a thread for an hour. */
IO_TEST(request_that_is_late_as_it_begins_ends)
{
	struct weft_nats *nats = connect_first();
	struct weft_nats_subscription *subscription;
	natsMsg *room[1], *message;
	struct weft_chan chan = WEFT_CHAN_INIT(room);

	ck_assert_int_eq(weft_nats_subscribe(nats, "quiet", NULL, &chan,
					     &subscription),
			 0);
	/* relaxed: see above. */
	weft__store(&is_late, true, relaxed);
	ck_assert_int_eq(weft_nats_request(nats, "quiet", "a", 1, &message),
			 -ETIMEDOUT);
	/* relaxed: see above. */
	weft__store(&is_late, false, relaxed);
	ck_assert_int_eq(weft_chan_recv(&chan, &message), 0);
	natsMsg_Destroy(message);
	ck_assert_int_eq(weft_nats_unsubscribe(subscription), 0);
	return weft_nats_close(nats);
}

/* ---- Reports ---- */

struct reporting {
	struct weft_nats_queue *queue;
	natsMsg *message;
};

static int64_t report(void *arg)
{
	struct reporting *reporting = arg;

	return weft_nats_queue_done(reporting->queue, reporting->message);
}

static int64_t close_queue(void *arg)
{
	return weft_nats_queue_close(*(struct weft_nats_queue **)arg);
}

/* A message refers to its subscription, so that one may not be destroyed before
 * the thread of a caller that left has reported it. */
IO_TEST(queue_is_closed_after_a_report_whose_caller_left)
{
	struct weft_nats *nats = connect_first();
	struct reporting it = { NULL, NULL };

	ck_assert_int_eq(weft_nats_queue_open(nats, "reported", "reported",
					      WEFT_SEC(30), &it.queue),
			 0);
	ck_assert_int_eq(weft_nats_queue_put(it.queue, "x", 1, NULL), 0);
	ck_assert_int_eq(weft_nats_queue_take(it.queue, &it.message), 0);
	/* relaxed: no other thread uses it now. */
	weft__store(&may_return, false, relaxed);
	WEFT_SUPERVISE (scope) {
		struct weft_task task = start(scope, report, 0, &it,
					      sizeof(it));

		/* pairs: [test.drop] */
		wait_until(weft__load(&reports, acquire));
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(join(task), -ECANCELED);
		task = start(scope, close_queue, 0, &it.queue,
			     sizeof(it.queue));
		wait_until(task_has_settled(task));
		ck_assert_int_eq(weft_sleep(WEFT_MS(20)), 0);
		/* pairs: [test.drop] */
		ck_assert_int_eq(weft__load(&destroyed, acquire), NOWHERE);
		weft__store(&may_return, true, release);
		ck_assert_int_eq(join(task), 0);
	}
	expect_destroyed_on_a_thread();
	return weft_nats_close(nats);
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/nats_drop");
	TCase *tc = tcase_create("drop");

	io_add_test(tc,
		    connection_of_a_caller_that_left_is_destroyed_on_a_thread);
	io_add_test(tc, queue_of_a_caller_that_left_is_destroyed_on_a_thread);
	io_add_test(tc, connection_without_memory_is_destroyed_on_a_thread);
	io_add_test(tc, queue_without_memory_is_destroyed_on_a_thread);
	io_add_test(tc, subscription_ends_without_memory);
	io_add_test(tc, connection_may_be_lost_in_a_subscribe);
	io_add_test(tc, request_that_is_late_as_it_begins_ends);
	io_add_test(tc, queue_is_closed_after_a_report_whose_caller_left);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return nats_tests_run(suite);
}
