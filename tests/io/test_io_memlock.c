/* SPDX-License-Identifier: MIT */
/*
 * Suite io/memlock: a runtime where little memory may be locked.  The rings
 * take what there is, equally; and if that is too little, a message names the
 * limit, what is needed and what was got.
 *
 * The limit counts all processes of a user.  As root, each test becomes a user
 * of its own; the tests in which a runtime starts need that.
 */
#include <sys/resource.h>

#include "io/request/shard.h"
#include "runtime/sched/runtime.h"
#include "tests/support/engine.h"
#include "tests/support/io_kit.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/stderr_capture.h"

static bool can_limit_to(rlim_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	return setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && become_unprivileged();
}

static void limit_to(rlim_t bytes)
{
	ck_assert(can_limit_to(bytes));
}

/* The most that a test has. */
static rlim_t most_bytes(void)
{
	rlim_t bytes = 100 * weft__ring_locked_bytes(WEFT__RING_ENTRIES_LEAST);

	return bytes > 8 << 20 ? bytes : 8 << 20;
}

static bool can_start(void)
{
	return geteuid() == 0 && can_limit_to(most_bytes());
}

static rlim_t least_bytes(void)
{
	return weft__ring_locked_bytes(WEFT__RING_ENTRIES_LEAST);
}

/* ---- Enough for smaller rings -------------------------------------------- */

/* The entries of each worker's ring, which all are equal. */
static int64_t entries_of_all(void *arg)
{
	struct weft_runtime *runtime = weft_runtime_self();
	uint32_t mask = weft__shard(runtime->workers[0])->ring.mask;

	(void)arg;
	for (uint32_t i = 1; i < runtime->workers_count; i++)
		ck_assert_uint_eq(weft__shard(runtime->workers[i])->ring.mask,
				  mask);
	return mask + 1;
}

static void expect_start(unsigned workers, rlim_t bytes)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	int64_t entries;

	opts.workers = workers;
	limit_to(bytes);
	said_begin();
	entries = weft_run(entries_of_all, NULL, &opts);
	ck_assert_str_eq(said_end(), "");
	ck_assert_int_ge(entries, WEFT__RING_ENTRIES_LEAST);
	ck_assert_int_le(entries, 256);
}

/* Debian's default is 8 MiB. */
START_TEST(hundred_workers_start_with_8_mib)
{
	expect_start(100, most_bytes());
}
END_TEST

START_TEST(workers_start_with_two_pages_each)
{
	unsigned workers = 1u << _i;

	expect_start(workers, workers * least_bytes());
}
END_TEST

/* All four rings are smaller, not the last one alone. */
START_TEST(all_rings_are_equal)
{
	expect_start(4, 3 * weft__ring_locked_bytes(256) + least_bytes());
}
END_TEST

/* Registered buffers are fewer, or done without. */
static int64_t echo_by_stream(void *arg)
{
	struct weft__shard *shard = weft__shard(weft__worker_self());
	struct weft_stream stream;
	char buf[8] = "";
	int fds[2];

	socket_pair(fds);
	weft_stream_init(&stream, fds[0]);
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(weft_write_all(fds[1], "hello", 5, NULL), 0);
		ck_assert_int_eq(weft_stream_read(&stream, buf, sizeof(buf)),
				 5);
		ck_assert_str_eq(buf, "hello");
	}
	if (*(bool *)arg)
		ck_assert_ptr_nonnull(shard->pools[WEFT__POOL_SMALL].ring);
	ck_assert_int_eq(weft_stream_close(&stream), 0);
	close(fds[1]);
	return 7;
}

static void expect_streams(rlim_t bytes, bool with_buffers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	opts.ring_entries = WEFT__RING_ENTRIES_LEAST;
	limit_to(bytes);
	ck_assert_int_eq(weft_run(echo_by_stream, &with_buffers, &opts), 7);
}

START_TEST(streams_work_without_buffers_of_the_ring)
{
	expect_streams(least_bytes(), false);
}
END_TEST

/* A page, beside the ring and what the start takes for a moment: another ring,
 * with a page of buffers. */
START_TEST(streams_have_buffers_where_a_page_is_left)
{
	rlim_t page = (rlim_t)sysconf(_SC_PAGESIZE);

	expect_streams(2 * least_bytes() + 2 * page, true);
}
END_TEST

/* ---- Too little ---------------------------------------------------------- */

static void expect_refusal(unsigned workers, rlim_t bytes)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	char needed[64], allowed[64];
	const char *text;
	int64_t r;

	snprintf(needed, sizeof(needed),
		 "%u worker%s need %llu KiB of locked memory", workers,
		 workers == 1 ? "" : "s",
		 (unsigned long long)(workers * least_bytes()) >> 10);
	snprintf(allowed, sizeof(allowed),
		 "RLIMIT_MEMLOCK allows this user %llu KiB",
		 (unsigned long long)bytes >> 10);
	opts.workers = workers;
	limit_to(bytes);
	said_begin();
	r = weft_run(entries_of_all, NULL, &opts);
	text = said_end();
	ck_assert_int_eq(r, -ENOMEM);
	ck_assert_msg(strstr(text, needed) && strstr(text, allowed) &&
			      strstr(text, " and got "),
		      "it said: %s", text);
	ck_assert_msg(strchr(text, '\n') && !strchr(text, '\n')[1],
		      "one line: %s", text);
}

START_TEST(refusal_names_limit_need_and_what_was_got)
{
	expect_refusal(_i ? 3 : 1, _i ? 2 * least_bytes() : 0);
}
END_TEST

/* Does the kernel count rings? */
static bool counts_rings(void)
{
	const char *reason = NULL;
	struct weft__ring ring;

	return can_limit_to(0) &&
	       weft__ring_open(&ring, 8, false, NULL, &reason) == -ENOMEM;
}

#define NEEDS_LIMITS "a user of its own, with limits that root may set"
#define NEEDS_COUNTED_RINGS "a kernel that counts a ring as locked memory"

int main(void)
{
	static const char *const starts =
		"hundred_workers_start_with_8_mib and four more";
	Suite *suite = suite_create("io/memlock");
	TCase *enough = tcase_create("enough");
	TCase *little = tcase_create("little");

	if (!test_needs(test_has_uring(), "io/memlock", NEEDS_URING))
		return 77;
	tcase_set_timeout(enough, 60);
	tcase_set_timeout(little, 60);
	if (test_needs(test_can(can_start), starts, NEEDS_LIMITS)) {
		tcase_add_test(enough, hundred_workers_start_with_8_mib);
		tcase_add_loop_test(enough, workers_start_with_two_pages_each,
				    0, 4);
		tcase_add_test(enough, all_rings_are_equal);
		tcase_add_test(enough,
			       streams_work_without_buffers_of_the_ring);
		if (test_needs(test_has_ring_buffers(),
			       "streams_have_buffers_where_a_page_is_left",
			       NEEDS_BUFFERS))
			tcase_add_test(
				enough,
				streams_have_buffers_where_a_page_is_left);
	}
	if (test_needs(test_can(counts_rings),
		       "refusal_names_limit_need_and_what_was_got",
		       NEEDS_COUNTED_RINGS))
		tcase_add_loop_test(little,
				    refusal_names_limit_need_and_what_was_got,
				    0, 2);
	suite_add_tcase(suite, enough);
	suite_add_tcase(suite, little);
	return io_tests_run(suite);
}
