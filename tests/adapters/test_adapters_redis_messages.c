/* SPDX-License-Identifier: MIT */
/*
 * Messages of Redis, and what a connection refuses: commands that would break
 * it, and callers that cannot wait.
 */
#include "tests/support/redis_scene.h"

/* ---- Messages ---- */

static void expect_message(redisReply *message, const char *text)
{
	ck_assert_int_eq(message->type, REDIS_REPLY_ARRAY);
	ck_assert_uint_eq(message->elements, 3);
	ck_assert_str_eq(message->element[2]->str, text);
	freeReplyObject(message);
}

IO_TEST(interrupted_wait_loses_no_message)
{
	struct scene scene;
	redisReply *message;
	int r = 0;

	scene_begin(&scene);
	ck_assert_int_eq(weft_redis_message(scene.redis, &message), -EINVAL);
	ck_assert_int_eq(weft_redis_subscribe(scene.redis, "GET x"), -EINVAL);
	ck_assert_int_eq(weft_redis_subscribe(scene.redis, "SUBSCRIBE %s", "x"),
			 0);
	server_reads(&scene, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nx\r\n");
	ck_assert_int_eq(weft_redis_command(scene.redis, NULL, "PING"),
			 -EINVAL);
	server_writes(&scene, "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$3\r\no");
	WEFT_WITHIN (WEFT_MS(10))
		r = weft_redis_message(scene.redis, &message);
	ck_assert_int_eq(r, -ETIMEDOUT);
	server_writes(&scene, "ne\r\n*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n"
			      "$3\r\ntwo\r\n");
	ck_assert_int_eq(weft_redis_message(scene.redis, &message), 0);
	expect_message(message, "one");
	ck_assert_int_eq(weft_redis_message(scene.redis, &message), 0);
	expect_message(message, "two");
	ck_assert_int_eq(weft_shutdown(scene.server, SHUT_WR), 0);
	ck_assert_int_eq(weft_redis_message(scene.redis, &message),
			 -ECONNRESET);
	scene_end(&scene);
	return 0;
}

static int64_t wait_for_message(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	redisReply *message;
	int r;

	while ((r = weft_redis_message(scene->redis, &message)) == -EBUSY)
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	if (r == 0)
		expect_message(message, "one");
	return r;
}

IO_TEST(task_subscribes_while_another_waits_for_messages)
{
	struct scene scene;

	scene_begin(&scene);
	ck_assert_int_eq(weft_redis_subscribe(scene.redis, "SUBSCRIBE x"), 0);
	WEFT_SUPERVISE (scope) {
		struct scene *s = &scene;
		redisReply *message;
		struct weft_task waits;
		int r = -ETIMEDOUT;

		waits = start(scope, wait_for_message, 0, &s, sizeof(s));
		/* It waits as soon as another one cannot. */
		while (r == -ETIMEDOUT) {
			ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
			WEFT_WITHIN (WEFT_MS(1))
				r = weft_redis_message(scene.redis, &message);
		}
		ck_assert_int_eq(r, -EBUSY);
		r = weft_redis_subscribe(scene.redis, "PSUBSCRIBE y*");
		ck_assert_int_eq(r, 0);
		server_reads(&scene, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nx\r\n"
				     "*2\r\n$10\r\nPSUBSCRIBE\r\n$2\r\ny*\r\n");
		server_writes(&scene, "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n"
				      "$3\r\none\r\n");
		ck_assert_int_eq(join(waits), 0);
	}
	scene_end(&scene);
	return 0;
}

enum { FLOOD = 40000, CHANNEL_BYTES = 1 << 20 };

static int64_t subscribe_long(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	char *channel = calloc(1, CHANNEL_BYTES);
	int r;

	ck_assert_ptr_nonnull(channel);
	r = weft_redis_subscribe(scene->redis, "SUBSCRIBE %b", channel,
				 (size_t)CHANNEL_BYTES);
	free(channel);
	return r;
}

/* It reads when all of its messages are taken. */
static int64_t flood(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	const char one[] = "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$3\r\none\r\n";
	size_t bytes = strlen(one);
	char *data = calloc(FLOOD, bytes);

	ck_assert_ptr_nonnull(data);
	ck_assert_uint_gt(FLOOD * bytes, CHANNEL_BYTES);
	for (size_t i = 0; i < FLOOD; i++)
		memcpy(data + i * bytes, one, bytes);
	ck_assert_int_eq(weft_write_all(scene->server, data, FLOOD * bytes,
					NULL),
			 0);
	server_reads(scene, "*2\r\n$9\r\nSUBSCRIBE\r\n$1048576\r\n");
	ck_assert_int_eq(weft_read_all(scene->server, data, CHANNEL_BYTES,
				       NULL),
			 0);
	free(data);
	return 0;
}

/* A task that waits for messages sends what another one has left, while
 * messages come. */
IO_TEST(messages_come_while_a_subscription_is_sent)
{
	struct scene scene;

	scene_begin(&scene);
	scene_shrink(&scene);
	WEFT_SUPERVISE (scope) {
		struct scene *s = &scene;
		struct weft_task task;
		redisReply *message;

		task = start(scope, subscribe_long, 0, &s, sizeof(s));
		ck_assert_int_eq(weft_poll(scene.server, POLLIN), POLLIN);
		ck_assert_int_eq(weft_cancel(task), 0);
		ck_assert_int_eq(join(task), -ECANCELED);
		task = start(scope, flood, 0, &s, sizeof(s));
		for (int i = 0; i < FLOOD; i++) {
			ck_assert_int_eq(weft_redis_message(scene.redis,
							    &message),
					 0);
			expect_message(message, "one");
		}
		ck_assert_int_eq(join(task), 0);
	}
	scene_end(&scene);
	return 0;
}

/* The connection is for messages or for commands. */
IO_TEST(subscription_waits_for_no_replies)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task a = start_get(scope, &scene, 'a', WEFT_NEVER);
		int r;

		server_reads(&scene, GET("a"));
		r = weft_redis_subscribe(scene.redis, "SUBSCRIBE x");
		ck_assert_int_eq(r, -EBUSY);
		ck_assert_int_eq(weft_cancel(a), 0);
		ck_assert_int_eq(join(a), -ECANCELED);
		r = weft_redis_subscribe(scene.redis, "SUBSCRIBE x");
		ck_assert_int_eq(r, -EBUSY);
		server_has_nothing(&scene);
	}
	scene_end(&scene);
	return 0;
}

