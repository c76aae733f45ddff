/* SPDX-License-Identifier: MIT */
/*
 * Suite tls/context: options, names of servers, ALPN, sessions, and contexts
 * that are changed while they serve.
 */
#include "tests/tls/tls_kit.h"

/* Both contexts, which outlive several connections. */
struct house {
	struct weft_tls_context *client;
	struct weft_tls_context *server;
};

static struct house house_new(const struct weft_tls_opts *client,
			      const struct weft_tls_opts *server)
{
	return (struct house){ context_new(client), context_new(server) };
}

static void house_free(struct house *house)
{
	weft_tls_context_free(house->client);
	weft_tls_context_free(house->server);
}

static void visit(struct house *house, struct ends *ends, const char *host)
{
	memset(ends, 0, sizeof(*ends));
	ends->end[0].context = house->client;
	ends->end[1].context = house->server;
	ends->end[0].host = host;
	meet(ends, 0);
}

/* They agree, and these are their infos. */
static void visit_well(struct house *house, struct ends *ends, const char *host,
		       struct weft_tls_info infos[2])
{
	visit(house, ends, host);
	for (int i = 0; i < 2; i++) {
		ck_assert_msg(ends->end[i].r == 0, "%d: %d %s", i,
			      ends->end[i].r,
			      weft_tls_error(&ends->end[i].tls));
		weft_tls_info_get(&ends->end[i].tls, &infos[i]);
	}
	/* The tickets have come then. */
	pass_on(ends, 1, "welcome");
}

/* ---- Options ------------------------------------------------------------- */

static void expect_error(const struct weft_tls_opts *opts, int error)
{
	struct weft_tls_opts own = *opts;
	struct weft_tls_context *context = NULL;
	char text[80] = "";

	own.error = text;
	own.error_bytes = sizeof(text);
	ck_assert_int_eq(weft_tls_context_new(&own, &context), error);
	ck_assert_msg(text[0], "no text for %d", error);
	expect_no_notes();
	own.error_bytes = 0;
	EXPECT(weft_tls_context_new(&own, &context) == error);
	EXPECT(!context);
}

#define EXPECT_ERROR(error, ...)                                            \
	expect_error(&(struct weft_tls_opts){ sizeof(struct weft_tls_opts), \
					      __VA_ARGS__ },                \
		     error)

START_TEST(options_that_are_wrong_are_refused)
{
	const char *cert = server_cert.cert_pem, *key = server_cert.key_pem;

	EXPECT_ERROR(-EINVAL, .flags = 2);
	EXPECT_ERROR(-EINVAL, .verify = (enum weft_tls_verify)9);
	EXPECT_ERROR(-EINVAL, .version_min = 0x0301);
	EXPECT_ERROR(-EINVAL, .version_min = WEFT_TLS_1_3,
		     .version_max = WEFT_TLS_1_2);
	EXPECT_ERROR(-EINVAL, .cert_pem = cert);
	EXPECT_ERROR(-EINVAL, .key_pem = key);
	EXPECT_ERROR(-EINVAL, .cert_pem = cert, .key_pem = key,
		     .cert_file = "x");
	EXPECT_ERROR(-EINVAL, .ca_pem = cert, .ca_file = "x");
	EXPECT_ERROR(-EINVAL, .alpn = "");
	EXPECT_ERROR(-EINVAL, .alpn = "h2,");
	EXPECT_ERROR(-EINVAL, .ciphers = "no such cipher");
	EXPECT_ERROR(-EINVAL, .ciphersuites = "no such cipher");
	EXPECT_ERROR(-EBADMSG, .ca_pem = "no certificate");
	EXPECT_ERROR(-EBADMSG, .cert_pem = "none", .key_pem = key);
	EXPECT_ERROR(-EBADMSG, .cert_pem = cert, .key_pem = "none");
	EXPECT_ERROR(-EBADMSG, .cert_pem = cert,
		     .key_pem = client_cert.key_pem);
	EXPECT_ERROR(-ENOENT, .ca_file = "/nonexistent/ca.pem");
	EXPECT_ERROR(-ENOENT, .cert_file = "/nonexistent", .key_pem = key);
	EXPECT_ERROR(-ENOTDIR, .cert_file = "/dev/null/cert", .key_pem = key);
}
END_TEST

