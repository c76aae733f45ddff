/* SPDX-License-Identifier: MIT */
/*
 * Transfers of libcurl whose names are being looked up, on threads of its own.
 * getaddrinfo() is that of the test, which lets it return.
 */
#include <curl/curl.h>
#include <netdb.h>
#include <semaphore.h>
#include <weft/curl.h>

#include "tests/support/io_kit.h"

static sem_t begun, may_return;
static weft__atomic(bool) returned;

int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **ret_info)
{
	(void)name, (void)service, (void)hints, (void)ret_info;
	sem_post(&begun);
	while (sem_wait(&may_return) < 0)
		;
	/* relaxed: a flag of its own. */
	weft__store(&returned, true, relaxed);
	return EAI_NONAME;
}

struct use {
	struct weft_curl *curl;
	CURL *easy;
	int r;
};

static int64_t perform(void *arg)
{
	struct use *use = *(struct use **)arg;

	use->r = weft_curl_perform(use->curl, use->easy);
	return 0;
}

static CURL *make_easy(void)
{
	CURL *easy = curl_easy_init();

	ck_assert_ptr_nonnull(easy);
	curl_easy_setopt(easy, CURLOPT_URL, "http://name.test/");
	return easy;
}

/* Its worker would wait meanwhile, and with the lock, for which all others
 * wait. */
IO_TEST(task_that_leaves_does_not_wait_for_a_look_up)
{
	struct use use = { .easy = make_easy() }, *at = &use;

	ck_assert_int_eq(sem_init(&begun, 0, 0), 0);
	ck_assert_int_eq(sem_init(&may_return, 0, 0), 0);
	ck_assert_int_eq(weft_curl_open(&use.curl), 0);
	WEFT_SUPERVISE (scope) {
		ck_assert_int_eq(WEFT_GO(scope, perform, at), 0);
		wait_until(sem_trywait(&begun) == 0);
		weft_scope_cancel(scope);
	}
	ck_assert_int_eq(use.r, -ECANCELED);
	curl_easy_cleanup(use.easy);
	ck_assert_int_eq(weft_curl_close(use.curl), 0);
	/* relaxed: see above. */
	ck_assert(!weft__load(&returned, relaxed));
	sem_post(&may_return);
	/* relaxed: see above. */
	wait_until(weft__load(&returned, relaxed));
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("adapters/curl/names");
	TCase *tc = tcase_create("names");

	io_add_test(tc, task_that_leaves_does_not_wait_for_a_look_up);
	suite_add_tcase(suite, tc);
	/* CURLOPT_QUICK_EXIT came with 7.87. */
	return LIBCURL_VERSION_NUM < 0x075700 ? 77 : io_tests_run(suite);
}
