/* SPDX-License-Identifier: MIT */
/*
 * Suite tls/verify: which certificates are accepted, of servers and of clients,
 * and how both ends learn that they are not.
 */
#include <sys/stat.h>

#include "tests/support/child_kit.h"
#include "tests/support/needs.h"
#include "tests/tls/tls_kit.h"

/* The results that a handshake of these two is to have. */
struct expected {
	int client;
	int server;
	const char *text; /* a part of the client's, or NULL */
};

static void expect_meeting(const struct weft_tls_opts *client,
			   const struct weft_tls_opts *server, const char *host,
			   const struct expected *expected)
{
	struct ends ends = { .fds = { 0 } };

	ends.end[0].context = context_new(client);
	ends.end[1].context = context_new(server);
	ends.end[0].host = host;
	meet(&ends, 0);
	ck_assert_msg(ends.end[0].r == expected->client, "client: %d %s",
		      ends.end[0].r, weft_tls_error(&ends.end[0].tls));
	ck_assert_msg(ends.end[1].r == expected->server, "server: %d %s",
		      ends.end[1].r, weft_tls_error(&ends.end[1].tls));
	for (int i = 0; i < 2; i++)
		EXPECT((ends.end[i].r < 0) ==
		       (weft_tls_error(&ends.end[i].tls)[0] != '\0'));
	if (expected->text)
		ck_assert_pstr_eq(weft_tls_error(&ends.end[0].tls),
				  expected->text);
	part(&ends);
	weft_tls_context_free(ends.end[0].context);
	weft_tls_context_free(ends.end[1].context);
}

/* ---- Servers ------------------------------------------------------------- */

/* The client refuses the server, whose handshake fails by its alert. */
static void expect_refusal(const struct certificate *server,
			   const struct certificate *ca, const char *host,
			   const char *text)
{
	struct weft_tls_opts opts[2] = { opts_with(NULL, ca),
					 opts_with(server, NULL) };
	struct expected expected = { -EKEYREJECTED, -EACCES, text };

	for (uint32_t v = WEFT_TLS_1_2; v <= WEFT_TLS_1_3; v++) {
		opts[0].version_max = v;
		expect_meeting(&opts[0], &opts[1], host, &expected);
	}
	/* And takes it unseen, if it is told to. */
	opts[0].verify = WEFT_TLS_VERIFY_NONE;
	expect_meeting(&opts[0], &opts[1], host, &(struct expected){ 0 });
}

IO_TEST(server_of_another_name_is_refused)
{
	expect_refusal(&server_cert, &authority, "other.test",
		       "hostname mismatch");
	expect_refusal(&server_cert, &authority, "127.0.0.2",
		       "IP address mismatch");
	return 0;
}

IO_TEST(server_is_known_by_its_address)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);

	expect_meeting(&client, &server, "127.0.0.1", &(struct expected){ 0 });
	return 0;
}

/* A server is asked for the name as certificates have it. */
static void expect_asked_for(const char *host, const char *name)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);
	struct ends ends = { .fds = { 0 } };
	struct weft_tls_info info;

	ends.end[0].context = context_new(&client);
	ends.end[1].context = context_new(&server);
	ends.end[0].host = host;
	meet(&ends, 0);
	ck_assert_msg(ends.end[0].r == 0 && ends.end[1].r == 0, "%s: %d %s",
		      host, ends.end[0].r, weft_tls_error(&ends.end[0].tls));
	weft_tls_info_get(&ends.end[1].tls, &info);
	ck_assert_pstr_eq(info.server_name, name);
	part(&ends);
	weft_tls_context_free(ends.end[0].context);
	weft_tls_context_free(ends.end[1].context);
}

IO_TEST(dot_at_the_end_is_no_part_of_a_name)
{
	expect_asked_for(HOST, HOST);
	expect_asked_for(HOST ".", HOST);
	return 0;
}

IO_TEST(brackets_and_scope_are_no_part_of_an_address)
{
	expect_asked_for("127.0.0.1", NULL);
	expect_asked_for("::1", NULL);
	expect_asked_for("[::1]", NULL);
	expect_asked_for("::1%lo", NULL);
	expect_asked_for("[::1%1]", NULL);
	return 0;
}

