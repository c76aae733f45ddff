/* SPDX-License-Identifier: MIT */
/*
 * Transfer: the operations of the stream above.  One task at a time reads, but
 * a writer may take a part of a message for OpenSSL; writers take turns, and
 * hold `writing` for all of a write.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <weft/io.h>
#include <weft/task.h>
#include <weft/time.h>

#include "tls/connection.h"
#include "tls/error.h"

/* Plaintext of a record. */
enum { RECORD_BYTES = 16384 };

/* ---- Reading ------------------------------------------------------------- */

/* An interrupted task, too, takes what is there. */
static int lock_reading(struct weft__tls *conn)
{
	int r = weft_mutex_try_lock(&conn->reading);

	return r < 0 ? weft_mutex_lock(&conn->reading) : 0;
}

/* The stream below has ended, and the peer had not. */
static int cut_off(struct weft__tls *conn)
{
	weft__tls_begin(conn);
	if (!conn->failed)
		weft__tls_say(conn->text, WEFT__TLS_TEXT_BYTES,
			      "the stream below ended without close_notify");
	weft__tls_end(conn);
	return -ECONNRESET;
}

static int tls_wait(void *arg)
{
	struct weft__tls *conn = arg;
	int r;

	if (conn->said != WEFT__TLS_GOES_ON || conn->has_plaintext)
		return 0;
	r = weft__tls_send_answers(conn);
	if (r == 0)
		r = lock_reading(conn);
	if (r < 0)
		return r;
	r = conn->shown_bytes ? WEFT__TLS_GOES_ON : weft__tls_await(conn);
	weft_mutex_unlock(&conn->reading);
	if (r == 0)
		conn->said = cut_off(conn);
	return r < 0 ? r : 0;
}

/* Handshake records leave buffers that SSL_MODE_RELEASE_BUFFERS does not
 * release.  In the middle of a record, OpenSSL before 3.0.14, 3.1.6, 3.2.2 and
 * 3.3.1 releases the buffer that it goes on to read (CVE-2024-4741). */
static void release_buffers(struct weft__tls *conn)
{
	if (!conn->window_bytes && !SSL_has_pending(conn->ssl) &&
	    strcmp(SSL_rstate_string(conn->ssl), "RH") == 0)
		(void)SSL_free_buffers(conn->ssl);
}

/* Takes the records that are there, into a buffer.  A call that finds nothing
 * is not made again: OpenSSL would allocate a buffer for it. */
static size_t decrypt(struct weft__tls *conn, char *buf, size_t bytes)
{
	size_t done = 0, some;
	bool again = false;
	int ok;

	weft__tls_begin_reading(conn);
	while (conn->said == WEFT__TLS_GOES_ON && !again && done < bytes) {
		ok = SSL_read_ex(conn->ssl, buf + done, bytes - done, &some);
		if (ok)
			done += some;
		conn->said = weft__tls_result(conn, ok, &again);
		if (!conn->window_bytes && !SSL_pending(conn->ssl))
			break;
	}
	conn->has_plaintext = SSL_pending(conn->ssl) > 0;
	release_buffers(conn);
	weft__tls_end_reading(conn);
	return done;
}

static ssize_t tls_read(void *arg, void *buf, size_t bytes)
{
	struct weft__tls *conn = arg;
	size_t done = 0;

	if (conn->said == WEFT__TLS_GOES_ON) {
		int r = lock_reading(conn);

		if (r < 0)
			return r;
		done = decrypt(conn, buf, bytes);
		weft_mutex_unlock(&conn->reading);
		/* The alert. */
		if (conn->said < 0)
			WEFT_WITHIN (WEFT_MS(100))
				(void)weft__tls_send_rest(conn);
	}
	if (done)
		return (ssize_t)done;
	return conn->said == WEFT__TLS_GOES_ON ? -EAGAIN : conn->said;
}

/* ---- Writing ------------------------------------------------------------- */

static int encrypt(struct weft__tls *conn, const char *buf, size_t bytes)
{
	size_t done;
	bool again = false;
	int r = weft__tls_begin_writing(conn);

	if (r < 0)
		return r;
	r = conn->shut ? -EPIPE : 0;
	if (conn->failed)
		r = conn->failed;
	if (r == 0)
		r = weft__tls_result(conn,
				     SSL_write_ex(conn->ssl, buf, bytes, &done),
				     &again);
	weft__tls_end(conn);
	/* After the handshake no write needs input. */
	if (again)
		return -EPROTO;
	return r < 0 ? r : 0;
}

static int tls_write_all(void *arg, const void *buf, size_t bytes,
			 size_t *ret_done)
{
	struct weft__tls *conn = arg;
	size_t done = 0;
	int r = weft_mutex_lock(&conn->writing);

	*ret_done = 0;
	if (r < 0)
		return r;
	r = weft__tls_send(conn);
	while (r == 0 && done < bytes) {
		size_t some = bytes - done;

		if (some > RECORD_BYTES)
			some = RECORD_BYTES;
		r = encrypt(conn, (const char *)buf + done, some);
		if (r < 0)
			break;
		done += some;
		r = weft__tls_send(conn);
	}
	weft_mutex_unlock(&conn->writing);
	*ret_done = done;
	return r < 0 ? r : weft__tls_send_rest(conn);
}

/* Under the lock.  OpenSSL is not called again after a failure. */
static int make_close_notify(struct weft__tls *conn)
{
	bool again;
	int r;

	if (conn->failed || conn->shut)
		return conn->failed;
	r = SSL_shutdown(conn->ssl);
	if (r < 0) {
		r = weft__tls_result(conn, r, &again);
		return r < 0 ? r : -EPROTO;
	}
	conn->shut = true;
	return 0;
}

