/* SPDX-License-Identifier: MIT */
/*
 * Names of a hosts file, which weft reads once for each of its versions.  This
 * file defines fopen(3), with which c-ares opens its files.
 */
#include <sys/inotify.h>

#include "tests/support/errno_now.h"
#include "tests/support/names_kit.h"

static int hosts_opened; /* by c-ares */

static FILE *open_counted(const char *path, const char *mode)
{
	int fd = open(path,
		      mode[0] == 'r' ? O_RDONLY | O_CLOEXEC :
				       O_WRONLY | O_CREAT | O_CLOEXEC,
		      0666);

	if (strcmp(path, "/etc/hosts") == 0)
		hosts_opened++;
	return fd < 0 ? NULL : fdopen(fd, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	return open_counted(path, mode);
}

#ifdef __GLIBC__
/* The one above is fopen64(): meson sets _FILE_OFFSET_BITS. */
FILE *open_plain(const char *path, const char *mode) __asm__("fopen");

FILE *open_plain(const char *path, const char *mode)
{
	return open_counted(path, mode);
}
#endif

/* Makes a file the hosts file. */
static void hosts_make(char *path, const char *text)
{
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	file_write(path, text);
	weft__names_hosts_path = path;
	ck_assert_int_eq(weft_resolver_set(NULL), 0);
}

static void hosts_end(struct server *server, const char *path)
{
	struct weft_resolver_opts opts = server_opts(server);

	ck_assert_int_eq(unlink(path), 0);
	weft__names_hosts_path = "/etc/hosts";
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
}

static void server_use(struct server *server)
{
	struct weft_resolver_opts opts = server_opts(server);

	ck_assert_int_eq(weft_resolver_set(&opts), 0);
}

NAMES_TEST(names_of_the_file_are_known)
{
	static const char *const cases[][2] = {
		{ "one.test:1", "127.1.1.1:1" },
		{ "alias:2", "127.1.1.1:2" },
		{ "ALIAS:2", "127.1.1.1:2" },
		{ "other.:2", "127.1.1.1:2" },
		{ "capital.test:3", "127.1.1.2:3" },
		{ "six.test:4", "[fd12::1]:4" },
		{ "crlf.test:5", "127.1.1.3:5" },
		{ "behind.test:5", "127.1.1.3:5" },
		{ "last.test:6", "127.1.1.4:6" },
	};
	char path[] = "/tmp/weft-hosts-XXXXXX";

	hosts_make(path, "# 127.9.9.9 one.test\n\n"
			 "127.1.1.1\tone.test alias   other#comment\n"
			 "  127.1.1.2 Capital.TEST\n"
			 "not.an.address bad.test\n127.1.1.5\n"
			 "fd12::1 six.test\n"
			 "127.1.1.3 crlf.test \t behind.test \r\n"
			 "127.1.1.4 last.test");
	server_use(server);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_first(cases[i][0], cases[i][1]);
	ck_assert_int_eq(server_asked(server, NULL), 0);
	/* All else is asked. */
	expect_first("bad.test:1", "127.0.0.4:1");
	expect_first("comment:1", "127.0.0.4:1");
	expect_first("one:1", "127.0.0.4:1");
	hosts_end(server, path);
}

NAMES_TEST(name_has_the_addresses_of_all_its_lines)
{
	struct weft_resolve_opts opts = WEFT_RESOLVE_OPTS_INIT;
	char path[] = "/tmp/weft-hosts-XXXXXX", text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addrs[4];

	hosts_make(path, "127.1.1.2 many.test\n::1 many.test\n"
			 "127.1.1.3 not.test\n127.1.1.1 x many.test\n"
			 "127.1.1.4 v4.test\n");
	server_use(server);
	opts.family = AF_INET;
	ck_assert_int_eq(weft_resolve("many.test:7", &opts, addrs, 4), 2);
	weft_addr_format(&addrs[0], text, sizeof(text));
	ck_assert_str_eq(text, "127.1.1.2:7");
	weft_addr_format(&addrs[1], text, sizeof(text));
	ck_assert_str_eq(text, "127.1.1.1:7");
	ck_assert_int_eq(weft_resolve("many.test:7", NULL, addrs, 4), 3);
	ck_assert_int_eq(server_asked(server, NULL), 0);
	/* A family that the file does not have is asked for. */
	opts.family = AF_INET6;
	ck_assert_int_eq(weft_resolve("v4.test:7", &opts, addrs, 4), -ENODATA);
	ck_assert_int_eq(server_asked(server, NULL), 1);
	hosts_end(server, path);
}

NAMES_TEST(localhost_needs_no_file)
{
	struct weft_resolve_opts opts = WEFT_RESOLVE_OPTS_INIT;
	struct weft_addr addrs[4];

	weft__names_hosts_path = "/nonexistent/hosts";
	server_use(server);
	ck_assert_int_eq(weft_resolve("localhost:1", NULL, addrs, 4), 2);
	ck_assert_int_eq(weft_resolve("localhost.:1", NULL, addrs, 1), 1);
	opts.family = AF_INET6;
	ck_assert_int_eq(weft_resolve("a.localhost:1", &opts, addrs, 4), 1);
	ck_assert_int_eq(server_asked(server, NULL), 0);
	expect_first("notlocalhost:1", "127.0.0.4:1");
	weft__names_hosts_path = "/etc/hosts";
}

/* Reads the events that an inotify descriptor has; returns their number. */
static int events_count(int fd)
{
	union {
		struct inotify_event event;
		char bytes[4096];
	} room;
	ssize_t n = read(fd, &room, sizeof(room));

	if (n < 0)
		ck_assert_int_eq(errno_now(), EAGAIN);
	return n < 0 ? 0 : (int)(n / (ssize_t)sizeof(struct inotify_event));
}

NAMES_TEST(file_is_read_once_for_each_version)
{
	char path[] = "/tmp/weft-hosts-XXXXXX", name[32];
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), opened;

	ck_assert_int_ge(fd, 0);
	hosts_make(path, "127.1.1.1 one.test\n");
	server_use(server);
	ck_assert_int_ge(inotify_add_watch(fd, path, IN_OPEN), 0);
	expect_first("one.test:1", "127.1.1.1:1");
	ck_assert_int_eq(events_count(fd), 1);
	opened = hosts_opened;
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "n%d.test:1", i);
		expect_first(name, "127.0.0.4:1");
		expect_first("one.test:1", "127.1.1.1:1");
		ck_assert_int_eq(look_up("localhost:1"), 1);
	}
	ck_assert_int_eq(events_count(fd), 0);
	ck_assert_int_eq(hosts_opened, opened);
	file_write(path, "127.1.1.22 one.test\n");
	(void)events_count(fd);
	ck_assert_int_eq(weft_sleep(WEFT_MS(1100)), 0);
	expect_first("one.test:1", "127.1.1.22:1");
	ck_assert_int_eq(events_count(fd), 1);
	ck_assert_int_eq(weft_close(fd), 0);
	hosts_end(server, path);
}

