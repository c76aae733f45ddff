/* SPDX-License-Identifier: MIT */
/*
 * NATS as it is: messages, requests and work queues of a nats-server, which
 * this program starts.  Skipped where none is installed.
 */
#include "tests/support/io_future.h"
#include "tests/support/nats_kit.h"
#include "tests/support/pool_kit.h"

/* A subject, or the name of a queue, that no other test has. */
static char subject[64];

static void choose_subject(void)
{
	static int turn;

	snprintf(subject, sizeof(subject), "t%d-%d", (int)getpid(), turn++);
}

static void expect_message(natsMsg *message, const char *text)
{
	ck_assert_int_eq(natsMsg_GetDataLength(message), (int)strlen(text));
	ck_assert_mem_eq(natsMsg_GetData(message), text, strlen(text));
}

/* ---- Messages ---- */

static int64_t publish_numbers(void *arg)
{
	struct weft_nats *nats = *(struct weft_nats **)arg;
	char text[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%d", i);
		ck_assert_int_eq(weft_nats_publish(nats, subject, text,
						   strlen(text)),
				 0);
	}
	return 0;
}

/* Many more than the channel holds. */
IO_TEST(messages_come_through_a_channel_in_order)
{
	struct weft_nats *nats = nats_connect();
	struct weft_nats_subscription *subscription = NULL;
	natsMsg *room[4], *message;
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	char text[16];

	ck_assert_int_eq(weft_nats_subscribe(nats, subject, NULL, &chan,
					     &subscription),
			 0);
	WEFT_SUPERVISE (scope) {
		ck_assert_int_eq(WEFT_GO(scope, publish_numbers, nats), 0);
		for (int i = 0; i < 1000; i++) {
			ck_assert_int_eq(weft_chan_recv(&chan, &message), 0);
			snprintf(text, sizeof(text), "%d", i);
			expect_message(message, text);
			natsMsg_Destroy(message);
		}
	}
	ck_assert_int_eq(weft_nats_unsubscribe(subscription), 0);
	ck_assert_int_eq(weft_chan_recv(&chan, &message), -EPIPE);
	ck_assert_int_eq(weft_nats_close(nats), 0);
	return 0;
}

/* A thread of the library waits in the full channel. */
IO_TEST(subscription_ends_while_its_channel_is_full)
{
	struct weft_nats *nats = nats_connect();
	struct weft_nats_subscription *subscription = NULL;
	natsMsg *room[1], *message;
	struct weft_chan chan = WEFT_CHAN_INIT(room);

	ck_assert_int_eq(weft_nats_subscribe(nats, subject, NULL, &chan,
					     &subscription),
			 0);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(weft_nats_publish(nats, subject, "x", 1), 0);
	wait_until(weft_chan_count(&chan) == 1);
	ck_assert_int_eq(weft_nats_unsubscribe(subscription), 0);
	while (weft_chan_recv(&chan, &message) == 0)
		natsMsg_Destroy(message);
	ck_assert_int_eq(weft_nats_close(nats), 0);
	return 0;
}

/* ---- Requests ---- */

struct replier {
	struct weft_nats *nats;
	struct weft_chan *chan;
};

static int64_t reply_all(void *arg)
{
	struct replier *replier = arg;
	natsMsg *message;

	while (weft_chan_recv(replier->chan, &message) == 0) {
		ck_assert_int_eq(weft_nats_publish(
					 replier->nats,
					 natsMsg_GetReply(message),
					 natsMsg_GetData(message),
					 (size_t)natsMsg_GetDataLength(
						 message)),
				 0);
		natsMsg_Destroy(message);
	}
	return 0;
}

static int64_t ask(void *arg)
{
	struct weft_nats *nats = *(struct weft_nats **)arg;
	natsMsg *reply;
	char text[32];

	for (int i = 0; i < 20; i++) {
		snprintf(text, sizeof(text), "%p %d", (void *)&reply, i);
		ck_assert_int_eq(weft_nats_request(nats, subject, text,
						   strlen(text), &reply),
				 0);
		expect_message(reply, text);
		natsMsg_Destroy(reply);
	}
	return 0;
}

