/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/loop_races: threads submit and wake at any moment, while the loop
 * turns, waits without limit, or is about to wait (G02).  A wake-up that is
 * lost stays lost.
 */
#include <pthread.h>
#include <sched.h>

#include "runtime/base/atomic.h"
#include "tests/support/loop_kit.h"

enum { ROUNDS = 4000, ROUNDS_LONG = 200000 };

static int rounds(void)
{
	return getenv("WEFT_TEST_LONG") ? ROUNDS_LONG : ROUNDS;
}

struct sender {
	struct weft_runtime *runtime;
	pthread_t thread;
	weft__atomic(int) ran;
	uint64_t random;
	unsigned kind;
	struct weft_event event;
	int fds[2];
};

static uint32_t draw(struct sender *sender)
{
	sender->random ^= sender->random << 13;
	sender->random ^= sender->random >> 7;
	sender->random ^= sender->random << 17;
	return (uint32_t)(sender->random >> 32);
}

/* A pause of random length: none, some instructions, a switch, a sleep. */
static void linger(struct sender *sender)
{
	uint32_t kind = draw(sender) % 8;

	if (kind < 4)
		for (uint32_t i = draw(sender) % 2000; i > 0; i--)
			weft__spin_hint();
	else if (kind < 7)
		sched_yield();
	else
		thread_pause_ns(draw(sender) % 60000);
}

static int64_t runs(void *arg)
{
	struct sender *sender = *(struct sender **)arg;

	weft__add(&sender->ran, 1, release);
	return 0;
}

/* Is woken by its sender each time. */
static int64_t is_woken(void *arg)
{
	struct sender *sender = *(struct sender **)arg;
	char byte;

	for (int i = 0; i < rounds(); i++) {
		if (sender->kind == 1) {
			ck_assert_int_eq(weft_event_wait(&sender->event), 0);
			weft_event_clear(&sender->event);
		} else {
			ck_assert_int_eq(weft_read(sender->fds[1], &byte, 1),
					 1);
		}
		weft__add(&sender->ran, 1, release);
	}
	return 0;
}

/* One at a time, so that each needs a wake-up of its own. */
static void *sends(void *arg)
{
	struct sender *sender = arg;

	for (int i = 0; i < rounds(); i++) {
		if (sender->kind == 0)
			loop_submit(sender->runtime, runs, sender);
		else if (sender->kind == 1)
			weft_event_set(&sender->event);
		else
			ck_assert_int_eq(write(sender->fds[0], "x", 1), 1);
		while (weft__load(&sender->ran, acquire) == i)
			sched_yield();
		linger(sender);
	}
	return NULL;
}

static void sender_begin(struct sender *sender, struct weft_runtime *runtime,
			 unsigned kind)
{
	sender->runtime = runtime;
	sender->random = weft_now() | 1;
	sender->kind = kind;
	socket_pair(sender->fds);
	if (sender->kind)
		loop_submit(runtime, is_woken, sender);
}

/* The loop's own callbacks take some time, too. */
static void loop_run(struct weft_runtime *runtime, struct sender *senders,
		     unsigned count)
{
	struct sender loop = { .random = weft_now() | 1 };
	bool over;

	do {
		ck_assert(loop_readable(runtime, LOOP_PATIENCE_MS));
		linger(&loop);
		ck_assert_int_ge(weft_turn(runtime, NULL), 0);
		linger(&loop);
		over = true;
		for (unsigned i = 0; i < count; i++)
			over &= weft__load(&senders[i].ran, acquire) ==
				rounds();
	} while (!over);
}

/* _i: by submitting, by an event, by a socket; 3: all of them. */
START_TEST(no_wake_up_is_lost)
{
	struct weft_runtime *runtime = loop_begin();
	struct sender senders[3];
	unsigned count = _i < 3 ? 1 : 3;

	memset(senders, 0, sizeof(senders));
	for (unsigned i = 0; i < count; i++) {
		sender_begin(&senders[i], runtime, _i < 3 ? (unsigned)_i : i);
		ck_assert_int_eq(pthread_create(&senders[i].thread, NULL, sends,
						&senders[i]),
				 0);
	}
	loop_run(runtime, senders, count);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(senders[i].thread, NULL);
		close(senders[i].fds[0]);
		close(senders[i].fds[1]);
	}
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched/loop_races");
	TCase *races = tcase_create("races");

	tcase_set_timeout(races, 120);
	tcase_add_loop_test(races, no_wake_up_is_lost, 0, 4);
	suite_add_tcase(suite, races);
	return io_tests_run(suite);
}
