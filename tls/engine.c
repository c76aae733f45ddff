/* SPDX-License-Identifier: MIT */
/*
 * The engine of a connection: OpenSSL's BIO, the lock around its calls, and
 * what is sent below.
 */
#include <errno.h>
#include <string.h>
#include <weft/task.h>
#include <weft/time.h>

#include <openssl/bio.h>
#include <openssl/err.h>

#include "tls/connection.h"
#include "tls/error.h"

/* ---- Buffers ------------------------------------------------------------- */

void weft__tls_buffer_free(struct weft__tls_buffer *buffer)
{
	OPENSSL_free(buffer->data);
	*buffer = (struct weft__tls_buffer){ .data = NULL };
}

static bool buffer_append(struct weft__tls_buffer *buffer, const char *data,
			  size_t bytes)
{
	size_t room = buffer->room;
	char *grown;

	if (room - buffer->bytes < bytes) {
		room = buffer->bytes + bytes;
		if (buffer->bytes)
			room *= 2;
		grown = OPENSSL_realloc(buffer->data, room);
		if (!grown)
			return false;
		buffer->data = grown;
		buffer->room = room;
	}
	memcpy(buffer->data + buffer->bytes, data, bytes);
	buffer->bytes += bytes;
	return true;
}

/* ---- The BIO, under the lock --------------------------------------------- */

static int bio_write(BIO *bio, const char *data, size_t bytes, size_t *ret_done)
{
	struct weft__tls *conn = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (!buffer_append(&conn->made, data, bytes)) {
		ERR_raise(ERR_LIB_BIO, ERR_R_MALLOC_FAILURE);
		return 0;
	}
	*ret_done = bytes;
	return 1;
}

static int bio_read(BIO *bio, char *data, size_t bytes, size_t *ret_done)
{
	struct weft__tls *conn = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (!conn->window_bytes) {
		BIO_set_retry_read(bio);
		return 0;
	}
	if (bytes > conn->window_bytes)
		bytes = conn->window_bytes;
	memcpy(data, conn->window, bytes);
	conn->window += bytes;
	conn->window_bytes -= bytes;
	*ret_done = bytes;
	return 1;
}