IO_TEST(requests_of_many_tasks_get_their_replies)
{
	struct weft_nats *nats = nats_connect();
	struct weft_nats_subscription *subscription = NULL;
	natsMsg *room[8];
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	struct replier replier = { nats, &chan };

	ck_assert_int_eq(weft_nats_subscribe(nats, subject, "group", &chan,
					     &subscription),
			 0);
	WEFT_SUPERVISE (scope) {
		ck_assert_int_eq(WEFT_GO(scope, reply_all, replier), 0);
		WEFT_SUPERVISE (askers)
			for (int i = 0; i < 20; i++)
				ck_assert_int_eq(WEFT_GO(askers, ask, nats),
						 0);
		ck_assert_int_eq(weft_nats_unsubscribe(subscription), 0);
	}
	ck_assert_int_eq(weft_nats_close(nats), 0);
	return 0;
}

static int64_t ask_once(void *arg)
{
	struct weft_nats *nats = *(struct weft_nats **)arg;
	natsMsg *reply;

	return weft_nats_request(nats, subject, "y", 1, &reply);
}

/* A subscriber that does not reply.  The connection is closed while jobs of
 * callers that left are under way. */
IO_TEST(deadline_or_cancellation_ends_a_request)
{
	struct weft_nats *nats = nats_connect();
	struct weft_nats_subscription *subscription = NULL;
	natsMsg *room[8], *message;
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	int64_t r = 0;

	ck_assert_int_eq(ask_once(&nats), -EHOSTUNREACH);
	ck_assert_int_eq(weft_nats_subscribe(nats, subject, NULL, &chan,
					     &subscription),
			 0);
	WEFT_WITHIN (WEFT_MS(30))
		r = weft_nats_request(nats, subject, "x", 1, &message);
	ck_assert_int_eq(r, -ETIMEDOUT);
	WEFT_SUPERVISE (scope) {
		struct weft_task task = start(scope, ask_once, 0, &nats,
					      sizeof(nats));

		/* Its request has come; that before it may have. */
		for (char got = 'x'; got != 'y';) {
			ck_assert_int_eq(weft_chan_recv(&chan, &message), 0);
			got = *natsMsg_GetData(message);
			natsMsg_Destroy(message);
		}
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(join(task), -ECANCELED);
	}
	ck_assert_int_eq(weft_nats_unsubscribe(subscription), 0);
	ck_assert_int_eq(weft_nats_close(nats), 0);
	return 0;
}

/* ---- Queues ---- */

static struct weft_nats_queue *queue_open(struct weft_nats *nats,
					  weft_nsec wait_ns)
{
	struct weft_nats_queue *queue = NULL;

	ck_assert_int_eq(weft_nats_queue_open(nats, subject, subject,
					      wait_ns, &queue),
			 0);
	return queue;
}

/* Of those with one id, one. */
IO_TEST(each_message_of_a_queue_is_taken_once)
{
	struct weft_nats *nats = nats_connect();
	struct weft_nats_queue *queue = queue_open(nats, WEFT_SEC(30));
	natsMsg *message;
	char text[16];
	int r = 0;

	for (int i = 0; i < 30; i++) {
		snprintf(text, sizeof(text), "%d", i / 3);
		ck_assert_int_eq(weft_nats_queue_put(queue, text,
						     strlen(text), text),
				 0);
	}
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(weft_nats_queue_take(queue, &message), 0);
		snprintf(text, sizeof(text), "%d", i);
		expect_message(message, text);
		ck_assert_int_eq(weft_nats_queue_done(queue, message), 0);
	}
	WEFT_WITHIN (WEFT_MS(20))
		r = weft_nats_queue_take(queue, &message);
	ck_assert_int_eq(r, -ETIMEDOUT);
	/* The take that was given up loses nothing. */
	ck_assert_int_eq(weft_nats_queue_put(queue, "last", 4, NULL), 0);
	ck_assert_int_eq(weft_nats_queue_take(queue, &message), 0);
	expect_message(message, "last");
	ck_assert_int_eq(weft_nats_queue_done(queue, message), 0);
	ck_assert_int_eq(weft_nats_queue_close(queue), 0);
	ck_assert_int_eq(weft_nats_close(nats), 0);
	return 0;
}

