/* SPDX-License-Identifier: MIT */
/*
 * Names that have addresses of two families: one of which is not to be had, or
 * more than there is room for.
 */
#include "tests/support/names_kit.h"

/* c-ares would repeat the query for the other until it gives up. */
NAMES_TEST(addresses_of_one_family_are_enough)
{
	int asked;

	weft__names_apart_ns = WEFT_MS(1);
	WEFT_WITHIN (WEFT_SEC(20)) {
		expect_first("lost6.test:1", "127.0.0.4:1");
		expect_first("lost4.test:1", "[::1]:1");
	}
	asked = server_asked(server, "lost6.test");
	expect_first("lost6.test:2", "127.0.0.4:2");
	ck_assert_int_eq(server_asked(server, "lost6.test"), asked);
	/* It gives the rest up. */
	wait_until(!names_serving());
	expect_first("four.test:1", "127.0.0.4:1");
	/* Of no answers neither is one. */
	WEFT_WITHIN (WEFT_MS(20))
		asked = look_up("silent.test:1");
	ck_assert_int_eq(asked, -ETIMEDOUT);
	wait_until(!names_serving());
}

/* No name has one, or an address, because it has none of one family. */
NAMES_TEST(errors_are_those_of_both_families)
{
	weft__names_apart_ns = 0;
	ck_assert_int_eq(look_up("none.test:1"), -ENOENT);
	ck_assert_int_eq(look_up("empty.test:1"), -ENODATA);
	ck_assert_int_eq(look_up("fail.test:1"), -EAGAIN);
	ck_assert_int_gt(server_asked(server, NULL), 0);
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
	io_add_test(tc, addresses_of_one_family_are_enough);
	io_add_test(tc, errors_are_those_of_both_families);
	io_add_test(tc, many_addresses_are_of_both_families);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
