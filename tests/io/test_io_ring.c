/* SPDX-License-Identifier: MIT */
/*
 * One ring: setting it up on an unwilling kernel, invalid or too many entries,
 * completions that overflow, and errors of io_uring_enter.
 */
#include <sys/syscall.h>
#include <sys/wait.h>

#include "io/ring/uring/uring.h"
#include "tests/support/engine.h"
#include "tests/support/io_kit.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_setup.h"
#include "tests/support/wrap_enter.h"

/* ---- Errors from the kernel, on demand ---------------------------------- */

static int enter_error, enter_errors_left, enters;
static unsigned entered_with; /* flags */

/* Replaces liburing's function, and fails as often as a test demands. */
int __wrap_io_uring_enter2(unsigned fd, unsigned to_submit,
			   unsigned min_complete, unsigned flags, sigset_t *sig,
			   size_t sz)
{
	long r;

	enters++;
	entered_with = flags;
	if (enter_errors_left > 0) {
		enter_errors_left--;
		return enter_error;
	}
	r = syscall(SYS_io_uring_enter, fd, to_submit, min_complete, flags,
		    sig, sz);
	return (int)(r < 0 ? -errno : r);
}

/* ---- Helpers ---------------------------------------------------------- */

/* If set, each ring is opened for one thread alone. */
static bool alone;

static void be_alone(void)
{
	alone = true;
}

static void ring_open(struct weft__ring *ring, unsigned entries)
{
	const char *reason = "none";

	ck_assert_int_eq(weft__ring_open(ring, entries, alone, NULL, &reason),
			 0);
}

static struct io_uring_sqe *entry(struct weft__ring *ring, uint64_t user_data)
{
	struct weft__request nothing = { .opcode = WEFT__OPCODE_NONE };

	ck_assert(weft__ring_has_room(ring));
	weft__ring_prepare(ring, &nothing, user_data);
	return weft__uring_next(ring);
}

static void nop(struct weft__ring *ring, uint64_t user_data)
{
	entry(ring, user_data);
	weft__ring_publish(ring);
}

/* ---- Setting up --------------------------------------------------------- */

START_TEST(ring_is_closed_on_exec)
{
	struct weft__ring ring;

	ring_open(&ring, 8);
	ck_assert_int_eq(fcntl(ring.fd, F_GETFD), FD_CLOEXEC);
	weft__ring_close(&ring);
}
END_TEST

START_TEST(odd_sizes_are_brought_into_range)
{
	static const unsigned sizes[] = { 0, 1, 3, 100, 32768, 1000000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct weft__ring ring;

		ring_open(&ring, sizes[i]);
		ck_assert_uint_ge(ring.mask + 1, 2);
		nop(&ring, 1);
		ck_assert_int_eq(weft__ring_submit(&ring), 0);
		weft__ring_close(&ring);
	}
}
END_TEST

static bool is_registered(const struct weft__ring *ring)
{
	const struct io_uring *uring = &weft__uring(ring)->uring;

	return uring->enter_ring_fd != uring->ring_fd;
}

/* The kernel registers the rings of a thread, up to 16 of them. */
START_TEST(thread_may_have_many_rings)
{
	enum { RINGS = 20 };
	struct weft__completion completion;
	struct weft__ring rings[RINGS];
	unsigned known = 0;

	for (unsigned i = 0; i < RINGS; i++)
		ring_open(&rings[i], 8);
	for (unsigned i = 0; i < RINGS; i++) {
		nop(&rings[i], i);
		ck_assert_int_eq(weft__ring_submit(&rings[i]), 0);
		ck_assert_int_eq(weft__ring_wait(&rings[i], UINT64_MAX), 0);
		ck_assert_uint_eq(weft__ring_reap(&rings[i], &completion, 1),
				  1);
		ck_assert_uint_eq(completion.user_data, i);
		known += is_registered(&rings[i]);
	}
	ck_assert_uint_eq(known, alone ? 16 : 0);
	for (unsigned i = 0; i < RINGS; i++)
		weft__ring_close(&rings[i]);
	/* A closed ring gives its registration back. */
	ring_open(&rings[0], 8);
	ck_assert_int_eq(is_registered(&rings[0]), alone);
	weft__ring_close(&rings[0]);
}
END_TEST

/* Since Linux 6.13, a ring counts towards the user's limit of locked memory.
 * An older kernel counts nothing, so all rings can be opened. */
