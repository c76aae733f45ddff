/* SPDX-License-Identifier: MIT */
/*
 * How much processor time does an echo over TLS take?
 *
 *	bench_tls tls_echo|tls_echo_16k [--label weft|raw-openssl]
 *		  [--workers 1] [--rounds N]
 *
 * Method.  A child has 16 connections, over the loopback: it writes a message
 * to each, 1 KiB or 16 KiB, and then reads the answer of each.  The parent
 * answers, on one thread: with weft, a task for each connection; or with a loop
 * over epoll that calls OpenSSL itself.  The figure is the parent's processor
 * time for an echo.  Both have TLS 1.3, the same cipher, and release their
 * buffers while they are idle.
 *
 * What would fool it: the time includes the handshakes, which are the same for
 * both, and 1% of the whole.  The child takes the other half of a machine with
 * two processors.
 */
#include "bench/bench.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <weft/tls.h>

enum { CONNECTIONS = 16, BYTES_MAX = 16 << 10 };

#define CIPHER "TLS_AES_128_GCM_SHA256"

static struct {
	const char *rounds;
} opt = { .rounds = "20000" };

static struct {
	size_t bytes;
	int rounds;
	int fds[CONNECTIONS]; /* the server's ends */
	int peers[CONNECTIONS];
	EVP_PKEY *key;
	X509 *certificate;
} scene;

static void must(bool holds, const char *what)
{
	if (!holds)
		bench_die(what, -EIO);
}

/* ---- The scene ----------------------------------------------------------- */

static void make_certificate(void)
{
	X509 *made = X509_new();

	scene.key = EVP_EC_gen("P-256");
	scene.certificate = made;
	must(scene.key && made && X509_set_version(made, 2) &&
		     ASN1_INTEGER_set(X509_get_serialNumber(made), 1) &&
		     X509_gmtime_adj(X509_getm_notBefore(made), -3600) &&
		     X509_gmtime_adj(X509_getm_notAfter(made), 86400) &&
		     X509_set_pubkey(made, scene.key) &&
		     X509_sign(made, scene.key, EVP_sha256()),
	     "a certificate");
}

static SSL_CTX *context_new(bool serves)
{
	SSL_CTX *context = SSL_CTX_new(TLS_method());

	must(context && SSL_CTX_set_ciphersuites(context, CIPHER) &&
		     SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION),
	     "SSL_CTX_new");
	SSL_CTX_set_mode(context,
			 SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	if (serves)
		must(SSL_CTX_use_certificate(context, scene.certificate) &&
			     SSL_CTX_use_PrivateKey(context, scene.key),
		     "a certificate");
	return context;
}

static void connect_all(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr =
					       htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	must(bind(listener, (void *)&address, length) == 0 &&
		     listen(listener, CONNECTIONS) == 0 &&
		     getsockname(listener, (void *)&address, &length) == 0,
	     "a listener");
	for (int i = 0; i < CONNECTIONS; i++) {
		scene.peers[i] = socket(AF_INET, SOCK_STREAM, 0);
		must(connect(scene.peers[i], (void *)&address, length) == 0,
		     "connect");
		scene.fds[i] = accept(listener, NULL, NULL);
		must(scene.fds[i] >= 0, "accept");
	}
	close(listener);
}

/* ---- The child ----------------------------------------------------------- */

static void say_and_hear(SSL *ssl[CONNECTIONS])
{
	static char buf[BYTES_MAX];
	size_t some;

	for (int i = 0; i < CONNECTIONS; i++)
		must(SSL_write_ex(ssl[i], buf, scene.bytes, &some), "write");
	for (int i = 0; i < CONNECTIONS; i++)
		for (size_t done = 0; done < scene.bytes; done += some)
			must(SSL_read_ex(ssl[i], buf, scene.bytes - done,
					 &some),
			     "read");
}

static _Noreturn void child_main(void)
{
	SSL_CTX *context = context_new(false);
	SSL *ssl[CONNECTIONS];

	for (int i = 0; i < CONNECTIONS; i++) {
		close(scene.fds[i]);
		ssl[i] = SSL_new(context);
		must(ssl[i] && SSL_set_fd(ssl[i], scene.peers[i]) &&
			     SSL_connect(ssl[i]) == 1,
		     "SSL_connect");
	}
	for (int i = 0; i < scene.rounds; i++)
		say_and_hear(ssl);
	for (int i = 0; i < CONNECTIONS; i++)
		SSL_shutdown(ssl[i]);
	_exit(0);
}

/* ---- weft ---------------------------------------------------------------- */

static char *pem_text(BIO *bio)
{
	char *data;
	long bytes = BIO_get_mem_data(bio, &data);

	return strndup(data, (size_t)bytes);
}

