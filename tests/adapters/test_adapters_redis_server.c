/* SPDX-License-Identifier: MIT */
/*
 * Redis as it is: commands, transactions, messages and the end of a
 * redis-server, which this program starts.  Skipped where none is installed.
 */
#include <hiredis/hiredis.h>
#include <weft/redis.h>

#include "tests/support/io_future.h"
#include "tests/support/redis_kit.h"

static struct server server;

static struct weft_redis *redis_connect(void)
{
	struct weft_redis *redis = NULL;

	ck_assert_int_eq(weft_redis_connect(server.address, NULL, &redis), 0);
	return redis;
}

static void redis_end(struct weft_redis *redis)
{
	ck_assert_int_eq(weft_redis_close(redis), 0);
}

/* A key that no other test has: each runs in a process of its own. */
static const char *key(const char *name)
{
	static char text[64];

	snprintf(text, sizeof(text), "%d:%s", (int)getpid(), name);
	return text;
}

IO_TEST(commands_get_their_replies)
{
	struct weft_redis *redis = redis_connect();
	const char *argv[] = { "STRLEN", key("a") };
	redisReply *reply;

	ck_assert_int_eq(weft_redis_command(redis, &reply, "SET %s %b",
					    key("a"), "1\r\n\0", (size_t)4),
			 0);
	ck_assert_int_eq(reply->type, REDIS_REPLY_STATUS);
	ck_assert_str_eq(reply->str, "OK");
	freeReplyObject(reply);
	ck_assert_int_eq(weft_redis_command(redis, &reply, "GET %s", key("a")),
			 0);
	ck_assert_uint_eq(reply->len, 4);
	ck_assert_mem_eq(reply->str, "1\r\n", 4);
	freeReplyObject(reply);
	ck_assert_int_eq(weft_redis_command_argv(redis, &reply, 2, argv, NULL),
			 0);
	ck_assert_int_eq(reply->integer, 4);
	freeReplyObject(reply);
	ck_assert_int_eq(weft_redis_command(redis, &reply, "GET none"), 0);
	ck_assert_int_eq(reply->type, REDIS_REPLY_NIL);
	freeReplyObject(reply);
	redis_end(redis);
	return 0;
}

IO_TEST(unix_socket_is_an_address_too)
{
	struct weft_redis *redis;
	char path[80];

	snprintf(path, sizeof(path), "unix:%s/socket", server.dir);
	ck_assert_int_eq(weft_redis_connect(path, NULL, &redis), 0);
	ck_assert_int_eq(weft_redis_command(redis, NULL, "PING"), 0);
	redis_end(redis);
	ck_assert_int_eq(weft_redis_connect("nowhere", NULL, &redis), -EINVAL);
	return 0;
}

IO_TEST(name_is_looked_up)
{
	struct weft_redis *redis;
	struct weft_addr addr;
	char text[80];
	int r;

	snprintf(text, sizeof(text), "localhost%s",
		 strrchr(server.address, ':'));
	/* A weft without c-ares has addresses alone. */
	if (weft_resolve(text, NULL, &addr, 1) == -ENOSYS)
		return 0;
	r = weft_redis_connect(text, NULL, &redis);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(weft_redis_command(redis, NULL, "PING"), 0);
	redis_end(redis);
	return 0;
}

IO_TEST(error_of_the_server_is_a_reply)
{
	struct weft_redis *redis = redis_connect();
	redisReply *reply;

	ck_assert_int_eq(weft_redis_command(redis, &reply, "NOSUCH"), 0);
	ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
	freeReplyObject(reply);
	ck_assert_int_eq(weft_redis_command(redis, NULL, "NOSUCH"),
			 -EREMOTEIO);
	ck_assert_int_eq(weft_redis_command(redis, NULL, "PING"), 0);
	redis_end(redis);
	return 0;
}

/* ---- Many tasks ---- */

enum { TASKS = 100, TURNS = 20 };

struct counter {
	struct weft_redis *redis;
	const char *key;
	int number;
};

static int64_t count(void *arg)
{
	struct counter *counter = arg;
	redisReply *reply;

	for (int i = 0; i < TURNS; i++) {
		int wanted = counter->number * TURNS + i;

		ck_assert_int_eq(weft_redis_command(counter->redis, &reply,
						    "ECHO %d", wanted),
				 0);
		ck_assert_int_eq(atoi(reply->str), wanted);
		freeReplyObject(reply);
		ck_assert_int_eq(weft_redis_command(counter->redis, NULL,
						    "INCR %s", counter->key),
				 0);
	}
	return 0;
}

