/* SPDX-License-Identifier: MIT */
/*
 * Suite tls/hostile: peers that do not speak TLS, or ask for what is refused,
 * or cut what they say: bytes made up, OpenSSL in a thread of its own, and
 * OpenSSL over memory.
 */
#include <pthread.h>

#include "tests/tls/tls_kit.h"

/* ---- Garbage ------------------------------------------------------------- */

/* Returns what a handshake with that first message gives. */
static int answer_to(const void *bytes, size_t count, bool serves)
{
	struct weft_tls_opts opts =
		opts_with(serves ? &server_cert : NULL, &authority);
	struct weft_tls_context *context = context_new(&opts);
	struct weft_stream below;
	struct weft_tls tls;
	int fds[2], r;

	tcp_pair(fds);
	weft_stream_init(&below, fds[0]);
	EXPECT(weft_write_all(fds[1], bytes, count, NULL) == 0);
	EXPECT(weft_shutdown(fds[1], SHUT_WR) == 0);
	r = serves ? weft_tls_server(&tls, context, &below) :
		     weft_tls_client(&tls, context, &below, HOST);
	EXPECT(r == 0 || weft_tls_error(&tls)[0]);
	expect_no_notes();
	EXPECT(weft_stream_close(&below) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	weft_tls_context_free(context);
	return r;
}

IO_TEST(garbage_instead_of_a_handshake_is_an_error)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: weft.test\r\n\r\n";
	static const char hello[] = "\x16\x03\x01\x00\x04\x01\x00\x00\x00";

	for (int serves = 0; serves < 2; serves++) {
		EXPECT(answer_to(http, strlen(http), serves) == -EPROTO);
		EXPECT(answer_to(hello, sizeof(hello) - 1, serves) == -EPROTO);
		EXPECT(answer_to("", 0, serves) == -ECONNRESET);
		EXPECT(answer_to("\x16\x03\x01\x02", 4, serves) == -ECONNRESET);
	}
	return 0;
}

IO_TEST(no_bytes_make_a_handshake)
{
	unsigned char bytes[400];
	uint64_t random = 7;

	for (unsigned i = 0; i < kit_rounds(100); i++) {
		size_t count = 1 + kit_chance(&random, sizeof(bytes) - 1);

		for (size_t j = 0; j < count; j++)
			bytes[j] = (unsigned char)kit_chance(&random, 256);
		if (i % 2) {
			bytes[0] = 22;
			bytes[1] = 3;
			bytes[2] = 1;
			bytes[3] = 0;
		}
		EXPECT(answer_to(bytes, count, i % 4 < 2) < 0);
	}
	return 0;
}

/* ---- OpenSSL in a thread ------------------------------------------------- */

struct peer {
	int fd;
	long version;
	bool serves;
	void (*speak)(SSL *ssl);
	SSL_CTX *context;
};

static void *peer_main(void *arg)
{
	struct peer *peer = arg;
	SSL_CTX *context = SSL_CTX_new(TLS_method());
	SSL *ssl;

	EXPECT(context);
	EXPECT(SSL_CTX_set_max_proto_version(context, (int)peer->version));
	EXPECT(SSL_CTX_use_certificate(context, server_cert.x509));
	EXPECT(SSL_CTX_use_PrivateKey(context, server_cert.key));
	ssl = SSL_new(context);
	EXPECT(ssl && SSL_set_fd(ssl, peer->fd));
	EXPECT((peer->serves ? SSL_accept(ssl) : SSL_connect(ssl)) == 1);
	peer->speak(ssl);
	SSL_free(ssl);
	SSL_CTX_free(context);
	return NULL;
}

/* Runs weft's end against such a peer; `tls` is connected then. */
static pthread_t peer_start(struct peer *peer, struct weft_stream *below,
			    int fds[2])
{
	pthread_t thread;

	tcp_pair(fds);
	weft_stream_init(below, fds[0]);
	peer->fd = fds[1];
	EXPECT(pthread_create(&thread, NULL, peer_main, peer) == 0);
	return thread;
}

static void peer_end(struct peer *peer, pthread_t thread)
{
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT(close(peer->fd) == 0);
}

static void ask_for_renegotiation(SSL *ssl)
{
	EXPECT(SSL_renegotiate(ssl) == 1);
	EXPECT(SSL_do_handshake(ssl) != 1);
	EXPECT(ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_NO_RENEGOTIATION);
	ERR_clear_error();
}