int weft_tls_shutdown(struct weft_tls *tls)
{
	struct weft__tls *conn = weft__tls_words(tls)->conn;
	int r = weft_mutex_lock(&conn->writing);

	if (r < 0)
		return r;
	r = weft__tls_begin_writing(conn);
	if (r == 0) {
		r = make_close_notify(conn);
		weft__tls_end(conn);
	}
	if (r == 0)
		r = weft__tls_send(conn);
	weft_mutex_unlock(&conn->writing);
	return r < 0 ? r : weft__tls_send_rest(conn);
}

/* Under the lock. */
static int change_keys(struct weft__tls *conn)
{
	bool again;

	if (conn->failed)
		return conn->failed;
	if (SSL_version(conn->ssl) < TLS1_3_VERSION)
		return -EOPNOTSUPP;
	if (conn->shut)
		return -EPIPE;
	return weft__tls_result(conn,
				SSL_key_update(conn->ssl,
					       SSL_KEY_UPDATE_REQUESTED) &&
					SSL_do_handshake(conn->ssl) > 0,
				&again);
}

int weft_tls_update_keys(struct weft_tls *tls)
{
	struct weft__tls *conn = weft__tls_words(tls)->conn;
	int r = weft_mutex_lock(&conn->writing);

	if (r < 0)
		return r;
	r = weft__tls_begin_writing(conn);
	if (r == 0) {
		r = change_keys(conn);
		weft__tls_end(conn);
	}
	if (r > 0)
		r = weft__tls_send(conn);
	weft_mutex_unlock(&conn->writing);
	return r < 0 ? r : weft__tls_send_rest(conn);
}

/* ---- The end ------------------------------------------------------------- */

weft_nsec weft__tls_close_ns = WEFT_SEC(5);

static bool was_interrupted(int r)
{
	return r == -ECANCELED || r == -ETIMEDOUT;
}

/* Sends what is left, and close_notify, or does so for a while: the peer may
 * read nothing, and a stream without TLS would be closed immediately. */
static int send_last(struct weft__tls *conn, bool *ret_late)
{
	int r = 0;

	WEFT_WITHIN (weft__tls_close_ns)
		r = weft__tls_send(conn);
	if (!was_interrupted(r))
		return r;
	/* Was it the deadline of this block alone? */
	r = weft_yield();
	*ret_late = r == 0;
	return r < 0 ? r : -ETIMEDOUT;
}

/* Without a wait, if the task has waited: sends what has room. */
static int close_below(struct weft_stream *below, bool late)
{
	int r = 0;

	if (!late)
		return weft_stream_close(below);
	WEFT_WITHIN (0)
		r = weft_stream_close(below);
	return r;
}

/* An interrupted task does not wait: the stream below sends what it can.  If
 * that has no memory for a buffer, it sends immediately, and waits for room. */
static void leave_to_below(struct weft__tls *conn)
{
	struct weft__tls_buffer *going = &conn->going;
	enum { PUT_MAX = 4096 };

	if (going->at < going->bytes && going->bytes - going->at <= PUT_MAX)
		WEFT_SHIELD
			WEFT_WITHIN (WEFT_MS(100))
				(void)weft_stream_put(conn->below,
						      going->data + going->at,
						      going->bytes - going->at);
}

void weft__tls_free(struct weft__tls *conn)
{
	SSL_free(conn->ssl);
	weft__tls_buffer_free(&conn->made);
	weft__tls_buffer_free(&conn->going);
	pthread_mutex_destroy(&conn->lock);
	OPENSSL_free(conn->host);
	OPENSSL_free(conn->alpn);
	OPENSSL_free(conn->server_name);
	OPENSSL_free(conn->peer_name);
	OPENSSL_free(conn);
}

/* Drops a little that has come and was not read, such as a ticket.  With it in
 * the socket a close resets the connection, and then the peer may lose what it
 * has not yet read. */
static void drop_received(const struct weft_stream *below)
{
	enum { TIMES = 4, BYTES = 4096 };
	int fd = weft_stream_fd(below);
	char bytes[BYTES];

	if (fd < 0)
		return;
	WEFT_SHIELD
		for (int i = 0; i < TIMES; i++)
			if (weft_recv(fd, bytes, BYTES, MSG_DONTWAIT) <= 0)
				break;
}

/* No other task uses the stream any more. */
static int tls_close(void *arg)
{
	struct weft__tls *conn = arg;
	struct weft_stream *below = conn->below;
	bool owns = conn->owns_below, owed, late = false;
	int sent, r = 0;

	/* Of a peer that has sent a part of a message, not for ever. */
	WEFT_WITHIN (WEFT_MS(100))
		r = weft__tls_begin_writing(conn);
	if (r < 0)
		weft__tls_begin(conn);
	owed = conn->unsent || conn->made.bytes;
	if (r == 0)
		(void)make_close_notify(conn);
	weft__tls_end(conn);
	sent = send_last(conn, &late);
	if (sent < 0)
		leave_to_below(conn);
	else
		drop_received(below);
	weft__tls_free(conn);
	r = close_below(below, late);
	if (owns)
		OPENSSL_free(below);
	if (sent == 0)
		return r;
	if (owed)
		return sent;
	/* Only close_notify was not sent, which a peer that is gone, or reads
	 * nothing, does not need. */
	return was_interrupted(r) ? 0 : r;
}

const struct weft_stream_ops weft__tls_ops = {
	.read = tls_read,
	.write_all = tls_write_all,
	.close = tls_close,
	.wait = tls_wait,
};
