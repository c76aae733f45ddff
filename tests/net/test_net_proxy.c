/* SPDX-License-Identifier: MIT */
/*
 * The header of the PROXY protocol: what is accepted, what is not, and what is
 * taken from a stream.
 *
 * Headers are compared with texts and bytes of the protocol's document.  Each
 * is also read with every part of it alone, and from streams that get it a byte
 * at a time.
 */
#include <sys/un.h>

#include "tests/support/stream_kit.h"

static const char tcp4[] = "PROXY TCP4 192.0.2.1 198.51.100.9 56324 443\r\n";
static const char tcp6[] = "PROXY TCP6 2001:db8::1 ffff:f::9 65535 0\r\n";
static const char sig[] = "\r\n\r\n\0\r\nQUIT\n";

static struct weft_addr addr_of(const char *text)
{
	struct weft_addr addr;

	EXPECT(weft_addr_parse(text, &addr) == 0);
	return addr;
}

static bool is_addr(const struct weft_addr *addr, const char *text)
{
	struct weft_addr other = addr_of(text);

	return weft_addr_equal(addr, &other);
}

/* No part of it is enough, and what follows is not part of it. */
static struct weft_proxy_header parse_whole(const void *data, size_t bytes)
{
	struct weft_proxy_header header = { .version = 77 };
	char *copy = malloc(bytes + 1);

	EXPECT(copy != NULL);
	for (size_t part = 0; part < bytes; part++) {
		char *exact = malloc(part ? part : 1);

		EXPECT(exact != NULL);
		memcpy(exact, data, part);
		ck_assert_int_eq(weft_proxy_parse(exact, part, &header),
				 -EAGAIN);
		free(exact);
	}
	ck_assert_int_eq(header.version, 77);
	memcpy(copy, data, bytes);
	copy[bytes] = 'x';
	ck_assert_int_eq(weft_proxy_parse(copy, bytes + 1, &header),
			 (ssize_t)bytes);
	free(copy);
	ck_assert_int_eq(weft_proxy_parse(data, bytes, &header),
			 (ssize_t)bytes);
	return header;
}

/* ---- Version 1 ----------------------------------------------------------- */

START_TEST(lines_of_version_1_are_read)
{
	static const char unknown[] = "PROXY UNKNOWN\r\n";
	static const char more[] = "PROXY UNKNOWN ffff:f a b c\r\n";
	struct weft_proxy_header header = parse_whole(tcp4, strlen(tcp4));

	ck_assert_int_eq(header.version, 1);
	ck_assert_int_eq(header.type, SOCK_STREAM);
	ck_assert(!header.local && header.tlvs_bytes == 0);
	ck_assert(is_addr(&header.source, "192.0.2.1:56324"));
	ck_assert(is_addr(&header.target, "198.51.100.9:443"));
	header = parse_whole(tcp6, strlen(tcp6));
	ck_assert(is_addr(&header.source, "[2001:db8::1]:65535"));
	ck_assert(is_addr(&header.target, "[ffff:f::9]:0"));
	header = parse_whole(unknown, strlen(unknown));
	ck_assert_int_eq(weft_addr_family(&header.source), AF_UNSPEC);
	header = parse_whole(more, strlen(more));
	ck_assert_int_eq(header.type, 0);
}
END_TEST

static const char *const bad_lines[] = {
	"GET / HTTP/1.1\r\n",
	"PROXX TCP4",
	"PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
	"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
	"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
	"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r\n",
	"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
	"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
	"PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
	"PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n",
	"PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
	"PROXY TCP4 ::1 ::1 1 2\r\n",
	"PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
	"PROXY TCP6 fe80::1%lo ::1 1 2\r\n",
	"PROXY TCP6 ::1]:1 ::1 1 2\r\n",
	"PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n",
	"PROXY TCP4\r\n",
	"PROXY UNKNOWNS\r\n",
	"PROXY \r\n",
};