/* By a taker that goes without a word. */
IO_TEST(message_that_was_not_done_is_given_to_another)
{
	struct weft_nats *one = nats_connect(), *other = nats_connect();
	struct weft_nats_queue *queue = queue_open(one, WEFT_MS(300));
	natsMsg *message;

	ck_assert_int_eq(weft_nats_queue_put(queue, "job", 3, NULL), 0);
	ck_assert_int_eq(weft_nats_queue_take(queue, &message), 0);
	natsMsg_Destroy(message);
	ck_assert_int_eq(weft_nats_queue_close(queue), 0);
	ck_assert_int_eq(weft_nats_close(one), 0);
	queue = queue_open(other, WEFT_MS(300));
	ck_assert_int_eq(weft_nats_queue_take(queue, &message), 0);
	expect_message(message, "job");
	ck_assert_int_eq(weft_nats_queue_done(queue, message), 0);
	ck_assert_int_eq(weft_nats_queue_close(queue), 0);
	ck_assert_int_eq(weft_nats_close(other), 0);
	return 0;
}

/* ---- Interruptions ---- */

static struct weft_nats *busy;
static struct weft_nats_queue *busy_queue;
static natsMsg *busy_messages[2];

static int64_t connect_in_vain(void *arg)
{
	struct weft_nats *none = NULL;
	natsOptions *options = NULL;
	int r;

	(void)arg;
	ck_assert_int_eq(natsOptions_Create(&options), NATS_OK);
	r = weft_nats_connect(options, &none);
	ck_assert_ptr_null(none);
	return r;
}

static int64_t publish_in_vain(void *arg)
{
	(void)arg;
	return weft_nats_publish(busy, subject, "x", 1);
}

static int64_t request_in_vain(void *arg)
{
	natsMsg *reply;

	(void)arg;
	return weft_nats_request(busy, subject, "x", 1, &reply);
}

static int64_t open_in_vain(void *arg)
{
	struct weft_nats_queue *queue;

	(void)arg;
	return weft_nats_queue_open(busy, subject, subject, WEFT_SEC(30),
				    &queue);
}

static int64_t put_in_vain(void *arg)
{
	(void)arg;
	return weft_nats_queue_put(busy_queue, "x", 1, NULL);
}

static int64_t take_in_vain(void *arg)
{
	natsMsg *message;

	(void)arg;
	return weft_nats_queue_take(busy_queue, &message);
}

static int64_t done_in_vain(void *arg)
{
	natsMsg *message = busy_messages[0] ? busy_messages[0] :
					      busy_messages[1];

	(void)arg;
	busy_messages[busy_messages[0] ? 0 : 1] = NULL;
	return weft_nats_queue_done(busy_queue, message);
}

/* Each operation needs a thread, and there is none.  Those that were left end
 * before the connection is closed. */
static int64_t interrupt_all(void *arg)
{
	static const weft_fn calls[] = {
		connect_in_vain, publish_in_vain, request_in_vain, open_in_vain,
		put_in_vain,	 take_in_vain,	  done_in_vain,
	};

	(void)arg;
	busy = nats_connect();
	busy_queue = queue_open(busy, WEFT_SEC(30));
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(weft_nats_queue_put(busy_queue, "m", 1, NULL),
				 0);
		ck_assert_int_eq(weft_nats_queue_take(busy_queue,
						      &busy_messages[i]),
				 0);
	}
	WEFT_SUPERVISE (scope) {
		pool_take(scope);
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			pool_interrupt(calls[i]);
		pool_free();
	}
	ck_assert_int_eq(weft_nats_queue_close(busy_queue), 0);
	return weft_nats_close(busy);
}

START_TEST(deadline_or_cancellation_ends_the_wait_for_a_thread)
{
	pool_run(interrupt_all, 1 + (unsigned)_i);
}
END_TEST

/* ---- Refusals ---- */