START_TEST(low_memlock_is_a_lack_of_memory)
{
	rlim_t bytes = 2 * weft__ring_locked_bytes(256);
	struct rlimit limit = { bytes, bytes };
	const char *reason = NULL;
	struct weft__ring rings[8];
	int count = 0, r = 0;

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	ck_assert(become_another_user());
	while (count < 8 && r == 0) {
		r = weft__ring_open(&rings[count], 256, alone, NULL, &reason);
		if (r == 0)
			ck_assert_uint_eq(rings[count++].mask + 1, 256);
	}
	ck_assert_ptr_null(reason);
	if (r < 0) {
		ck_assert_int_eq(r, -ENOMEM);
		ck_assert_int_le(count, 2);
	}
	ck_assert_int_ge(count, 1);
	while (count)
		weft__ring_close(&rings[--count]);
}
END_TEST

START_TEST(refusal_is_enosys_with_a_reason)
{
	static const unsigned errors[] = { EPERM, ENOSYS, EACCES, EINVAL };
	const char *reason = NULL;
	struct weft__ring ring;

	refuse_setup(errors[_i]);
	ck_assert_int_eq(weft__ring_open(&ring, 8, alone, NULL, &reason),
			 -ENOSYS);
	ck_assert_ptr_nonnull(reason);
}
END_TEST

START_TEST(lack_of_descriptors_is_reported_as_such)
{
	struct rlimit old = limit_set(RLIMIT_NOFILE, 0);
	const char *reason = NULL;
	struct weft__ring ring;

	ck_assert_int_eq(weft__ring_open(&ring, 8, alone, NULL, &reason),
			 -EMFILE);
	ck_assert_ptr_null(reason);
	limit_reset(RLIMIT_NOFILE, old);
}
END_TEST

