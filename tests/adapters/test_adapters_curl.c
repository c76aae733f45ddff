/* SPDX-License-Identifier: MIT */
/*
 * Transfers of libcurl in tasks, from a server over HTTP that is made of tasks
 * of the test: it answers when the test wants it to, or never.
 */
#include <curl/curl.h>
#include <weft/curl.h>

#include <sys/syscall.h>

#include "tests/support/child_kit.h"
#include "tests/support/io_future.h"
#include "tests/support/needs.h"
#include "tests/support/poor_kit.h"
#include "tests/support/refuse_calls.h"

/* ---- The server ---- */

struct scene {
	struct weft_curl *curl;
	char address[WEFT_ADDR_TEXT_BYTES];
	int listener;
	unsigned connections; /* so far; atomic */
	unsigned requests;    /* so far; atomic */
	struct weft_event answers; /* lets /later be answered */
	struct weft_scope *scope;
};

static char byte_at(size_t at)
{
	return (char)('a' + at % 23);
}

static int send_body(struct weft_stream *stream, size_t bytes)
{
	char text[4096];
	int r, n = snprintf(text, sizeof(text),
			    "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
			    bytes);

	r = weft_stream_put(stream, text, (size_t)n);
	for (size_t at = 0; at < bytes && r == 0;) {
		size_t some = 0;

		for (; some < sizeof(text) && at < bytes; some++)
			text[some] = byte_at(at++);
		r = weft_stream_put(stream, text, some);
	}
	return r;
}

/* GET /BYTES, /later: 10 bytes when the test wants, /never: no answer, /half:
 * the stream ends in the body. */
static int answer(struct scene *scene, struct weft_stream *stream,
		  const char *path)
{
	static const char half[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";

	if (strncmp(path, "/half ", 6) == 0) {
		(void)weft_stream_put(stream, half, sizeof(half) - 1);
		return -ENODATA;
	}
	if (strncmp(path, "/never ", 7) == 0)
		return weft_sleep(WEFT_SEC(3600));
	if (strncmp(path, "/later ", 7) == 0) {
		int r = weft_event_wait(&scene->answers);

		return r < 0 ? r : send_body(stream, 10);
	}
	return send_body(stream, strtoul(path + 1, NULL, 10));
}

struct peer {
	struct scene *scene;
	int fd;
};

static int64_t serve(void *arg)
{
	struct peer *peer = arg;
	struct weft_stream stream = WEFT_STREAM_INIT(peer->fd);
	const void *data;
	char request[1024];
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = weft_stream_until(&stream, "\r\n\r\n", 4, 1024,
						&data)) > 0) {
		memcpy(request, data, (size_t)n);
		request[n - 1] = '\0';
		weft_stream_skip(&stream, (size_t)n);
		__atomic_add_fetch(&peer->scene->requests, 1,
				   __ATOMIC_RELAXED);
		r = answer(peer->scene, &stream, request + strlen("GET "));
	}
	return weft_stream_close(&stream);
}

static int64_t accept_all(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	struct peer peer = { .scene = scene };

	while ((peer.fd = weft_accept(scene->listener, NULL)) >= 0) {
		__atomic_add_fetch(&scene->connections, 1, __ATOMIC_RELAXED);
		if (WEFT_GO(scene->scope, serve, peer) < 0)
			weft_close(peer.fd);
	}
	return 0;
}

static unsigned count_of(const unsigned *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void scene_begin(struct scene *scene, struct weft_scope *scope)
{
	*scene = (struct scene){ .scope = scope };
	scene->listener = tcp_listener(scene->address);
	ck_assert_int_eq(weft_curl_open(&scene->curl), 0);
	ck_assert_int_eq(WEFT_GO(scope, accept_all, scene), 0);
}

static void scene_end(struct scene *scene)
{
	ck_assert_int_eq(weft_curl_close(scene->curl), 0);
	weft_scope_cancel(scene->scope);
	ck_assert_int_eq(weft_close(scene->listener), 0);
}

/* ---- Transfers ---- */

struct body {
	size_t bytes;
	bool wrong;
};

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	struct body *body = arg;

	for (size_t i = 0; i < size * count; i++)
		body->wrong |= data[i] != byte_at(body->bytes++);
	return size * count;
}

