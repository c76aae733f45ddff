/* SPDX-License-Identifier: MIT */
/*
 * Socket addresses: which texts parse and which do not, round trips, the length
 * limits of Unix names, and agreement with what the kernel returns.
 */
#include "tests/support/net_addr_kit.h"

/* ---- Parse ------------------------------------------------------------ */

START_TEST(good_texts_parse_and_have_one_form)
{
	struct weft_addr addr;

	must_parse(good[_i].text, &addr);
	ck_assert_int_eq(weft_addr_family(&addr), good[_i].family);
	ck_assert_int_eq(weft_addr_port(&addr), good[_i].port);
	ck_assert_uint_eq(addr.reserved, 0);
	must_format(&addr, good[_i].formatted);
	must_round_trip(&addr);
}
END_TEST

static const char *const bad[] = {
	"", " ", ":", "::", "80", "localhost:80", "a:80", "unix", "unix:",
	"unix:@", "UNIX:/a", " /a", " unix:/a", "@a", "a/b", "./a",
	/* Ports. */
	"1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:4294967376",
	"1.2.3.4:18446744073709551696", "1.2.3.4:080", "1.2.3.4:00",
	"1.2.3.4:+80", "1.2.3.4:-1", "1.2.3.4:0x50", "1.2.3.4:80 ",
	"1.2.3.4: 80", "1.2.3.4:80\n", "1.2.3.4:80a", "1.2.3.4:80:80",
	"1.2.3.4 :80", " 1.2.3.4:80", ":080", ":65536", ": 80", ":80 ", ":a",
	/* IPv4. */
	"1.2.3:80", "1:80", "1.2.3.4.5:80", "1.2.3.256:80", "01.2.3.4:80",
	"1.2.3.04:80", "0x1.2.3.4:80", "1.2.3.:80", "1..3.4:80", "1.2.3.-4:80",
	"1.2.3.4%1:80", "1.2.3.4]:80", "111.111.111.1111:80",
	/* IPv6. */
	"[", "]", "[]", "[]:80", "[:80", "[::1", "[::1]", "[::1]:", "[::1]80",
	"[::1]:65536", "[::1]:080", "[::1]:80 ", "[::1] :80", "[ ::1]:80",
	"[::1 ]:80", " [::1]:80", "[::1]]:80", "[[::1]:80", "[::1]:80]",
	"[::1]x:80", "x[::1]:80", "[:::1]:80", "[1:2:3:4:5:6:7]:80",
	"[1:2:3:4:5:6:7:8:9]:80", "[::g]:80", "[::12345]:80", "[1.2.3.4]:80",
	"[::ffff:1.2.3.04]:80", "::1:80", "::1", "[localhost]:80",
	"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:80",
	/* Scopes. */
	"[fe80::1%]:80", "[fe80::1%0]:80", "[fe80::1%01]:80",
	"[fe80::1%4294967296]:80", "[fe80::1%18446744073709551617]:80",
	"[%1]:80", "[fe80::1%lo:1]:80", "[fe80::1% 1]:80", "[fe80::1%lo ]:80",
	/* Escapes. */
	"unix:\\", "unix:/\\", "unix:/\\x", "unix:/\\x4", "unix:/\\x4g",
	"unix:/\\xg4", "unix:/\\n", "unix:/\\\\", "unix:/\\X41", "unix:@\\0",
	"unix:/a\\x00", "unix:\\x00a", "unix:\\x00",
};

START_TEST(bad_texts_are_einval_and_leave_the_result_alone)
{
	must_fail(bad[_i], -EINVAL);
}
END_TEST

START_TEST(null_pointers_are_einval)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	char text[8] = "before";

	must_fail(NULL, -EINVAL);
	ck_assert_int_eq(weft_addr_parse(":80", NULL), -EINVAL);
	must_not_take(NULL, sizeof(in), -EINVAL);
	ck_assert_int_eq(weft_addr_from_sockaddr((struct sockaddr *)&in,
						 sizeof(in), NULL),
			 -EINVAL);
	ck_assert_int_eq(weft_addr_format(NULL, text, sizeof(text)), -EINVAL);
	ck_assert_str_eq(text, "");
}
END_TEST