START_TEST(child_does_not_see_the_ring)
{
	struct weft__ring ring;
	int status;
	pid_t child;

	ring_open(&ring, 8);
	child = fork();
	if (child == 0) {
		/* MADV_DONTFORK: the child has no memory at that address. */
		signal(SIGSEGV, SIG_DFL);
		_exit((int)*ring.head);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
	nop(&ring, 1);
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	weft__ring_close(&ring);
}
END_TEST

/* ---- Entries ---------------------------------------------------------- */

START_TEST(full_queue_gives_no_entry_until_submitted)
{
	struct weft__completion completions[4];
	struct weft__ring ring;

	ring_open(&ring, 2);
	nop(&ring, 1);
	nop(&ring, 2);
	ck_assert(!weft__ring_has_room(&ring));
	ck_assert_uint_eq(weft__ring_unsubmitted(&ring), 2);
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	ck_assert(weft__ring_has_room(&ring));
	ck_assert_uint_eq(weft__ring_reap(&ring, completions, 4), 2);
	ck_assert_uint_eq(completions[0].user_data, 1);
	ck_assert_uint_eq(completions[1].user_data, 2);
	weft__ring_close(&ring);
}
END_TEST

START_TEST(indices_wrap)
{
	struct weft__completion completion;
	struct weft__ring ring;

	ring_open(&ring, 4);
	for (uint64_t i = 0; i < 100; i++) {
		nop(&ring, i);
		ck_assert_int_eq(weft__ring_submit(&ring), 0);
		ck_assert_uint_eq(weft__ring_reap(&ring, &completion, 1), 1);
		ck_assert_uint_eq(completion.user_data, i);
	}
	weft__ring_close(&ring);
}
END_TEST

/* A kernel without SUBMIT_ALL stops at the bad entry; the rest is submitted
 * again.  Linux 6.1 completes the bad entry first. */
START_TEST(bad_entry_does_not_stop_the_batch)
{
	struct weft__completion completions[8];
	unsigned seen = 0;
	struct weft__ring ring;

	ring_open(&ring, 8);
	nop(&ring, 1);
	entry(&ring, 2)->opcode = 255;
	weft__ring_publish(&ring);
	nop(&ring, 3);
	nop(&ring, 4);
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	ck_assert_uint_eq(weft__ring_unsubmitted(&ring), 0);
	ck_assert_uint_eq(weft__ring_reap(&ring, completions, 8), 4);
	for (int i = 0; i < 4; i++) {
		uint64_t which = completions[i].user_data;

		ck_assert_uint_le(which, 4);
		seen |= 1u << which;
		ck_assert_int_eq(completions[i].result,
				 which == 2 ? -EINVAL : 0);
	}
	ck_assert_uint_eq(seen, 0x1e);
	weft__ring_close(&ring);
}
END_TEST

/* ---- Completions ------------------------------------------------------ */

/* The kernel keeps completions that do not fit into the ring, and posts them
 * when asked. */
START_TEST(overflowing_completions_are_all_delivered)
{
	enum { COUNT = 1000 };
	struct weft__completion completions[16];
	struct weft__ring ring;
	uint64_t expected = 0;

	ring_open(&ring, 2); /* room for 8 */
	for (uint64_t i = 0; i < COUNT; i++) {
		nop(&ring, i);
		/* -EBUSY: an old kernel wants the completions to be reaped
		 * first. */
		if (weft__ring_submit(&ring) == -EBUSY)
			break;
	}
	for (;;) {
		unsigned count = weft__ring_reap(&ring, completions, 16);

		for (unsigned i = 0; i < count; i++)
			ck_assert_uint_eq(completions[i].user_data, expected++);
		if (!count && !weft__ring_held_back(&ring))
			break;
		ck_assert_int_eq(weft__ring_turn(&ring), 0);
	}
	ck_assert_uint_ge(expected, 8);
	ck_assert_uint_eq(expected, ring.tail);
	ck_assert_uint_eq(*weft__uring(&ring)->uring.cq.koverflow, 0);
	weft__ring_close(&ring);
}
END_TEST

START_TEST(no_more_are_taken_than_asked_for)
{
	struct weft__completion completions[4];
	struct weft__ring ring;

	ring_open(&ring, 8);
	for (uint64_t i = 0; i < 5; i++)
		nop(&ring, i);
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	ck_assert_uint_eq(weft__ring_reap(&ring, completions, 0), 0);
	ck_assert_uint_eq(weft__ring_reap(&ring, completions, 3), 3);
	ck_assert(weft__ring_completed(&ring));
	ck_assert_uint_eq(weft__ring_reap(&ring, completions, 4), 2);
	ck_assert_uint_eq(completions[1].user_data, 4);
	ck_assert(!weft__ring_completed(&ring));
	weft__ring_close(&ring);
}
END_TEST

/* ---- Errors of enter ---------------------------------------------------- */

START_TEST(interrupted_submission_is_repeated)
{
	struct weft__completion completion;
	struct weft__ring ring;

	ring_open(&ring, 8);
	nop(&ring, 7);
	enter_error = -EINTR;
	enter_errors_left = 3;
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	ck_assert_int_eq(enter_errors_left, 0);
	ck_assert_uint_eq(weft__ring_reap(&ring, &completion, 1), 1);
	weft__ring_close(&ring);
}
END_TEST

START_TEST(refused_submission_keeps_the_entries)
{
	static const int errors[] = { -EAGAIN, -EBUSY, -ENOMEM };
	int answer = _i == 2 ? -EAGAIN : errors[_i];
	struct weft__completion completion;
	struct weft__ring ring;

	ring_open(&ring, 8);
	nop(&ring, 7);
	enter_error = errors[_i];
	enter_errors_left = 2;
	ck_assert_int_eq(weft__ring_submit(&ring), answer);
	ck_assert_int_eq(weft__ring_wait(&ring, 0), answer);
	ck_assert_uint_eq(weft__ring_unsubmitted(&ring), 1);
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	ck_assert_uint_eq(weft__ring_reap(&ring, &completion, 1), 1);
	ck_assert_uint_eq(completion.user_data, 7);
	weft__ring_close(&ring);
}
END_TEST

/* The refused entry must not be submitted later; entries published before
 * stay. */
START_TEST(refused_entry_is_withdrawn)
{
	struct weft__completion completions[3];
	struct weft__ring ring;

	ring_open(&ring, 8);
	nop(&ring, 7);
	nop(&ring, 8);
	enter_error = -EAGAIN;
	enter_errors_left = 1;
	ck_assert_int_eq(weft__ring_submit(&ring), -EAGAIN);
	ck_assert(weft__ring_withdraw(&ring));
	ck_assert_uint_eq(weft__ring_unsubmitted(&ring), 1);
	nop(&ring, 9);
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	ck_assert(!weft__ring_withdraw(&ring));
	ck_assert_uint_eq(weft__ring_reap(&ring, completions, 3), 2);
	ck_assert_uint_eq(completions[0].user_data, 7);
	ck_assert_uint_eq(completions[1].user_data, 9);
	weft__ring_close(&ring);
}
END_TEST

/* ---- Waiting and cancelling --------------------------------------------- */

START_TEST(wait_ends_in_time)
{
	struct weft__ring ring;
	uint64_t start;

	ring_open(&ring, 8);
	start = weft_now();
	ck_assert_int_eq(weft__ring_wait(&ring, WEFT_MS(20)), 0);
	ck_assert_uint_ge(weft_now() - start, WEFT_MS(20));
	weft__ring_close(&ring);
}
END_TEST

#ifndef WEFT_VALGRIND /* under Valgrind, the ring waits in ppoll() */
/* Runs where the kernel can tell these waits apart (Linux 6.15). */
START_TEST(wait_does_not_count_as_one_for_a_disk)
{
	enum { FEAT_NO_IOWAIT = 1 << 17, ENTER_NO_IOWAIT = 1 << 7 };
	struct weft__ring ring;
	bool told;

	ring_open(&ring, 8);
	told = weft__uring(&ring)->uring.features & FEAT_NO_IOWAIT &&
	       test_is_unmasked(WEFT__FEATURE_NO_IOWAIT);
	ck_assert_int_eq(weft__ring_wait(&ring, 1000), 0);
	ck_assert_int_eq((entered_with & ENTER_NO_IOWAIT) != 0, told);
	weft__ring_close(&ring);
}
END_TEST
#endif

START_TEST(wait_ends_with_a_completion)
{
	struct weft__completion completion;
	struct weft__ring ring;

	ring_open(&ring, 8);
	nop(&ring, 9);
	ck_assert_int_eq(weft__ring_wait(&ring, UINT64_MAX), 0);
	ck_assert_uint_eq(weft__ring_reap(&ring, &completion, 1), 1);
	weft__ring_close(&ring);
}
END_TEST

/* Reaping completions that are there needs no system call. */
START_TEST(reaping_does_not_enter)
{
	struct weft__completion completion;
	struct weft__ring ring;

	ring_open(&ring, 8);
	nop(&ring, 9);
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	enters = 0;
	ck_assert_uint_eq(weft__ring_reap(&ring, &completion, 1), 1);
	ck_assert_int_eq(weft__ring_turn(&ring), 0);
	ck_assert_int_eq(enters, 0);
	weft__ring_close(&ring);
}
END_TEST

START_TEST(cancel_hits_the_exact_request)
{
	struct weft__completion completions[2];
	struct weft__ring ring;
	char byte;
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ring_open(&ring, 8);
	for (uint64_t i = 1; i <= 2; i++) {
		struct weft__request request = {
			.opcode = WEFT__OPCODE_READ,
			.fd = fds[0],
			.memory = &byte,
			.bytes = 1,
			.offset = -1,
		};

		weft__ring_prepare(&ring, &request, i);
		weft__ring_publish(&ring);
	}
	ck_assert_int_eq(weft__ring_submit(&ring), 0);
	ck_assert_int_eq(weft__ring_cancel(&ring, 3), -ENOENT);
	ck_assert_int_eq(weft__ring_cancel(&ring, 2), 0);
	ck_assert_int_eq(weft__ring_wait(&ring, WEFT_SEC(1)), 0);
	ck_assert_uint_eq(weft__ring_reap(&ring, completions, 2), 1);
	ck_assert_uint_eq(completions[0].user_data, 2);
	ck_assert_int_eq(completions[0].result, -ECANCELED);
	ck_assert_int_eq(weft__ring_cancel(&ring, 2), -ENOENT);
	weft__ring_close(&ring);
}
END_TEST

static void add_tests(Suite *suite, const char *name, SFun before)
{
	TCase *tests = tcase_create(name);

	tcase_add_checked_fixture(tests, before, NULL);
	tcase_add_test(tests, ring_is_closed_on_exec);
	tcase_add_test(tests, odd_sizes_are_brought_into_range);
	tcase_add_test(tests, thread_may_have_many_rings);
	if (test_needs(test_can(become_another_user),
		       "low_memlock_is_a_lack_of_memory", NEEDS_ANOTHER_USER))
		tcase_add_test(tests, low_memlock_is_a_lack_of_memory);
	tcase_add_loop_test(tests, refusal_is_enosys_with_a_reason, 0, 4);
	tcase_add_test(tests, lack_of_descriptors_is_reported_as_such);
	tcase_add_test(tests, child_does_not_see_the_ring);
	tcase_add_test(tests, full_queue_gives_no_entry_until_submitted);
	tcase_add_test(tests, indices_wrap);
	tcase_add_test(tests, bad_entry_does_not_stop_the_batch);
	tcase_add_test(tests, overflowing_completions_are_all_delivered);
	tcase_add_test(tests, no_more_are_taken_than_asked_for);
	tcase_add_test(tests, interrupted_submission_is_repeated);
	tcase_add_loop_test(tests, refused_submission_keeps_the_entries, 0, 3);
	tcase_add_test(tests, refused_entry_is_withdrawn);
	tcase_add_test(tests, wait_ends_in_time);
#ifndef WEFT_VALGRIND
	tcase_add_test(tests, wait_does_not_count_as_one_for_a_disk);
#endif
	tcase_add_test(tests, wait_ends_with_a_completion);
	tcase_add_test(tests, reaping_does_not_enter);
	tcase_add_test(tests, cancel_hits_the_exact_request);
	suite_add_tcase(suite, tests);
}

static void be_helped(void)
{
	alone = false;
}

int main(void)
{
	Suite *suite = suite_create("io/ring");

	if (!test_needs(test_has_uring(), "io/ring", NEEDS_URING))
		return 77;
	if (!test_needs(test_has_ring_buffers(), "io/ring",
			NEEDS_BUFFERS))
		return 77;
	add_tests(suite, "helped", be_helped);
	add_tests(suite, "alone", be_alone);
	return io_tests_run(suite);
}
