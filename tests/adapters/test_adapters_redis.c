/* SPDX-License-Identifier: MIT */
/*
 * Replies of Redis go to the tasks that asked, when tasks give up in each
 * state, when the server does not read, and when the connection ends.
 */
#include "tests/support/redis_scene.h"

/* ---- Replies and their tasks ---- */

/* Two replies that come in one piece go to the tasks that asked. */
IO_TEST(replies_go_to_their_tasks_in_order)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task a, b;

		a = start_get(scope, &scene, 'a', WEFT_NEVER);
		server_reads(&scene, GET("a"));
		/* It is sent while the reply to the first is due. */
		b = start_get(scope, &scene, 'b', WEFT_NEVER);
		server_reads(&scene, GET("b"));
		server_writes(&scene, "$2\r\naa\r\n$2\r\nb");
		ck_assert_int_eq(join(a), 0);
		server_writes(&scene, "b\r\n");
		ck_assert_int_eq(join(b), 0);
	}
	scene_end(&scene);
	return 0;
}

/* The first task receives for both, and gives up.  The second one goes on, and
 * the first one's reply, which comes late, is dropped. */
IO_TEST(task_that_receives_gives_up_one_reply_alone)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task a, b;

		a = start_get(scope, &scene, 'a', WEFT_NEVER);
		server_reads(&scene, GET("a"));
		b = start_get(scope, &scene, 'b', WEFT_NEVER);
		server_reads(&scene, GET("b"));
		ck_assert_int_eq(weft_cancel(a), 0);
		ck_assert_int_eq(join(a), -ECANCELED);
		server_writes(&scene, "$2\r\naa\r\n$2\r\nbb\r\n");
		ck_assert_int_eq(join(b), 0);
	}
	scene_end(&scene);
	return 0;
}

/* The same for a task that only waits, and for the reply of a lone task, which
 * the next command's task finds. */
IO_TEST(cancelled_task_gives_up_one_reply_alone)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task a, b, c;

		a = start_get(scope, &scene, 'a', WEFT_NEVER);
		server_reads(&scene, GET("a"));
		b = start_get(scope, &scene, 'b', WEFT_NEVER);
		server_reads(&scene, GET("b"));
		ck_assert_int_eq(weft_cancel(b), 0);
		ck_assert_int_eq(join(b), -ECANCELED);
		ck_assert_int_eq(weft_cancel(a), 0);
		ck_assert_int_eq(join(a), -ECANCELED);
		server_writes(&scene, "$2\r\naa\r\n$2\r\nbb\r\n$2\r\n");
		c = start_get(scope, &scene, 'c', WEFT_NEVER);
		server_reads(&scene, GET("c"));
		server_writes(&scene, "cc\r\n");
		ck_assert_int_eq(join(c), 0);
	}
	scene_end(&scene);
	return 0;
}

static int64_t get_cancelled(void *arg)
{
	/* The cancellation is there before the command is. */
	while (weft_sleep(WEFT_SEC(60)) != -ECANCELED)
		;
	return get(arg);
}

IO_TEST(cancelled_task_sends_nothing)
{
	struct scene scene;
	struct getter getter = { &scene, "a", WEFT_NEVER };

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task a = start(scope, get_cancelled, 0, &getter,
					   sizeof(getter));

		ck_assert_int_eq(weft_cancel(a), 0);
		ck_assert_int_eq(join(a), -ECANCELED);
		server_has_nothing(&scene);
		getter.within_ns = 0;
		a = start(scope, get, 0, &getter, sizeof(getter));
		ck_assert_int_eq(join(a), -ETIMEDOUT);
		server_has_nothing(&scene);
	}
	scene_end(&scene);
	return 0;
}

/* ---- A server that does not read ---- */

/* Larger than what any socket takes. */
enum { LARGE = 64 << 20 };

static int64_t echo_large(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	char *data = calloc(1, LARGE);
	int r;

	ck_assert_ptr_nonnull(data);
	r = weft_redis_command(scene->redis, NULL, "ECHO %b", data,
			       (size_t)LARGE);
	free(data);
	return r;
}

static void server_reads_large(struct scene *scene)
{
	char *data = malloc(LARGE);

	ck_assert_ptr_nonnull(data);
	server_reads(scene, "*2\r\n$4\r\nECHO\r\n$67108864\r\n");
	ck_assert_int_eq(weft_read_all(scene->server, data, LARGE, NULL), 0);
	server_reads(scene, "\r\n");
	free(data);
}

