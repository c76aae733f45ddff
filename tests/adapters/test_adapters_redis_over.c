/* SPDX-License-Identifier: MIT */
/*
 * Redis over a stream without a descriptor, whose writes wait for the test.
 * Tasks give up while they send for others; and an error in one direction ends
 * the wait of tasks in the other, which no shutdown does here.
 */
#include "tests/support/poor_kit.h"
#include "tests/support/redis_gate.h"

#define SUBSCRIBE "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\ny\r\n"
#define BYTES(text) (sizeof(text) - 1)

static int64_t subscribe(void *arg)
{
	struct gate *gate = *(struct gate **)arg;

	return weft_redis_subscribe(gate->scene.redis, "SUBSCRIBE y");
}

static struct weft_task start_subscribe(struct weft_scope *scope,
					struct gate *gate)
{
	return start(scope, subscribe, 0, &gate, sizeof(gate));
}

static int64_t wait_for_message(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	redisReply *message;

	return weft_redis_message(scene->redis, &message);
}

static void begin_messages(struct gate *gate)
{
	gate_begin(gate);
	gate_pass(gate);
	ck_assert_int_eq(weft_redis_subscribe(gate->scene.redis, "PING"), 0);
	server_reads(&gate->scene, "*1\r\n$4\r\nPING\r\n");
}

static void cancel(struct weft_task task)
{
	ck_assert_int_eq(weft_cancel(task), 0);
	ck_assert_int_eq(join(task), -ECANCELED);
}

IO_TEST(subscription_that_is_interrupted_is_no_success)
{
	struct gate gate;

	begin_messages(&gate);
	WEFT_SUPERVISE (scope) {
		struct weft_task a = start_subscribe(scope, &gate);

		gate_wait(&gate, a);
		cancel(a);
	}
	server_has_nothing(&gate.scene);
	scene_end(&gate.scene);
	return 0;
}

/* Two tasks subscribe while the first one sends.  Returns the one that sends
 * next, of a and b. */
static int subscribe_three(struct weft_scope *scope, struct gate *gate,
			   struct weft_task pair[2], size_t *ret_bytes)
{
	struct weft_task first = start_subscribe(scope, gate);
	size_t bytes;

	gate_wait(gate, first);
	for (int i = 0; i < 2; i++)
		pair[i] = start_subscribe(scope, gate);
	ck_assert_int_eq(weft_yield(), 0);
	gate_pass(gate);
	ck_assert_int_eq(join(first), 0);
	server_reads(&gate->scene, SUBSCRIBE);
	wait_until(gate_has(gate, pair[0], ret_bytes) ||
		   gate_has(gate, pair[1], ret_bytes));
	return gate_has(gate, pair[1], &bytes);
}

/* The task that does not send is told when both are sent. */
IO_TEST(subscriptions_are_sent_together)
{
	struct gate gate;

	begin_messages(&gate);
	WEFT_SUPERVISE (scope) {
		struct weft_task pair[2];
		size_t bytes;

		(void)subscribe_three(scope, &gate, pair, &bytes);
		gate_pass(&gate);
		if (bytes != 2 * BYTES(SUBSCRIBE))
			gate_pass(&gate);
		ck_assert_int_eq(join(pair[0]), 0);
		ck_assert_int_eq(join(pair[1]), 0);
		server_reads(&gate.scene, SUBSCRIBE SUBSCRIBE);
	}
	scene_end(&gate.scene);
	return 0;
}

/* Two tasks' commands are sent in one piece.  The one that sends gives up, and
 * the other one sends both. */
IO_TEST(subscription_is_done_when_it_is_sent)
{
	struct gate gate;

	begin_messages(&gate);
	WEFT_SUPERVISE (scope) {
		struct weft_task pair[2];
		size_t bytes;
		int sends;

		/* Until both came in time. */
		while ((sends = subscribe_three(scope, &gate, pair, &bytes)),
		       bytes != 2 * BYTES(SUBSCRIBE)) {
			gate_pass(&gate);
			gate_pass(&gate);
			for (int i = 0; i < 2; i++) {
				ck_assert_int_eq(join(pair[i]), 0);
				server_reads(&gate.scene, SUBSCRIBE);
			}
		}
		cancel(pair[sends]);
		gate_wait(&gate, pair[!sends]);
		gate_pass(&gate);
		ck_assert_int_eq(join(pair[!sends]), 0);
		server_reads(&gate.scene, SUBSCRIBE SUBSCRIBE);
	}
	scene_end(&gate.scene);
	return 0;
}

/* The same when the task that gives up waits for messages, and sends what an
 * earlier one has left. */
IO_TEST(task_that_waits_for_messages_leaves_the_rest_to_another)
{
	struct gate gate;

	begin_messages(&gate);
	WEFT_SUPERVISE (scope) {
		struct scene *s = &gate.scene;
		struct weft_task a, b;

		a = start_subscribe(scope, &gate);
		gate_wait(&gate, a);
		cancel(a);
		a = start(scope, wait_for_message, 0, &s, sizeof(s));
		gate_wait(&gate, a);
		b = start_subscribe(scope, &gate);
		ck_assert_int_eq(weft_yield(), 0);
		cancel(a);
		gate_wait(&gate, b);
		gate_pass(&gate);
		gate_pass(&gate);
		ck_assert_int_eq(join(b), 0);
		server_reads(s, SUBSCRIBE SUBSCRIBE);
	}
	scene_end(&gate.scene);
	return 0;
}