/* Options of a version that this library does not know. */
START_TEST(options_without_their_size_are_refused)
{
	struct weft_tls_opts opts = WEFT_TLS_OPTS_INIT;
	struct weft_tls_context *context;
	char why[80] = "";

	opts.size = 0;
	EXPECT(weft_tls_context_new(&opts, &context) == -EINVAL);
	EXPECT(weft_tls_context_new(NULL, &context) == 0);
	EXPECT(weft_tls_context_set(context, NULL, &opts) == -EINVAL);
	/* A server of that name needs a certificate. */
	EXPECT(weft_tls_context_set(context, "a.test", NULL) == -EINVAL);
	opts = (struct weft_tls_opts)WEFT_TLS_OPTS_INIT;
	opts.error = why;
	opts.error_bytes = sizeof(why);
	EXPECT(weft_tls_context_set(context, "a.test", &opts) == -EINVAL);
	EXPECT(why[0]);
	weft_tls_context_free(context);
	weft_tls_context_free(NULL);
}
END_TEST

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	EXPECT(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

IO_TEST(certificates_come_from_files)
{
	char folder[] = "/tmp/weft-tls-XXXXXX", cert[64], key[64], ca[64];
	struct weft_tls_opts client = WEFT_TLS_OPTS_INIT;
	struct weft_tls_opts server = WEFT_TLS_OPTS_INIT;
	struct weft_tls_info infos[2];
	struct house house;
	struct ends ends;

	EXPECT(mkdtemp(folder));
	snprintf(cert, sizeof(cert), "%s/cert", folder);
	snprintf(key, sizeof(key), "%s/key", folder);
	snprintf(ca, sizeof(ca), "%s/ca", folder);
	write_file(cert, server_cert.cert_pem);
	write_file(key, server_cert.key_pem);
	write_file(ca, authority.cert_pem);
	server.cert_file = cert;
	server.key_file = key;
	client.ca_file = ca;
	house = house_new(&client, &server);
	EXPECT(unlink(cert) == 0 && unlink(key) == 0 && unlink(ca) == 0);
	EXPECT(rmdir(folder) == 0);
	visit_well(&house, &ends, HOST, infos);
	part(&ends);
	house_free(&house);
	return 0;
}

/* ---- Agreement ----------------------------------------------------------- */

IO_TEST(versions_and_ciphers_are_agreed_on)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);
	struct weft_tls_info infos[2];
	struct house house;
	struct ends ends;

	client.ciphersuites = "TLS_CHACHA20_POLY1305_SHA256";
	house = house_new(&client, &server);
	visit_well(&house, &ends, HOST, infos);
	for (int i = 0; i < 2; i++) {
		ck_assert_str_eq(infos[i].version, "TLSv1.3");
		ck_assert_str_eq(infos[i].cipher,
				 "TLS_CHACHA20_POLY1305_SHA256");
		EXPECT(!infos[i].alpn && !infos[i].resumed);
	}
	EXPECT(!infos[1].peer_name);
	ck_assert_pstr_eq(infos[1].server_name, HOST);
	part(&ends);
	house_free(&house);
	server.version_max = WEFT_TLS_1_2;
	server.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384";
	house = house_new(&client, &server);
	visit_well(&house, &ends, HOST, infos);
	ck_assert_str_eq(infos[0].version, "TLSv1.2");
	ck_assert_str_eq(infos[0].cipher, server.ciphers);
	part(&ends);
	house_free(&house);
	return 0;
}

static void expect_nothing_in_common(const struct weft_tls_opts *client,
				     const struct weft_tls_opts *server)
{
	struct house house = house_new(client, server);
	struct ends ends;

	visit(&house, &ends, HOST);
	ck_assert_msg(ends.end[0].r == -EPROTONOSUPPORT, "%d %s", ends.end[0].r,
		      weft_tls_error(&ends.end[0].tls));
	ck_assert_msg(ends.end[1].r == -EPROTONOSUPPORT, "%d %s", ends.end[1].r,
		      weft_tls_error(&ends.end[1].tls));
	part(&ends);
	house_free(&house);
}

IO_TEST(peers_with_nothing_in_common_do_not_meet)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);

	client.version_max = WEFT_TLS_1_2;
	server.version_min = WEFT_TLS_1_3;
	expect_nothing_in_common(&client, &server);
	server.version_min = 0;
	client.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384";
	server.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";
	expect_nothing_in_common(&client, &server);
	client.ciphers = server.ciphers = NULL;
	client.alpn = "h2,http/1.1";
	server.alpn = "imap";
	expect_nothing_in_common(&client, &server);
	return 0;
}