/* Bytes of the command are there, so its task sends. */
static void wait_for_large(struct scene *scene)
{
	ck_assert_int_eq(weft_poll(scene->server, POLLIN), POLLIN);
}

/* Two tasks get a and c, in whatever order they came. */
static void server_answers_both(struct scene *scene)
{
	static const char *const texts[] = { GET("a") GET("c"),
					     GET("c") GET("a") };
	static const char *const answers[] = { "$2\r\naa\r\n$2\r\ncc\r\n",
					       "$2\r\ncc\r\n$2\r\naa\r\n" };
	size_t bytes = strlen(texts[0]);
	char text[128] = "";
	int i;

	ck_assert_int_eq(weft_read_all(scene->server, text, bytes, NULL), 0);
	i = strcmp(text, texts[0]) != 0;
	ck_assert_str_eq(text, texts[i]);
	server_writes(scene, answers[i]);
}

/* The task that sends is held up; of those behind it one gives up, and the
 * server never sees its command. */
IO_TEST(command_that_is_not_sent_is_taken_back)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct scene *s = &scene;
		struct weft_task large, a, b, c;

		large = start(scope, echo_large, 0, &s, sizeof(s));
		wait_for_large(&scene);
		a = start_get(scope, &scene, 'a', WEFT_NEVER);
		b = start_get(scope, &scene, 'b', WEFT_MS(20));
		c = start_get(scope, &scene, 'c', WEFT_NEVER);
		ck_assert_int_eq(join(b), -ETIMEDOUT);
		server_reads_large(&scene);
		server_writes(&scene, "+ok\r\n");
		ck_assert_int_eq(join(large), 0);
		server_answers_both(&scene);
		ck_assert_int_eq(join(a), 0);
		ck_assert_int_eq(join(c), 0);
		server_has_nothing(&scene);
	}
	scene_end(&scene);
	return 0;
}

/* The task that sends is cancelled in the middle of its command: another one
 * sends the rest, so that the server still understands what follows. */
IO_TEST(half_of_a_command_is_completed_by_the_next_task)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct scene *s = &scene;
		struct weft_task large, a;

		large = start(scope, echo_large, 0, &s, sizeof(s));
		wait_for_large(&scene);
		/* On two workers it may be before or after the cancellation
		 * that this one comes. */
		a = start_get(scope, &scene, 'a', WEFT_NEVER);
		ck_assert_int_eq(weft_cancel(large), 0);
		ck_assert_int_eq(join(large), -ECANCELED);
		server_reads_large(&scene);
		server_reads(&scene, GET("a"));
		server_writes(&scene, "+ok\r\n$2\r\naa\r\n");
		ck_assert_int_eq(join(a), 0);
	}
	scene_end(&scene);
	return 0;
}

/* ---- The end of a connection ---- */

static void all_fail(struct scene *scene, const char *answer, int error)
{
	WEFT_SUPERVISE (scope) {
		struct weft_task a, b, c;

		a = start_get(scope, scene, 'a', WEFT_NEVER);
		b = start_get(scope, scene, 'b', WEFT_NEVER);
		server_reads(scene, "*2\r\n$3\r\nGET\r\n$1\r\n");
		c = start_get(scope, scene, 'c', WEFT_NEVER);
		server_writes(scene, answer);
		ck_assert_int_eq(join(a), error);
		ck_assert_int_eq(join(b), error);
		ck_assert_int_eq(join(c), error);
	}
	ck_assert_int_eq(weft_redis_command(scene->redis, NULL, "PING"), error);
	ck_assert_int_eq(weft_redis_subscribe(scene->redis, "SUBSCRIBE x"),
			 error);
}

IO_TEST(all_tasks_are_told_that_the_server_is_gone)
{
	struct scene scene;
	redisReply *reply;
	int r;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task a = start_get(scope, &scene, 'a', WEFT_NEVER);

		server_reads(&scene, GET("a"));
		ck_assert_int_eq(weft_shutdown(scene.server, SHUT_WR), 0);
		ck_assert_int_eq(join(a), -ECONNRESET);
	}
	r = weft_redis_command(scene.redis, &reply, "PING");
	ck_assert_int_eq(r, -ECONNRESET);
	scene_end(&scene);
	return 0;
}

IO_TEST(what_is_no_reply_breaks_the_connection_for_all)
{
	struct scene scene;

	scene_begin(&scene);
	all_fail(&scene, "HTTP/1.0 400 Bad Request\r\n\r\n", -EPROTO);
	scene_end(&scene);
	return 0;
}