IO_TEST(wrong_arguments_are_refused)
{
	struct weft_nats *nats = nats_connect(), *none = NULL;
	struct weft_nats_queue *queue, *second;
	natsOptions *options;
	char text[WEFT_ADDR_TEXT_BYTES], url[WEFT_ADDR_TEXT_BYTES + 8];
	char *large = calloc(1, 8 << 20);
	int fd;

	ck_assert_ptr_nonnull(large);
	ck_assert_int_eq(weft_nats_publish(nats, "", "x", 1), -EINVAL);
	ck_assert_int_eq(weft_nats_publish(nats, "x", large, 8 << 20),
			 -EMSGSIZE);
	free(large);
	ck_assert_int_eq(weft_nats_queue_open(nats, NULL, "x", WEFT_SEC(1),
					      &queue),
			 -EINVAL);
	ck_assert_int_eq(weft_nats_queue_open(nats, "a.b", "x", WEFT_SEC(1),
					      &queue),
			 -EINVAL);
	/* Another queue's, so that its messages would have two. */
	choose_subject();
	ck_assert_int_eq(weft_nats_queue_open(nats, subject, subject,
					      WEFT_SEC(30), &queue),
			 0);
	ck_assert_int_eq(weft_nats_queue_open(nats, "second", subject,
					      WEFT_SEC(30), &second),
			 -EREMOTEIO);
	ck_assert_int_eq(weft_nats_queue_close(queue), 0);
	natsConnection_Close(weft_nats_connection(nats));
	ck_assert_int_eq(weft_nats_publish(nats, "x", "x", 1), -ENOTCONN);
	ck_assert_int_eq(weft_nats_close(nats), 0);
	ck_assert_int_eq(weft_nats_close(NULL), 0);
	ck_assert_int_eq(weft_nats_unsubscribe(NULL), 0);
	ck_assert_int_eq(weft_nats_queue_close(NULL), 0);
	/* Nothing listens there any more. */
	fd = tcp_listener(text);
	ck_assert_int_eq(weft_close(fd), 0);
	snprintf(url, sizeof(url), "nats://%s", text);
	ck_assert_int_eq(natsOptions_Create(&options), NATS_OK);
	ck_assert_int_eq(natsOptions_SetURL(options, url), NATS_OK);
	ck_assert_int_eq(weft_nats_connect(options, &none), -ECONNREFUSED);
	return 0;
}

static int64_t poll_calls(void *arg)
{
	struct weft_nats *nats = *(struct weft_nats **)arg, *other;
	struct weft_nats_queue *queue;
	natsMsg *message;

	ck_assert_int_eq(weft_nats_connect(NULL, &other), -EPERM);
	ck_assert_int_eq(weft_nats_publish(nats, "x", "x", 1), -EPERM);
	ck_assert_int_eq(weft_nats_request(nats, "x", "x", 1, &message),
			 -EPERM);
	ck_assert_int_eq(weft_nats_queue_open(nats, "x", "x", 1, &queue),
			 -EPERM);
	ck_assert_int_eq(weft_nats_close(nats), -EPERM);
	return 0;
}

static void *in_a_thread(void *arg)
{
	(void)poll_calls(&arg);
	return NULL;
}

IO_TEST(futures_and_threads_cannot_wait)
{
	struct weft_nats *nats = nats_connect();
	pthread_t thread;

	WEFT_SUPERVISE (scope)
		ck_assert_int_eq(join(start_future(scope, poll_calls, &nats,
						   sizeof(nats))),
				 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, in_a_thread, nats), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(weft_nats_close(nats), 0);
	return 0;
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/nats");
	TCase *tc = tcase_create("messages");

	tcase_add_checked_fixture(tc, choose_subject, NULL);
	io_add_test(tc, messages_come_through_a_channel_in_order);
	io_add_test(tc, subscription_ends_while_its_channel_is_full);
	io_add_test(tc, requests_of_many_tasks_get_their_replies);
	io_add_test(tc, deadline_or_cancellation_ends_a_request);
	suite_add_tcase(s, tc);

	tc = tcase_create("queues");
	tcase_add_checked_fixture(tc, choose_subject, NULL);
	io_add_test(tc, each_message_of_a_queue_is_taken_once);
	io_add_test(tc, message_that_was_not_done_is_given_to_another);
	suite_add_tcase(s, tc);

	tc = tcase_create("interruptions");
	tcase_add_checked_fixture(tc, choose_subject, NULL);
	io_add_test(tc, deadline_or_cancellation_ends_the_wait_for_a_thread);
	suite_add_tcase(s, tc);

	tc = tcase_create("refusals");
	tcase_add_checked_fixture(tc, choose_subject, NULL);
	io_add_test(tc, wrong_arguments_are_refused);
	io_add_test(tc, futures_and_threads_cannot_wait);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return nats_tests_run(suite);
}
