/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the tests of TLS share: an authority and what it has signed,
 * contexts, both ends of a connection, and bytes that flow between them.
 */
#ifndef WEFT_TESTS_TLS_TLS_KIT_H
#define WEFT_TESTS_TLS_TLS_KIT_H

#include <weft/tls.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tests/support/stream_kit.h"
#include "tests/tls/certificates.h"

#define HOST "weft.test"

/* An authority, and a server and a client that it knows. */
static struct certificate authority, server_cert, client_cert;

static inline struct certificate issue(const char *name, const char *hosts,
				       const struct certificate *issuer)
{
	struct certificate_wish wish = { .name = name,
					 .hosts = hosts,
					 .issuer = issuer };

	return certificate_new(&wish);
}

static inline void make_certificates(void)
{
	struct certificate_wish wish = { .name = "authority",
					 .may_sign = true };

	authority = certificate_new(&wish);
	server_cert = issue("server", "DNS:" HOST ",IP:127.0.0.1,IP:::1",
			    &authority);
	client_cert = issue("client", NULL, &authority);
}

static inline void free_certificates(void)
{
	certificate_free(&authority);
	certificate_free(&server_cert);
	certificate_free(&client_cert);
}

static inline struct weft_tls_opts opts_with(const struct certificate *own,
					     const struct certificate *ca)
{
	struct weft_tls_opts opts = WEFT_TLS_OPTS_INIT;

	if (own) {
		opts.cert_pem = own->cert_pem;
		opts.key_pem = own->key_pem;
	}
	if (ca)
		opts.ca_pem = ca->cert_pem;
	return opts;
}

static inline struct weft_tls_context *
context_new(const struct weft_tls_opts *opts)
{
	struct weft_tls_context *context;

	ck_assert_int_eq(weft_tls_context_new(opts, &context), 0);
	return context;
}

/* No call leaves something in the error queue of its thread. */
#define expect_no_notes() EXPECT(ERR_peek_error() == 0)

/* ---- Ends ---------------------------------------------------------------- */

struct end {
	struct weft_tls tls;
	struct weft_stream below;
	struct weft_tls_context *context; /* NULL: kit_meet() makes one */
	const char *host;		  /* of a client; NULL: HOST */
	int r;				  /* of the handshake */
	bool own_context;
};

/* The first is the client. */
struct ends {
	struct end end[2];
	int fds[2];
};

static inline int64_t handshake_as_client(void *arg)
{
	struct end *end = *(struct end **)arg;

	end->r = weft_tls_client(&end->tls, end->context, &end->below,
				 end->host ? end->host : HOST);
	expect_no_notes();
	if (end->r < 0)
		(void)weft_stream_close(&end->below);
	return 0;
}

static inline int64_t handshake_as_server(void *arg)
{
	struct end *end = *(struct end **)arg;

	end->r = weft_tls_server(&end->tls, end->context, &end->below);
	expect_no_notes();
	if (end->r < 0)
		(void)weft_stream_close(&end->below);
	return 0;
}

static inline void give_contexts(struct ends *ends, uint32_t version)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);

	client.version_max = server.version_max = version;
	for (int i = 0; i < 2; i++) {
		if (ends->end[i].context)
			continue;
		ends->end[i].own_context = true;
		ends->end[i].context = context_new(i ? &server : &client);
	}
}

/* Both handshakes, over streams that are there.  An end that fails closes its
 * stream. */
static inline void shake_hands(struct ends *ends)
{
	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, handshake_as_client, &ends->end[0]);
		kit_go(scope, handshake_as_server, &ends->end[1]);
	}
}

/* Over a new pair of sockets. */
static inline void meet(struct ends *ends, uint32_t version)
{
	give_contexts(ends, version);
	tcp_pair(ends->fds);
	weft_stream_init(&ends->end[0].below, ends->fds[0]);
	weft_stream_init(&ends->end[1].below, ends->fds[1]);
	shake_hands(ends);
}