/* The longest name of an interface is one byte shorter than IF_NAMESIZE. */
START_TEST(unknown_scope_is_enodev)
{
	must_fail("[fe80::1%nosuchdevice0]:80", -ENODEV);
	must_fail("[fe80::1%a]b]:80", -ENODEV);
	must_fail("[fe80::1%a%b]:80", -ENODEV);
	must_fail("[fe80::1%12345678901234x]:80", -ENODEV);
	must_fail("[fe80::1%12345678901234xy]:80", -ENODEV);
	must_fail("[fe80::1%a-name-that-no-interface-could-have]:80", -ENODEV);
}
END_TEST

/* The syntax is checked first: an interface of an invalid text is never looked
 * up. */
START_TEST(unknown_scope_of_a_bad_address_is_einval)
{
	must_fail("[fe80::g%nosuchdevice0]:80", -EINVAL);
	must_fail("[fe80::1%nosuchdevice0]:080", -EINVAL);
}
END_TEST

START_TEST(scope_by_name_equals_scope_by_index)
{
	unsigned int index = if_nametoindex("lo");
	struct weft_addr by_name, by_index;
	char text[64];

	if (index == 0)
		return;
	snprintf(text, sizeof(text), "[fe80::1%%%u]:80", index);
	must_parse("[fe80::1%lo]:80", &by_name);
	must_parse(text, &by_index);
	ck_assert(weft_addr_equal(&by_name, &by_index));
	must_format(&by_name, text);
}
END_TEST

START_TEST(parsed_bytes_are_what_the_kernel_expects)
{
	struct weft_addr addr;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	must_parse("1.2.3.4:258", &addr);
	ck_assert_uint_eq(weft_addr_sockaddr_bytes(&addr), sizeof(in));
	memcpy(&in, weft_addr_sockaddr(&addr), sizeof(in));
	ck_assert_uint_eq(ntohl(in.sin_addr.s_addr), 0x01020304);
	ck_assert_uint_eq(ntohs(in.sin_port), 258);

	must_parse("[fe80::1%7]:258", &addr);
	ck_assert_uint_eq(weft_addr_sockaddr_bytes(&addr), sizeof(in6));
	memcpy(&in6, weft_addr_sockaddr(&addr), sizeof(in6));
	ck_assert_uint_eq(in6.sin6_addr.s6_addr[0], 0xfe);
	ck_assert_uint_eq(in6.sin6_addr.s6_addr[15], 1);
	ck_assert_uint_eq(in6.sin6_scope_id, 7);
	ck_assert_uint_eq(ntohs(in6.sin6_port), 258);
}
END_TEST

/* ---- Unix names ------------------------------------------------------- */

START_TEST(unix_path_of_the_maximum_fits_and_one_more_does_not)
{
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	struct weft_addr addr;
	const char *path;

	must_parse(long_text("unix:/", 106, 'a'), &addr);
	ck_assert_uint_eq(weft_addr_sockaddr_bytes(&addr), head + 108);
	must_round_trip(&addr);

	/* The length leaves no room for a NUL, but a NUL follows. */
	must_parse(long_text("unix:/", 107, 'a'), &addr);
	ck_assert_uint_eq(weft_addr_sockaddr_bytes(&addr), head + 108);
	path = (const char *)weft_addr_sockaddr(&addr) + head;
	ck_assert_uint_eq(strlen(path), 108);
	must_round_trip(&addr);

	must_fail(long_text("unix:/", 108, 'a'), -ENAMETOOLONG);
	must_fail(long_text("/", 108, 'a'), -ENAMETOOLONG);
	must_fail(long_text("/", 900, 'a'), -ENAMETOOLONG);
}
END_TEST