/* The peer breaks off when it is refused. */
IO_TEST(renegotiation_is_refused)
{
	struct weft_tls_opts opts = opts_with(&server_cert, NULL);
	struct weft_tls_context *context = context_new(&opts);
	struct peer peer = { .version = TLS1_2_VERSION,
			     .speak = ask_for_renegotiation };
	struct weft_stream below;
	struct weft_tls tls;
	const void *data;
	pthread_t thread;
	int fds[2];

	thread = peer_start(&peer, &below, fds);
	EXPECT(weft_tls_server(&tls, context, &below) == 0);
	EXPECT(weft_stream_peek(&tls.stream, &data) < 0);
	expect_no_notes();
	(void)weft_stream_close(&tls.stream);
	peer_end(&peer, thread);
	weft_tls_context_free(context);
	return 0;
}

static void update_keys_and_say(SSL *ssl)
{
	char buf[6];

	for (int i = 0; i < 20; i++) {
		EXPECT(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
		EXPECT(SSL_write(ssl, "update", 6) == 6);
		EXPECT(SSL_read(ssl, buf, 6) == 6);
	}
	EXPECT(SSL_shutdown(ssl) >= 0);
}

/* The reader answers each request for new keys. */
IO_TEST(peer_asks_for_new_keys)
{
	for (int serves = 0; serves < 2; serves++) {
		struct weft_tls_opts opts =
			opts_with(serves ? &server_cert : NULL, &authority);
		struct weft_tls_context *context = context_new(&opts);
		struct peer peer = { .version = TLS1_3_VERSION,
				     .serves = !serves,
				     .speak = update_keys_and_say };
		struct weft_stream below;
		struct weft_tls tls;
		char buf[6];
		pthread_t thread;
		int fds[2];

		thread = peer_start(&peer, &below, fds);
		EXPECT((serves ? weft_tls_server(&tls, context, &below) :
				 weft_tls_client(&tls, context, &below,
						 HOST)) == 0);
		for (int i = 0; i < 20; i++) {
			EXPECT(weft_stream_read_all(&tls.stream, buf, 6,
						    NULL) == 0);
			EXPECT(weft_stream_put(&tls.stream, buf, 6) == 0);
		}
		EXPECT(weft_stream_read(&tls.stream, buf, 6) == 0);
		EXPECT(weft_stream_close(&tls.stream) == 0);
		peer_end(&peer, thread);
		weft_tls_context_free(context);
	}
	return 0;
}

static void go_away(SSL *ssl)
{
	SSL_set_quiet_shutdown(ssl, 1);
	EXPECT(shutdown(SSL_get_fd(ssl), SHUT_RDWR) == 0);
}

/* Without a good-bye. */
IO_TEST(peer_that_goes_away_cuts_the_stream_off)
{
	for (int serves = 0; serves < 2; serves++) {
		struct weft_tls_opts opts =
			opts_with(serves ? &server_cert : NULL, &authority);
		struct weft_tls_context *context = context_new(&opts);
		struct peer peer = { .version = TLS1_3_VERSION,
				     .serves = !serves,
				     .speak = go_away };
		struct weft_stream below;
		struct weft_tls tls;
		const void *data;
		pthread_t thread;
		int fds[2];

		thread = peer_start(&peer, &below, fds);
		EXPECT((serves ? weft_tls_server(&tls, context, &below) :
				 weft_tls_client(&tls, context, &below,
						 HOST)) == 0);
		EXPECT(weft_stream_peek(&tls.stream, &data) == -ECONNRESET);
		(void)weft_stream_close(&tls.stream);
		peer_end(&peer, thread);
		weft_tls_context_free(context);
	}
	return 0;
}

/* ---- A ticket in parts --------------------------------------------------- */

/* A server that is OpenSSL over memory, so that the test sends its records as
 * it likes. */
struct cutter {
	SSL_CTX *context;
	SSL *ssl;
	BIO *in;
	BIO *out;
	int fd;
	char records[9000]; /* of the ticket */
	int sent;
	int bytes;
};

static int fill_ticket(SSL *ssl, void *arg)
{
	static const char filling[3000];

	(void)arg;
	return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), filling,
					       sizeof(filling));
}