/* More than what is read between two pauses, and than the first buckets. */
NAMES_TEST(large_file_is_known_in_full)
{
	enum { LINES = 5000, LINE_BYTES = 40 };
	char path[] = "/tmp/weft-hosts-XXXXXX", name[32], address[32];
	char *text = malloc(LINES * LINE_BYTES);
	size_t at = 0;

	ck_assert_ptr_nonnull(text);
	for (int i = 0; i < LINES; i++)
		at += (size_t)snprintf(text + at, LINE_BYTES,
				       "127.2.%d.%d name-%d.test\n", i / 250,
				       i % 250, i);
	hosts_make(path, text);
	free(text);
	server_use(server);
	for (int i = 0; i < LINES; i += 41) {
		snprintf(name, sizeof(name), "name-%d.test:1", i);
		snprintf(address, sizeof(address), "127.2.%d.%d:1", i / 250,
			 i % 250);
		expect_first(name, address);
	}
	ck_assert_int_eq(server_asked(server, NULL), 0);
	hosts_end(server, path);
}

int main(void)
{
	Suite *suite = suite_create("net/names_hosts");
	TCase *tcase = tcase_create("hosts");

	io_add_test(tcase, names_of_the_file_are_known);
	io_add_test(tcase, name_has_the_addresses_of_all_its_lines);
	io_add_test(tcase, localhost_needs_no_file);
	io_add_test(tcase, file_is_read_once_for_each_version);
	io_add_test(tcase, large_file_is_known_in_full);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
