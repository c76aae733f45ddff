/* SPDX-License-Identifier: MIT */
/*
 * A connection to Redis whose server is the test: it sees which bytes are sent
 * and when, answers late or wrongly, and does not read.
 */
#ifndef WEFT_TESTS_SUPPORT_REDIS_SCENE_H
#define WEFT_TESTS_SUPPORT_REDIS_SCENE_H

#include <hiredis/hiredis.h>
#include <weft/redis.h>

#include "tests/support/io_future.h"

struct scene {
	struct weft_stream stream;
	struct weft_redis *redis;
	int server;
};

static inline void scene_begin(struct scene *scene)
{
	int fds[2];

	socket_pair(fds);
	weft_stream_init(&scene->stream, fds[0]);
	scene->server = fds[1];
	ck_assert_int_eq(weft_redis_over(&scene->stream, &scene->redis), 0);
}

static inline void scene_end(struct scene *scene)
{
	ck_assert_int_eq(weft_redis_close(scene->redis), 0);
	if (scene->server >= 0)
		ck_assert_int_eq(weft_close(scene->server), 0);
}

/* Little is on the way between the two. */
static inline void scene_shrink(struct scene *scene)
{
	int fds[2] = { weft_stream_fd(&scene->stream), scene->server };
	int bytes = 4096;

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF,
					    &bytes, sizeof(bytes)),
				 0);
}

/* The server reads exactly this. */
static inline void server_reads(struct scene *scene, const char *expected)
{
	char text[512];
	size_t bytes = strlen(expected);

	ck_assert_uint_lt(bytes, sizeof(text));
	ck_assert_int_eq(weft_read_all(scene->server, text, bytes, NULL), 0);
	text[bytes] = '\0';
	ck_assert_str_eq(text, expected);
}

static inline void server_writes(struct scene *scene, const char *text)
{
	ck_assert_int_eq(weft_write_all(scene->server, text, strlen(text),
					NULL),
			 0);
}

/* Nothing that was sent is unread. */
static inline void server_has_nothing(struct scene *scene)
{
	char byte;

	ck_assert_int_eq(weft_recv(scene->server, &byte, 1, MSG_DONTWAIT),
			 -EAGAIN);
}

#define GET(key) "*2\r\n$3\r\nGET\r\n$1\r\n" key "\r\n"

/* A task that gets a key of one letter, and its result: the reply is that
 * letter twice. */
struct getter {
	struct scene *scene;
	char key[2];
	weft_nsec within_ns;
};

static inline int64_t get(void *arg)
{
	struct getter *getter = arg;
	redisReply *reply = NULL;
	int r = 0;

	WEFT_WITHIN (getter->within_ns)
		r = weft_redis_command(getter->scene->redis, &reply, "GET %s",
				       getter->key);
	if (r < 0) {
		ck_assert_ptr_null(reply);
		return r;
	}
	ck_assert_int_eq(reply->type, REDIS_REPLY_STRING);
	ck_assert_uint_eq(reply->len, 2);
	ck_assert_int_eq(reply->str[0], getter->key[0]);
	ck_assert_int_eq(reply->str[1], getter->key[0]);
	freeReplyObject(reply);
	return 0;
}

static inline struct weft_task start_get(struct weft_scope *scope,
					 struct scene *scene, char key,
					 weft_nsec within_ns)
{
	struct getter getter = { scene, { key, '\0' }, within_ns };

	return start(scope, get, 0, &getter, sizeof(getter));
}

#endif