START_TEST(other_lines_are_ebadmsg)
{
	struct weft_proxy_header header = { .version = 77 };
	char line[200];

	for (size_t i = 0; i < sizeof(bad_lines) / sizeof(bad_lines[0]); i++)
		ck_assert_msg(weft_proxy_parse(bad_lines[i],
					       strlen(bad_lines[i]),
					       &header) == -EBADMSG,
			      "%s", bad_lines[i]);
	/* 107 bytes are a line, 108 are none. */
	memset(line, 'x', sizeof(line));
	memcpy(line, "PROXY UNKNOWN ", 14);
	memcpy(line + 105, "\r\n", 2);
	ck_assert_int_eq(weft_proxy_parse(line, 106, &header), -EAGAIN);
	ck_assert_int_eq(weft_proxy_parse(line, 107, &header), 107);
	header.version = 77;
	memcpy(line + 105, "x\r\n", 3);
	ck_assert_int_eq(weft_proxy_parse(line, 107, &header), -EBADMSG);
	ck_assert_int_eq(weft_proxy_parse(line, 108, &header), -EBADMSG);
	line[20] = '\0';
	memcpy(line + 30, "\r\n", 2);
	ck_assert_int_eq(weft_proxy_parse(line, 50, &header), -EBADMSG);
	ck_assert_int_eq(header.version, 77);
}
END_TEST

/* A text that no more bytes make a header, though without its last byte they
 * might. */
static void expect_certain(const char *text, size_t bytes)
{
	struct weft_proxy_header header = { .version = 77 };

	ck_assert_msg(weft_proxy_parse(text, bytes - 1, &header) == -EAGAIN,
		      "%s", text);
	ck_assert_msg(weft_proxy_parse(text, bytes, &header) == -EBADMSG, "%s",
		      text);
	ck_assert_int_eq(header.version, 77);
}