IO_TEST(many_tasks_use_one_connection)
{
	struct weft_redis *redis = redis_connect();
	const char *name = key(__func__);
	redisReply *reply;
	int64_t result = 0;

	WEFT_SCOPE (scope, &result)
		for (int i = 0; i < TASKS; i++) {
			struct counter counter = { redis, name, i };

			ck_assert_int_eq(WEFT_GO(scope, count, counter), 0);
		}
	ck_assert_int_eq(result, 0);
	ck_assert_int_eq(weft_redis_command(redis, &reply, "GETDEL %s", name),
			 0);
	ck_assert_int_eq(atoi(reply->str), TASKS * TURNS);
	freeReplyObject(reply);
	redis_end(redis);
	return 0;
}

/* Each moves one from the one account to the other, 20 times. */
static int64_t transfer(void *arg)
{
	struct counter *counter = arg;
	struct weft_redis_batch batch = WEFT_REDIS_BATCH_INIT;
	redisReply *replies[4];

	ck_assert_int_eq(weft_redis_batch_add(&batch, "MULTI"), 0);
	ck_assert_int_eq(weft_redis_batch_add(&batch, "DECR from%s",
					      counter->key),
			 0);
	ck_assert_int_eq(weft_redis_batch_add(&batch, "INCR to%s",
					      counter->key),
			 0);
	ck_assert_int_eq(weft_redis_batch_add(&batch, "EXEC"), 0);
	for (int i = 0; i < TURNS; i++) {
		redisReply *sums[2];

		ck_assert_int_eq(weft_redis_batch_run(counter->redis, &batch,
						      replies),
				 0);
		ck_assert_int_eq(replies[3]->type, REDIS_REPLY_ARRAY);
		ck_assert_uint_eq(replies[3]->elements, 2);
		sums[0] = replies[3]->element[0];
		sums[1] = replies[3]->element[1];
		/* No transfer is ever half done. */
		ck_assert_int_eq(sums[0]->integer + sums[1]->integer, 0);
		for (int k = 0; k < 4; k++)
			freeReplyObject(replies[k]);
	}
	weft_redis_batch_clear(&batch);
	return 0;
}

IO_TEST(transactions_of_many_tasks_do_not_mix)
{
	struct weft_redis *redis = redis_connect();
	const char *name = key(__func__);

	WEFT_SUPERVISE (scope)
		for (int i = 0; i < TASKS / 4; i++) {
			struct counter counter = { redis, name, i };

			ck_assert_int_eq(WEFT_GO(scope, transfer, counter), 0);
		}
	redis_end(redis);
	return 0;
}

/* The server is busy with a command that waits until another client ends that.
 * Its task gives up, and what comes after it is right. */
IO_TEST(deadline_leaves_the_connection_usable)
{
	struct weft_redis *redis = redis_connect(), *other = redis_connect();
	redisReply *reply = NULL;
	int r = 0;

	WEFT_WITHIN (WEFT_MS(20))
		r = weft_redis_command(redis, &reply, "BLPOP %s 0",
				       key("list"));
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_ptr_null(reply);
	ck_assert_int_eq(weft_redis_command(other, NULL, "RPUSH %s 1",
					    key("list")),
			 0);
	ck_assert_int_eq(weft_redis_command(redis, &reply, "ECHO after"), 0);
	ck_assert_str_eq(reply->str, "after");
	freeReplyObject(reply);
	redis_end(redis);
	redis_end(other);
	return 0;
}

IO_TEST(large_values_come_and_go)
{
	enum { BYTES = 20 << 20 };
	struct weft_redis *redis = redis_connect();
	char *data = malloc(BYTES);
	redisReply *reply;

	ck_assert_ptr_nonnull(data);
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (char)(i * 2654435761u >> 24);
	ck_assert_int_eq(weft_redis_command(redis, &reply, "ECHO %b", data,
					    (size_t)BYTES),
			 0);
	ck_assert_uint_eq(reply->len, BYTES);
	ck_assert(memcmp(reply->str, data, BYTES) == 0);
	freeReplyObject(reply);
	free(data);
	redis_end(redis);
	return 0;
}

/* ---- Messages ---- */

enum { MESSAGES = 500 };