START_TEST(longest_text_is_one_that_escapes_every_byte)
{
	struct weft_addr addr;
	char text[WEFT_ADDR_TEXT_BYTES];
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	memset(un.sun_path, '\n', sizeof(un.sun_path));
	must_take(&un, sizeof(un), &addr);
	ck_assert_int_eq(weft_addr_format(&addr, text, sizeof(text)),
			 5 + 4 * 108);
	must_round_trip(&addr);
}
END_TEST

START_TEST(abstract_name_has_no_nul_at_its_end)
{
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	struct weft_addr addr;
	const char *name;

	must_parse("unix:@name", &addr);
	ck_assert_uint_eq(weft_addr_sockaddr_bytes(&addr), head + 5);
	name = (const char *)weft_addr_sockaddr(&addr) + head;
	ck_assert_mem_eq(name, "\0name", 5);

	must_parse(long_text("unix:@", 107, 'a'), &addr);
	ck_assert_uint_eq(weft_addr_sockaddr_bytes(&addr), head + 108);
	must_round_trip(&addr);
	must_fail(long_text("unix:@", 108, 'a'), -ENAMETOOLONG);
}
END_TEST

START_TEST(abstract_names_that_differ_in_trailing_nuls_differ)
{
	struct weft_addr a, b, path;

	must_parse("unix:@a", &a);
	must_parse("unix:@a\\x00", &b);
	must_parse("unix:a", &path);
	ck_assert(!weft_addr_equal(&a, &b));
	ck_assert(!weft_addr_equal(&a, &path));
}
END_TEST

START_TEST(addresses_without_a_name_format_but_do_not_parse)
{
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct weft_addr unnamed, empty;

	must_take(&un, head, &unnamed);
	must_take(&un, head + 1, &empty);
	must_format(&unnamed, "unix:");
	must_format(&empty, "unix:@");
	ck_assert(weft_addr_equal(&unnamed, &unnamed));
	ck_assert(!weft_addr_equal(&unnamed, &empty));
	must_fail("unix:", -EINVAL);
	must_fail("unix:@", -EINVAL);
}
END_TEST

/* ---- Format ----------------------------------------------------------- */

START_TEST(truncated_text_ends_in_nul_and_nothing_is_written_behind)
{
	static const char whole[] = "[fe80::1%7]:8080";
	struct weft_addr addr;
	char text[32];
	size_t room, kept, i;

	must_parse(whole, &addr);
	for (room = 0; room < sizeof(text); room++) {
		memset(text, '#', sizeof(text));
		ck_assert_int_eq(weft_addr_format(&addr, text, room),
				 (int)strlen(whole));
		kept = room < sizeof(whole) ? room : sizeof(whole);
		if (room > 0) {
			ck_assert_uint_eq(strlen(text), kept - 1);
			ck_assert_mem_eq(text, whole, kept - 1);
		}
		for (i = kept; i < sizeof(text); i++)
			ck_assert_int_eq(text[i], '#');
	}
	ck_assert_int_eq(weft_addr_format(&addr, NULL, 0), (int)strlen(whole));
}
END_TEST

START_TEST(unknown_family_is_einval_with_an_empty_text)
{
	struct weft_addr addr;
	char text[8] = "before";

	memset(&addr, 0, sizeof(addr));
	ck_assert_int_eq(weft_addr_format(&addr, text, sizeof(text)), -EINVAL);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(weft_addr_family(&addr), AF_UNSPEC);
	ck_assert_int_eq(weft_addr_port(&addr), -EAFNOSUPPORT);
	ck_assert_uint_eq(weft_addr_sockaddr_bytes(&addr), 0);
	addr.storage.ss_family = AF_NETLINK;
	ck_assert_int_eq(weft_addr_format(&addr, text, 0), -EINVAL);
	ck_assert_int_eq(weft_addr_port(&addr), -EAFNOSUPPORT);
}
END_TEST