/* ---- Errors ---- */

/* The next write fails. */
static void gate_break(struct gate *gate)
{
	gate->error = -EPIPE;
	gate_pass(gate);
}

IO_TEST(write_that_fails_ends_the_wait_for_a_reply)
{
	struct gate gate;

	gate_begin(&gate);
	WEFT_SUPERVISE (scope) {
		struct weft_task a, b;

		gate_pass(&gate);
		a = start_get(scope, &gate.scene, 'a', WEFT_NEVER);
		server_reads(&gate.scene, GET("a"));
		b = start_get(scope, &gate.scene, 'b', WEFT_NEVER);
		gate_wait(&gate, b);
		gate_break(&gate);
		ck_assert_int_eq(join(b), -EPIPE);
		ck_assert_int_eq(join(a), -EPIPE);
	}
	scene_end(&gate.scene);
	return 0;
}

IO_TEST(write_that_fails_ends_the_wait_for_a_message)
{
	struct gate gate;

	begin_messages(&gate);
	WEFT_SUPERVISE (scope) {
		struct scene *s = &gate.scene;
		struct weft_task a, b;

		a = start(scope, wait_for_message, 0, &s, sizeof(s));
		b = start_subscribe(scope, &gate);
		gate_wait(&gate, b);
		gate_break(&gate);
		ck_assert_int_eq(join(b), -EPIPE);
		ck_assert_int_eq(join(a), -EPIPE);
	}
	scene_end(&gate.scene);
	return 0;
}

IO_TEST(end_of_the_replies_ends_a_write)
{
	struct gate gate;

	gate_begin(&gate);
	WEFT_SUPERVISE (scope) {
		struct weft_task a, b;

		gate_pass(&gate);
		a = start_get(scope, &gate.scene, 'a', WEFT_NEVER);
		server_reads(&gate.scene, GET("a"));
		b = start_get(scope, &gate.scene, 'b', WEFT_NEVER);
		gate_wait(&gate, b);
		ck_assert_int_eq(weft_shutdown(gate.scene.server, SHUT_WR), 0);
		ck_assert_int_eq(join(a), -ECONNRESET);
		ck_assert_int_eq(join(b), -ECONNRESET);
	}
	scene_end(&gate.scene);
	return 0;
}

/* ---- Without memory ---- */

POOR_WRAP(calloc, (size_t count, size_t bytes), count, bytes)
POOR_WRAP(realloc, (void *old, size_t bytes), old, bytes)

static int64_t ask_over(void *arg)
{
	struct weft_stream stream;
	struct weft_redis *redis = NULL;
	redisReply *reply = NULL;
	int fds[2], r;

	(void)arg;
	socket_pair(fds);
	weft_stream_init(&stream, fds[0]);
	/* The answer is there already. */
	ck_assert_int_eq(write(fds[1], "$2\r\nxx\r\n", 8), 8);
	r = weft_redis_over(&stream, &redis);
	if (r < 0)
		ck_assert_int_eq(weft_stream_close(&stream), 0);
	if (redis)
		r = weft_redis_command(redis, &reply, "GET x");
	freeReplyObject(reply);
	ck_assert_int_eq(weft_redis_close(redis), 0);
	close(fds[1]);
	return r;
}

static int64_t fill_batch(void *arg)
{
	struct weft_redis_batch batch = WEFT_REDIS_BATCH_INIT;
	int r = 0;

	(void)arg;
	for (int i = 0; i < 9 && r == 0; i++) {
		r = weft_redis_batch_add(&batch, "SET x %d", i);
		ck_assert_uint_eq(weft_redis_batch_count(&batch),
				  (size_t)i + (r == 0));
	}
	weft_redis_batch_clear(&batch);
	return r;
}

IO_TEST(lack_of_memory_is_an_error)
{
	poor_sweep(ask_over, NULL);
	poor_sweep(fill_batch, NULL);
	return 0;
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/redis/over");
	TCase *tc = tcase_create("subscriptions");

	io_add_test(tc, subscription_that_is_interrupted_is_no_success);
	io_add_test(tc, subscriptions_are_sent_together);
	io_add_test(tc, subscription_is_done_when_it_is_sent);
	io_add_test(tc,
		    task_that_waits_for_messages_leaves_the_rest_to_another);
	suite_add_tcase(s, tc);

	tc = tcase_create("errors");
	io_add_test(tc, write_that_fails_ends_the_wait_for_a_reply);
	io_add_test(tc, write_that_fails_ends_the_wait_for_a_message);
	io_add_test(tc, end_of_the_replies_ends_a_write);
	io_add_test(tc, lack_of_memory_is_an_error);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return io_tests_run(suite());
}