START_TEST(lines_are_refused_at_the_first_wrong_byte)
{
	static const char *const texts[] = {
		"PROXX",
		"PROXY  ",
		"PROXY F",
		"PROXY \n",
		"PROXY \r",
		"PROXY TC4",
		"PROXY TCP5",
		"PROXY TCP4\r",
		"PROXY TCP6x",
		"PROXY UNKNOWNS",
		"PROXY UNKNOWN\n",
		"PROXY UNKNOWN\rx",
		"PROXY UNKNOWN x\n",
		"PROXY UNKNOWN x\ry",
		"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
		"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_certain(texts[i], strlen(texts[i]));
	/* NUL is in no line. */
	expect_certain("PROXY ", 7);
	expect_certain("PROXY TCP", 10);
	expect_certain("PROXY TCP6 ::1", 15);
	expect_certain("PROXY UNKNOWN x", 16);
	expect_certain("PROXY UNKNOWN x\r", 17);
}
END_TEST

/* ---- Version 2 ----------------------------------------------------------- */

/* command: the byte behind the signature; what: family and type. */
static size_t make_v2(unsigned char *to, int command, int what,
		      const void *rest, size_t bytes)
{
	memcpy(to, sig, 12);
	to[12] = (unsigned char)command;
	to[13] = (unsigned char)what;
	to[14] = (unsigned char)(bytes >> 8);
	to[15] = (unsigned char)bytes;
	if (bytes)
		memcpy(to + 16, rest, bytes);
	return 16 + bytes;
}

START_TEST(headers_of_version_2_are_read)
{
	unsigned char data[300], rest[216 + 6] = { 192, 0, 2, 1, 198, 51, 100,
						   9,	220, 4, 1, 187 };
	struct weft_proxy_header header;
	struct weft_proxy_tlv tlv;
	size_t at = 0;

	memcpy(rest + 12, "\4\0\3abc\5\0\0", 9);
	header = parse_whole(data, make_v2(data, 0x21, 0x11, rest, 21));
	ck_assert_int_eq(header.version, 2);
	ck_assert_int_eq(header.type, SOCK_STREAM);
	ck_assert(!header.local);
	ck_assert(is_addr(&header.source, "192.0.2.1:56324"));
	ck_assert(is_addr(&header.target, "198.51.100.9:443"));
	ck_assert(weft_proxy_tlv_next(&header, &at, &tlv));
	ck_assert(tlv.type == 4 && tlv.bytes == 3);
	ck_assert_mem_eq(tlv.value, "abc", 3);
	ck_assert(weft_proxy_tlv_next(&header, &at, &tlv));
	ck_assert(tlv.type == 5 && tlv.bytes == 0);
	ck_assert(!weft_proxy_tlv_next(&header, &at, &tlv));

	header = parse_whole(data, make_v2(data, 0x21, 0x12, rest, 12));
	ck_assert_int_eq(header.type, SOCK_DGRAM);
	memset(rest, 0, sizeof(rest));
	rest[15] = 1, rest[31] = 2, rest[33] = 7, rest[35] = 8;
	header = parse_whole(data, make_v2(data, 0x21, 0x21, rest, 36));
	ck_assert(is_addr(&header.source, "[::1]:7"));
	ck_assert(is_addr(&header.target, "[::2]:8"));
	memset(rest, 0, sizeof(rest));
	memcpy(rest, "/run/a", 6);
	memcpy(rest + 108, "\0name", 5);
	header = parse_whole(data, make_v2(data, 0x21, 0x31, rest, 216));
	ck_assert(is_addr(&header.source, "/run/a"));
	ck_assert(is_addr(&header.target, "unix:@name"));
	memset(rest, 'x', 108);
	header = parse_whole(data, make_v2(data, 0x21, 0x31, rest, 216));
	ck_assert_int_eq(weft_addr_sockaddr_bytes(&header.source), 110);
}
END_TEST

/* The rest of a health check counts for nothing. */
START_TEST(health_checks_and_unknown_clients_have_no_address)
{
	unsigned char data[64], rest[] = "0123456789abcdef";
	struct weft_proxy_header header;

	header = parse_whole(data, make_v2(data, 0x20, 0x11, rest, 16));
	ck_assert(header.local);
	ck_assert_int_eq(weft_addr_family(&header.source), AF_UNSPEC);
	header = parse_whole(data, make_v2(data, 0x20, 0xff, rest, 3));
	ck_assert(header.local && header.tlvs_bytes == 0);
	header = parse_whole(data, make_v2(data, 0x20, 0, NULL, 0));
	ck_assert(header.local);
	header = parse_whole(data, make_v2(data, 0x21, 0, "\1\0\1a", 4));
	ck_assert(!header.local && header.type == 0);
	ck_assert_uint_eq(header.tlvs_bytes, 4);
	header = parse_whole(data, make_v2(data, 0x21, 0, rest, 16));
	ck_assert(!header.local && header.tlvs_bytes == 0);
	ck_assert_int_eq(weft_addr_family(&header.target), AF_UNSPEC);
}
END_TEST

static const struct {
	int command, what;
	size_t bytes;
} bad_headers[] = {
	{ 0x11, 0x11, 12 }, { 0x31, 0x11, 12 }, { 0x22, 0x11, 12 },
	{ 0x21, 0x41, 40 }, { 0x21, 0x13, 12 }, { 0x21, 0x10, 12 },
	{ 0x21, 0x01, 12 }, { 0x21, 0x11, 11 }, { 0x21, 0x21, 35 },
	{ 0x21, 0x31, 40 }, { 0x21, 0x11, 13 }, { 0x21, 0x11, 14 },
	{ 0x21, 0x11, 16 },
};

START_TEST(other_headers_are_ebadmsg)
{
	struct weft_proxy_header header = { .version = 77 };
	unsigned char data[64], rest[48];

	/* A field that begins here would be longer than the header. */
	memset(rest, 1, sizeof(rest));
	for (size_t i = 0; i < sizeof(bad_headers) / sizeof(bad_headers[0]);
	     i++) {
		size_t n = make_v2(data, bad_headers[i].command,
				   bad_headers[i].what, rest,
				   bad_headers[i].bytes);

		ck_assert_msg(weft_proxy_parse(data, n, &header) == -EBADMSG,
			      "%zu", i);
	}
	/* A field that is one byte longer than what is left. */
	memcpy(rest + 12, "\1\0\2x", 4);
	ck_assert_int_eq(weft_proxy_parse(data,
					  make_v2(data, 0x21, 0x11, rest, 16),
					  &header),
			 -EBADMSG);
	for (size_t i = 0; i < 12; i++) {
		memcpy(data, sig, 12);
		data[i] ^= 1;
		ck_assert_int_eq(weft_proxy_parse(data, i + 1, &header),
				 -EBADMSG);
	}
	ck_assert_int_eq(header.version, 77);
}
END_TEST

/* Nothing behind the byte, or the length, can mend it. */
START_TEST(headers_are_refused_before_their_body)
{
	static const struct {
		int command, what;
		size_t bytes, certain;
	} bad[] = {
		{ 0x11, 0x11, 12, 13 }, { 0x22, 0x11, 12, 13 },
		{ 0x21, 0x41, 40, 14 }, { 0x21, 0x13, 12, 14 },
		{ 0x21, 0x10, 12, 14 }, { 0x21, 0x01, 12, 14 },
		{ 0x21, 0xff, 40, 14 }, { 0x21, 0x11, 11, 16 },
		{ 0x21, 0x21, 35, 16 }, { 0x21, 0x31, 40, 16 },
	};
	unsigned char data[64], rest[48] = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make_v2(data, bad[i].command, bad[i].what, rest,
			bad[i].bytes);
		expect_certain((const char *)data, bad[i].certain);
	}
}
END_TEST