/* A caller that fills in the struct may get the length wrong. */
START_TEST(unix_address_of_impossible_length_is_einval)
{
	static const socklen_t lengths[] = { 0, 1, 111, 128, 129, UINT32_MAX };
	struct weft_addr addr;
	char text[WEFT_ADDR_TEXT_BYTES];

	must_parse("unix:@a", &addr);
	addr.bytes = lengths[_i];
	ck_assert_int_eq(weft_addr_format(&addr, text, sizeof(text)), -EINVAL);
}
END_TEST

/* ---- Sockaddr --------------------------------------------------------- */

START_TEST(sockaddr_of_wrong_length_or_family_is_refused)
{
	struct sockaddr_storage storage;

	memset(&storage, 0, sizeof(storage));
	must_not_take(&storage, sizeof(storage), -EAFNOSUPPORT);
	storage.ss_family = AF_NETLINK;
	must_not_take(&storage, sizeof(storage), -EAFNOSUPPORT);
	storage.ss_family = AF_INET;
	must_not_take(&storage, 0, -EINVAL);
	must_not_take(&storage, 1, -EINVAL);
	must_not_take(&storage, 2, -EINVAL);
	must_not_take(&storage, sizeof(struct sockaddr_in) - 1, -EINVAL);
	storage.ss_family = AF_INET6;
	must_not_take(&storage, sizeof(struct sockaddr_in6) - 1, -EINVAL);
	storage.ss_family = AF_UNIX;
	must_not_take(&storage, sizeof(storage), -EINVAL);
	must_not_take(&storage, 111, -EINVAL);
	memset((char *)&storage + 2, 'a', 120);
	must_not_take(&storage, 111, -EINVAL);
}
END_TEST

START_TEST(sockaddr_is_brought_into_one_form)
{
	struct weft_addr parsed, taken;
	struct sockaddr_storage storage;
	struct sockaddr_un un;
	struct sockaddr_in in;

	/* Random padding, and a length beyond the end. */
	memset(&in, 0xa5, sizeof(in));
	in.sin_family = AF_INET;
	in.sin_port = htons(80);
	in.sin_addr.s_addr = htonl(0x01020304);
	memset(&storage, 0xa5, sizeof(storage));
	memcpy(&storage, &in, sizeof(in));
	must_take(&storage, sizeof(storage), &taken);
	must_parse("1.2.3.4:80", &parsed);
	ck_assert_mem_eq(&taken, &parsed, sizeof(taken));

	/* A path with other bytes behind its NUL, or without a NUL. */
	memset(&un, 0xa5, sizeof(un));
	un.sun_family = AF_UNIX;
	memcpy(un.sun_path, "/a", 3);
	must_parse("/a", &parsed);
	must_take(&un, sizeof(un), &taken);
	ck_assert_mem_eq(&taken, &parsed, sizeof(taken));
	must_take(&un, offsetof(struct sockaddr_un, sun_path) + 2, &taken);
	ck_assert_mem_eq(&taken, &parsed, sizeof(taken));
}
END_TEST

START_TEST(sockaddr_may_be_unaligned_or_lie_in_the_result)
{
	struct weft_addr addr, parsed;
	char raw[1 + sizeof(struct sockaddr_in6)];

	must_parse("[fe80::1%7]:80", &parsed);
	memcpy(raw + 1, weft_addr_sockaddr(&parsed), sizeof(raw) - 1);
	must_take(raw + 1, sizeof(raw) - 1, &addr);
	ck_assert(weft_addr_equal(&addr, &parsed));
	must_take(&addr, weft_addr_sockaddr_bytes(&addr), &addr);
	ck_assert(weft_addr_equal(&addr, &parsed));
}
END_TEST

/* ---- Equal ------------------------------------------------------------ */