/* The replies would answer the wrong commands from here on. */
IO_TEST(reply_that_no_command_asked_for_breaks_the_connection)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task a = start_get(scope, &scene, 'a', WEFT_NEVER);

		server_reads(&scene, GET("a"));
		server_writes(&scene, "$2\r\naa\r\n+more\r\n");
		ck_assert_int_eq(join(a), 0);
	}
	ck_assert_int_eq(weft_redis_command(scene.redis, NULL, "PING"),
			 -EPROTO);
	scene_end(&scene);
	return 0;
}

IO_TEST(connection_in_use_is_not_closed)
{
	struct scene scene;

	ck_assert_int_eq(weft_redis_close(NULL), 0);
	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct weft_task a = start_get(scope, &scene, 'a', WEFT_NEVER);

		server_reads(&scene, GET("a"));
		ck_assert_int_eq(weft_redis_close(scene.redis), -EBUSY);
		server_writes(&scene, "$2\r\naa\r\n");
		ck_assert_int_eq(join(a), 0);
	}
	scene_end(&scene);
	return 0;
}

/* ---- Batches ---- */

static int64_t run_batch(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	struct weft_redis_batch batch = WEFT_REDIS_BATCH_INIT;
	redisReply *replies[3] = { NULL };
	int r;

	ck_assert_int_eq(weft_redis_batch_run(scene->redis, &batch, replies),
			 -EINVAL);
	ck_assert_int_eq(weft_redis_batch_add(&batch, "MULTI"), 0);
	ck_assert_int_eq(weft_redis_batch_add(&batch, "MONITOR"), -EINVAL);
	ck_assert_int_eq(weft_redis_batch_add(&batch, "INCR %s", "n"), 0);
	ck_assert_int_eq(weft_redis_batch_add(&batch, "EXEC"), 0);
	ck_assert_uint_eq(weft_redis_batch_count(&batch), 3);
	for (int i = 0; i < 2; i++) {
		r = weft_redis_batch_run(scene->redis, &batch, replies);
		for (int k = 0; k < 3; k++) {
			ck_assert_int_eq(!replies[k], r < 0);
			if (replies[k])
				freeReplyObject(replies[k]);
			replies[k] = NULL;
		}
	}
	weft_redis_batch_clear(&batch);
	ck_assert_uint_eq(weft_redis_batch_count(&batch), 0);
	return r;
}

#define BATCH                                                   \
	"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n" \
	"*1\r\n$4\r\nEXEC\r\n"

/* It may be run again; and one of which some replies have come gives those
 * up. */