/* ---- Writing ------------------------------------------------------------- */

static void expect_round(struct weft_proxy_header *header)
{
	struct weft_proxy_header again;
	unsigned char buf[400];
	ssize_t n = weft_proxy_format(header, buf, sizeof(buf));

	ck_assert_int_gt(n, 0);
	for (size_t room = 0; room < (size_t)n; room++)
		ck_assert_int_eq(weft_proxy_format(header, buf, room),
				 -EMSGSIZE);
	ck_assert_int_eq(weft_proxy_parse(buf, (size_t)n, &again), n);
	ck_assert_int_eq(again.version, header->version);
	if (header->version == 2)
		ck_assert_int_eq(again.local, header->local);
	ck_assert(header->local ||
		  (weft_addr_equal(&again.source, &header->source) &&
		   weft_addr_equal(&again.target, &header->target)));
	ck_assert_uint_eq(again.tlvs_bytes, header->tlvs_bytes);
	if (header->tlvs_bytes)
		ck_assert_mem_eq(again.tlvs, header->tlvs, again.tlvs_bytes);
}

START_TEST(written_headers_are_read_back)
{
	static const char *const texts[] = { "1.2.3.4:5", "[::1]:65535",
					     "unix:@name", "/run/a" };
	struct weft_proxy_header header = { .version = 1 };
	char buf[200];

	expect_round(&header);
	for (int i = 0; i < 8; i++) {
		header = (struct weft_proxy_header){
			.version = i < 2 ? 1 : 2,
			.local = i == 7,
			.source = addr_of(texts[i % 4]),
			.target = addr_of(texts[i % 4]),
		};
		expect_round(&header);
		header.tlvs = "\1\0\1a";
		header.tlvs_bytes = 4;
		if (i >= 2)
			expect_round(&header);
	}
	header = (struct weft_proxy_header){
		.version = 1,
		.source = addr_of("192.0.2.1:56324"),
		.target = addr_of("198.51.100.9:443"),
	};
	ck_assert_int_eq(weft_proxy_format(&header, buf, sizeof(buf)),
			 (ssize_t)strlen(tcp4));
	ck_assert_mem_eq(buf, tcp4, strlen(tcp4));
}
END_TEST

