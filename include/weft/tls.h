/* SPDX-License-Identifier: MIT */
/*
 * TLS over any stream, client and server: libweft-tls, a library of its own
 * over OpenSSL 3 (pkg-config weft-tls).  <weft/weft.h> does not include this
 * header.
 *
 *	struct weft_tls tls;
 *	int r;
 *
 *	WEFT_WITHIN(WEFT_SEC(10))
 *		r = weft_tls_client(&tls, context, &stream, "example.org");
 *	if (r == 0) {
 *		weft_stream_put(&tls.stream, "hello\n", 6);
 *		...
 *		weft_stream_close(&tls.stream);
 *	}
 *
 * A context holds certificates and options, and serves any number of
 * connections, in all tasks and threads.  After the handshake tls.stream is a
 * stream as any other: one task at a time receives, others may write meanwhile,
 * and its close ends the stream below as well.  The peer's close_notify is the
 * end of the stream; a stream below that ends without one was cut off, which is
 * an error of its reader.  Bytes that an interrupted write reports as done may
 * still be here: the next call on the stream sends them first.  For those, and
 * for close_notify, a close waits 5 seconds at most, and fails if some of them
 * are left.  Before, it sends data that was put, and waits for that without a
 * limit, as the close of any stream: set a deadline.  Renegotiation is refused.
 */
#ifndef WEFT_TLS_H
#define WEFT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>
#include <weft/dial.h>
#include <weft/stream.h>

WEFT_BEGIN_DECLS

/* Certificates and options.  Connections keep what they need of it: it may be
 * freed while they exist, but not during a handshake. */
struct weft_tls_context;

/* Which certificates of the peer are verified. */
enum weft_tls_verify {
	/* A client's: that of the server and its name.  A server's: none. */
	WEFT_TLS_VERIFY_DEFAULT,
	/* None: a client takes any server for the one it wants. */
	WEFT_TLS_VERIFY_NONE,
	/* A server asks for one, and goes on without. */
	WEFT_TLS_VERIFY_OPTIONAL,
	/* The peer must have one. */
	WEFT_TLS_VERIFY_REQUIRED,
};

#define WEFT_TLS_1_2 0x0303u
#define WEFT_TLS_1_3 0x0304u

/* Flags.  No connection resumes the session of an earlier one. */
#define WEFT_TLS_NO_RESUMPTION 1u

/* Options of a context.  Start from WEFT_TLS_OPTS_INIT; 0 in any other field
 * means the default. */
struct weft_tls_opts {
	size_t size;
	uint32_t flags;
	enum weft_tls_verify verify;
	/* The least and the greatest version; 1.2 and the newest. */
	uint32_t version_min;
	uint32_t version_max;
	/* The own certificate, then those that lead to its root, and its key,
	 * as PEM: the names of files, or text. */
	const char *cert_file;
	const char *key_file;
	const char *cert_pem;
	const char *key_pem;
	/* The roots that the peer's certificates lead to, as PEM: authorities,
	 * also such as another one has signed, or the peer's own certificate;
	 * those of the system. */
	const char *ca_file;
	const char *ca_pem;
	/* Names of ALPN, the preferred one first: "h2,http/1.1". */
	const char *alpn;
	/* As of ciphers(1): for TLS 1.2, and for 1.3. */
	const char *ciphers;
	const char *ciphersuites;
	/* Receives why a call fails, if error_bytes is not 0. */
	char *error;
	size_t error_bytes;
};
#define WEFT_TLS_OPTS_INIT                                                   \
	{                                                                    \
		sizeof(struct weft_tls_opts), 0, WEFT_TLS_VERIFY_DEFAULT, 0, \
			0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,   \
			NULL, NULL, 0                                        \
	}

/*
 * Makes a context; NULL opts: the defaults, which do for a client.  Reads files
 * as a thread does.  Does not suspend.  Returns 0, -EINVAL, -ENOMEM, -EBADMSG
 * (PEM that is none, or a key that is not the certificate's), or the error of a
 * file that could not be read (-ENOENT, -EACCES, ...).
 */
WEFT_API int
weft_tls_context_new(const struct weft_tls_opts *opts,
		     struct weft_tls_context **ret_context) WEFT_WARN_UNUSED;

/*
 * Replaces the options of a context, also while it serves: handshakes that
 * begin later use the new ones, connections keep theirs, and a failure changes
 * nothing.  No session from before is resumed.  With server_name, which may
 * begin with "*.", sets the certificate and the ALPN names of a server for the
 * clients that ask for that name; the other options are those for all names.
 * Does not suspend.  Results as of weft_tls_context_new().
 */