static struct weft_tls_context *weft_context(void)
{
	BIO *certificate = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_mem());
	struct weft_tls_opts opts = WEFT_TLS_OPTS_INIT;
	struct weft_tls_context *context;

	PEM_write_bio_X509(certificate, scene.certificate);
	PEM_write_bio_PrivateKey(key, scene.key, NULL, NULL, 0, NULL, NULL);
	opts.cert_pem = pem_text(certificate);
	opts.key_pem = pem_text(key);
	opts.ciphersuites = CIPHER;
	opts.version_min = WEFT_TLS_1_3;
	bench_must("weft_tls_context_new",
		   weft_tls_context_new(&opts, &context));
	return context;
}

struct connection {
	struct weft_tls_context *context;
	int fd;
};

static int64_t echo(void *arg)
{
	const struct connection *connection = arg;
	struct weft_stream below = WEFT_STREAM_INIT(connection->fd);
	struct weft_tls tls;
	const void *data;
	ssize_t n;

	bench_must("weft_tls_server",
		   weft_tls_server(&tls, connection->context, &below));
	while ((n = weft_stream_peek(&tls.stream, &data)) > 0) {
		bench_must("write", weft_stream_write_all(&tls.stream, data,
							  (size_t)n, NULL));
		weft_stream_skip(&tls.stream, (size_t)n);
	}
	bench_must("read", n);
	(void)weft_stream_close(&tls.stream);
	return 0;
}

static int64_t serve(void *arg)
{
	struct connection connection = { .context = arg };

	WEFT_SCOPE (scope, NULL)
		for (int i = 0; i < CONNECTIONS; i++) {
			connection.fd = scene.fds[i];
			bench_go(scope, echo, &connection, sizeof(connection));
		}
	return 0;
}

/* ---- A loop over epoll --------------------------------------------------- */

/* Answers what has come.  False: the peer has closed. */
static bool answer(SSL *ssl)
{
	static char buf[BYTES_MAX];
	size_t some, sent;

	while (SSL_read_ex(ssl, buf, sizeof(buf), &some))
		for (size_t done = 0; done < some; done += sent)
			/* Its messages fit the sockets' buffers. */
			must(SSL_write_ex(ssl, buf + done, some - done, &sent),
			     "SSL_write_ex");
	return SSL_get_error(ssl, 0) == SSL_ERROR_WANT_READ;
}

static void raw(void)
{
	SSL_CTX *context = context_new(true);
	int epoll = epoll_create1(0), left = CONNECTIONS;

	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event event = { .events = EPOLLIN };
		SSL *ssl = SSL_new(context);

		must(ssl && SSL_set_fd(ssl, scene.fds[i]), "SSL_new");
		must(fcntl(scene.fds[i], F_SETFL, O_NONBLOCK) == 0, "fcntl");
		SSL_set_accept_state(ssl);
		event.data.ptr = ssl;
		must(epoll_ctl(epoll, EPOLL_CTL_ADD, scene.fds[i], &event) == 0,
		     "epoll_ctl");
	}
	while (left > 0) {
		struct epoll_event events[CONNECTIONS];
		int count = epoll_wait(epoll, events, CONNECTIONS, -1);

		for (int i = 0; i < count; i++) {
			SSL *ssl = events[i].data.ptr;

			if (answer(ssl))
				continue;
			close(SSL_get_fd(ssl));
			SSL_free(ssl);
			left--;
		}
	}
}

/* ---- The run ------------------------------------------------------------- */

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run(const char *what)
{
	bool is_raw = strcmp(out_label, "raw-openssl") == 0;
	struct weft_tls_context *context = NULL;
	double before;
	int status;
	pid_t child;

	make_certificate();
	connect_all();
	child = fork();
	must(child >= 0, "fork");
	if (child == 0)
		child_main();
	for (int i = 0; i < CONNECTIONS; i++)
		close(scene.peers[i]);
	context = is_raw ? NULL : weft_context();
	before = cpu_s();
	if (is_raw)
		raw();
	else
		bench_run(serve, context);
	must(waitpid(child, &status, 0) == child && status == 0, "the child");
	emit(what, (cpu_s() - before) * 1e6 / CONNECTIONS / scene.rounds,
	     "us/op");
}

int main(int argc, char **argv)
{
	static const struct bench_option options[] = {
		{ "--rounds", &opt.rounds, false },
		{ NULL, NULL, false },
	};
	const char *what = bench_parse(argc, argv, options);

	scene.rounds = atoi(opt.rounds);
	if (scene.rounds < 1)
		return 2;
	if (strcmp(what, "tls_echo") == 0)
		scene.bytes = 1024;
	else if (strcmp(what, "tls_echo_16k") == 0)
		scene.bytes = BYTES_MAX;
	else
		return 2;
	run(what);
	return 0;
}
