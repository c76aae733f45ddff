/* SPDX-License-Identifier: MIT */
/*
 * wget URL... - fetches URLs at the same time, and prints their sizes.
 *
 * Shows	libweft-curl: a task for each transfer of libcurl, with a
 *		deadline; they share connections, at most 8, which is a limit
 *		of libcurl's own.
 * Run		build/examples/wget https://example.org/ http://example.org/
 */
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>
#include <weft/curl.h>
#include <weft/weft.h>

#define DEADLINE_NS WEFT_SEC(30)
#define CONNECTIONS 8L

struct fetch {
	struct weft_curl *curl;
	const char *url;
};

/* Other tasks than the transfer's own may run it, so it does not suspend. */
static size_t drop(char *data, size_t size, size_t count, void *arg)
{
	(void)data, (void)arg;
	return size * count;
}

static const char *why(int r)
{
	return r < 0 ? strerror(-r) : curl_easy_strerror((CURLcode)r);
}

static int64_t fetch(void *arg)
{
	const struct fetch *f = arg;
	CURL *easy = curl_easy_init();
	curl_off_t bytes = 0;
	long status = 0;
	int r = -1;

	if (!easy)
		return -1;
	curl_easy_setopt(easy, CURLOPT_URL, f->url);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
	WEFT_WITHIN (DEADLINE_NS)
		r = weft_curl_perform(f->curl, easy);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
	if (r == 0)
		printf("%ld %8lld %s\n", status, (long long)bytes, f->url);
	else
		fprintf(stderr, "wget: %s: %s\n", f->url, why(r));
	curl_easy_cleanup(easy);
	return r == 0 ? 0 : -1;
}

static int64_t fetch_all(void *arg)
{
	struct fetch f = { NULL, NULL };
	struct weft_scope all;
	int64_t failed;
	int r = weft_curl_open(&f.curl);

	if (r < 0)
		return r;
	curl_multi_setopt(weft_curl_multi(f.curl),
			  CURLMOPT_MAX_TOTAL_CONNECTIONS, CONNECTIONS);
	r = weft_supervisor_begin(&all);
	for (char **url = arg; *url && r == 0; url++) {
		f.url = *url;
		r = WEFT_GO(&all, fetch, f);
	}
	failed = weft_scope_end(&all);
	weft_curl_close(f.curl);
	return r < 0 ? r : failed;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "Usage: wget URL...\n");
		return 2;
	}
	return weft_run(fetch_all, argv + 1, NULL) != 0;
}
