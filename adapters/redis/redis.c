/* SPDX-License-Identifier: MIT */
/*
 * Redis: the public calls.  They format commands with hiredis, refuse those
 * after which replies would no longer match commands, and leave the rest to
 * adapters/redis/connection.c.
 *
 * **Concurrency**: a command that is formatted belongs to its caller, which
 * waits until it is no longer needed.
 */
#include <weft/redis.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adapters/redis/connection.h"

/* ---- Formatted commands ---- */

struct text {
	const char *at;
	size_t bytes;
};

/* Takes the next argument of a formatted command: "$3\r\nGET\r\n". */
static struct text argument_next(const char **at)
{
	char *end;
	size_t bytes = strtoul(*at + 1, &end, 10);
	struct text text = { end + 2, bytes };

	*at = text.at + bytes + 2;
	return text;
}

static bool is_one_of(struct text text, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == text.bytes &&
		    strncasecmp(*names, text.at, text.bytes) == 0)
			return true;
	return false;
}

static const char *const SUBSCRIBES[] = {
	"SUBSCRIBE",   "PSUBSCRIBE",   "SSUBSCRIBE",   "UNSUBSCRIBE",
	"PUNSUBSCRIBE", "SUNSUBSCRIBE", NULL,
};
static const char *const PINGS[] = { "PING", NULL };
static const char *const UNMATCHED[] = { "MONITOR", "SYNC", "PSYNC", NULL };
static const char *const CLIENT[] = { "CLIENT", NULL };
static const char *const REPLY[] = { "REPLY", NULL };
static const char *const HELLO[] = { "HELLO", NULL };
static const char *const RESP2[] = { "2", NULL };

/* May the command be sent, as one whose reply is awaited, or to subscribe? */
static bool is_allowed(const char *command, bool subscribes)
{
	char *end;
	unsigned long count = strtoul(command + 1, &end, 10);
	const char *at = end + 2;
	struct text name, argument;

	if (count == 0)
		return false;
	name = argument_next(&at);
	if (subscribes)
		return is_one_of(name, SUBSCRIBES) || is_one_of(name, PINGS);
	if (is_one_of(name, SUBSCRIBES) || is_one_of(name, UNMATCHED))
		return false;
	if (count == 1)
		return true;
	argument = argument_next(&at);
	/* In another protocol than RESP2 some of what comes is no reply. */
	if (is_one_of(name, HELLO))
		return is_one_of(argument, RESP2);
	return !(is_one_of(name, CLIENT) && is_one_of(argument, REPLY));
}

/* hiredis's result: the number of bytes; -1: no memory; -2: a wrong format. */
static int64_t checked(char *command, int64_t bytes, bool subscribes)
{
	if (bytes == -1)
		return -ENOMEM;
	if (bytes < 0)
		return -EINVAL;
	if (!is_allowed(command, subscribes)) {
		redisFreeCommand(command);
		return -EINVAL;
	}
	return bytes;
}

static int64_t format_list(char **ret_command, bool subscribes,
			   const char *format, va_list arguments)
{
	int bytes = redisvFormatCommand(ret_command, format, arguments);

	return checked(*ret_command, bytes, subscribes);
}

/* Sends a formatted command, and frees it. */
static int command_run(struct weft_redis *redis, redisReply **ret_reply,
		       char *command, int64_t bytes)
{
	redisReply *reply = NULL;
	struct call call = {
		.bytes = command,
		.bytes_count = (size_t)bytes,
		.replies = &reply,
		.count = 1,
	};
	int r;

	if (bytes < 0)
		return (int)bytes;
	r = weft__redis_call(redis, &call, false);
	redisFreeCommand(command);
	if (r < 0)
		return r;
	if (ret_reply) {
		*ret_reply = reply;
		return 0;
	}
	r = reply->type == REDIS_REPLY_ERROR ? -EREMOTEIO : 0;
	freeReplyObject(reply);
	return r;
}

/* ---- Life ---- */

int weft_redis_over(struct weft_stream *stream, struct weft_redis **ret_redis)
{
	struct weft_redis *redis = calloc(1, sizeof(*redis));

	if (!redis)
		return -ENOMEM;
	redis->reader = redisReaderCreate();
	if (!redis->reader) {
		free(redis);
		return -ENOMEM;
	}
	redis->stream = stream;
	pthread_mutex_init(&redis->lock, NULL);
	link_init(&redis->queue);
	link_init(&redis->idle);
	*ret_redis = redis;
	return 0;
}

int weft_redis_connect(const char *address, const struct weft_socket_opts *opts,
		       struct weft_redis **ret_redis)
{
	struct weft_dial_opts dial = WEFT_DIAL_OPTS_INIT;
	struct weft_redis *redis;
	int fd, r;