static CURL *make_easy(struct scene *scene, const char *path,
		       struct body *body)
{
	CURL *easy = curl_easy_init();
	char url[WEFT_ADDR_TEXT_BYTES + 64];

	ck_assert_ptr_nonnull(easy);
	snprintf(url, sizeof(url), "http://%s%s", scene->address, path);
	*body = (struct body){ 0 };
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
	return easy;
}

struct getter {
	struct scene *scene;
	char path[32];
	size_t bytes;
	weft_nsec within_ns;
};

static int64_t get(void *arg)
{
	struct getter *getter = arg;
	struct body body;
	CURL *easy = make_easy(getter->scene, getter->path, &body);
	int r = 0;

	WEFT_WITHIN (getter->within_ns)
		r = weft_curl_perform(getter->scene->curl, easy);
	curl_easy_cleanup(easy);
	if (r == 0) {
		ck_assert_uint_eq(body.bytes, getter->bytes);
		ck_assert(!body.wrong);
	}
	return r;
}

static struct weft_task start_get(struct weft_scope *scope, struct scene *scene,
				  const char *path, size_t bytes,
				  weft_nsec within_ns)
{
	struct getter getter = { scene, "", bytes, within_ns };

	snprintf(getter.path, sizeof(getter.path), "%s", path);
	return start(scope, get, 0, &getter, sizeof(getter));
}

IO_TEST(transfers_reuse_a_connection)
{
	static const size_t sizes[] = { 0, 1, 4096, 3000000 };

	WEFT_SUPERVISE (scope) {
		struct scene scene;

		scene_begin(&scene, scope);
		for (int i = 0; i < 8; i++) {
			struct getter getter = { &scene, "", sizes[i % 4],
						 WEFT_NEVER };

			snprintf(getter.path, sizeof(getter.path), "/%zu",
				 getter.bytes);
			ck_assert_int_eq(get(&getter), 0);
		}
		ck_assert_uint_eq(count_of(&scene.connections), 1);
		scene_end(&scene);
	}
	return 0;
}

static int64_t get_many(void *arg)
{
	struct getter *getter = arg;

	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(get(getter), 0);
	return 0;
}

/* The limit is libcurl's: transfers beyond it wait in its queue. */
IO_TEST(many_tasks_share_few_connections)
{
	enum { TASKS = 100, CONNECTIONS = 8 };

	WEFT_SUPERVISE (scope) {
		struct scene scene;

		scene_begin(&scene, scope);
		curl_multi_setopt(weft_curl_multi(scene.curl),
				  CURLMOPT_MAX_TOTAL_CONNECTIONS,
				  (long)CONNECTIONS);
		WEFT_SUPERVISE (getters)
			for (int i = 0; i < TASKS; i++) {
				struct getter getter = { &scene, "/20000",
							 20000, WEFT_NEVER };

				ck_assert_int_eq(WEFT_GO(getters, get_many,
							 getter),
						 0);
			}
		ck_assert_uint_le(count_of(&scene.connections), CONNECTIONS);
		ck_assert_uint_eq(count_of(&scene.requests), 5 * TASKS);
		scene_end(&scene);
	}
	return 0;
}

IO_TEST(errors_are_those_of_libcurl)
{
	WEFT_SUPERVISE (scope) {
		struct scene scene;
		struct body body;
		CURL *easy;

		scene_begin(&scene, scope);
		easy = make_easy(&scene, "/half", &body);
		ck_assert_int_eq(weft_curl_perform(scene.curl, easy),
				 CURLE_PARTIAL_FILE);
		curl_easy_setopt(easy, CURLOPT_URL, "nosuch://x/");
		ck_assert_int_eq(weft_curl_perform(scene.curl, easy),
				 CURLE_UNSUPPORTED_PROTOCOL);
		curl_easy_cleanup(easy);
		scene_end(&scene);
	}
	return 0;
}