IO_TEST(batch_is_sent_as_one)
{
	struct scene scene;

	scene_begin(&scene);
	WEFT_SUPERVISE (scope) {
		struct scene *s = &scene;
		struct weft_task all, a;

		all = start(scope, run_batch, 0, &s, sizeof(s));
		server_reads(&scene, BATCH);
		a = start_get(scope, &scene, 'a', WEFT_NEVER);
		server_reads(&scene, GET("a"));
		server_writes(&scene, "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
		server_reads(&scene, BATCH);
		server_writes(&scene, "$2\r\naa\r\n+OK\r\n");
		ck_assert_int_eq(join(a), 0);
		ck_assert_int_eq(weft_cancel(all), 0);
		ck_assert_int_eq(join(all), -ECANCELED);
		server_writes(&scene, "+QUEUED\r\n*1\r\n:2\r\n");
		a = start_get(scope, &scene, 'b', WEFT_NEVER);
		server_reads(&scene, GET("b"));
		server_writes(&scene, "$2\r\nbb\r\n");
		ck_assert_int_eq(join(a), 0);
	}
	scene_end(&scene);
	return 0;
}

/* A server that reads on when its reply is taken: each command, which is an
 * array, comes back. */
static int64_t echo_all(void *arg)
{
	int fd = *(int *)arg;
	char data[4096];
	ssize_t n;

	while ((n = weft_read(fd, data, sizeof(data))) > 0)
		if (weft_write_all(fd, data, (size_t)n, NULL) < 0)
			break;
	return weft_close(fd);
}

enum { ECHOES = 2000 };

static void run_echoes(struct weft_redis *redis)
{
	struct weft_redis_batch batch = WEFT_REDIS_BATCH_INIT;
	static redisReply *replies[ECHOES];
	static char data[1000];

	for (int i = 0; i < ECHOES; i++) {
		memset(data, 'a' + i % 23, sizeof(data));
		ck_assert_int_eq(weft_redis_batch_add(&batch, "ECHO %b", data,
						      sizeof(data)),
				 0);
	}
	ck_assert_int_eq(weft_redis_batch_run(redis, &batch, replies), 0);
	for (int i = 0; i < ECHOES; i++) {
		ck_assert_uint_eq(replies[i]->elements, 2);
		ck_assert_int_eq(replies[i]->element[1]->str[0], 'a' + i % 23);
		freeReplyObject(replies[i]);
	}
	weft_redis_batch_clear(&batch);
}

/* It is larger, and so are its replies, than what is held on the way. */
IO_TEST(batch_is_sent_while_its_replies_come)
{
	struct scene scene;

	scene_begin(&scene);
	scene_shrink(&scene);
	WEFT_SUPERVISE (server) {
		ck_assert_int_eq(WEFT_GO(server, echo_all, scene.server), 0);
		scene.server = -1;
		run_echoes(scene.redis);
		scene_end(&scene);
	}
	return 0;
}

/* ---- Many ---- */

enum { TASKS = 60, TURNS = 50 };

struct asker {
	struct scene *scene;
	int number;
};

/* Every third of its commands it may give up. */
static int64_t ask(void *arg)
{
	struct asker *asker = arg;
	redisReply *reply;
	int r = 0;

	for (int i = 0; i < TURNS; i++) {
		int64_t wanted = asker->number * TURNS + i;

		WEFT_WITHIN (i % 3 ? WEFT_NEVER : WEFT_US(300))
			r = weft_redis_command(asker->scene->redis, &reply,
					       "ECHO %lld", (long long)wanted);
		if (r == 0) {
			ck_assert_int_eq(reply->integer, wanted);
			freeReplyObject(reply);
		} else {
			ck_assert_int_eq(r, -ETIMEDOUT);
			ck_assert_int_eq(i % 3, 0);
		}
	}
	return 0;
}

/* A server that answers each ECHO by its number. */
static int64_t serve_numbers(void *arg)
{
	struct weft_stream stream;
	char line[64], answer[80];
	ssize_t n;

	weft_stream_init(&stream, *(int *)arg);
	for (int at = 0; (n = weft_stream_line(&stream, line, 64)) > 0; at++) {
		if (at % 5 != 4)
			continue;
		snprintf(answer, sizeof(answer), ":%s", line);
		if (weft_stream_put(&stream, answer, strlen(answer)) < 0)
			break;
	}
	return weft_stream_close(&stream);
}

/* They give up in every state, also on two workers. */
IO_TEST(tasks_that_give_up_leave_the_others_their_replies)
{
	struct scene scene;
	int64_t result = 0;

	scene_begin(&scene);
	WEFT_SUPERVISE (server) {
		ck_assert_int_eq(WEFT_GO(server, serve_numbers, scene.server),
				 0);
		scene.server = -1;
		WEFT_SCOPE (askers, &result)
			for (int i = 0; i < TASKS; i++) {
				struct asker asker = { &scene, i };

				ck_assert_int_eq(WEFT_GO(askers, ask, asker),
						 0);
			}
		ck_assert_int_eq(result, 0);
		scene_end(&scene);
	}
	return 0;
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/redis");
	TCase *tc = tcase_create("replies");

	io_add_test(tc, replies_go_to_their_tasks_in_order);
	io_add_test(tc, task_that_receives_gives_up_one_reply_alone);
	io_add_test(tc, cancelled_task_gives_up_one_reply_alone);
	io_add_test(tc, cancelled_task_sends_nothing);
	io_add_test(tc, command_that_is_not_sent_is_taken_back);
	io_add_test(tc, half_of_a_command_is_completed_by_the_next_task);
	io_add_test(tc, batch_is_sent_as_one);
	io_add_test(tc, batch_is_sent_while_its_replies_come);
	io_add_test(tc, tasks_that_give_up_leave_the_others_their_replies);
	suite_add_tcase(s, tc);

	tc = tcase_create("ends");
	io_add_test(tc, all_tasks_are_told_that_the_server_is_gone);
	io_add_test(tc, what_is_no_reply_breaks_the_connection_for_all);
	io_add_test(tc, reply_that_no_command_asked_for_breaks_the_connection);
	io_add_test(tc, connection_in_use_is_not_closed);
	suite_add_tcase(s, tc);

	return s;
}

int main(void)
{
	return io_tests_run(suite());
}
