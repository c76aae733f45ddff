/* SPDX-License-Identifier: MIT */
/*
 * Names that have addresses of two families: one of which is not to be had, or
 * more than there is room for.
 */
#include "tests/support/names_kit.h"

/* A network drops the queries for one family. */
NAMES_TEST(lost_queries_are_waited_for)
{
	struct weft_resolve_opts four = WEFT_RESOLVE_OPTS_INIT;
	struct weft_resolver_opts opts = server_opts(server);
	struct weft_addr addr;
	int r;

	WEFT_WITHIN (WEFT_MS(20))
		r = look_up("lost6.test:1");
	ck_assert_int_eq(r, -ETIMEDOUT);
	four.family = AF_INET;
	ck_assert_int_eq(weft_resolve("lost6.test:1", &four, &addr, 1), 1);
	opts.timeout_ns = WEFT_MS(100);
	opts.tries = 3;
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	expect_first("lost6.test:1", "127.0.0.4:1");
}

/* By a search domain every name that is not there has an address of IPv4. */
NAMES_TEST(other_host_of_a_search_domain_does_not_answer)
{
	char path[] = RESOLV_CONF;

	resolv_conf_use(server, path, "search one.test two.test\n");
	expect_first("one.test:1", "[::1]:1");
	ck_assert_int_eq(server_asked(server, "one.test"), 2);
	expect_first("six:1", "[::1]:1");
	ck_assert_int_eq(server_asked(server, "six.one.test"), 2);
	ck_assert_int_eq(server_asked(server, NULL), 4);
	ck_assert_int_eq(unlink(path), 0);
}

/* As of getaddrinfo(), it is another question. */
NAMES_TEST(name_without_the_one_family_is_searched_for)
{
	char path[] = RESOLV_CONF;
	struct weft_resolve_opts four = WEFT_RESOLVE_OPTS_INIT;
	struct weft_addr addr;

	resolv_conf_use(server, path, "search two.test\n");
	four.family = AF_INET;
	ck_assert_int_eq(weft_resolve("one.test:1", &four, &addr, 1), 1);
	ck_assert_int_eq(server_asked(server, "one.test.two.test"), 1);
	ck_assert_int_eq(weft_resolve("one.test.:1", &four, &addr, 1),
			 -ENODATA);
	ck_assert_int_eq(unlink(path), 0);
}

/* The option for servers makes nsswitch.conf, and a line that does the same in
 * resolv.conf, count for nothing. */
NAMES_TEST(servers_are_asked_whatever_the_files_say)
{
	char path[] = RESOLV_CONF;

	resolv_conf_use(server, path, "lookup file\n");
	expect_first("one.test:1", "[::1]:1");
	ck_assert_int_ge(server_asked(server, "one.test"), 1);
	ck_assert_int_eq(unlink(path), 0);
}

/* Where there is no room for all. */
NAMES_TEST(many_addresses_are_of_both_families)
{
	struct weft_addr addrs[WEFT_RESOLVE_MAX];
	int fours = 0;

	ck_assert_int_eq(weft_resolve("many.test:1", NULL, addrs,
				      WEFT_RESOLVE_MAX),
			 WEFT_RESOLVE_MAX);
	for (int i = 0; i < WEFT_RESOLVE_MAX; i++)
		fours += weft_addr_family(&addrs[i]) == AF_INET;
	ck_assert_int_eq(fours, WEFT_RESOLVE_MAX / 2);
	ck_assert_int_ge(server_asked(server, NULL), 2);
}

int main(void)
{
	Suite *suite = suite_create("net/names/families");
	TCase *tc = tcase_create("families");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, lost_queries_are_waited_for);
	io_add_test(tc, other_host_of_a_search_domain_does_not_answer);
	io_add_test(tc, name_without_the_one_family_is_searched_for);
	io_add_test(tc, servers_are_asked_whatever_the_files_say);
	io_add_test(tc, many_addresses_are_of_both_families);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