/* OpenSSL would take the first two for any name below, and for the pattern of a
 * certificate. */
IO_TEST(what_is_no_name_is_refused)
{
	static const char *const hosts[] = {
		".test", "*.some.test", "a..test", "..", ".",
		"a b",	 "a/b",		"a:b",	   "[]", "[a]",
		"%lo",	 "\xc3\xa4.test",
	};
	struct certificate some = issue("some", "DNS:*.some.test,DNS:a.test",
					&authority);
	struct weft_tls_opts opts = opts_with(NULL, &authority);
	struct weft_tls_context *context = context_new(&opts);
	struct weft_tls_opts serves = opts_with(&some, NULL);
	struct weft_tls_context *server = context_new(&serves);

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		struct ends ends = { .fds = { 0 } };

		ends.end[0].context = context;
		ends.end[1].context = server;
		ends.end[0].host = hosts[i];
		meet(&ends, 0);
		ck_assert_msg(ends.end[0].r == -EINVAL, "%s: %d", hosts[i],
			      ends.end[0].r);
		part(&ends);
	}
	weft_tls_context_free(context);
	weft_tls_context_free(server);
	certificate_free(&some);
	return 0;
}

/* RFC 9525, section 2: whatever other names the certificate has. */
IO_TEST(name_in_the_subject_does_not_count)
{
	static const char *const hosts[] = { NULL, "IP:127.0.0.1",
					     "email:a@" HOST };

	for (int i = 0; i < 3; i++) {
		struct certificate own = issue(HOST, hosts[i], &authority);

		expect_refusal(&own, &authority, HOST, "hostname mismatch");
		certificate_free(&own);
	}
	return 0;
}

IO_TEST(wildcard_is_one_label)
{
	struct certificate any = issue("any", "DNS:*.any.test", &authority);
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&any, NULL);

	expect_meeting(&client, &server, "a.any.test",
		       &(struct expected){ 0 });
	expect_refusal(&any, &authority, "any.test", "hostname mismatch");
	expect_refusal(&any, &authority, "a.b.any.test", "hostname mismatch");
	certificate_free(&any);
	return 0;
}

IO_TEST(certificate_that_has_expired_is_refused)
{
	struct certificate_wish wish = { .name = "old",
					 .hosts = "DNS:" HOST,
					 .issuer = &authority,
					 .days = -1 };
	struct certificate old = certificate_new(&wish);

	expect_refusal(&old, &authority, HOST, "certificate has expired");
	certificate_free(&old);
	return 0;
}

IO_TEST(certificate_that_signs_itself_is_refused)
{
	struct certificate own = issue("self", "DNS:" HOST, NULL);

	expect_refusal(&own, &authority, HOST, "self-signed certificate");
	certificate_free(&own);
	return 0;
}

/* Its root is not among the system's. */
IO_TEST(certificate_of_an_unknown_authority_is_refused)
{
	struct certificate_wish wish = { .name = "nobody's authority",
					 .may_sign = true };
	struct certificate other = certificate_new(&wish);

	expect_refusal(&server_cert, &other, HOST,
		       "unable to get local issuer certificate");
	expect_refusal(&server_cert, NULL, HOST,
		       "unable to get local issuer certificate");
	certificate_free(&other);
	return 0;
}

/* The server sends the certificates between its own and the root. */
IO_TEST(chain_leads_to_the_root)
{
	struct certificate_wish wish = { .name = "between",
					 .issuer = &authority,
					 .may_sign = true };
	struct certificate between = certificate_new(&wish);
	struct certificate leaf = issue("leaf", "DNS:" HOST, &between);
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&leaf, NULL);
	char *chain;

	EXPECT(asprintf(&chain, "%s%s", leaf.cert_pem, between.cert_pem) > 0);
	expect_refusal(&leaf, &authority, HOST,
		       "unable to get local issuer certificate");
	server.cert_pem = chain;
	expect_meeting(&client, &server, HOST, &(struct expected){ 0 });
	free(chain);
	certificate_free(&leaf);
	certificate_free(&between);
	return 0;
}

