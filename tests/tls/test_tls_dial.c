/* SPDX-License-Identifier: MIT */
/*
 * Suite tls/dial: weft_dial_tls() connects, shakes hands and verifies, and
 * leaves nothing open if it fails.
 */
#include <weft/net.h>

#include "tests/support/interrupt_kit.h"
#include "tests/tls/tls_kit.h"

/* A server of one connection, on a listener of its own. */
struct service {
	struct weft_tls_context *context;
	int fd;
	char address[WEFT_ADDR_TEXT_BYTES];
	int r; /* of the handshake */
	char server_name[64], alpn[16];
};

static int64_t serve(void *arg)
{
	struct service *service = *(struct service **)arg;
	struct weft_tls_info info;
	struct weft_stream below;
	struct weft_tls tls;
	char byte;
	int fd = weft_accept(service->fd, NULL);

	EXPECT(fd >= 0);
	weft_stream_init(&below, fd);
	service->r = weft_tls_server(&tls, service->context, &below);
	if (service->r < 0) {
		(void)weft_stream_close(&below);
		return 0;
	}
	weft_tls_info_get(&tls, &info);
	snprintf(service->server_name, sizeof(service->server_name), "%s",
		 info.server_name ? info.server_name : "");
	snprintf(service->alpn, sizeof(service->alpn), "%s",
		 info.alpn ? info.alpn : "");
	/* An echo of one byte, then the peer's close. */
	if (weft_stream_read_all(&tls.stream, &byte, 1, NULL) == 0)
		(void)weft_stream_write_all(&tls.stream, &byte, 1, NULL);
	EXPECT(weft_stream_read(&tls.stream, &byte, 1) <= 0);
	(void)weft_stream_close(&tls.stream);
	return 0;
}

static void service_begin(struct service *service,
			  const struct certificate *cert)
{
	struct weft_tls_opts opts = opts_with(cert, NULL);

	opts.alpn = "h2,http/1.1";
	*service = (struct service){ .context = context_new(&opts) };
	service->fd = tcp_listener(service->address);
}

static void service_end(struct service *service)
{
	EXPECT(weft_close(service->fd) == 0);
	weft_tls_context_free(service->context);
}

/* Dials while the service takes one connection, and uses what it gets. */
static int dial_served(struct service *service, const char *address,
		       const struct weft_dial_tls_opts *opts)
{
	struct weft_tls_opts own = opts_with(NULL, &authority);
	struct weft_tls_context *context = context_new(&own);
	struct weft_tls tls;
	char byte = 'x';
	int r = 0;

	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, serve, service);
		r = weft_dial_tls(&tls, context, address, opts);
		expect_no_notes();
		/* It is not used any more. */
		weft_tls_context_free(context);
		if (r == 0) {
			EXPECT(weft_stream_write_all(&tls.stream, &byte, 1,
						     NULL) == 0);
			byte = 0;
			EXPECT(weft_stream_read_all(&tls.stream, &byte, 1,
						    NULL) == 0);
			EXPECT(byte == 'x');
			EXPECT(weft_stream_close(&tls.stream) == 0);
		} else {
			EXPECT(weft_tls_error(&tls)[0] != '\0');
		}
	}
	return r;
}

IO_TEST(server_is_verified_by_the_address)
{
	struct service service;

	service_begin(&service, &server_cert);
	EXPECT(dial_served(&service, service.address, NULL) == 0);
	EXPECT(service.r == 0);
	/* An address is no name that a client may ask for. */
	ck_assert_str_eq(service.server_name, "");
	service_end(&service);
	return 0;
}

IO_TEST(server_of_another_address_is_refused)
{
	struct certificate other = issue("other", "IP:127.0.0.2", &authority);
	struct service service;
	int before = fds_open();

	service_begin(&service, &other);
	EXPECT(dial_served(&service, service.address, NULL) == -EKEYREJECTED);
	EXPECT(service.r == -EACCES);
	service_end(&service);
	ck_assert_int_le(fds_open(), before);
	certificate_free(&other);
	return 0;
}

#ifndef WEFT_WITHOUT_NAMES
/* "localhost" may be several addresses, of which one listens. */
IO_TEST(name_of_the_address_is_asked_for)
{
	struct certificate local = issue("local", "DNS:localhost", &authority);
	struct service service;
	char address[64];

	service_begin(&service, &local);
	for (int dot = 0; dot < 2; dot++) {
		snprintf(address, sizeof(address), "localhost%s%s",
			 dot ? "." : "", strrchr(service.address, ':'));
		EXPECT(dial_served(&service, address, NULL) == 0);
		ck_assert_str_eq(service.server_name, "localhost");
	}
	service_end(&service);
	certificate_free(&local);
	return 0;
}
#endif

IO_TEST(host_and_alpn_names_are_those_of_the_options)
{
	struct weft_dial_tls_opts opts = WEFT_DIAL_TLS_OPTS_INIT;
	struct service service;

	service_begin(&service, &server_cert);
	opts.host = HOST;
	opts.alpn = "other,http/1.1";
	EXPECT(dial_served(&service, service.address, &opts) == 0);
	ck_assert_str_eq(service.server_name, HOST);
	ck_assert_str_eq(service.alpn, "http/1.1");
	opts.host = "other.test";
	EXPECT(dial_served(&service, service.address, &opts) == -EKEYREJECTED);
	service_end(&service);
	return 0;
}