/* And they agree. */
static inline void join_ends(struct ends *ends, uint32_t version)
{
	memset(ends, 0, sizeof(*ends));
	meet(ends, version);
	ck_assert_msg(ends->end[0].r == 0 && ends->end[1].r == 0,
		      "%d %s; %d %s", ends->end[0].r,
		      weft_tls_error(&ends->end[0].tls), ends->end[1].r,
		      weft_tls_error(&ends->end[1].tls));
}

static inline void free_contexts(struct ends *ends)
{
	for (int i = 0; i < 2; i++)
		if (ends->end[i].own_context)
			weft_tls_context_free(ends->end[i].context);
}

/* Both close, the client first. */
static inline void part(struct ends *ends)
{
	for (int i = 0; i < 2; i++)
		if (ends->end[i].r == 0)
			(void)weft_stream_close(&ends->end[i].tls.stream);
	free_contexts(ends);
}

static inline struct weft_stream *stream_of(struct ends *ends, int i)
{
	return &ends->end[i].tls.stream;
}

/* The other end receives just that. */
static inline void pass_on(struct ends *ends, int from, const char *text)
{
	char buf[64];
	size_t bytes = strlen(text);

	EXPECT(weft_stream_write_all(stream_of(ends, from), text, bytes,
				     NULL) == 0);
	EXPECT(weft_stream_read_all(stream_of(ends, !from), buf, bytes, NULL) ==
	       0);
	EXPECT(memcmp(buf, text, bytes) == 0);
}

/* ---- Flows --------------------------------------------------------------- */

/* So many bytes in pieces of all lengths, put or written. */
struct flow {
	struct weft_stream *stream;
	uint64_t bytes;
	unsigned piece_max;
	uint64_t random;
	struct weft_tls *renews; /* its keys, now and then */
};

static inline int64_t flow_out(void *arg)
{
	struct flow *flow = *(struct flow **)arg;
	unsigned char *bytes = malloc(flow->piece_max);
	uint64_t at = 0;

	EXPECT(bytes);
	while (at < flow->bytes) {
		size_t some = 1 + kit_chance(&flow->random, flow->piece_max);

		if (some > flow->bytes - at)
			some = (size_t)(flow->bytes - at);
		kit_fill(bytes, some, at);
		EXPECT(weft_stream_write_all(flow->stream, bytes, some, NULL) ==
		       0);
		at += some;
		if (flow->renews && kit_chance(&flow->random, 6) == 0)
			EXPECT(weft_tls_update_keys(flow->renews) == 0);
		if (kit_chance(&flow->random, 8) == 0)
			EXPECT(weft_yield() == 0);
	}
	free(bytes);
	return 0;
}

static inline int64_t flow_in(void *arg)
{
	struct flow *flow = *(struct flow **)arg;

	kit_take_all(flow->stream, 0, flow->bytes, flow->random);
	return 0;
}

/* Both ways at the same time. */
static inline void flow_both_ways(struct ends *ends, uint64_t bytes,
				  unsigned piece_max, bool renews)
{
	struct flow out[2], in[2];

	for (int i = 0; i < 2; i++) {
		out[i] = (struct flow){
			.stream = stream_of(ends, i),
			.bytes = bytes,
			.piece_max = piece_max,
			.random = (uint64_t)i + piece_max,
			.renews = renews ? &ends->end[i].tls : NULL,
		};
		in[i] = out[i];
	}
	WEFT_SCOPE (scope, NULL) {
		for (int i = 0; i < 2; i++) {
			kit_go(scope, flow_out, &out[i]);
			kit_go(scope, flow_in, &in[i]);
		}
	}
}

static inline int tls_tests_run(Suite *suite)
{
	int failed;

	make_certificates();
	failed = io_tests_run(suite);
	free_certificates();
	return failed;
}

#endif