/* libcurl's own time is kept, too. */
IO_TEST(timeout_of_the_handle_ends_the_transfer)
{
	WEFT_SUPERVISE (scope) {
		struct scene scene;
		struct body body;
		CURL *easy;

		scene_begin(&scene, scope);
		easy = make_easy(&scene, "/never", &body);
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30L);
		ck_assert_int_eq(weft_curl_perform(scene.curl, easy),
				 CURLE_OPERATION_TIMEDOUT);
		curl_easy_cleanup(easy);
		scene_end(&scene);
	}
	return 0;
}

/* ---- Interruptions ---- */

/* The first task drives, and is cancelled; another one drives from then on. */
IO_TEST(task_that_leaves_gives_up_one_transfer_alone)
{
	WEFT_SUPERVISE (scope) {
		struct scene scene;
		struct weft_task first, second, third;

		scene_begin(&scene, scope);
		first = start_get(scope, &scene, "/never", 0, WEFT_NEVER);
		wait_until(count_of(&scene.requests) == 1);
		second = start_get(scope, &scene, "/later", 10, WEFT_NEVER);
		third = start_get(scope, &scene, "/never", 0, WEFT_MS(50));
		wait_until(count_of(&scene.requests) >= 2);
		ck_assert_int_eq(weft_cancel(first), 0);
		ck_assert_int_eq(join(first), -ECANCELED);
		ck_assert_int_eq(join(third), -ETIMEDOUT);
		weft_event_set(&scene.answers);
		ck_assert_int_eq(join(second), 0);
		scene_end(&scene);
	}
	return 0;
}

/* It is the user's again, as it was. */
IO_TEST(handle_is_used_again_after_an_interruption)
{
	WEFT_SUPERVISE (scope) {
		struct scene scene;
		struct body body;
		char *mine = NULL;
		CURL *easy;
		int r = 0;

		scene_begin(&scene, scope);
		easy = make_easy(&scene, "/later", &body);
		curl_easy_setopt(easy, CURLOPT_PRIVATE, "mine");
		WEFT_WITHIN (0)
			r = weft_curl_perform(scene.curl, easy);
		ck_assert_int_eq(r, -ETIMEDOUT);
		ck_assert_uint_eq(count_of(&scene.connections), 0);
		WEFT_WITHIN (WEFT_MS(20))
			r = weft_curl_perform(scene.curl, easy);
		ck_assert_int_eq(r, -ETIMEDOUT);
		weft_event_set(&scene.answers);
		ck_assert_int_eq(weft_curl_perform(scene.curl, easy), 0);
		ck_assert_uint_eq(body.bytes, 10);
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, &mine);
		ck_assert_str_eq(mine, "mine");
		curl_easy_cleanup(easy);
		scene_end(&scene);
	}
	return 0;
}

static int64_t get_with_deadlines(void *arg)
{
	struct getter *getter = arg;

	for (int i = 0; i < 30; i++) {
		int64_t r;

		getter->within_ns = i % 2 ? WEFT_NEVER : WEFT_US(100 * i);
		r = get(getter);
		ck_assert_msg(r == 0 || (r == -ETIMEDOUT && i % 2 == 0),
			      "%lld", (long long)r);
	}
	return 0;
}

IO_TEST(tasks_that_give_up_leave_the_others_their_transfers)
{
	WEFT_SUPERVISE (scope) {
		struct scene scene;

		scene_begin(&scene, scope);
		WEFT_SUPERVISE (getters)
			for (int i = 0; i < 30; i++) {
				struct getter getter = { &scene, "/30000",
							 30000, WEFT_NEVER };

				ck_assert_int_eq(WEFT_GO(getters,
							 get_with_deadlines,
							 getter),
						 0);
			}
		scene_end(&scene);
	}
	return 0;
}

/* ---- Refusals ---- */

struct use {
	struct scene *scene;
	CURL *easy;
};

static int64_t perform(void *arg)
{
	struct use *use = arg;

	return weft_curl_perform(use->scene->curl, use->easy);
}

