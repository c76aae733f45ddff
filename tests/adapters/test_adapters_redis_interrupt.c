/* SPDX-License-Identifier: MIT */
/*
 * Calls of weft/redis.h, each interrupted while it waits: by a cancellation,
 * and by its deadline.  The server takes no connection, reads nothing, or does
 * not answer.
 */
#include "tests/support/interrupt_kit.h"
#include "tests/support/io_place.h"
#include "tests/support/redis_scene.h"

static int64_t connect_in_vain(void *arg)
{
	struct weft_redis *redis = NULL;
	int r = weft_redis_connect(*(char **)arg, NULL, &redis);

	ck_assert_ptr_null(redis);
	return r;
}

/* Its queue of connections is full. */
IO_TEST(connect_is_interrupted)
{
	struct place place;

	place_init(&place);
	unix_crowd_open(&place);
	expect_interrupted(connect_in_vain, place.address);
	place_close(&place);
	return 0;
}

static int64_t command_in_vain(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	redisReply *reply = NULL;
	int r = weft_redis_command(scene->redis, &reply, "GET a");

	ck_assert_ptr_null(reply);
	return r;
}

static int64_t list_in_vain(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	const char *arguments[] = { "GET", "a" };

	return weft_redis_command_argv(scene->redis, NULL, 2, arguments, NULL);
}

static int64_t batch_in_vain(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	struct weft_redis_batch batch = WEFT_REDIS_BATCH_INIT;
	redisReply *replies[2] = { NULL };
	int r;

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(weft_redis_batch_add(&batch, "PING"), 0);
	r = weft_redis_batch_run(scene->redis, &batch, replies);
	ck_assert(!replies[0] && !replies[1]);
	weft_redis_batch_clear(&batch);
	return r;
}

/* Reads up to a command GET b; returns how many commands came before it.  One
 * whose deadline passed before it was sent did not come. */
static unsigned commands_before_b(struct scene *scene)
{
	static const char b[] = GET("b");
	size_t used = 0, end = sizeof(b) - 1;
	unsigned count = 0;
	char text[512];

	while (used < end || memcmp(text + used - end, b, end) != 0) {
		ck_assert_uint_lt(used, sizeof(text));
		ck_assert_int_eq(weft_read(scene->server, text + used, 1), 1);
		count += text[used++] == '*';
	}
	return count - 1;
}

/* The replies that were given up come in the end, before another. */
IO_TEST(wait_for_a_reply_is_interrupted)
{
	struct scene scene;
	unsigned count;

	scene_begin(&scene);
	expect_interrupted(command_in_vain, &scene);
	expect_interrupted(list_in_vain, &scene);
	expect_interrupted(batch_in_vain, &scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task b = start_get(scope, &scene, 'b', WEFT_NEVER);

		count = commands_before_b(&scene);
		/* Those that were cancelled had been sent. */
		ck_assert_uint_ge(count, 4);
		ck_assert_uint_le(count, 8);
		for (unsigned i = 0; i < count; i++)
			server_writes(&scene, "$2\r\naa\r\n");
		server_writes(&scene, "$2\r\nbb\r\n");
		ck_assert_int_eq(join(b), 0);
	}
	scene_end(&scene);
	return 0;
}

static int64_t message_in_vain(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	redisReply *message = NULL;
	int r = weft_redis_message(scene->redis, &message);

	ck_assert_ptr_null(message);
	return r;
}

IO_TEST(wait_for_a_message_is_interrupted)
{
	redisReply *message = NULL;
	struct scene scene;

	scene_begin(&scene);
	ck_assert_int_eq(weft_redis_subscribe(scene.redis, "SUBSCRIBE x"), 0);
	expect_interrupted(message_in_vain, &scene);
	server_writes(&scene, "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\ny\r\n");
	ck_assert_int_eq(weft_redis_message(scene.redis, &message), 0);
	ck_assert_str_eq(message->element[2]->str, "y");
	freeReplyObject(message);
	scene_end(&scene);
	return 0;
}

/* More than the socket takes. */
static int64_t subscribe_in_vain(void *arg)
{
	enum { BYTES = 8 << 20 };
	struct scene *scene = *(struct scene **)arg;
	char *data = calloc(1, BYTES);
	int r;

	ck_assert_ptr_nonnull(data);
	r = weft_redis_subscribe(scene->redis, "SUBSCRIBE %b", data,
				 (size_t)BYTES);
	free(data);
	return r;
}

IO_TEST(subscription_that_is_not_sent_is_interrupted)
{
	struct scene scene;

	scene_begin(&scene);
	scene_shrink(&scene);
	expect_interrupted(subscribe_in_vain, &scene);
	/* The peer goes: the rest is not sent. */
	ck_assert_int_eq(weft_close(scene.server), 0);
	(void)weft_redis_close(scene.redis);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("adapters/redis interrupt");
	TCase *tc = tcase_create("interrupt");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, connect_is_interrupted);
	io_add_test(tc, wait_for_a_reply_is_interrupted);
	io_add_test(tc, wait_for_a_message_is_interrupted);
	io_add_test(tc, subscription_that_is_not_sent_is_interrupted);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