/* All pairs of these differ, and each equals itself. */
START_TEST(equal_means_family_host_port_and_scope)
{
	static const char *const texts[] = {
		"1.2.3.4:80", "1.2.3.4:81", "1.2.3.5:80",
		"[::ffff:1.2.3.4]:80", "[fe80::1]:80", "[fe80::1%1]:80",
		"[fe80::1%2]:80", "[fe80::1%2]:81", "[fe80::2%2]:80", "/a",
		"/ab", "unix:a", "unix:@a", "unix:@ab", "unix:\\x40a",
	};
	struct weft_addr a, b;
	size_t i, j;

	for (i = 0; i < COUNT_OF(texts); i++) {
		must_parse(texts[i], &a);
		for (j = 0; j < COUNT_OF(texts); j++) {
			must_parse(texts[j], &b);
			ck_assert_msg(weft_addr_equal(&a, &b) == (i == j),
				      "%s %s", texts[i], texts[j]);
		}
	}
}
END_TEST

START_TEST(flow_label_is_kept_but_not_compared)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct weft_addr plain, labelled;

	must_take(&in6, sizeof(in6), &plain);
	in6.sin6_flowinfo = htonl(0x12345);
	must_take(&in6, sizeof(in6), &labelled);
	ck_assert(weft_addr_equal(&plain, &labelled));
	ck_assert_mem_eq(weft_addr_sockaddr(&labelled), &in6, sizeof(in6));
}
END_TEST

/* ---- Suite ------------------------------------------------------------ */

static void parse_tests(Suite *suite)
{
	TCase *tcase = tcase_create("parse");

	tcase_add_loop_test(tcase, good_texts_parse_and_have_one_form, 0,
			    (int)COUNT_OF(good));
	tcase_add_loop_test(tcase,
			    bad_texts_are_einval_and_leave_the_result_alone, 0,
			    (int)COUNT_OF(bad));
	tcase_add_test(tcase, null_pointers_are_einval);
	tcase_add_test(tcase, unknown_scope_is_enodev);
	tcase_add_test(tcase, unknown_scope_of_a_bad_address_is_einval);
	tcase_add_test(tcase, scope_by_name_equals_scope_by_index);
	tcase_add_test(tcase, parsed_bytes_are_what_the_kernel_expects);
	suite_add_tcase(suite, tcase);
}

static void unix_tests(Suite *suite)
{
	TCase *tcase = tcase_create("unix");

	tcase_add_test(tcase,
		       unix_path_of_the_maximum_fits_and_one_more_does_not);
	tcase_add_test(tcase, longest_text_is_one_that_escapes_every_byte);
	tcase_add_test(tcase, abstract_name_has_no_nul_at_its_end);
	tcase_add_test(tcase,
		       abstract_names_that_differ_in_trailing_nuls_differ);
	tcase_add_test(tcase,
		       addresses_without_a_name_format_but_do_not_parse);
	suite_add_tcase(suite, tcase);
}

static void sockaddr_tests(Suite *suite)
{
	TCase *tcase = tcase_create("format");

	tcase_add_test(
		tcase,
		truncated_text_ends_in_nul_and_nothing_is_written_behind);
	tcase_add_test(tcase, unknown_family_is_einval_with_an_empty_text);
	tcase_add_loop_test(tcase, unix_address_of_impossible_length_is_einval,
			    0, 6);
	suite_add_tcase(suite, tcase);

	tcase = tcase_create("sockaddr");
	tcase_add_test(tcase, sockaddr_of_wrong_length_or_family_is_refused);
	tcase_add_test(tcase, sockaddr_is_brought_into_one_form);
	tcase_add_test(tcase, sockaddr_may_be_unaligned_or_lie_in_the_result);
	tcase_add_test(tcase, equal_means_family_host_port_and_scope);
	tcase_add_test(tcase, flow_label_is_kept_but_not_compared);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("net/addr");
	SRunner *runner;
	int failed;

	parse_tests(suite);
	unix_tests(suite);
	sockaddr_tests(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