IO_TEST(what_is_in_use_is_refused)
{
	ck_assert_int_eq(weft_curl_close(NULL), 0);
	WEFT_SUPERVISE (scope) {
		struct scene scene;
		struct body body;
		struct use use = { .scene = &scene };
		struct weft_task task;

		scene_begin(&scene, scope);
		use.easy = make_easy(&scene, "/later", &body);
		ck_assert_int_eq(weft_curl_perform(scene.curl, NULL), -EINVAL);
		task = start(scope, perform, 0, &use, sizeof(use));
		wait_until(count_of(&scene.requests) == 1);
		ck_assert_int_eq(weft_curl_perform(scene.curl, use.easy),
				 -EBUSY);
		ck_assert_int_eq(weft_curl_close(scene.curl), -EBUSY);
		weft_event_set(&scene.answers);
		ck_assert_int_eq(join(task), 0);
		curl_easy_cleanup(use.easy);
		scene_end(&scene);
	}
	return 0;
}

static int64_t poll_perform(void *arg)
{
	struct use *use = *(struct use **)arg;

	ck_assert_int_eq(perform(use), -EPERM);
	ck_assert_int_eq(weft_curl_close(use->scene->curl), -EPERM);
	return 0;
}

static void *in_a_thread(void *arg)
{
	(void)poll_perform(&arg);
	return NULL;
}

IO_TEST(futures_and_threads_cannot_wait)
{
	WEFT_SUPERVISE (scope) {
		struct scene scene;
		struct body body;
		struct use use = { .scene = &scene }, *u = &use;
		pthread_t thread;

		scene_begin(&scene, scope);
		use.easy = make_easy(&scene, "/10", &body);
		ck_assert_int_eq(join(start_future(scope, poll_perform, &u,
						   sizeof(u))),
				 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, in_a_thread, u),
				 0);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_int_eq(weft_curl_perform(scene.curl, use.easy), 0);
		curl_easy_cleanup(use.easy);
		scene_end(&scene);
	}
	return 0;
}

/* ---- Lack of memory and of descriptors ---- */

POOR_WRAP(calloc, (size_t count, size_t bytes), count, bytes)

static int64_t open_and_close(void *arg)
{
	struct weft_curl *curl = NULL;
	int r = weft_curl_open(&curl);

	(void)arg;
	return r < 0 ? r : weft_curl_close(curl);
}

IO_TEST(lack_of_memory_is_an_error)
{
	/* It begins to use libcurl. */
	ck_assert_int_eq(open_and_close(NULL), 0);
	poor_sweep(open_and_close, NULL);
	return 0;
}

/* Once the runtime has its own descriptors. */
static int64_t open_in_vain(void *arg)
{
	const unsigned *refused = arg;
	int fds = fds_open();

	NEED(refuse_calls(&refused[0], 1, refused[1]));
	NEED(open_and_close(NULL) == -(int64_t)refused[1]);
	NEED(fds_open() == fds);
	return 0;
}

static int64_t run_in_vain(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	return weft_run(open_in_vain, arg, &opts);
}

START_TEST(lack_of_descriptors_is_an_error)
{
	unsigned refused[][2] = {
		{ SYS_epoll_create1, EMFILE },
		{ SYS_epoll_create1, ENFILE },
		{ SYS_timerfd_create, EMFILE },
		{ SYS_timerfd_create, ENFILE },
	};

	child_run(run_in_vain, refused[_i]);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/curl");
	TCase *tc = tcase_create("transfers");

	io_add_test(tc, transfers_reuse_a_connection);
	io_add_test(tc, many_tasks_share_few_connections);
	io_add_test(tc, errors_are_those_of_libcurl);
	io_add_test(tc, timeout_of_the_handle_ends_the_transfer);
	suite_add_tcase(s, tc);

	tc = tcase_create("interruptions");
	io_add_test(tc, task_that_leaves_gives_up_one_transfer_alone);
	io_add_test(tc, handle_is_used_again_after_an_interruption);
	io_add_test(tc, tasks_that_give_up_leave_the_others_their_transfers);
	suite_add_tcase(s, tc);

	tc = tcase_create("refusals");
	io_add_test(tc, what_is_in_use_is_refused);
	io_add_test(tc, futures_and_threads_cannot_wait);
	io_add_test(tc, lack_of_memory_is_an_error);
	if (test_needs(test_can(child_may_refuse),
		       "lack_of_descriptors_is_an_error", NEEDS_REFUSED_CALLS))
		tcase_add_loop_test(tc, lack_of_descriptors_is_an_error, 0, 4);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return io_tests_run(suite());
}
