/* SPDX-License-Identifier: MIT */
/*
 * Suite io/races: random calls, interrupted at random moments.
 *
 * Each race has a few parts, tasks that make one call each on the same object;
 * an act cancels, closes or shuts down while they do.  No call writes behind
 * its buffer, or into it after its return; at the end all bytes, connections,
 * descriptors, permits and messages are accounted for.
 *
 * WEFT_TEST_SEED=n changes the choices; the moments are the machine's.  With
 * WEFT_TEST_LONG in the environment there are a million races on one worker,
 * and a million on two.
 */
#include "tests/support/io_arena.h"

/* ---- One part ------------------------------------------------------------ */

/* Sends a message or receives one.  Almost every message is a different
 * number. */
static void say_or_hear(struct part *part)
{
	uint64_t value = mix(part->random);

	if (chance(&part->random, 2)) {
		if (weft_chan_send(&shared.chan, &value) == 0) {
			/* relaxed: sums, which are read at the end. */
			weft__add(&shared.said, UINT64_C(1), relaxed);
			weft__add(&shared.said_sum, value, relaxed);
		}
	} else if (weft_chan_recv(&shared.chan, &value) == 0) {
		weft__add(&shared.heard, UINT64_C(1), relaxed);
		weft__add(&shared.heard_sum, value, relaxed);
	}
}

static void count(const struct part *part)
{
	weft__atomic(uint64_t) *which = &shared.ended;

	if (part->result >= 0)
		which = &shared.done;
	else if (part->result == -ECANCELED)
		which = &shared.cancelled;
	else if (part->result == -ETIMEDOUT)
		which = &shared.timed_out;
	/* relaxed: a count. */
	weft__add(which, UINT64_C(1), relaxed);
}

static int64_t play_part(void *arg)
{
	struct part *part = *(struct part **)arg;

	if (weft_sem_acquire(&shared.permits, 1) < 0)
		return 0;
	part->called = true;
	if (part->within_ns)
		WEFT_WITHIN(part->within_ns)
			part->result = part_call(part);
	else
		part->result = part_call(part);
	weft_sem_release(&shared.permits, 1);
	count(part);
	if (chance(&part->random, 4) == 0)
		say_or_hear(part);
	return 0;
}

static void start_part(struct arena *arena, struct weft_scope *scope, int i)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct part *part = &arena->parts[i];

	*part = (struct part){ .arena = arena, .second = i };
	part->random = mix(arena->random + (uint64_t)i);
	if (chance(&arena->random, 3) == 0)
		part->within_ns = 1 + chance(&arena->random, 120000);
	opts.ret_task = &part->task;
	EXPECT(weft_go_opts(scope, play_part, &part, sizeof(part), &opts) ==
	       0);
}

/* ---- One race ------------------------------------------------------------ */

static int64_t fail_at_once(void *arg)
{
	(void)arg;
	return -EIO;
}

static void arena_end(struct arena *arena)
{
	int i = arena->fds[1] < 0 ? 0 : (int)chance(&arena->random, 2);
	int fd = arena->fds[i];

	if (fd < 0 || (arena->act == SHUT && arena->kind == PIPE)) {
		arena->act = NOTHING;
		return;
	}
	arena->ended = true;
	if (arena->act == SHUT) {
		ARENA_EXPECT(arena, weft_shutdown(fd, SHUT_RDWR) == 0);
		return;
	}
	/* The parts may still hold the number. */
	ARENA_EXPECT(arena, weft_close(fd) == 0);
	arena->rounds_left = 0;
}

static void interrupt(struct arena *arena, struct weft_scope *scope)
{
	int r;

	switch (arena->act) {
	case CANCEL:
		r = weft_cancel(
			arena->parts[chance(&arena->random, PARTS)].task);
		ARENA_EXPECT(arena, r == 0 || r == -ESRCH);
		break;
	case CANCEL_ALL:
		weft_scope_cancel(scope);
		break;
	case FAIL:
		EXPECT(weft_go(scope, fail_at_once, NULL, 0) == 0);
		break;
	case CLOSE:
	case SHUT:
		arena_end(arena);
		break;
	default:
		break;
	}
}

/* Acts as the peer of a call that would wait for one. */
static void help(struct arena *arena)
{
	if (arena->kind == CONNECT && arena->fds[0] >= 0)
		(void)take_connection(arena);
	if (arena->kind == ACCEPT)
		for (unsigned n = chance(&arena->random, 3); n > 0; n--)
			offer_connection(arena);
}

static void expect_result(struct arena *arena, const struct part *part)
{
	ssize_t r = part->result;

	if (!part->called || r == -ECANCELED ||
	    (r == -ETIMEDOUT && part->within_ns))
		return;
	if (arena->ended) {
		ARENA_EXPECT(arena, r >= 0 || r == -EBADF || r == -EPIPE ||
				    r == -ENODATA || r == -EINVAL ||
				    r == -ECONNREFUSED || r == -ECONNRESET);
		return;
	}
	ARENA_EXPECT(arena, r >= 0);
}

static void await_parts(struct arena *arena)
{
	for (int i = 0; i < PARTS; i++) {
		int r = 0;

		WEFT_WITHIN(WEFT_SEC(60))
			r = weft_join(arena->parts[i].task, NULL);
		ARENA_EXPECT(arena, r == 0);
		expect_result(arena, &arena->parts[i]);
		if (arena->kind == ACCEPT && arena->parts[i].called)
			arena->taken += arena->parts[i].result > 0;
	}
}