/* ---- Refusals ---- */

static int64_t hello(void *arg)
{
	struct scene *scene = *(struct scene **)arg;

	return weft_redis_command(scene->redis, NULL, "HELLO 2");
}

IO_TEST(protocol_of_the_connection_may_be_asked_for)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct scene *s = &scene;
		struct weft_task a = start(scope, hello, 0, &s, sizeof(s));

		server_reads(&scene, "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n");
		server_writes(&scene, "*0\r\n");
		ck_assert_int_eq(join(a), 0);
	}
	scene_end(&scene);
	return 0;
}

IO_TEST(command_after_which_no_reply_matches_is_refused)
{
	static const char *const refused[] = {
		"MONITOR",	    "sync",	  "PSYNC ? -1",
		"client reply off", "SUBSCRIBE x", "unsubscribe",
		"pSubscribe x*",    "",		  "HELLO 3",
		"hello 03",
	};
	const char *argv[] = { "CLIENT", "REPLY", "SKIP" };
	struct scene scene;

	scene_begin(&scene);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		ck_assert_int_eq(weft_redis_command(scene.redis, NULL,
						    refused[i]),
				 -EINVAL);
	ck_assert_int_eq(weft_redis_command(scene.redis, NULL, "GET %!"),
			 -EINVAL);
	ck_assert_int_eq(weft_redis_command_argv(scene.redis, NULL, 3, argv,
						 NULL),
			 -EINVAL);
	ck_assert_int_eq(weft_redis_command_argv(scene.redis, NULL, 0, argv,
						 NULL),
			 -EINVAL);
	server_has_nothing(&scene);
	scene_end(&scene);
	return 0;
}

static int64_t poll_command(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	redisReply *message;

	ck_assert_int_eq(weft_redis_command(scene->redis, NULL, "PING"),
			 -EPERM);
	ck_assert_int_eq(weft_redis_message(scene->redis, &message), -EPERM);
	ck_assert_int_eq(weft_redis_close(scene->redis), -EPERM);
	return 0;
}

static void *in_a_thread(void *arg)
{
	struct weft_redis *redis;

	(void)poll_command(&arg);
	ck_assert_int_eq(weft_redis_connect("127.0.0.1:1", NULL, &redis),
			 -EPERM);
	return NULL;
}

IO_TEST(futures_and_threads_cannot_wait)
{
	struct scene scene, *s = &scene;
	pthread_t thread;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope)
		ck_assert_int_eq(join(start_future(scope, poll_command, &s,
						   sizeof(s))),
				 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, in_a_thread, s), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	server_has_nothing(&scene);
	scene_end(&scene);
	return 0;
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/redis/messages");
	TCase *tc = tcase_create("messages");

	io_add_test(tc, interrupted_wait_loses_no_message);
	io_add_test(tc, task_subscribes_while_another_waits_for_messages);
	io_add_test(tc, messages_come_while_a_subscription_is_sent);
	io_add_test(tc, subscription_waits_for_no_replies);
	suite_add_tcase(s, tc);

	tc = tcase_create("refusals");
	io_add_test(tc, protocol_of_the_connection_may_be_asked_for);
	io_add_test(tc, command_after_which_no_reply_matches_is_refused);
	io_add_test(tc, futures_and_threads_cannot_wait);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return io_tests_run(suite());
}
