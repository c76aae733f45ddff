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

IO_TEST(other_sources_are_the_systems)
{
	char path[] = "/tmp/weft-nsswitch-XXXXXX";
	int fd = mkstemp(path), r = 0, calls = system_called();

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	file_write(path, "passwd: files\nhosts: files mdns4 dns\n");
	weft__names_nsswitch_path = path;
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
	tcase_add_test(tcase, nsswitch_conf_is_understood);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
