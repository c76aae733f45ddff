/* SPDX-License-Identifier: MIT */
/*
 * Connection - OpenSSL between two streams.
 *
 *	below --peek--> [window] --BIO--> SSL --> buffer of the stream above
 *	below <--write_all-- [going] <-- [made] <--BIO-- SSL <-- data written
 *
 * A call of OpenSSL never waits: its BIO reads from the window, which is what
 * the last peek below has shown, and appends records to `made`; without data it
 * says "retry".  The functions here wait, between the calls.  So no task is
 * suspended while it has OpenSSL's lock or something in the error queue, which
 * belongs to the thread.
 *
 * Invariants
 *   TLS1  OpenSSL is called, and `made` changes, under `lock`, which is never
 *       held across a suspension.
 *   TLS2  The window is set for the calls of the holder of `reading` alone,
 *       during them.
 *   TLS3  Records leave in the order in which OpenSSL made them: the holder of
 *       `writing` moves all of `made` to `going`, and sends it before the next.
 *   TLS4  An interrupted send leaves the rest in `going`: its data was reported
 *       as done, and a record cannot be taken back.
 *   TLS5  A task that made records sends them, or another holds `writing` and
 *       will look at `made` after it has let go.
 *   TLS6  The reader does not decrypt while MADE_MAX bytes of its answers wait
 *       to be sent: so a peer that asks and takes no answer is not read from.
 *   TLS7  The holder of `reading` does not wait for `writing`.
 */
#ifndef WEFT_TLS_CONNECTION_H
#define WEFT_TLS_CONNECTION_H

#include <pthread.h>
#include <weft/sync.h>

#include "tls/context.h"

/* Neither an end nor an error. */
#define WEFT__TLS_GOES_ON 1

struct weft__tls_buffer {
	char *data;
	size_t at; /* sent */
	size_t bytes;
	size_t room;
};

enum { WEFT__TLS_TEXT_BYTES = 184 };

/* The contents of struct weft_tls. */
struct weft__tls_words {
	struct weft__tls *conn; /* NULL: none, or closed */
	char text[WEFT__TLS_TEXT_BYTES];
} __attribute__((may_alias));

struct weft__tls {
	SSL *ssl;
	struct weft_stream *below;
	bool owns_below; /* its memory, too; set before others know of it */
	char *text; /* in struct weft_tls; set once, under the lock */
	pthread_mutex_t lock;
	/* Under the lock. */
	const char *window;
	size_t window_bytes;
	struct weft__tls_buffer made;
	bool unsent; /* a part of `going` was not sent */
	bool shut;   /* close_notify was made */
	int failed;  /* TLS has failed, for good: the error, or 0 */
	/* By the holder of `writing`. */
	struct weft_mutex writing;
	struct weft__tls_buffer going;
	int broken; /* writing below failed, for good: the error, or 0 */
	/* By the holder of `reading`. */
	struct weft_mutex reading;
	const char *shown; /* by the last peek, and not skipped */
	size_t shown_bytes;
	/* Reader only. */
	bool has_plaintext; /* in OpenSSL */
	int said;	    /* GOES_ON, 0 at the end, or an error */
	/* Immutable after the handshake. */
	char *host;
	struct weft_tls_info info;
	char *alpn;
	char *server_name;
	char *peer_name;
};

_Static_assert(sizeof(struct weft__tls_words) <=
		       sizeof(((struct weft_tls *)0)->private_words),
	       "the public struct has room");

static inline struct weft__tls_words *
weft__tls_words(const struct weft_tls *tls)
{
	return (void *)(uintptr_t)tls->private_words;
}

/* The operations of the stream above: transfer.c. */
extern const struct weft_stream_ops weft__tls_ops;

/* A close waits no longer for a peer that reads nothing.  Tests have less. */
extern weft_nsec weft__tls_close_ns;

/* Frees all but the stream below. */
void weft__tls_free(struct weft__tls *conn);

/* ---- OpenSSL, and what it made: engine.c --------------------------------- */

/* Gives the SSL a BIO over the connection.  False: no memory. */
bool weft__tls_attach(struct weft__tls *conn);

/* Take and drop the lock around calls of OpenSSL. */
void weft__tls_begin(struct weft__tls *conn);
void weft__tls_end(struct weft__tls *conn);

/* The same for the holder of `reading`, with the window; skips below what was
 * read. */
void weft__tls_begin_reading(struct weft__tls *conn);
void weft__tls_end_reading(struct weft__tls *conn);

/* Takes the lock for a call that OpenSSL refuses between two parts of a message
 * for it, such as a ticket: waits for the rest, as its reader if there is none.
 * 0, or an error without the lock.  By the holder of `writing`, or the only
 * user. */
int weft__tls_begin_writing(struct weft__tls *conn);

/* Under the lock: what a call of OpenSSL that returned `ok` has said.  GOES_ON:
 * it is done, or (and *ret_again is true) needs more input; 0: the end; or an
 * error, which fails the connection. */
int weft__tls_result(struct weft__tls *conn, int ok, bool *ret_again);

/* Sends what was made.  By the holder of `writing`, or the only user. */
int weft__tls_send(struct weft__tls *conn);

/* By a task that has let go of `writing`: sends what others made meanwhile. */
int weft__tls_send_rest(struct weft__tls *conn);

/* Sends until few answers wait for that: 0, or why the task is to stop. */
int weft__tls_send_answers(struct weft__tls *conn);

/* By the holder of `reading`: waits for input below, and sends meanwhile what
 * was left: GOES_ON; 0 if the stream below ended, or its error. */
int weft__tls_await(struct weft__tls *conn);

void weft__tls_buffer_free(struct weft__tls_buffer *buffer);

#endif