static void cutter_open(struct cutter *cutter, int fd)
{
	memset(cutter, 0, sizeof(*cutter));
	cutter->fd = fd;
	cutter->context = SSL_CTX_new(TLS_method());
	cutter->in = BIO_new(BIO_s_mem());
	cutter->out = BIO_new(BIO_s_mem());
	EXPECT(cutter->context && cutter->in && cutter->out);
	EXPECT(SSL_CTX_use_certificate(cutter->context, server_cert.x509));
	EXPECT(SSL_CTX_use_PrivateKey(cutter->context, server_cert.key));
	EXPECT(SSL_CTX_set_num_tickets(cutter->context, 0));
	EXPECT(SSL_CTX_set_session_ticket_cb(cutter->context, fill_ticket, NULL,
					     NULL));
	EXPECT(SSL_CTX_set_max_send_fragment(cutter->context, 512));
	cutter->ssl = SSL_new(cutter->context);
	EXPECT(cutter->ssl);
	SSL_set_bio(cutter->ssl, cutter->in, cutter->out);
	SSL_set_accept_state(cutter->ssl);
}

static void cutter_close(struct cutter *cutter)
{
	SSL_free(cutter->ssl);
	SSL_CTX_free(cutter->context);
	EXPECT(weft_close(cutter->fd) == 0);
}

static void cutter_receive(struct cutter *cutter)
{
	char bytes[4000];
	ssize_t n = weft_read(cutter->fd, bytes, sizeof(bytes));

	ck_assert_int_gt(n, 0);
	EXPECT(BIO_write(cutter->in, bytes, (int)n) == n);
}

static void cutter_send(struct cutter *cutter)
{
	char bytes[4000];
	int n;

	while ((n = BIO_read(cutter->out, bytes, sizeof(bytes))) > 0)
		EXPECT(weft_write_all(cutter->fd, bytes, (size_t)n, NULL) == 0);
}

static int64_t cutter_accept(void *arg)
{
	struct cutter *cutter = *(struct cutter **)arg;

	while (SSL_do_handshake(cutter->ssl) != 1) {
		ERR_clear_error();
		cutter_send(cutter);
		cutter_receive(cutter);
	}
	cutter_send(cutter);
	return 0;
}

/* Makes the ticket, and sends its first record. */
static void cutter_begin_ticket(struct cutter *cutter)
{
	EXPECT(SSL_new_session_ticket(cutter->ssl) == 1);
	EXPECT(SSL_do_handshake(cutter->ssl) == 1);
	cutter->bytes =
		BIO_read(cutter->out, cutter->records, sizeof(cutter->records));
	cutter->sent = 5 + (unsigned char)cutter->records[3] * 256 +
		       (unsigned char)cutter->records[4];
	EXPECT(cutter->sent < cutter->bytes);
	EXPECT(weft_write_all(cutter->fd, cutter->records, (size_t)cutter->sent,
			      NULL) == 0);
}

static void cutter_end_ticket(struct cutter *cutter)
{
	EXPECT(weft_write_all(cutter->fd, cutter->records + cutter->sent,
			      (size_t)(cutter->bytes - cutter->sent),
			      NULL) == 0);
}

/* The peer is to do this meanwhile. */
enum deed { WRITES, RENEWS, SHUTS, CLOSES, DEEDS };

/* Receives what the deed has sent: SSL_ERROR_NONE for the byte. */
static void cutter_expect(struct cutter *cutter, enum deed deed)
{
	int error = SSL_ERROR_WANT_READ;
	char byte;

	do {
		cutter_receive(cutter);
		error = SSL_get_error(cutter->ssl,
				      SSL_read(cutter->ssl, &byte, 1));
		ERR_clear_error();
	} while (deed != RENEWS && error == SSL_ERROR_WANT_READ);
	ck_assert_int_eq(error, deed == WRITES ? SSL_ERROR_NONE :
				deed == RENEWS ? SSL_ERROR_WANT_READ :
						 SSL_ERROR_ZERO_RETURN);
}

struct deed_done {
	struct weft_tls *tls;
	enum deed deed;
	weft__atomic(bool) began;
};