IO_TEST(alpn_is_the_first_of_the_servers)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);
	struct weft_tls_info infos[2];
	struct house house;
	struct ends ends;

	client.alpn = "h2,http/1.1,x";
	server.alpn = "http/1.1,h2";
	house = house_new(&client, &server);
	visit_well(&house, &ends, HOST, infos);
	ck_assert_pstr_eq(infos[0].alpn, "http/1.1");
	ck_assert_pstr_eq(infos[1].alpn, "http/1.1");
	part(&ends);
	house_free(&house);
	/* A client that asks for none gets none. */
	client.alpn = NULL;
	house = house_new(&client, &server);
	visit_well(&house, &ends, HOST, infos);
	EXPECT(!infos[0].alpn && !infos[1].alpn);
	part(&ends);
	house_free(&house);
	return 0;
}

/* ---- Names of servers ---------------------------------------------------- */

static void expect_server(struct house *house, const char *host,
			  const char *subject, const char *alpn)
{
	struct weft_tls_info infos[2];
	struct ends ends;

	visit_well(house, &ends, host, infos);
	ck_assert_pstr_eq(infos[0].peer_name, subject);
	ck_assert_pstr_eq(infos[1].server_name, host);
	ck_assert_pstr_eq(infos[0].alpn, alpn);
	part(&ends);
}

IO_TEST(each_name_has_its_certificate)
{
	struct certificate one = issue("one", "DNS:one.test", &authority);
	struct certificate any = issue("any", "DNS:*.any.test", &authority);
	struct certificate some =
		issue("some", "DNS:some.any.test", &authority);
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);
	struct house house;
	struct ends ends;

	client.alpn = "a,b";
	server.alpn = "a";
	client.flags = WEFT_TLS_NO_RESUMPTION;
	house = house_new(&client, &server);
	server = opts_with(&one, NULL);
	server.alpn = "b";
	EXPECT(weft_tls_context_set(house.server, "one.test", &server) == 0);
	server = opts_with(&any, NULL);
	EXPECT(weft_tls_context_set(house.server, "*.any.test", &server) == 0);
	server = opts_with(&some, NULL);
	EXPECT(weft_tls_context_set(house.server, "some.any.test", &server) ==
	       0);
	expect_server(&house, HOST, "CN=server", "a");
	expect_server(&house, "one.test", "CN=one", "b");
	expect_server(&house, "ONE.test", "CN=one", "b");
	expect_server(&house, "x.any.test", "CN=any", NULL);
	expect_server(&house, "some.any.test", "CN=some", NULL);
	/* A pattern stands for one label. */
	visit(&house, &ends, "x.y.any.test");
	EXPECT(ends.end[0].r == -EKEYREJECTED);
	part(&ends);
	house_free(&house);
	certificate_free(&one);
	certificate_free(&any);
	certificate_free(&some);
	return 0;
}

/* The server that all clients ask for has options for its name. */
static struct house house_with_name(const struct weft_tls_opts *client,
				    const struct weft_tls_opts *all,
				    const struct weft_tls_opts *named)
{
	struct house house = house_new(client, all);

	EXPECT(weft_tls_context_set(house.server, HOST, named) == 0);
	return house;
}

static void expect_client(const struct certificate *own,
			  const struct weft_tls_opts *all,
			  const struct weft_tls_opts *named, int server_r)
{
	struct weft_tls_opts client = opts_with(own, &authority);
	struct house house = house_with_name(&client, all, named);
	struct ends ends;

	visit(&house, &ends, HOST);
	ck_assert_msg(ends.end[1].r == server_r, "%d %s", ends.end[1].r,
		      weft_tls_error(&ends.end[1].tls));
	part(&ends);
	house_free(&house);
}

/* A client does not choose, by the name that it asks for, which authority it
 * has to be known by. */
IO_TEST(clients_are_verified_as_for_all_names)
{
	struct certificate_wish wish = { .name = "other", .may_sign = true };
	struct certificate other = certificate_new(&wish);
	struct certificate stranger = issue("stranger", NULL, &other);
	struct weft_tls_opts all = opts_with(&server_cert, &authority);

	all.verify = WEFT_TLS_VERIFY_REQUIRED;
	for (int i = 0; i < 3; i++) {
		struct weft_tls_opts named =
			opts_with(&server_cert, i ? &other : NULL);

		named.verify = i == 2 ? WEFT_TLS_VERIFY_REQUIRED :
					WEFT_TLS_VERIFY_DEFAULT;
		expect_client(&client_cert, &all, &named, 0);
		expect_client(&stranger, &all, &named, -EKEYREJECTED);
		expect_client(NULL, &all, &named, -EKEYREJECTED);
	}
	certificate_free(&stranger);
	certificate_free(&other);
	return 0;
}