static void expect_einval(const struct weft_proxy_header *header)
{
	static char buf[70000];

	ck_assert_int_eq(weft_proxy_format(header, buf, sizeof(buf)), -EINVAL);
}

START_TEST(what_no_header_can_say_is_einval)
{
	static char long_tlv[65536] = { 1, (char)0xff, (char)0xfd };
	const struct weft_proxy_header good = {
		.version = 2,
		.source = addr_of("1.2.3.4:5"),
		.target = addr_of("1.2.3.4:6"),
	};
	struct weft_proxy_header header = good;

	header.version = 3;
	expect_einval(&header);
	header = good;
	header.type = SOCK_SEQPACKET;
	expect_einval(&header);
	header = good;
	header.target = addr_of("[::1]:6");
	expect_einval(&header);
	header = good;
	header.tlvs = long_tlv;
	header.tlvs_bytes = 7;
	expect_einval(&header);
	header.tlvs_bytes = sizeof(long_tlv);
	expect_einval(&header);
	header = good;
	header.version = 1;
	header.type = SOCK_DGRAM;
	expect_einval(&header);
	header.type = 0;
	header.tlvs = "\1\0\1a";
	header.tlvs_bytes = 4;
	expect_einval(&header);
	header.tlvs_bytes = 0;
	header.source = header.target = addr_of("/run/a");
	expect_einval(&header);
}
END_TEST

/* ---- From streams -------------------------------------------------------- */

struct slow {
	int fd;
	const char *bytes;
	size_t count;
};

static int64_t write_slowly(void *arg)
{
	struct slow *slow = *(struct slow **)arg;

	for (size_t i = 0; i < slow->count; i++) {
		EXPECT(weft_write_all(slow->fd, slow->bytes + i, 1, NULL) ==
		       0);
		EXPECT(weft_yield() == 0);
	}
	EXPECT(weft_shutdown(slow->fd, SHUT_WR) == 0);
	return 0;
}

/* From a peer that writes that, and ends. */
static ssize_t read_from(const char *bytes, size_t count, size_t max,
			 size_t rest)
{
	struct weft_proxy_header header = { .version = 77 };
	struct weft_stream stream;
	struct slow slow = { .bytes = bytes, .count = count };
	const void *data;
	ssize_t n = 0;
	char left[300];
	int fds[2];

	socket_pair(fds);
	slow.fd = fds[1];
	weft_stream_init(&stream, fds[0]);
	WEFT_SUPERVISE (scope) {
		kit_go(scope, write_slowly, &slow);
		n = weft_proxy_read(&stream, max, &header);
		EXPECT(n > 0 || header.version == 77);
		if (n > 0)
			weft_stream_skip(&stream, (size_t)n);
		/* Nothing else was taken. */
		EXPECT(weft_stream_read_all(&stream, left, rest, NULL) == 0);
		EXPECT(memcmp(left, bytes + count - rest, rest) == 0);
		EXPECT(weft_stream_peek(&stream, &data) == 0);
	}
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	return n;
}

IO_TEST(stream_gives_the_header_and_nothing_else)
{
	char whole[200], v2[40];
	size_t bytes = strlen(tcp4);

	memcpy(whole, tcp4, bytes);
	memcpy(whole + bytes, "hello", 5);
	EXPECT(read_from(whole, bytes + 5, 4096, 5) == (ssize_t)bytes);
	EXPECT(read_from(whole, bytes, bytes, 0) == (ssize_t)bytes);
	bytes = make_v2((unsigned char *)v2, 0x21, 0x11, "abcdefghijkl", 12);
	memcpy(v2 + bytes, "more", 4);
	EXPECT(read_from(v2, bytes + 4, 4096, 4) == (ssize_t)bytes);
	return 0;
}