static void race(struct arena *arena)
{
	int64_t result = 0;
	bool closed;

	arena->act = (enum act)chance(&arena->random, ACTS);
	/* An act that ends the arena is chosen less often. */
	if (arena->act >= CLOSE && chance(&arena->random, 4))
		arena->act = NOTHING;
	WEFT_SCOPE(scope, &result) {
		int first = (int)chance(&arena->random, 2);

		start_part(arena, scope, first);
		if (chance(&arena->random, 2))
			pause_a_little(&arena->random);
		start_part(arena, scope, !first);
		pause_a_little(&arena->random);
		help(arena);
		pause_a_little(&arena->random);
		interrupt(arena, scope);
		pause_a_little(&arena->random);
		weft_scope_cancel(scope);
		await_parts(arena);
	}
	ARENA_EXPECT(arena, result == (arena->act == FAIL ? -EIO : 0));
	closed = arena->act == CLOSE && arena->ended;
	for (int i = 0; closed && i < 2; i++)
		if (arena->fds[i] >= 0 && fcntl(arena->fds[i], F_GETFD) < 0)
			arena->fds[i] = -1;
	if (arena->ended || arena->rounds_left-- == 0)
		arena_close(arena);
}

static int64_t play_arena(void *arg)
{
	struct arena arena = { .index = *(unsigned *)arg };
	uint64_t races = RACES / ARENAS;

	if (getenv("WEFT_TEST_LONG"))
		races *= 35;
	arena.random = mix(seed * ARENAS + arena.index);
	for (arena.races = 0; arena.races < races; arena.races++) {
		if (!arena.open)
			arena_open(&arena);
		race(&arena);
	}
	if (arena.open)
		arena_close(&arena);
	return 0;
}

/* ---- All races ----------------------------------------------------------- */

static void shared_init(void)
{
	unsigned char *bytes;

	shared.permits = (struct weft_sem)WEFT_SEM_INIT(PERMITS);
	EXPECT(weft_chan_init(&shared.chan, shared.room, ROOM,
			      sizeof(uint64_t)) == 0);
	shared.file = memfd_create("stream", MFD_CLOEXEC);
	EXPECT(shared.file >= 0 && ftruncate(shared.file, FILE_BYTES) == 0);
	bytes = mmap(NULL, FILE_BYTES, PROT_WRITE, MAP_SHARED, shared.file, 0);
	EXPECT(bytes != MAP_FAILED);
	stream_fill(bytes, FILE_BYTES, 0);
	EXPECT(munmap(bytes, FILE_BYTES) == 0);
}

/* relaxed: all tasks that counted have ended. */
static uint64_t count_of(weft__atomic(uint64_t) *count)
{
	return weft__load(count, relaxed);
}

static void expect_all_there(void)
{
	uint64_t value;

	ck_assert_uint_eq(weft_sem_count(&shared.permits), PERMITS);
	while (weft_chan_try_recv(&shared.chan, &value) == 0) {
		/* relaxed: all tasks that counted have ended. */
		weft__add(&shared.heard, UINT64_C(1), relaxed);
		weft__add(&shared.heard_sum, value, relaxed);
	}
	ck_assert_uint_eq(count_of(&shared.said), count_of(&shared.heard));
	ck_assert_uint_eq(count_of(&shared.said_sum),
			  count_of(&shared.heard_sum));
	printf("done %" PRIu64 ", cancelled %" PRIu64 ", timed out %" PRIu64
	       ", ended %" PRIu64 ", said %" PRIu64 "\n",
	       count_of(&shared.done), count_of(&shared.cancelled),
	       count_of(&shared.timed_out), count_of(&shared.ended),
	       count_of(&shared.said));
	ck_assert_uint_gt(count_of(&shared.done), RACES / 100);
	ck_assert_uint_gt(count_of(&shared.cancelled), RACES / 100);
	ck_assert_uint_gt(count_of(&shared.timed_out), RACES / 100);
	ck_assert_uint_gt(count_of(&shared.ended), RACES / 1000);
	ck_assert_uint_gt(count_of(&shared.said), RACES / 100);
}

static int64_t play_all(void *arg)
{
	int64_t result = 0;

	(void)arg;
	shared_init();
	WEFT_SCOPE(scope, &result)
		for (unsigned i = 0; i < ARENAS; i++)
			EXPECT(WEFT_GO(scope, play_arena, i) == 0);
	ck_assert_int_eq(result, 0);
	expect_all_there();
	return weft_close(shared.file);
}

START_TEST(interrupted_calls_lose_nothing_and_touch_nothing)
{
	const char *text = getenv("WEFT_TEST_SEED");

	seed = (text ? strtoull(text, NULL, 0) : 0) * 2 + (unsigned)_i;
	printf("seed %" PRIu64 " on %d workers\n", seed, _i + 1);
	fflush(stdout);
	io_run(play_all, NULL, 1 + (unsigned)_i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/races");
	TCase *tc = tcase_create("races");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc,
			    interrupted_calls_lose_nothing_and_touch_nothing,
			    0, 2);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
