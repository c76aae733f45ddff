/* SPDX-License-Identifier: MIT */
/*
 * Names where nsswitch.conf has more sources than files and dns.  This file
 * defines getaddrinfo(3) in the place of the C library.
 */
#include "tests/support/names_kit.h"

static pthread_mutex_t system_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t system_cond = PTHREAD_COND_INITIALIZER;
static int system_calls;
static bool system_may_return;

/* In the place of the C library's: it blocks until the test lets it go. */
int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **ret_info)
{
	static struct sockaddr_in in;
	static struct addrinfo info;

	(void)service;
	(void)hints;
	pthread_mutex_lock(&system_mutex);
	system_calls++;
	pthread_cond_broadcast(&system_cond);
	while (!system_may_return)
		pthread_cond_wait(&system_cond, &system_mutex);
	pthread_mutex_unlock(&system_mutex);
	if (name_is(name, "none"))
		return EAI_NONAME;
	in.sin_family = AF_INET;
	in.sin_addr.s_addr = htonl(0x7f000007);
	info.ai_family = AF_INET;
	info.ai_addr = (struct sockaddr *)&in;
	info.ai_addrlen = sizeof(in);
	*ret_info = &info;
	return 0;
}

void freeaddrinfo(struct addrinfo *info)
{
	(void)info;
}

static int system_called(void)
{
	int calls;

	pthread_mutex_lock(&system_mutex);
	calls = system_calls;
	pthread_mutex_unlock(&system_mutex);
	return calls;
}

static void system_let_go(bool may)
{
	pthread_mutex_lock(&system_mutex);
	system_may_return = may;
	pthread_cond_broadcast(&system_cond);
	pthread_mutex_unlock(&system_mutex);
}

static void nsswitch_write(char *path, const char *text)
{
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	file_write(path, text);
	weft__names_nsswitch_path = path;
}

IO_TEST(other_sources_are_the_systems)
{
	char path[] = "/tmp/weft-nsswitch-XXXXXX";
	int r = 0, calls = system_called();

	nsswitch_write(path, "passwd: files\nhosts: files mdns4 dns\n");
	system_let_go(true);
	expect_first("a.test:5", "127.0.0.7:5");
	ck_assert_int_eq(look_up("none.test:5"), -ENOENT);
	ck_assert_int_eq(system_called(), calls + 2);
	/* A caller's deadline does not wait for it. */
	system_let_go(false);
	do {
		WEFT_WITHIN(WEFT_MS(30))
			r = look_up("b.test:5");
		ck_assert_int_eq(r, -ETIMEDOUT);
	} while (system_called() == calls + 2);
	ck_assert_int_eq(system_called(), calls + 3);
	system_let_go(true);
	ck_assert_int_eq(unlink(path), 0);
	return 0;
}

static bool asks_system(void)
{
	struct weft__names *names = names_here();
	bool asks;

	weft__lock_take(&names->lock);
	asks = names->files.by_system;
	weft__lock_drop(&names->lock);
	return asks;
}

/* No look-up that runs beside the first one takes another source. */
IO_TEST(sources_are_known_before_the_first_look_up)
{
	char path[] = "/tmp/weft-nsswitch-XXXXXX";
	struct weft_resolver_opts opts = WEFT_RESOLVER_OPTS_INIT;
	struct weft__names *names;

	nsswitch_write(path, "hosts: files mdns4 dns\n");
	ck_assert_int_eq(weft__names_get(weft_runtime_self(), &names), 0);
	ck_assert(asks_system());
	opts.servers = "127.0.0.1";
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	ck_assert(!asks_system());
	ck_assert_int_eq(weft_resolver_set(NULL), 0);
	ck_assert(asks_system());
	ck_assert_int_eq(unlink(path), 0);
	return 0;
}

/* A task that has looked, and is late. */
IO_TEST(look_of_older_options_does_not_count)
{
	char path[] = "/tmp/weft-nsswitch-XXXXXX";
	struct weft_resolver_opts opts = WEFT_RESOLVER_OPTS_INIT;
	struct weft__names_files files;
	struct weft__names *names;
	unsigned version;

	nsswitch_write(path, "hosts: files mdns4 dns\n");
	ck_assert_int_eq(weft_resolver_set(NULL), 0);
	names = names_here();
	files = names->files;
	version = names->version;
	ck_assert(files.by_system);
	opts.servers = "127.0.0.1";
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	weft__names_files_set(names, &files, version);
	ck_assert(!asks_system());
	ck_assert_int_eq(unlink(path), 0);
	return 0;
}

static int64_t look_up_task(void *arg)
{
	return look_up(*(const char **)arg);
}

/* A look-up that begins after the options were set does not wait for the
 * system. */
NAMES_TEST(look_up_under_way_is_not_that_of_other_sources)
{
	const char *name = "four.test:1";
	char path[] = "/tmp/weft-nsswitch-XXXXXX";
	struct weft_resolver_opts opts = server_opts(server);
	int calls = system_called();

	nsswitch_write(path, "hosts: files mdns4 dns\n");
	system_let_go(false);
	WEFT_SUPERVISE(askers) {
		ck_assert_int_eq(weft_resolver_set(NULL), 0);
		ck_assert_int_eq(WEFT_GO(askers, look_up_task, name), 0);
		wait_until(system_called() == calls + 1);
		ck_assert_int_eq(weft_resolver_set(&opts), 0);
		WEFT_WITHIN(WEFT_SEC(20))
			expect_first(name, "127.0.0.4:1");
		system_let_go(true);
	}
	ck_assert_int_eq(unlink(path), 0);
}

START_TEST(nsswitch_conf_is_understood)
{
	static const struct {
		const char *text;
		bool wants;
	} cases[] = {
		{ "", false },
		{ "hosts: files dns", false },
		{ "hosts:files dns\n", false },
		{ " hosts:\tdns  files # mdns\n", false },
		{ "hosts: files [!UNAVAIL=return] dns\n", false },
		{ "hosts: files mdns4_minimal [NOTFOUND=return] dns\n", true },
		{ "hosts: files myhostname\n", true },
		{ "hosts: resolve [!UNAVAIL=return] files dns", true },
		{ "#hosts: mdns\nhosts: files\n", false },
		{ "passwd: files systemd\nhosts: files dns\nnetworks: files",
		  false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(weft__names_wants_system(cases[i].text) ==
				      cases[i].wants,
			      "%s", cases[i].text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/names_system");
	TCase *tcase = tcase_create("system");

	io_add_test(tcase, other_sources_are_the_systems);
	io_add_test(tcase, sources_are_known_before_the_first_look_up);
	io_add_test(tcase, look_of_older_options_does_not_count);
	io_add_test(tcase, look_up_under_way_is_not_that_of_other_sources);
	tcase_add_test(tcase, nsswitch_conf_is_understood);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