IO_TEST(ciphers_are_those_for_all_names)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts all = opts_with(&server_cert, NULL);
	struct weft_tls_opts named = all;
	struct weft_tls_info infos[2];
	struct house house;
	struct ends ends;

	for (uint32_t v = WEFT_TLS_1_2; v <= WEFT_TLS_1_3; v++) {
		client.version_max = v;
		all.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";
		all.ciphersuites = "TLS_AES_128_GCM_SHA256";
		house = house_with_name(&client, &all, &named);
		visit_well(&house, &ends, HOST, infos);
		ck_assert_str_eq(infos[0].cipher, v == WEFT_TLS_1_2 ?
							  all.ciphers :
							  all.ciphersuites);
		part(&ends);
		house_free(&house);
	}
	return 0;
}

/* The certificate for all names has a key of another kind, which the client
 * would rather have. */
IO_TEST(certificate_for_a_name_is_the_only_one)
{
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct certificate_wish wish = { .name = "named",
					 .hosts = "DNS:" HOST,
					 .issuer = &authority,
					 .rsa = true };
	struct certificate named_cert = certificate_new(&wish);
	struct weft_tls_opts all = opts_with(&server_cert, NULL);
	struct weft_tls_opts named = opts_with(&named_cert, NULL);
	struct weft_tls_info infos[2];
	struct house house = house_with_name(&client, &all, &named);
	struct ends ends;

	visit_well(&house, &ends, HOST, infos);
	ck_assert_pstr_eq(infos[0].peer_name, "CN=named");
	part(&ends);
	house_free(&house);
	certificate_free(&named_cert);
	return 0;
}

/* ---- Sessions ------------------------------------------------------------ */

static void expect_resumed(struct house *house, bool resumed)
{
	struct weft_tls_info infos[2];
	struct ends ends;

	visit_well(house, &ends, HOST, infos);
	ck_assert_msg(infos[0].resumed == resumed, "not %d", resumed);
	ck_assert_msg(infos[1].resumed == resumed, "not %d", resumed);
	ck_assert_pstr_eq(infos[0].peer_name, "CN=server");
	part(&ends);
}

IO_TEST(sessions_are_resumed)
{
	for (uint32_t v = WEFT_TLS_1_2; v <= WEFT_TLS_1_3; v++) {
		struct weft_tls_opts client =
			opts_with(&client_cert, &authority);
		struct weft_tls_opts server =
			opts_with(&server_cert, &authority);
		struct house house;

		server.version_max = v;
		server.verify = WEFT_TLS_VERIFY_REQUIRED;
		house = house_new(&client, &server);
		expect_resumed(&house, false);
		expect_resumed(&house, true);
		expect_resumed(&house, true);
		/* With other options a session may not be good enough. */
		EXPECT(weft_tls_context_set(house.server, NULL, &server) == 0);
		expect_resumed(&house, false);
		expect_resumed(&house, true);
		EXPECT(weft_tls_context_set(house.client, NULL, &client) == 0);
		expect_resumed(&house, false);
		house_free(&house);
		for (int i = 0; i < 2; i++) {
			client.flags = i ? 0 : WEFT_TLS_NO_RESUMPTION;
			server.flags = i ? WEFT_TLS_NO_RESUMPTION : 0;
			house = house_new(&client, &server);
			expect_resumed(&house, false);
			expect_resumed(&house, false);
			house_free(&house);
		}
	}
	return 0;
}

/* More names than are kept: the oldest go. */
IO_TEST(sessions_are_kept_for_some_names)
{
	enum { NAMES = 150 };
	struct certificate any = issue("any", "DNS:*.many.test", &authority);
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&any, NULL);
	struct house house;
	struct weft_tls_info infos[2];
	struct ends ends;
	char host[30];

	server.version_max = WEFT_TLS_1_2;
	house = house_new(&client, &server);
	for (int i = 0; i < NAMES; i++) {
		snprintf(host, sizeof(host), "n%d.many.test", i);
		visit_well(&house, &ends, host, infos);
		EXPECT(!infos[0].resumed);
		part(&ends);
	}
	visit_well(&house, &ends, "n149.many.test", infos);
	EXPECT(infos[0].resumed);
	part(&ends);
	visit_well(&house, &ends, "n0.many.test", infos);
	EXPECT(!infos[0].resumed);
	part(&ends);
	house_free(&house);
	certificate_free(&any);
	return 0;
}