static int64_t do_deed(void *arg)
{
	struct deed_done *done = *(struct deed_done **)arg;
	struct weft_stream *stream = &done->tls->stream;
	int r = 0;

	weft__store(&done->began, true, release);
	switch (done->deed) {
	case WRITES:
		r = weft_stream_write_all(stream, "x", 1, NULL);
		break;
	case RENEWS:
		r = weft_tls_update_keys(done->tls);
		break;
	case SHUTS:
		r = weft_tls_shutdown(done->tls);
		break;
	default:
		r = weft_stream_close(stream);
	}
	ck_assert_msg(r == 0, "deed %d: %d %s", done->deed, r,
		      weft_tls_error(done->tls));
	expect_no_notes();
	return 0;
}

static int64_t read_a_byte(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;
	char byte = 0;

	EXPECT(weft_stream_read(stream, &byte, 1) == 1 && byte == 'y');
	return 0;
}

static void cutter_say(struct cutter *cutter)
{
	EXPECT(SSL_write(cutter->ssl, "y", 1) == 1);
	cutter_send(cutter);
}

/* One task does all, and does not read before the deed. */
static void do_alone(struct cutter *cutter, struct deed_done *done)
{
	struct weft_stream *stream = &done->tls->stream;

	cutter_end_ticket(cutter);
	do_deed(&(struct deed_done *){ done });
	cutter_expect(cutter, done->deed);
	if (done->deed == CLOSES)
		return;
	cutter_say(cutter);
	read_a_byte(&(struct weft_stream *){ stream });
	EXPECT(weft_stream_close(stream) == 0);
}

/* Another task reads, when the deed begins. */
static void do_beside_reader(struct cutter *cutter, struct deed_done *done)
{
	struct weft_stream *stream = &done->tls->stream;

	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, read_a_byte, stream);
		kit_go(scope, do_deed, done);
		wait_until(weft__load(&done->began, acquire));
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		cutter_end_ticket(cutter);
		cutter_expect(cutter, done->deed);
		cutter_say(cutter);
	}
	EXPECT(weft_stream_close(stream) == 0);
}

static void meet_cutter(struct weft_tls_context *context, enum deed deed,
			bool beside)
{
	struct end end = { .context = context };
	struct deed_done done = { .tls = &end.tls, .deed = deed };
	struct cutter cutter;
	int fds[2];

	tcp_pair(fds);
	weft_stream_init(&end.below, fds[0]);
	cutter_open(&cutter, fds[1]);
	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, handshake_as_client, &end);
		kit_go(scope, cutter_accept, &cutter);
	}
	EXPECT(end.r == 0);
	cutter_begin_ticket(&cutter);
	do {
		EXPECT(peek_within(&end.tls.stream, WEFT_MS(5)) == -ETIMEDOUT);
	} while (kit_unreceived(fds[0]));
	EXPECT(peek_within(&end.tls.stream, WEFT_MS(5)) == -ETIMEDOUT);
	if (beside)
		do_beside_reader(&cutter, &done);
	else
		do_alone(&cutter, &done);
	cutter_close(&cutter);
}

/* OpenSSL does nothing else between the parts. */
IO_TEST(ticket_in_parts_does_not_stop_writers)
{
	struct weft_tls_opts opts = opts_with(NULL, &authority);
	struct weft_tls_context *context = context_new(&opts);

	for (int deed = 0; deed < DEEDS; deed++) {
		meet_cutter(context, (enum deed)deed, false);
		if (deed != CLOSES)
			meet_cutter(context, (enum deed)deed, true);
	}
	weft_tls_context_free(context);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("tls/hostile");
	TCase *garbage = tcase_create("garbage");
	TCase *threads = tcase_create("threads");
	TCase *parts = tcase_create("parts");

	tcase_set_timeout(garbage, 60);
	tcase_set_timeout(threads, 60);
	tcase_set_timeout(parts, 60);
	io_add_test(garbage, garbage_instead_of_a_handshake_is_an_error);
	io_add_test(garbage, no_bytes_make_a_handshake);
	io_add_test(threads, renegotiation_is_refused);
	io_add_test(threads, peer_asks_for_new_keys);
	io_add_test(threads, peer_that_goes_away_cuts_the_stream_off);
	io_add_test(parts, ticket_in_parts_does_not_stop_writers);
	suite_add_tcase(suite, garbage);
	suite_add_tcase(suite, threads);
	suite_add_tcase(suite, parts);
	return tls_tests_run(suite);
}
