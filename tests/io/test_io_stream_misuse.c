/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/misuse: a program that breaks a rule of streams ends with a
 * message that names the rule.
 */
#include "tests/support/misuse_kit.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"

/* Skips more bytes than were shown, though more have arrived; or skips before
 * any peek. */
static int64_t skip_too_much(void *arg)
{
	size_t bytes = *(size_t *)arg;
	const void *data;
	int fds[2];

	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	kit_warm_up(&stream, fds[1]);
	kit_receive_several(&stream, fds, 0);
	if (bytes > 1)
		(void)!weft_stream_peek(&stream, &data);
	else
		weft_stream_init(&stream, fds[0]);
	weft_stream_skip(&stream, bytes);
	return 0;
}

static void die_of_skipping(void *bytes)
{
	(void)!weft_run(skip_too_much, bytes, NULL);
}

START_TEST(skip_of_more_than_was_shown_is_fatal)
{
	size_t bytes = _i ? WEFT__POOL_SMALL_BYTES + 1 : 1;
	struct death death = death_of(die_of_skipping, &bytes);

	ck_assert(WIFSIGNALED(death.status));
	ck_assert_ptr_nonnull(strstr(
		death.text,
		"weft_stream_skip: more bytes than the last peek showed"));
}
END_TEST

static int64_t receive(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;
	const void *data;

	return weft_stream_peek(stream, &data);
}

/* A second task receives while the first one waits. */
static int64_t receive_twice(void *arg)
{
	int fds[2];

	(void)arg;
	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	WEFT_SUPERVISE (scope)
		for (int i = 0; i < 2; i++) {
			kit_go(scope, receive, &stream);
			EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		}
	return 0;
}

/* The peer does not read, so at some point the kernel takes no more bytes. */
static int64_t send_on(void *arg)
{
	static const char some[1 << 16];
	struct weft_stream *stream = *(struct weft_stream **)arg;
	int r;

	do
		r = weft_stream_write_all(stream, some, sizeof(some), NULL);
	while (r == 0);
	return r;
}

static bool is_sending(struct weft_stream *stream)
{
	/* relaxed: there is one worker, and another task runs on it. */
	return weft__load(&weft__stream(stream)->sends, relaxed) > 0;
}

static int64_t close_beside_sender(void *arg)
{
	int fds[2];

	tcp_pair(fds);
	if (arg)
		ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	kit_make_small(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	WEFT_SUPERVISE (scope) {
		kit_go(scope, send_on, &stream);
		wait_until(is_sending(&stream));
		(void)!weft_stream_close(&stream);
	}
	return 0;
}

static int64_t close_its_descriptor(void *arg)
{
	int fds[2];

	(void)arg;
	tcp_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	kit_warm_up(&stream, fds[1]);
	return weft_close(fds[0]);
}

static const struct {
	weft_fn fn;
	void *arg;
	const char *said;
} misuses[] = {
	{ receive_twice, NULL,
	  "weft_stream: two tasks receive at the same time" },
	{ close_its_descriptor, NULL,
	  "weft_close: the descriptor is a stream's" },
	{ close_beside_sender, NULL,
	  "weft_stream_close: another task is sending" },
	{ close_beside_sender, "does not block",
	  "weft_stream_close: another task is sending" },
};

static void die_of_misuse(void *arg)
{
	int i = *(int *)arg;

	run_one_worker(misuses[i].fn, misuses[i].arg);
}

START_TEST(misuse_is_fatal)
{
	struct death death = death_of(die_of_misuse, &_i);

	ck_assert(WIFSIGNALED(death.status));
	ck_assert_ptr_nonnull(strstr(death.text, misuses[_i].said));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/stream_misuse");
	TCase *tc = tcase_create("misuse");

	if (test_needs(test_has_ring_buffers(),
		       "skip_of_more_than_was_shown_is_fatal", NEEDS_BUFFERS))
		tcase_add_loop_test(
			tc, skip_of_more_than_was_shown_is_fatal, 0, 2);
	tcase_add_loop_test(tc, misuse_is_fatal, 0, 4);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