/* It need not sign itself. */
IO_TEST(certificate_that_is_trusted_ends_the_chain)
{
	struct certificate_wish wish = { .name = "between",
					 .issuer = &authority,
					 .may_sign = true };
	struct certificate between = certificate_new(&wish);
	struct certificate leaf = issue("leaf", "DNS:" HOST, &between);
	struct weft_tls_opts server = opts_with(&leaf, NULL);
	struct weft_tls_opts by_between = opts_with(NULL, &between);
	struct weft_tls_opts by_leaf = opts_with(NULL, &leaf);

	expect_meeting(&by_between, &server, HOST, &(struct expected){ 0 });
	expect_meeting(&by_leaf, &server, HOST, &(struct expected){ 0 });
	expect_refusal(&server_cert, &between, HOST,
		       "unable to get local issuer certificate");
	certificate_free(&leaf);
	certificate_free(&between);
	return 0;
}

IO_TEST(client_that_verifies_needs_a_name)
{
	struct weft_tls_opts opts = opts_with(NULL, &authority);
	struct weft_tls_context *context = context_new(&opts);
	struct weft_stream below;
	struct weft_tls tls;
	int fds[2];

	socket_pair(fds);
	weft_stream_init(&below, fds[0]);
	EXPECT(weft_tls_client(&tls, context, &below, NULL) == -EINVAL);
	EXPECT(weft_tls_client(&tls, context, &below, "") == -EINVAL);
	/* Nor is one without a certificate a server. */
	EXPECT(weft_tls_server(&tls, context, &below) == -EINVAL);
	expect_no_notes();
	weft_tls_context_free(context);
	EXPECT(weft_stream_close(&below) == 0);
	return weft_close(fds[1]);
}

/* Nor has it one for all names. */
IO_TEST(server_has_no_certificate_for_the_name)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL), none =
		opts_with(NULL, NULL);

	for (uint32_t v = WEFT_TLS_1_2; v <= WEFT_TLS_1_3; v++) {
		struct ends ends = { .fds = { 0 } };

		client.version_max = v;
		ends.end[0].context = context_new(&client);
		ends.end[1].context = context_new(&none);
		EXPECT(weft_tls_context_set(ends.end[1].context, "other.test",
					    &server) == 0);
		meet(&ends, 0);
		ck_assert_int_eq(ends.end[0].r, -EPROTONOSUPPORT);
		ck_assert_int_eq(ends.end[1].r, -EPROTONOSUPPORT);
		part(&ends);
		weft_tls_context_free(ends.end[0].context);
		weft_tls_context_free(ends.end[1].context);
	}
	return 0;
}

/* ---- Clients ------------------------------------------------------------- */

static struct weft_tls_opts asking(enum weft_tls_verify verify,
				   uint32_t version)
{
	struct weft_tls_opts server = opts_with(&server_cert, &authority);

	server.verify = verify;
	server.version_max = version;
	return server;
}

IO_TEST(client_shows_its_certificate)
{
	struct ends ends = { .fds = { 0 } };
	struct weft_tls_opts client = opts_with(&client_cert, &authority);
	struct weft_tls_opts server = asking(WEFT_TLS_VERIFY_REQUIRED, 0);
	struct weft_tls_info info;

	ends.end[0].context = context_new(&client);
	ends.end[1].context = context_new(&server);
	meet(&ends, 0);
	EXPECT(ends.end[0].r == 0 && ends.end[1].r == 0);
	pass_on(&ends, 0, "hello");
	weft_tls_info_get(&ends.end[1].tls, &info);
	ck_assert_pstr_eq(info.peer_name, "CN=client");
	weft_tls_info_get(&ends.end[0].tls, &info);
	ck_assert_pstr_eq(info.peer_name, "CN=server");
	part(&ends);
	weft_tls_context_free(ends.end[0].context);
	weft_tls_context_free(ends.end[1].context);
	return 0;
}

IO_TEST(certificate_of_a_client_is_optional)
{
	struct weft_tls_opts without = opts_with(NULL, &authority);
	struct weft_tls_opts server = asking(WEFT_TLS_VERIFY_OPTIONAL, 0);

	expect_meeting(&without, &server, HOST, &(struct expected){ 0 });
	return 0;
}