IO_TEST(errors_take_nothing_from_the_stream)
{
	char v2[40];
	size_t bytes = make_v2((unsigned char *)v2, 0x21, 0x11,
			       "abcdefghijkl", 12);

	EXPECT(read_from("", 0, 4096, 0) == 0);
	EXPECT(read_from("GET /", 5, 4096, 5) == -EBADMSG);
	EXPECT(read_from(tcp4, 20, 4096, 20) == -ENODATA);
	EXPECT(read_from(tcp4, strlen(tcp4), strlen(tcp4) - 1, strlen(tcp4)) ==
	       -EMSGSIZE);
	EXPECT(read_from(v2, bytes, bytes - 1, bytes) == -EMSGSIZE);
	return 0;
}

/* The rest, which is not waited for, may never come. */
IO_TEST(header_that_is_too_long_is_refused_by_its_length)
{
	struct weft_proxy_header header;
	struct weft_stream stream;
	unsigned char v2[40];
	ssize_t n = 0;
	int fds[2];

	(void)make_v2(v2, 0x21, 0x11, "abcdefghijkl", 12);
	for (int more = 0; more < 2; more++) {
		socket_pair(fds);
		weft_stream_init(&stream, fds[0]);
		EXPECT(write(fds[1], v2, 16) == 16);
		WEFT_WITHIN (more ? WEFT_MS(1) : WEFT_SEC(60))
			n = weft_proxy_read(&stream, 27 + (size_t)more,
					    &header);
		ck_assert_int_eq(n, more ? -ETIMEDOUT : -EMSGSIZE);
		EXPECT(weft_stream_close(&stream) == 0);
		EXPECT(weft_close(fds[1]) == 0);
	}
	return 0;
}

IO_TEST(interrupted_wait_for_a_header_loses_nothing)
{
	struct weft_proxy_header header;
	struct weft_stream stream;
	size_t bytes = strlen(tcp4);
	ssize_t n = 0;
	int fds[2];

	socket_pair(fds);
	weft_stream_init(&stream, fds[0]);
	for (size_t at = 0; at < bytes; at += 10) {
		WEFT_WITHIN (WEFT_US(500))
			n = weft_proxy_read(&stream, 4096, &header);
		EXPECT(n == -ETIMEDOUT);
		EXPECT(write(fds[1], tcp4 + at, at + 10 < bytes ? 10 :
							bytes - at) > 0);
	}
	EXPECT(weft_proxy_read(&stream, 4096, &header) == (ssize_t)bytes);
	EXPECT(is_addr(&header.source, "192.0.2.1:56324"));
	EXPECT(weft_stream_close(&stream) == 0);
	return weft_close(fds[1]);
}

START_TEST(outside_a_task_a_stream_is_eperm)
{
	struct weft_stream stream = WEFT_STREAM_INIT(0);
	struct weft_proxy_header header;

	ck_assert_int_eq(weft_proxy_read(&stream, 10, &header), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/proxy");
	TCase *bytes = tcase_create("bytes");
	TCase *streams = tcase_create("streams");

	tcase_add_test(bytes, lines_of_version_1_are_read);
	tcase_add_test(bytes, other_lines_are_ebadmsg);
	tcase_add_test(bytes, lines_are_refused_at_the_first_wrong_byte);
	tcase_add_test(bytes, headers_of_version_2_are_read);
	tcase_add_test(bytes,
		       health_checks_and_unknown_clients_have_no_address);
	tcase_add_test(bytes, other_headers_are_ebadmsg);
	tcase_add_test(bytes, headers_are_refused_before_their_body);
	tcase_add_test(bytes, written_headers_are_read_back);
	tcase_add_test(bytes, what_no_header_can_say_is_einval);
	io_add_test(streams, stream_gives_the_header_and_nothing_else);
	io_add_test(streams, errors_take_nothing_from_the_stream);
	io_add_test(streams, header_that_is_too_long_is_refused_by_its_length);
	io_add_test(streams, interrupted_wait_for_a_header_loses_nothing);
	tcase_add_test(streams, outside_a_task_a_stream_is_eperm);
	suite_add_tcase(suite, bytes);
	suite_add_tcase(suite, streams);
	return io_tests_run(suite);
}
