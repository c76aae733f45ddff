/* SPDX-License-Identifier: MIT */
/*
 * Names: what needs no server, also in a build without c-ares: addresses, texts
 * that are neither address nor name, and wrong options.
 */
#include "tests/support/io_kit.h"

static int resolve_family(const char *text, int family)
{
	struct weft_resolve_opts opts = WEFT_RESOLVE_OPTS_INIT;
	struct weft_addr addr;

	opts.family = family;
	return weft_resolve(text, &opts, &addr, 1);
}

static int resolve(const char *text)
{
	struct weft_addr addr;

	return weft_resolve(text, NULL, &addr, 1);
}

IO_TEST(address_is_its_own_answer)
{
	static const char *const texts[] = { "127.0.0.1:80", "[::1]:443",
					     "[::]:80", "unix:/run/x" };
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addrs[2];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_int_eq(weft_resolve(texts[i], NULL, addrs, 2), 1);
		weft_addr_format(&addrs[0], text, sizeof(text));
		ck_assert_str_eq(text, texts[i]);
	}
	ck_assert_int_eq(resolve_family("127.0.0.1:80", AF_INET), 1);
	ck_assert_int_eq(resolve_family("127.0.0.1:80", AF_INET6),
			 -EAFNOSUPPORT);
	ck_assert_int_eq(resolve_family("unix:/x", AF_INET), -EAFNOSUPPORT);
	return 0;
}

static void expect_long_names(void)
{
	char text[300];

	memset(text, 'a', sizeof(text));
	snprintf(text + 64, sizeof(text) - 64, ".test:1");
	ck_assert_int_eq(resolve(text), -EINVAL);
	for (int i = 0; i < 254; i++)
		text[i] = i % 50 == 49 ? '.' : 'a';
	snprintf(text + 254, sizeof(text) - 254, ":1");
	ck_assert_int_eq(resolve(text), -EINVAL);
}

IO_TEST(what_is_no_name_is_refused)
{
	static const char *const texts[] = {
		"",
		"name",
		"name:",
		"name:http",
		"name:65536",
		":",
		"a..b:1",
		".a:1",
		".:1",
		"a b:1",
		"a/b:1",
		"1.2.3:1",
		"1.2.3.4.5:1",
		"256.1.1.1:1",
		"a.0x1f:1",
		"127.1:1",
		"::1:80",
		"name:1 ",
		"[name]:1",
		"a.1.:1",
		"0x7f000001:1",
		"b\303\274cher.de:1",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(resolve(texts[i]) == -EINVAL, "%s", texts[i]);
	expect_long_names();
	return 0;
}

IO_TEST(wrong_arguments_are_refused)
{
	struct weft_resolve_opts opts = WEFT_RESOLVE_OPTS_INIT;
	struct weft_addr addr;

	ck_assert_int_eq(weft_resolve(NULL, NULL, &addr, 1), -EINVAL);
	ck_assert_int_eq(weft_resolve("127.0.0.1:1", NULL, NULL, 1), -EINVAL);
	ck_assert_int_eq(weft_resolve("127.0.0.1:1", NULL, &addr, 0), -EINVAL);
	ck_assert_int_eq(resolve_family("127.0.0.1:1", AF_UNIX), -EINVAL);
	opts.reserved[2] = 1;
	ck_assert_int_eq(weft_resolve("127.0.0.1:1", &opts, &addr, 1), -EINVAL);
	opts.reserved[2] = 0;
	opts.size--;
	ck_assert_int_eq(weft_resolve("127.0.0.1:1", &opts, &addr, 1), -EINVAL);
	return 0;
}

IO_TEST(wrong_options_of_the_resolver_are_refused)
{
#ifdef WEFT_WITHOUT_NAMES
	ck_assert_int_eq(weft_resolver_set(NULL), -ENOSYS);
#else
	static const char *const wrong[] = {
		"", ",", "name", "127.0.0.1,", "127.0.0.1:0", "::1", "unix:/x"
	};
	static const char *const right[] = { "127.0.0.1", "127.0.0.1:5353",
					     "[::1]", "[::1]:53,127.0.0.1" };
	struct weft_resolver_opts opts = WEFT_RESOLVER_OPTS_INIT;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		opts.servers = wrong[i];
		ck_assert_msg(weft_resolver_set(&opts) == -EINVAL, "%s",
			      wrong[i]);
	}
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		opts.servers = right[i];
		ck_assert_msg(weft_resolver_set(&opts) == 0, "%s", right[i]);
	}
	ck_assert_int_eq(weft_resolver_set(NULL), 0);
	opts.reserved[3] = 1;
	ck_assert_int_eq(weft_resolver_set(&opts), -EINVAL);
	opts.reserved[3] = 0;
	opts.size = 0;
	ck_assert_int_eq(weft_resolver_set(&opts), -EINVAL);
#endif
	return 0;
}

static int64_t resolve_canceled(void *arg __attribute__((unused)))
{
	ck_assert_int_eq(weft_sleep(WEFT_SEC(3600)), -ECANCELED);
	ck_assert_int_eq(resolve("localhost:1"), -ECANCELED);
	ck_assert_int_eq(resolve("127.0.0.1:1"), -ECANCELED);
	return 0;
}

IO_TEST(cancelled_task_resolves_nothing)
{
	WEFT_SUPERVISE (scope) {
		ck_assert_int_eq(weft_go(scope, resolve_canceled, NULL, 0), 0);
		weft_scope_cancel(scope);
	}
	return 0;
}

#ifdef WEFT_WITHOUT_NAMES
IO_TEST(without_c_ares_names_are_enosys)
{
	ck_assert_int_eq(resolve("localhost:1"), -ENOSYS);
	ck_assert_int_eq(weft_tcp_connect("localhost:1", NULL), -ENOSYS);
	ck_assert_int_eq(weft_tcp_listen("localhost:0", NULL), -ENOSYS);
	ck_assert_int_eq(weft_dial("localhost:1", NULL), -ENOSYS);
	return 0;
}
#endif

START_TEST(outside_a_task_nothing_is_resolved)
{
	ck_assert_int_eq(resolve("127.0.0.1:1"), -EPERM);
	ck_assert_int_eq(resolve("localhost:1"), -EPERM);
	ck_assert_int_eq(weft_resolver_set(NULL), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/resolve");
	TCase *tcase = tcase_create("resolve");

	io_add_test(tcase, address_is_its_own_answer);
	io_add_test(tcase, what_is_no_name_is_refused);
	io_add_test(tcase, wrong_arguments_are_refused);
	io_add_test(tcase, wrong_options_of_the_resolver_are_refused);
	io_add_test(tcase, cancelled_task_resolves_nothing);
#ifdef WEFT_WITHOUT_NAMES
	io_add_test(tcase, without_c_ares_names_are_enosys);
#endif
	tcase_add_test(tcase, outside_a_task_nothing_is_resolved);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