static int64_t publish(void *arg)
{
	struct counter *counter = arg;

	for (int i = 0; i < MESSAGES; i++)
		ck_assert_int_eq(weft_redis_command(counter->redis, NULL,
						    "PUBLISH %s %d",
						    counter->key, i),
				 0);
	return 0;
}

static void expect_word(redisReply *message, size_t at, const char *text)
{
	ck_assert_int_eq(message->type, REDIS_REPLY_ARRAY);
	ck_assert_uint_lt(at, message->elements);
	ck_assert_str_eq(message->element[at]->str, text);
}

IO_TEST(messages_come_in_order)
{
	struct weft_redis *redis = redis_connect(), *hears = redis_connect();
	struct counter counter = { redis, key(__func__), 0 };
	weft_nsec within_ns = WEFT_US(500);
	redisReply *message;

	ck_assert_int_eq(weft_redis_subscribe(hears, "SUBSCRIBE %s",
					      counter.key),
			 0);
	ck_assert_int_eq(weft_redis_message(hears, &message), 0);
	expect_word(message, 0, "subscribe");
	freeReplyObject(message);
	WEFT_SUPERVISE (scope) {
		ck_assert_int_eq(WEFT_GO(scope, publish, counter), 0);
		for (int i = 0; i < MESSAGES;) {
			int r = 0;

			WEFT_WITHIN (within_ns)
				r = weft_redis_message(hears, &message);
			/* A slow machine has more time in the end. */
			within_ns = r == 0 ? WEFT_US(500) : 2 * within_ns;
			if (r == -ETIMEDOUT)
				continue;
			ck_assert_int_eq(r, 0);
			expect_word(message, 0, "message");
			expect_word(message, 1, counter.key);
			ck_assert_int_eq(atoi(message->element[2]->str), i++);
			freeReplyObject(message);
		}
	}
	redis_end(hears);
	redis_end(redis);
	return 0;
}

/* ---- The end of the server ---- */

static int64_t wait_for_ever(void *arg)
{
	struct weft_redis *redis = *(struct weft_redis **)arg;

	return weft_redis_command(redis, NULL, "PING");
}

/* A server of its own, which stops, so that all tasks wait, and dies. */
IO_TEST(all_waiting_tasks_are_told_that_the_server_died)
{
	struct server own = { 0 };
	char path[256];
	struct weft_redis *redis;

	ck_assert(redis_begin(&own, server_program("redis-server", NULL,
						   path)));
	ck_assert_int_eq(weft_redis_connect(own.address, NULL, &redis), 0);
	ck_assert_int_eq(weft_redis_command(redis, NULL, "PING"), 0);
	ck_assert_int_eq(kill(own.pid, SIGSTOP), 0);
	WEFT_SUPERVISE (scope) {
		struct weft_task tasks[10];

		for (int i = 0; i < 10; i++)
			tasks[i] = start(scope, wait_for_ever, 0, &redis,
					 sizeof(redis));
		for (int i = 0; i < 10; i++)
			wait_until(task_has_settled(tasks[i]));
		server_end(&own, SIGKILL);
		for (int i = 0; i < 10; i++) {
			int64_t r = join(tasks[i]);

			ck_assert_msg(r == -ECONNRESET || r == -EPIPE,
				      "%lld", (long long)r);
		}
	}
	ck_assert_int_lt(weft_redis_command(redis, NULL, "PING"), 0);
	redis_end(redis);
	server_remove_dir(&own);
	return 0;
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/redis/server");
	TCase *tc = tcase_create("commands");

	io_add_test(tc, commands_get_their_replies);
	io_add_test(tc, unix_socket_is_an_address_too);
	io_add_test(tc, name_is_looked_up);
	io_add_test(tc, error_of_the_server_is_a_reply);
	io_add_test(tc, deadline_leaves_the_connection_usable);
	io_add_test(tc, large_values_come_and_go);
	suite_add_tcase(s, tc);

	tc = tcase_create("many");
	io_add_test(tc, many_tasks_use_one_connection);
	io_add_test(tc, transactions_of_many_tasks_do_not_mix);
	io_add_test(tc, messages_come_in_order);
	io_add_test(tc, all_waiting_tasks_are_told_that_the_server_died);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	char path[256];
	int status;

	if (!server_program("redis-server", NULL, path)) {
		puts("skipped: redis-server is not installed");
		return 77;
	}
	if (!redis_begin(&server, path))
		return server_failed(&server, "redis-server");
	status = io_tests_run(suite());
	server_end(&server, SIGKILL);
	server_remove_dir(&server);
	return status;
}