/* In TLS 1.2 the client learns that in its handshake. */
static void refuse_client(const struct certificate *own,
			  enum weft_tls_verify verify)
{
	struct weft_tls_opts client = opts_with(own, &authority);
	struct weft_tls_opts server = asking(verify, WEFT_TLS_1_2);
	struct expected expected = { -EACCES, -EKEYREJECTED, NULL };
	struct ends ends = { .fds = { 0 } };
	const void *data;

	/* Without a certificate, an alert that does not say so. */
	if (!own)
		expected.client = -EPROTONOSUPPORT;
	expect_meeting(&client, &server, HOST, &expected);
	/* In 1.3 only when it reads. */
	server = asking(verify, 0);
	ends.end[0].context = context_new(&client);
	ends.end[1].context = context_new(&server);
	meet(&ends, 0);
	EXPECT(ends.end[0].r == 0 && ends.end[1].r == -EKEYREJECTED);
	EXPECT(weft_stream_peek(stream_of(&ends, 0), &data) == -EACCES);
	expect_no_notes();
	part(&ends);
	weft_tls_context_free(ends.end[0].context);
	weft_tls_context_free(ends.end[1].context);
}

IO_TEST(client_without_a_good_certificate_is_refused)
{
	struct certificate own = issue("stranger", NULL, NULL);

	refuse_client(NULL, WEFT_TLS_VERIFY_REQUIRED);
	refuse_client(&own, WEFT_TLS_VERIFY_REQUIRED);
	refuse_client(&own, WEFT_TLS_VERIFY_OPTIONAL);
	certificate_free(&own);
	return 0;
}

/* ---- Files --------------------------------------------------------------- */

static int64_t read_closed(void *arg)
{
	struct weft_tls_opts opts = WEFT_TLS_OPTS_INIT;
	struct weft_tls_context *context = NULL;

	NEED(become_unprivileged());
	opts.ca_file = arg;
	NEED(weft_tls_context_new(&opts, &context) == -EACCES && !context);
	return 0;
}

START_TEST(file_that_may_not_be_read_is_eacces)
{
	char path[] = "/tmp/weft-test-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	ck_assert_int_eq(fchmod(fd, 0), 0);
	child_run(read_closed, path);
	close(fd);
	unlink(path);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tls/verify");
	TCase *servers = tcase_create("servers");
	TCase *clients = tcase_create("clients");

	tcase_set_timeout(servers, 60);
	tcase_set_timeout(clients, 60);
	io_add_test(servers, server_of_another_name_is_refused);
	io_add_test(servers, server_is_known_by_its_address);
	io_add_test(servers, dot_at_the_end_is_no_part_of_a_name);
	io_add_test(servers, brackets_and_scope_are_no_part_of_an_address);
	io_add_test(servers, what_is_no_name_is_refused);
	io_add_test(servers, name_in_the_subject_does_not_count);
	io_add_test(servers, wildcard_is_one_label);
	io_add_test(servers, certificate_that_has_expired_is_refused);
	io_add_test(servers, certificate_that_signs_itself_is_refused);
	io_add_test(servers, certificate_of_an_unknown_authority_is_refused);
	io_add_test(servers, chain_leads_to_the_root);
	io_add_test(servers, certificate_that_is_trusted_ends_the_chain);
	io_add_test(servers, client_that_verifies_needs_a_name);
	io_add_test(servers, server_has_no_certificate_for_the_name);
	io_add_test(clients, client_shows_its_certificate);
	io_add_test(clients, certificate_of_a_client_is_optional);
	io_add_test(clients, client_without_a_good_certificate_is_refused);
	if (test_needs(test_can(become_unprivileged),
		       "file_that_may_not_be_read_is_eacces",
		       NEEDS_ANOTHER_USER))
		tcase_add_test(servers, file_that_may_not_be_read_is_eacces);
	suite_add_tcase(suite, servers);
	suite_add_tcase(suite, clients);
	return tls_tests_run(suite);
}
