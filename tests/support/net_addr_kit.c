/* SPDX-License-Identifier: MIT */
#include "tests/support/net_addr_kit.h"

void must_parse(const char *text, struct weft_addr *addr)
{
	int r = weft_addr_parse(text, addr);

	ck_assert_msg(r == 0, "\"%s\": %d", text, r);
}

void must_format(const struct weft_addr *addr, const char *expected)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int r = weft_addr_format(addr, text, sizeof(text));

	ck_assert_str_eq(text, expected);
	ck_assert_int_eq(r, (int)strlen(expected));
}

void must_round_trip(const struct weft_addr *addr)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr again;
	int r = weft_addr_format(addr, text, sizeof(text));

	ck_assert_int_gt(r, 0);
	ck_assert_int_lt(r, WEFT_ADDR_TEXT_BYTES);
	ck_assert_uint_eq(strlen(text), (size_t)r);
	must_parse(text, &again);
	ck_assert_msg(weft_addr_equal(addr, &again), "\"%s\"", text);
	ck_assert(weft_addr_equal(&again, addr));
	must_format(&again, text);
}

void must_fail(const char *text, int error)
{
	struct weft_addr addr, before;
	int r;

	memset(&before, 0xa5, sizeof(before));
	addr = before;
	r = weft_addr_parse(text, &addr);
	ck_assert_msg(r == error, "\"%s\": %d, not %d", text, r, error);
	ck_assert_mem_eq(&addr, &before, sizeof(addr));
}

void must_not_take(const void *sockaddr, size_t bytes, int error)
{
	struct weft_addr addr, before;

	memset(&before, 0xa5, sizeof(before));
	addr = before;
	ck_assert_int_eq(weft_addr_from_sockaddr(sockaddr, (socklen_t)bytes,
						 &addr),
			 error);
	ck_assert_mem_eq(&addr, &before, sizeof(addr));
}

void must_take(const void *sockaddr, size_t bytes, struct weft_addr *addr)
{
	ck_assert_int_eq(
		weft_addr_from_sockaddr(sockaddr, (socklen_t)bytes, addr), 0);
}

const char *long_text(const char *head, size_t count, char c)
{
	static char text[1024];
	size_t at = strlen(head);

	ck_assert_uint_lt(at + count, sizeof(text));
	memcpy(text, head, at);
	memset(text + at, c, count);
	text[at + count] = '\0';
	return text;
}