WEFT_API int
weft_tls_context_set(struct weft_tls_context *context, const char *server_name,
		     const struct weft_tls_opts *opts) WEFT_WARN_UNUSED;

/* Frees a context that no handshake uses; NULL: nothing.  Does not suspend. */
WEFT_API void weft_tls_context_free(struct weft_tls_context *context);

/* A connection: a struct that you place where you like, and that stays in place
 * until its stream is closed. */
struct weft_tls {
	struct weft_stream stream;
	uint64_t private_words[24];
};

/*
 * Does the handshake over the stream below, and initialises `tls`.  Suspends.
 * Returns 0, and then the stream below belongs to tls->stream, whose close
 * closes it.  Or an error, and then the stream below is still the caller's, who
 * can only close it.  -EINVAL: a client that verifies needs the name of the
 * host (or its address as a text); a server needs a certificate.  Otherwise
 * host may be NULL, but nothing that is neither.  A dot at the end of a name
 * does not count, nor do the brackets and the scope of an address.  Of a
 * certificate the names in its subjectAltName count alone.
 *
 * Further errors, which are also those of all calls on the stream later:
 *
 *	-EKEYREJECTED		this side does not accept the peer's certificate
 *	-EACCES			the peer does not accept this side's, or wants
 *				one
 *	-EPROTONOSUPPORT	no version, cipher or ALPN name is common
 *	-EPROTO			the peer does not keep to TLS
 *	-ECONNRESET		the stream below ended without close_notify
 *	-ENOMEM, -ECANCELED, -ETIMEDOUT, or the error of the stream below
 */
WEFT_API int weft_tls_client(struct weft_tls *tls,
			     struct weft_tls_context *context,
			     struct weft_stream *below,
			     const char *host) WEFT_WARN_UNUSED;
WEFT_API int weft_tls_server(struct weft_tls *tls,
			     struct weft_tls_context *context,
			     struct weft_stream *below) WEFT_WARN_UNUSED;

/* Options of weft_dial_tls().  Start from WEFT_DIAL_TLS_OPTS_INIT; NULL means
 * the default. */
struct weft_dial_tls_opts {
	size_t size;
	const struct weft_dial_opts *dial;
	const char *host; /* of the certificate; default: that of the address */
	const char *alpn; /* in place of the context's */
	uint64_t reserved_words[4];
};
#define WEFT_DIAL_TLS_OPTS_INIT                                      \
	{                                                            \
		sizeof(struct weft_dial_tls_opts), NULL, NULL, NULL, \
		{                                                    \
			0, 0, 0, 0                                   \
		}                                                    \
	}

/* Connects as weft_dial() does, then does the handshake of a client, which asks
 * for the host of the address and verifies its certificate.  opts may be NULL.
 * Suspends; WEFT_WITHIN limits the time for all of it.  Returns 0, and then
 * the close of tls->stream closes the connection; or, with nothing left open,
 * -EINVAL (the address, or options), or an error of weft_dial() or
 * weft_tls_client(). */
WEFT_API int
weft_dial_tls(struct weft_tls *tls, struct weft_tls_context *context,
	      const char *address,
	      const struct weft_dial_tls_opts *opts) WEFT_WARN_UNUSED;

/* Sends close_notify: the peer reads the end, and this side may still read.
 * Flush what was put before.  Suspends.  Returns 0 or an error of a connection;
 * later writes return -EPIPE. */
WEFT_API int weft_tls_shutdown(struct weft_tls *tls);

/* Has both sides change their keys (TLS 1.3), as OpenSSL does by itself before
 * a key wears out.  Suspends.  Returns 0, -EOPNOTSUPP (TLS 1.2), -EPIPE after
 * weft_tls_shutdown(), or an error of a connection. */
WEFT_API int weft_tls_update_keys(struct weft_tls *tls);

/* The result of a handshake.  The texts last as long as the stream. */
struct weft_tls_info {
	const char *version; /* "TLSv1.3" */
	const char *cipher;
	const char *alpn;	 /* NULL: none */
	const char *server_name; /* that the client asked for; NULL: none */
	const char *peer_name; /* subject of the peer's certificate; or NULL */
	bool resumed;	       /* a session from before */
};

/* Stores the result of the handshake.  Does not suspend. */
WEFT_API void weft_tls_info_get(const struct weft_tls *tls,
				struct weft_tls_info *ret_info);

/* Why the handshake or the connection failed, as a text that lasts as long as
 * the struct; "" if nothing failed.  Does not suspend. */
WEFT_API const char *weft_tls_error(const struct weft_tls *tls);

WEFT_END_DECLS

#endif
