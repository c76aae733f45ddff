/* SPDX-License-Identifier: MIT */
/*
 * Suite tls/hostile: peers that do not speak TLS, or ask for what is refused:
 * bytes made up, and OpenSSL in a thread of its own.
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

int main(void)
{
	Suite *suite = suite_create("tls/hostile");
	TCase *garbage = tcase_create("garbage");
	TCase *threads = tcase_create("threads");

	tcase_set_timeout(garbage, 60);
	tcase_set_timeout(threads, 60);
	io_add_test(garbage, garbage_instead_of_a_handshake_is_an_error);
	io_add_test(garbage, no_bytes_make_a_handshake);
	io_add_test(threads, renegotiation_is_refused);
	io_add_test(threads, peer_asks_for_new_keys);
	io_add_test(threads, peer_that_goes_away_cuts_the_stream_off);
	suite_add_tcase(suite, garbage);
	suite_add_tcase(suite, threads);
	return tls_tests_run(suite);
}
