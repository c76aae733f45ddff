/* SPDX-License-Identifier: MIT */
/*
 * The order of addresses: the examples of RFC 6724, section 10.2, but for those
 * of rules that weft leaves out; and how often the kernel is asked.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/time.h>

#include "net/names_order.h"

/* A destination and its source, NULL if there is none. */
struct way {
	const char *to, *from;
};

static const struct way *ways;
static int asked;

static struct in6_addr six(const char *text)
{
	struct in6_addr addr;
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s",
		 strchr(text, ':') ? "" : "::ffff:", text);
	ck_assert_int_eq(inet_pton(AF_INET6, mapped, &addr), 1);
	return addr;
}

static struct weft_addr addr_of(const char *text)
{
	struct weft_addr addr;
	char whole[64];

	snprintf(whole, sizeof(whole), strchr(text, ':') ? "[%s]:0" : "%s:0",
		 text);
	ck_assert_int_eq(weft_addr_parse(whole, &addr), 0);
	return addr;
}

static bool addr_is(const struct weft_addr *addr, const char *text)
{
	struct weft_addr other = addr_of(text);

	return memcmp(addr, &other, sizeof(other)) == 0;
}

static int ask(const struct weft_addr *addr, struct weft__source *ret_source)
{
	const struct way *way = ways;

	asked++;
	while (!addr_is(addr, way->to))
		way++;
	ret_source->usable = way->from != NULL;
	if (way->from)
		ret_source->addr = six(way->from);
	return 0;
}

/* The ways are in the order that is expected.  They are given in each order of
 * two. */
static void expect_order(const struct way *expected)
{
	for (int first = 0; first < 2; first++) {
		struct weft__sources sources = { .ask = ask };
		struct weft_addr addrs[2] = {
			addr_of(expected[first].to),
			addr_of(expected[!first].to),
		};

		ways = expected;
		weft__names_order(&sources, addrs, 2, 1);
		ck_assert(addr_is(&addrs[0], expected[0].to));
		ck_assert(addr_is(&addrs[1], expected[1].to));
	}
}

START_TEST(order_is_that_of_the_rfc)
{
	static const struct way examples[][2] = {
		/* Unusable destinations come last. */
		{ { "198.51.100.121", "198.51.100.117" },
		  { "2001:db8:1::1", NULL } },
		/* Matching scope. */
		{ { "2001:db8:1::1", "2001:db8:1::2" },
		  { "198.51.100.121", "169.254.13.78" } },
		{ { "198.51.100.121", "198.51.100.117" },
		  { "2001:db8:1::1", "fe80::1" } },
		/* Higher precedence. */
		{ { "2001:db8:1::1", "2001:db8:1::2" },
		  { "10.1.2.3", "10.1.2.4" } },
		/* Smaller scope. */
		{ { "fe80::1", "fe80::2" },
		  { "2001:db8:1::1", "2001:db8:1::2" } },
		/* Longest matching prefix. */
		{ { "2001:db8:1::1", "2001:db8:1::2" },
		  { "2001:db8:3ffe::1", "2001:db8:3f44::2" } },
		/* Matching label. */
		{ { "2002:c633:6401::1", "2002:c633:6401::2" },
		  { "2001:db8:1::1", "2002:c633:6401::2" } },
		/* Higher precedence, again. */
		{ { "2001:db8:1::1", "2001:db8:1::2" },
		  { "2002:c633:6401::1", "2002:c633:6401::2" } },
		/* Loopback. */
		{ { "::1", "::1" }, { "127.0.0.1", "127.0.0.1" } },
		/* A unique local address is for those that have one. */
		{ { "fd12::1", "fd12::2" }, { "10.1.2.3", "169.254.1.1" } },
		{ { "10.1.2.3", "10.1.2.4" }, { "fd12::1", "2001:db8:1::2" } },
	};

	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		expect_order(examples[i]);
}
END_TEST

/* Rule 10.  A source's prefix ends after 64 bits. */
START_TEST(equal_addresses_keep_their_order)
{
	static const struct way here[] = {
		{ "2001:db8:1::1", "2001:db8:1::ff" },
		{ "2001:db8:1::fe", "2001:db8:1::ff" },
		{ "2001:db8:1::2", "2001:db8:1::ff" },
	};
	struct weft__sources sources = { .ask = ask };
	struct weft_addr addrs[3];

	ways = here;
	for (int i = 0; i < 3; i++)
		addrs[i] = addr_of(here[i].to);
	weft__names_order(&sources, addrs, 3, 1);
	for (int i = 0; i < 3; i++)
		ck_assert(addr_is(&addrs[i], here[i].to));
}
END_TEST

START_TEST(source_is_asked_for_once_a_second)
{
	static const struct way here[] = {
		{ "10.1.1.1", "10.1.1.9" },
		{ "10.2.2.2", "10.1.1.9" },
		{ "192.0.2.1", "10.1.1.9" },
	};
	struct weft__sources sources = { .ask = ask };
	struct weft_addr addrs[3];

	ways = here;
	asked = 0;
	for (int i = 0; i < 3; i++)
		addrs[i] = addr_of(here[i].to);
	/* One address needs no order. */
	weft__names_order(&sources, addrs, 1, 1);
	ck_assert_int_eq(asked, 0);
	for (uint64_t now_ns = 1; now_ns < 1000; now_ns += 100)
		weft__names_order(&sources, addrs, 3, now_ns);
	ck_assert_int_eq(asked, 2);
	weft__names_order(&sources, addrs, 3, WEFT_SEC(1) + 1);
	ck_assert_int_eq(asked, 4);
}
END_TEST

static int ask_fails(const struct weft_addr *addr,
		     struct weft__source *ret_source)
{
	(void)addr;
	(void)ret_source;
	asked++;
	return -EMFILE;
}

/* Nor is that remembered. */
START_TEST(addresses_stay_where_the_kernel_cannot_be_asked)
{
	struct weft__sources sources = { .ask = ask_fails };
	struct weft_addr addrs[2] = { addr_of("127.0.0.1"), addr_of("::1") };

	asked = 0;
	weft__names_order(&sources, addrs, 2, 1);
	weft__names_order(&sources, addrs, 2, 2);
	ck_assert_int_eq(asked, 2);
	ck_assert(addr_is(&addrs[0], "127.0.0.1"));
	sources.ask = ask;
	ways = (struct way[]){ { "::1", "::1" }, { "127.0.0.1", "127.0.0.1" } };
	weft__names_order(&sources, addrs, 2, 3);
	ck_assert(addr_is(&addrs[0], "::1"));
}
END_TEST

/* Each machine has a loopback. */
START_TEST(kernel_knows_the_source_of_the_loopback)
{
	struct weft_addr addr = addr_of("127.0.0.1");
	struct in6_addr expected = six("127.0.0.1");
	struct weft__source source;

	ck_assert_int_eq(weft__source_ask(&addr, &source), 0);
	ck_assert(source.usable);
	ck_assert_mem_eq(&source.addr, &expected, sizeof(expected));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/names_order");
	TCase *tcase = tcase_create("order");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, order_is_that_of_the_rfc);
	tcase_add_test(tcase, equal_addresses_keep_their_order);
	tcase_add_test(tcase, source_is_asked_for_once_a_second);
	tcase_add_test(tcase, addresses_stay_where_the_kernel_cannot_be_asked);
	tcase_add_test(tcase, kernel_knows_the_source_of_the_loopback);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