/* ---- Changes ------------------------------------------------------------- */

IO_TEST(connections_keep_what_they_began_with)
{
	struct certificate fresh = issue("fresh", "DNS:" HOST, &authority);
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct weft_tls_opts server = opts_with(&server_cert, NULL);
	struct house house = house_new(&client, &server);
	struct weft_tls_info infos[2];
	struct ends old, young;

	visit_well(&house, &old, HOST, infos);
	server = opts_with(&fresh, NULL);
	EXPECT(weft_tls_context_set(house.server, NULL, &server) == 0);
	visit_well(&house, &young, HOST, infos);
	ck_assert_pstr_eq(infos[0].peer_name, "CN=fresh");
	server.key_pem = client_cert.key_pem;
	EXPECT(weft_tls_context_set(house.server, NULL, &server) == -EBADMSG);
	part(&young);
	visit_well(&house, &young, HOST, infos);
	ck_assert_pstr_eq(infos[0].peer_name, "CN=fresh");
	/* Connections outlive the contexts. */
	house_free(&house);
	pass_on(&old, 0, "old");
	pass_on(&old, 1, "old");
	pass_on(&young, 0, "young");
	part(&old);
	part(&young);
	certificate_free(&fresh);
	return 0;
}

struct reloading {
	struct house house;
	struct weft_tls_opts opts;
	weft__atomic(unsigned) left;
};

static int64_t visit_often(void *arg)
{
	struct reloading *reloading = *(struct reloading **)arg;

	for (int i = 0; i < 20; i++) {
		struct weft_tls_info infos[2];
		struct ends ends;

		visit_well(&reloading->house, &ends, HOST, infos);
		part(&ends);
	}
	/* relaxed: a count. */
	weft__sub(&reloading->left, 1u, relaxed);
	return 0;
}

/* Certificates change all the time, for all and for one name. */
IO_TEST(contexts_change_while_they_serve)
{
	enum { VISITORS = 4 };
	struct weft_tls_opts client = opts_with(NULL, &authority);
	struct reloading reloading = { .opts = opts_with(&server_cert, NULL) };

	reloading.house = house_new(&client, &reloading.opts);
	/* relaxed: no task yet. */
	weft__store(&reloading.left, VISITORS, relaxed);
	WEFT_SCOPE (scope, NULL) {
		for (int i = 0; i < VISITORS; i++)
			kit_go(scope, visit_often, &reloading);
		/* relaxed: a count. */
		while (weft__load(&reloading.left, relaxed)) {
			EXPECT(weft_tls_context_set(reloading.house.server,
						    NULL,
						    &reloading.opts) == 0);
			EXPECT(weft_tls_context_set(reloading.house.server,
						    HOST,
						    &reloading.opts) == 0);
			EXPECT(weft_yield() == 0);
		}
	}
	house_free(&reloading.house);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("tls/context");
	TCase *options = tcase_create("options");
	TCase *names = tcase_create("names");
	TCase *changes = tcase_create("changes");

	tcase_set_timeout(options, 60);
	tcase_set_timeout(names, 60);
	tcase_set_timeout(changes, 60);
	tcase_add_test(options, options_that_are_wrong_are_refused);
	tcase_add_test(options, options_without_their_size_are_refused);
	io_add_test(options, certificates_come_from_files);
	io_add_test(options, versions_and_ciphers_are_agreed_on);
	io_add_test(options, peers_with_nothing_in_common_do_not_meet);
	io_add_test(options, alpn_is_the_first_of_the_servers);
	io_add_test(names, each_name_has_its_certificate);
	io_add_test(names, clients_are_verified_as_for_all_names);
	io_add_test(names, ciphers_are_those_for_all_names);
	io_add_test(names, certificate_for_a_name_is_the_only_one);
	io_add_test(changes, sessions_are_resumed);
	io_add_test(changes, sessions_are_kept_for_some_names);
	io_add_test(changes, connections_keep_what_they_began_with);
	io_add_test(changes, contexts_change_while_they_serve);
	suite_add_tcase(suite, options);
	suite_add_tcase(suite, names);
	suite_add_tcase(suite, changes);
	return tls_tests_run(suite);
}
