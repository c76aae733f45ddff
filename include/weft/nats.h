/* SPDX-License-Identifier: MIT */
/*
 * NATS, by its C library: messages between processes, in tasks.  In
 * libweft-nats; its users also include <nats/nats.h>.
 *
 * That library has threads of its own.  It calls back on them, and its
 * functions block.  Here they run on threads of weft_blocking(), and messages
 * come through channels.  A message is the library's natsMsg, which the caller
 * destroys with natsMsg_Destroy().
 *
 * Calls that suspend obey WEFT_WITHIN and cancellation, and return -EPERM
 * outside a task or in a future; -ENOMEM; -EINVAL (a subject or another
 * argument); -ENOTCONN (the connection is closed); or -EREMOTEIO (another error
 * of the library or the server).  After -ECANCELED or -ETIMEDOUT the operation
 * may have been carried out, or may be later.
 */
#ifndef WEFT_NATS_H
#define WEFT_NATS_H

#include <stddef.h>
#include <stdint.h>

#include <weft/chan.h>
#include <weft/config.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

/* natsOptions, natsConnection and natsMsg. */
struct __natsOptions;
struct __natsConnection;
struct __natsMsg;

/* A connection. */
struct weft_nats;

/* Connects.  The options of natsOptions_Create() belong to the call from here
 * on, whatever it returns; NULL: the defaults.  Suspends.  Returns 0,
 * -ECONNREFUSED (no server takes it), or an error as above. */
WEFT_API int weft_nats_connect(struct __natsOptions *options,
			       struct weft_nats **ret_nats) WEFT_WARN_UNUSED;

/* The connection of the library, for functions that do not block.  Does not
 * suspend. */
WEFT_API struct __natsConnection *weft_nats_connection(struct weft_nats *nats);

/* Closes and frees a connection; NULL is none.  Its subscriptions and queues
 * are closed before, and no other task is in a call on it.  Operations that
 * interrupted calls have left end first.  Suspends, and except for -EPERM is
 * always done in full. */
WEFT_API int weft_nats_close(struct weft_nats *nats);

/* Publishes a message; returns when the library has it.  Suspends.  Returns 0,
 * -EMSGSIZE (more than the server takes), or an error as above. */
WEFT_API int weft_nats_publish(struct weft_nats *nats, const char *subject,
			       const void *data, size_t bytes);

/* Publishes a request, and waits for the first reply.  Suspends.  Returns 0,
 * -EHOSTUNREACH (no subscriber), -EMSGSIZE, or an error as above. */
WEFT_API int weft_nats_request(struct weft_nats *nats, const char *subject,
			       const void *data, size_t bytes,
			       struct __natsMsg **ret_reply);

/* A subscription. */
struct weft_nats_subscription;

/*
 * Sends all messages of a subject to a channel of natsMsg *.  Of subscribers
 * with the same group one gets each message; NULL: no group.  While the channel
 * is full, messages wait in the library, up to its limit for slow consumers.
 * Suspends, and ignores deadlines and cancellation.  Returns 0 or an error as
 * above: then the channel may be closed, with messages in it.
 */
WEFT_API int weft_nats_subscribe(struct weft_nats *nats, const char *subject,
				 const char *group, struct weft_chan *chan,
				 struct weft_nats_subscription **ret);

/* Ends and frees a subscription; NULL is none.  Closes the channel: the
 * messages that are in it can still be received.  Suspends, and except for
 * -EPERM is always done in full. */
WEFT_API int
weft_nats_unsubscribe(struct weft_nats_subscription *subscription);

/*
 * A work queue, which JetStream keeps: a message stays in it, also through a
 * restart of the server, until a task of some process has taken it and is done
 * with it.
 */
struct weft_nats_queue;

/* Opens a queue, and makes it if it does not exist: a stream of that name with
 * one subject, and a consumer of that name.  A message that was taken, and is
 * not done within ack_wait_ns, is given to another taker.  Suspends.  Returns 0
 * or an error as above. */
WEFT_API int weft_nats_queue_open(struct weft_nats *nats, const char *name,
				  const char *subject, weft_nsec ack_wait_ns,
				  struct weft_nats_queue **ret_queue);

/* Frees what the process has of it; NULL is none.  The queue itself stays.
 * Suspends, and except for -EPERM is always done in full. */
WEFT_API int weft_nats_queue_close(struct weft_nats_queue *queue);

/* Puts a message into the queue, and returns when the server has stored it.  Of
 * messages with the same id, which may be NULL, the server stores one: so a put
 * that was interrupted can be repeated.  Suspends.  Returns 0 or an error as
 * above. */
WEFT_API int weft_nats_queue_put(struct weft_nats_queue *queue,
				 const void *data, size_t bytes,
				 const char *id);

/* Takes the next message, waiting for it.  Suspends; an interrupted call loses
 * none.  Returns 0 or an error as above. */
WEFT_API int weft_nats_queue_take(struct weft_nats_queue *queue,
				  struct __natsMsg **ret_message);

/* Reports that a message is done; returns when the server knows.  The message
 * belongs to the call.  Suspends.  Returns 0 or an error as above; then the
 * message may be given to another taker. */
WEFT_API int weft_nats_queue_done(struct weft_nats_queue *queue,
				  struct __natsMsg *message);

WEFT_END_DECLS

#endif
