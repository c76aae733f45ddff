/* SPDX-License-Identifier: MIT */
/*
 * Redis, by hiredis: a connection that many tasks use.  In libweft-redis; its
 * users also include <hiredis/hiredis.h>.
 *
 *	struct redisReply *reply;
 *
 *	r = weft_redis_command(redis, &reply, "GET %s", key);
 *	if (r == 0)
 *		freeReplyObject(reply);
 *
 * hiredis formats commands and parses replies; weft does the rest, so no call
 * blocks a thread.  The commands of all tasks go out in the order of the calls,
 * those that are waiting in one piece, and no task waits for another one's
 * reply before it sends.  Each reply goes to the task whose command it answers.
 * A task whose deadline passes, or that is cancelled, gives up its reply alone:
 * the connection and the other tasks go on.
 *
 * A connection whose peer is gone, or has sent what is no reply, is broken: all
 * calls return the error from then on.  Close it and connect again.
 *
 * All tasks that use a connection belong to one runtime.  Calls that suspend
 * obey WEFT_WITHIN and cancellation, and return -EPERM outside a task or in a
 * future.
 */
#ifndef WEFT_REDIS_H
#define WEFT_REDIS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>
#include <weft/net.h>
#include <weft/stream.h>

WEFT_BEGIN_DECLS

struct redisReply;
struct weft_redis;

/* Connects to a server at a text address, "127.0.0.1:6379" or
 * "unix:/run/redis.sock", or to a name, "localhost:6379", as weft_dial() does.
 * opts may be NULL.  Suspends.  Returns 0, or -ENOMEM, -EINVAL, -EPERM, or
 * another error of weft_dial(). */
WEFT_API int weft_redis_connect(const char *address,
				const struct weft_socket_opts *opts,
				struct weft_redis **ret_redis);

/* The same over a stream that is connected already, such as one that encrypts.
 * It belongs to the connection, which closes it, from here on; its struct stays
 * the caller's, and in place.  Does not suspend.  Returns 0, or -ENOMEM, and
 * the stream is the caller's. */
WEFT_API int weft_redis_over(struct weft_stream *stream,
			     struct weft_redis **ret_redis);

/* Closes the connection and frees it; NULL is none.  Suspends, and except for
 * -EPERM and -EBUSY is always done in full, cancelled or not.  -EBUSY: another
 * task is in a call on it.  Returns 0, or an error of weft_stream_close(). */
WEFT_API int weft_redis_close(struct weft_redis *redis);

/*
 * Sends a command and waits for its reply, which the caller frees with
 * freeReplyObject().  The format is that of redisCommand(): "SET %s %b", key,
 * data, bytes.  An error of the server is a reply, too.  A NULL ret_reply: the
 * reply is not needed; then such an error is -EREMOTEIO.  Suspends.
 *
 * Returns 0; -ECANCELED or -ETIMEDOUT: the server may have carried out the
 * command, or may do so later, unless no byte of it had been sent; -EINVAL: a
 * wrong format, a command that is for weft_redis_subscribe(), or one after
 * which replies no longer match commands (MONITOR, CLIENT REPLY, SYNC, HELLO
 * 3); -ENOMEM; or the error of a broken connection: -ECONNRESET (also if the
 * peer has ended it), -EPIPE, -EPROTO (no reply of Redis), ...
 */
WEFT_API int weft_redis_command(struct weft_redis *redis,
				struct redisReply **ret_reply,
				const char *format, ...);

/* The same with the arguments in a list, and as an array: lengths may be NULL
 * for arguments that end with a 0. */
WEFT_API int weft_redis_vcommand(struct weft_redis *redis,
				 struct redisReply **ret_reply,
				 const char *format, va_list arguments);
WEFT_API int weft_redis_command_argv(struct weft_redis *redis,
				     struct redisReply **ret_reply, int count,
				     const char **arguments,
				     const size_t *lengths);

/*
 * Commands that are sent together, with none of another task between them: a
 * pipeline, or a transaction with MULTI and EXEC.  Zeroed, or set by its
 * initialiser, it is empty.
 */
struct weft_redis_batch {
	uint64_t private_words[4];
};
#define WEFT_REDIS_BATCH_INIT { { 0 } }

/* Adds a command.  Does not suspend.  Returns 0, -EINVAL (as of
 * weft_redis_command()) or -ENOMEM; then the batch is as before. */
WEFT_API int weft_redis_batch_add(struct weft_redis_batch *batch,
				  const char *format, ...);

/* The number of commands in the batch.  Does not suspend. */
WEFT_API size_t weft_redis_batch_count(const struct weft_redis_batch *batch);

/* Sends the batch and waits for all its replies: ret_replies has a place for
 * each, and receives them in order.  The batch stays as it is, and may be run
 * again.  Suspends.  Returns 0, or an error of weft_redis_command(), and then
 * no reply; -EINVAL also for an empty batch. */
WEFT_API int weft_redis_batch_run(struct weft_redis *redis,
				  const struct weft_redis_batch *batch,
				  struct redisReply **ret_replies);

/* Frees what the batch holds, and leaves it empty.  Does not suspend. */
WEFT_API void weft_redis_batch_clear(struct weft_redis_batch *batch);

/*
 * Sends SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE, UNSUBSCRIBE, PUNSUBSCRIBE,
 * SUNSUBSCRIBE or PING on a connection that is for messages alone from then on.
 * The server's confirmation is one of the messages.  Any task may call this
 * while another one waits for messages.  Suspends until the command is sent.
 * Returns 0, or as weft_redis_command(), -EINVAL for another command; or
 * -EBUSY: replies to commands are due on this connection.
 */
WEFT_API int weft_redis_subscribe(struct weft_redis *redis, const char *format,
				  ...);

/* Waits for the next message: the server's array of "message", the channel and
 * the text, or the like.  The caller frees it.  An interrupted call loses no
 * message.  Suspends.  Returns 0, -EINVAL (the connection has not subscribed),
 * -EBUSY (another task waits for messages), or an error of
 * weft_redis_command(). */
WEFT_API int weft_redis_message(struct weft_redis *redis,
				struct redisReply **ret_message);

WEFT_END_DECLS

#endif