	dial.socket = opts;
	fd = weft_dial(address, &dial);
	if (fd < 0)
		return fd;
	r = weft_redis_over(NULL, &redis);
	if (r < 0) {
		weft_close(fd);
		return r;
	}
	redis->stream = &redis->own;
	weft_stream_init(&redis->own, fd);
	*ret_redis = redis;
	return 0;
}

int weft_redis_close(struct weft_redis *redis)
{
	unsigned users;
	int r;

	if (!redis)
		return 0;
	pthread_mutex_lock(&redis->lock);
	users = redis->users;
	pthread_mutex_unlock(&redis->lock);
	if (users > 0)
		return -EBUSY;
	r = weft_stream_close(redis->stream);
	/* Then nothing was done. */
	if (r == -EPERM || r == -EBUSY)
		return r;
	redisReaderFree(redis->reader);
	pthread_mutex_destroy(&redis->lock);
	free(redis->ring);
	free(redis->sending);
	free(redis);
	return r;
}

/* ---- Commands ---- */

int weft_redis_vcommand(struct weft_redis *redis, redisReply **ret_reply,
			const char *format, va_list arguments)
{
	char *command = NULL;
	int64_t bytes = format_list(&command, false, format, arguments);

	return command_run(redis, ret_reply, command, bytes);
}

int weft_redis_command(struct weft_redis *redis, redisReply **ret_reply,
		       const char *format, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, format);
	r = weft_redis_vcommand(redis, ret_reply, format, arguments);
	va_end(arguments);
	return r;
}

int weft_redis_command_argv(struct weft_redis *redis, redisReply **ret_reply,
			    int count, const char **arguments,
			    const size_t *lengths)
{
	char *command = NULL;
	int64_t bytes;

	if (count < 1)
		return -EINVAL;
	bytes = redisFormatCommandArgv(&command, count, arguments, lengths);
	bytes = checked(command, bytes, false);
	return command_run(redis, ret_reply, command, bytes);
}

int weft_redis_subscribe(struct weft_redis *redis, const char *format, ...)
{
	struct call call = { .count = 0 };
	char *command = NULL;
	va_list arguments;
	int64_t bytes;
	int r;

	va_start(arguments, format);
	bytes = format_list(&command, true, format, arguments);
	va_end(arguments);
	if (bytes < 0)
		return (int)bytes;
	call.bytes = command;
	call.bytes_count = (size_t)bytes;
	r = weft__redis_call(redis, &call, true);
	redisFreeCommand(command);
	return r;
}

int weft_redis_message(struct weft_redis *redis, redisReply **ret_message)
{
	return weft__redis_message(redis, ret_message);
}

/* ---- Batches ---- */

struct batch {
	char *bytes;
	size_t bytes_count;
	size_t room;
	size_t count;
} __attribute__((may_alias));

_Static_assert(sizeof(struct batch) <= sizeof(struct weft_redis_batch),
	       "the public struct has room for it");

static struct batch *batch_of(const struct weft_redis_batch *batch)
{
	return (struct batch *)(uintptr_t)batch;
}

static int batch_append(struct batch *b, const char *command, size_t bytes)
{
	size_t room = b->bytes_count + bytes;
	char *larger;

	if (room > b->room) {
		room += room / 2;
		larger = realloc(b->bytes, room);
		if (!larger)
			return -ENOMEM;
		b->bytes = larger;
		b->room = room;
	}
	memcpy(b->bytes + b->bytes_count, command, bytes);
	b->bytes_count += bytes;
	b->count++;
	return 0;
}

int weft_redis_batch_add(struct weft_redis_batch *batch, const char *format,
			 ...)
{
	char *command = NULL;
	va_list arguments;
	int64_t bytes;
	int r;

	va_start(arguments, format);
	bytes = format_list(&command, false, format, arguments);
	va_end(arguments);
	if (bytes < 0)
		return (int)bytes;
	r = batch_append(batch_of(batch), command, (size_t)bytes);
	redisFreeCommand(command);
	return r;
}

size_t weft_redis_batch_count(const struct weft_redis_batch *batch)
{
	return batch_of(batch)->count;
}

int weft_redis_batch_run(struct weft_redis *redis,
			 const struct weft_redis_batch *batch,
			 redisReply **ret_replies)
{
	const struct batch *b = batch_of(batch);
	struct call call = {
		.bytes = b->bytes,
		.bytes_count = b->bytes_count,
		.replies = ret_replies,
		.count = b->count,
	};

	return b->count ? weft__redis_call(redis, &call, false) : -EINVAL;
}

void weft_redis_batch_clear(struct weft_redis_batch *batch)
{
	struct batch *b = batch_of(batch);

	free(b->bytes);
	*b = (struct batch){ .bytes = NULL };
}