IO_TEST(path_needs_a_host)
{
	char directory[] = "/tmp/weft-dial-XXXXXX", address[64];
	struct weft_dial_tls_opts opts = WEFT_DIAL_TLS_OPTS_INIT;
	struct service service;

	EXPECT(mkdtemp(directory));
	service_begin(&service, &server_cert);
	EXPECT(weft_close(service.fd) == 0);
	snprintf(address, sizeof(address), "unix:%s/s", directory);
	service.fd = weft_unix_listen(address, NULL);
	EXPECT(service.fd >= 0);
	opts.host = HOST;
	EXPECT(dial_served(&service, address, &opts) == 0);
	ck_assert_str_eq(service.server_name, HOST);
	service_end(&service);
	snprintf(address, sizeof(address), "%s/s", directory);
	(void)unlink(address);
	EXPECT(rmdir(directory) == 0);
	return 0;
}

/* Of a server that accepts, and is silent. */
IO_TEST(deadline_is_over_all_of_it)
{
	struct weft_tls_opts own = opts_with(NULL, &authority);
	struct weft_tls_context *context = context_new(&own);
	char address[WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(address), before = fds_open(), r = 0;
	struct weft_tls tls;

	WEFT_WITHIN (WEFT_MS(20))
		r = weft_dial_tls(&tls, context, address, NULL);
	EXPECT(r == -ETIMEDOUT);
	ck_assert_int_eq(fds_open(), before);
	EXPECT(weft_close(fd) == 0);
	weft_tls_context_free(context);
	return 0;
}

struct dial {
	struct weft_tls_context *context;
	char address[WEFT_ADDR_TEXT_BYTES];
};

static int64_t dial_in_vain(void *arg)
{
	struct dial *dial = *(struct dial **)arg;
	struct weft_tls tls;

	return weft_dial_tls(&tls, dial->context, dial->address, NULL);
}

IO_TEST(cancellation_ends_it_in_the_handshake)
{
	struct weft_tls_opts own = opts_with(NULL, &authority);
	struct dial dial = { .context = context_new(&own) };
	int fd = tcp_listener(dial.address), before = fds_open();

	expect_interrupted(dial_in_vain, &dial);
	ck_assert_int_eq(fds_open(), before);
	EXPECT(weft_close(fd) == 0);
	weft_tls_context_free(dial.context);
	return 0;
}

IO_TEST(what_is_wrong_is_refused)
{
	struct weft_dial_tls_opts opts = WEFT_DIAL_TLS_OPTS_INIT;
	struct weft_dial_opts dial = WEFT_DIAL_OPTS_INIT;
	struct weft_tls_context *context = context_new(NULL);
	char address[WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(address), before = fds_open();
	struct weft_tls tls;

	EXPECT(weft_dial_tls(&tls, context, NULL, NULL) == -EINVAL);
	EXPECT(weft_dial_tls(&tls, context, "nothing", NULL) == -EINVAL);
	ck_assert_str_eq(weft_tls_error(&tls), "");
	/* An empty host, or none of a client that verifies. */
	EXPECT(weft_dial_tls(&tls, context, strrchr(address, ':'), NULL) ==
	       -EINVAL);
	EXPECT(weft_dial_tls(&tls, context, "unix:/no/s", NULL) == -EINVAL);
	EXPECT(weft_dial_tls(&tls, context, "/no/s", NULL) == -EINVAL);
	opts.host = "";
	EXPECT(weft_dial_tls(&tls, context, address, &opts) == -EINVAL);
	opts.host = NULL;
	opts.alpn = "h2,,";
	EXPECT(weft_dial_tls(&tls, context, address, &opts) == -EINVAL);
	opts.alpn = NULL;
	opts.reserved_words[3] = 1;
	EXPECT(weft_dial_tls(&tls, context, address, &opts) == -EINVAL);
	opts.reserved_words[3] = 0;
	opts.dial = &dial;
	dial.size = 1;
	EXPECT(weft_dial_tls(&tls, context, address, &opts) == -EINVAL);
	dial.size = sizeof(dial);
	opts.size = 1;
	EXPECT(weft_dial_tls(&tls, context, address, &opts) == -EINVAL);
	ck_assert_int_eq(fds_open(), before);
	EXPECT(weft_close(fd) == 0);
	EXPECT(weft_dial_tls(&tls, context, address, NULL) == -ECONNREFUSED);
	weft_tls_context_free(context);
	return 0;
}

START_TEST(outside_a_task_it_is_refused)
{
	struct weft_tls tls;

	ck_assert_int_eq(weft_dial_tls(&tls, NULL, "127.0.0.1:1", NULL),
			 -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tls/dial");
	TCase *tcase = tcase_create("dial");

	io_add_test(tcase, server_is_verified_by_the_address);
	io_add_test(tcase, server_of_another_address_is_refused);
#ifndef WEFT_WITHOUT_NAMES
	io_add_test(tcase, name_of_the_address_is_asked_for);
#endif
	io_add_test(tcase, host_and_alpn_names_are_those_of_the_options);
	io_add_test(tcase, path_needs_a_host);
	io_add_test(tcase, deadline_is_over_all_of_it);
	io_add_test(tcase, cancellation_ends_it_in_the_handshake);
	io_add_test(tcase, what_is_wrong_is_refused);
	tcase_add_test(tcase, outside_a_task_it_is_refused);
	suite_add_tcase(suite, tcase);
	return tls_tests_run(suite);
}