static long bio_control(BIO *bio, int what, long number, void *arg)
{
	(void)bio, (void)number, (void)arg;
	return what == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

/* It lasts as long as the process. */
static void make_method(void)
{
	BIO_METHOD *made = BIO_meth_new(
		BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft stream");

	if (made && BIO_meth_set_write_ex(made, bio_write) &&
	    BIO_meth_set_read_ex(made, bio_read) &&
	    BIO_meth_set_ctrl(made, bio_control))
		method = made;
	else
		BIO_meth_free(made);
}

bool weft__tls_attach(struct weft__tls *conn)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	BIO *bio;

	pthread_once(&once, make_method);
	bio = method ? BIO_new(method) : NULL;
	if (!bio)
		return false;
	BIO_set_data(bio, conn);
	BIO_set_init(bio, 1);
	SSL_set_bio(conn->ssl, bio, bio);
	return true;
}

/* ---- Calls of OpenSSL ---------------------------------------------------- */

void weft__tls_begin(struct weft__tls *conn)
{
	pthread_mutex_lock(&conn->lock);
	ERR_clear_error();
}

void weft__tls_end(struct weft__tls *conn)
{
	pthread_mutex_unlock(&conn->lock);
}

void weft__tls_begin_reading(struct weft__tls *conn)
{
	weft__tls_begin(conn);
	conn->window = conn->shown;
	conn->window_bytes = conn->shown_bytes;
}

void weft__tls_end_reading(struct weft__tls *conn)
{
	size_t used = conn->shown_bytes - conn->window_bytes;

	conn->window_bytes = 0;
	weft__tls_end(conn);
	conn->shown += used;
	conn->shown_bytes -= used;
	weft_stream_skip(conn->below, used);
}

/* Says why certificates failed, which OpenSSL's reason does not. */
static int fail(struct weft__tls *conn)
{
	char reason[WEFT__TLS_TEXT_BYTES] = "";
	long verified = SSL_get_verify_result(conn->ssl);
	int r = weft__tls_error_take(reason, sizeof(reason));

	if (r == -EKEYREJECTED && verified != X509_V_OK)
		weft__tls_say(reason, sizeof(reason),
			      X509_verify_cert_error_string(verified));
	if (!conn->failed) {
		conn->failed = r;
		weft__tls_say(conn->text, WEFT__TLS_TEXT_BYTES, reason);
	}
	return conn->failed;
}

int weft__tls_result(struct weft__tls *conn, int ok, bool *ret_again)
{
	*ret_again = false;
	if (ok > 0)
		return WEFT__TLS_GOES_ON;
	switch (SSL_get_error(conn->ssl, ok)) {
	case SSL_ERROR_WANT_READ:
		*ret_again = true;
		return WEFT__TLS_GOES_ON;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		return fail(conn);
	}
}

/* ---- Sending ------------------------------------------------------------- */

static bool was_interrupted(int r)
{
	return r == -ECANCELED || r == -ETIMEDOUT;
}

/* Moves what was made to `going`, all of which is sent.  False: nothing. */
static bool take_made(struct weft__tls *conn)
{
	weft__tls_buffer_free(&conn->going);
	pthread_mutex_lock(&conn->lock);
	conn->going = conn->made;
	conn->made = (struct weft__tls_buffer){ .data = NULL };
	conn->unsent = conn->going.bytes > 0;
	pthread_mutex_unlock(&conn->lock);
	return conn->going.bytes > 0;
}

int weft__tls_send(struct weft__tls *conn)
{
	struct weft__tls_buffer *going = &conn->going;
	size_t done;
	int r;

	while (going->at < going->bytes || take_made(conn)) {
		if (conn->broken) {
			going->at = going->bytes;
			continue;
		}
		r = weft_stream_write_all(conn->below, going->data + going->at,
					  going->bytes - going->at, &done);
		going->at += done;
		if (was_interrupted(r))
			return r;
		if (r < 0)
			conn->broken = r;
	}
	return conn->broken;
}

static bool has_unsent(struct weft__tls *conn)
{
	bool has;

	pthread_mutex_lock(&conn->lock);
	has = conn->unsent || conn->made.bytes;
	pthread_mutex_unlock(&conn->lock);
	return has;
}

int weft__tls_send_rest(struct weft__tls *conn)
{
	int r = 0;

	while (r == 0 && has_unsent(conn) &&
	       weft_mutex_try_lock(&conn->writing) == 0) {
		r = weft__tls_send(conn);
		weft_mutex_unlock(&conn->writing);
	}
	return r;
}

/* Does much wait to be sent that the peer has asked for? */
static bool is_full(struct weft__tls *conn)
{
	enum { MADE_MAX = 64 << 10 };
	bool is;

	pthread_mutex_lock(&conn->lock);
	is = conn->made.bytes > MADE_MAX;
	pthread_mutex_unlock(&conn->lock);
	return is;
}

int weft__tls_send_answers(struct weft__tls *conn)
{
	int r;

	while (is_full(conn)) {
		r = weft_mutex_lock(&conn->writing);
		if (r < 0)
			return r;
		r = weft__tls_send(conn);
		weft_mutex_unlock(&conn->writing);
		/* If it cannot be sent any more, it was dropped. */
		if (was_interrupted(r))
			return r;
	}
	return 0;
}

/* ---- Waiting ------------------------------------------------------------- */

static int peek(struct weft__tls *conn)
{
	const void *data;
	ssize_t n = weft_stream_peek(conn->below, &data);

	if (n <= 0)
		return (int)n;
	conn->shown = data;
	conn->shown_bytes = (size_t)n;
	return WEFT__TLS_GOES_ON;
}

/* False: it was not over in a short while.  Then *ret_r is 0, or why the caller
 * is to stop.  An -ETIMEDOUT of the stream below, such as of a lost TCP
 * connection, is a result. */
static bool run_shortly(int (*run)(struct weft__tls *conn),
			struct weft__tls *conn, weft_nsec max_ns, int *ret_r)
{
	bool interrupted = false;
	int r = 0;

	WEFT_WITHIN (max_ns) {
		r = run(conn);
		interrupted = r == -ECANCELED ||
			      (r == -ETIMEDOUT && weft_deadline_passed());
	}
	/* Was it the deadline of this block alone? */
	*ret_r = interrupted ? weft_yield() : r;
	return !interrupted;
}

/* The reason why a TCP connection was lost is told to one call, a send here. */
static int end_of(int r, bool lost)
{
	return r == 0 && lost ? -ETIMEDOUT : r;
}

/* Neither the input nor the output alone may be what the peer waits for: looks
 * at both in turn.  Rare: the reader has made records, or a write was
 * interrupted, and the peer takes nothing.  (A connection that is lost just as
 * the turn of a read ends has ended without a reason.) */
static int await_both(struct weft__tls *conn)
{
	bool sent, lost = false;
	int r;

	while (has_unsent(conn) && weft_mutex_try_lock(&conn->writing) == 0) {
		sent = run_shortly(weft__tls_send, conn, WEFT_MS(5), &r);
		weft_mutex_unlock(&conn->writing);
		lost = lost || (sent && r == -ETIMEDOUT);
		/* All was sent, or cannot be, and was dropped. */
		if (sent && r != -ETIMEDOUT)
			continue;
		if (!sent && r < 0)
			return r;
		if (run_shortly(peek, conn, WEFT_MS(5), &r))
			return end_of(r, lost);
		if (r < 0)
			return r;
	}
	return end_of(peek(conn), lost);
}

int weft__tls_await(struct weft__tls *conn)
{
	return has_unsent(conn) ? await_both(conn) : peek(conn);
}

/* ---- Between two parts of a message -------------------------------------- */

static bool is_in_message(struct weft__tls *conn)
{
	bool is;

	pthread_mutex_lock(&conn->lock);
	is = !conn->failed && SSL_in_init(conn->ssl);
	pthread_mutex_unlock(&conn->lock);
	return is;
}

/* By the holder of `reading`: has OpenSSL take what has come of the rest. */
static int take_rest(struct weft__tls *conn)
{
	int r = conn->shown_bytes ? WEFT__TLS_GOES_ON : peek(conn);
	bool again;

	if (r > 0) {
		weft__tls_begin_reading(conn);
		r = weft__tls_result(conn, SSL_do_handshake(conn->ssl), &again);
		weft__tls_end_reading(conn);
	}
	/* The end is the reader's to find. */
	return r == 0 ? -ECONNRESET : r;
}

static int lock_reading(struct weft__tls *conn)
{
	return weft_mutex_lock(&conn->reading);
}

/* Waits until this task has `reading`, or for a while: the task that has it may
 * take the rest, and then wait for more.  An error, or the caller looks again.
 */
static int try_take_rest(struct weft__tls *conn)
{
	int r;

	if (!run_shortly(lock_reading, conn, WEFT_MS(2), &r) || r < 0)
		return r;
	/* Has the reader taken it? */
	if (is_in_message(conn))
		r = take_rest(conn);
	weft_mutex_unlock(&conn->reading);
	return r;
}

int weft__tls_begin_writing(struct weft__tls *conn)
{
	int r;

	weft__tls_begin(conn);
	while (!conn->failed && SSL_in_init(conn->ssl)) {
		weft__tls_end(conn);
		r = try_take_rest(conn);
		if (r < 0)
			return r;
		weft__tls_begin(conn);
	}
	return 0;
}
