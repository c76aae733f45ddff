/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/broadcast: broadcasts, watches and oneshots.  Every test runs over
 * seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "tests/support/sched_scene.h"

enum { ROOM = 8, SENT = 200, LISTENERS = 5 };

/* ---- Broadcasts ---------------------------------------------------------- */

struct station {
	struct weft_broadcast news;
	struct weft_wait_group ready;
	uint64_t heard[LISTENERS], missed[LISTENERS];
	bool slowly;
};

struct listener {
	struct station *station;
	unsigned number;
};

/* Values come in order; values that a listener missed are counted. */
static int64_t listen_to(void *arg)
{
	const struct listener *l = arg;
	struct station *s = l->station;
	struct weft_subscriber mine;
	uint64_t expected = 0, v;
	int64_t r;

	weft_subscribe(&s->news, &mine);
	weft_wait_group_done(&s->ready);
	while ((r = weft_broadcast_recv(&mine, &v)) >= 0) {
		EXPECT(v == expected + (uint64_t)r);
		s->heard[l->number]++;
		s->missed[l->number] += (uint64_t)r;
		expected = v + 1;
		if (s->slowly && fake_random(3) == 0)
			EXPECT(weft_sleep(fake_random(20000)) == 0);
	}
	EXPECT(r == -EPIPE);
	EXPECT(weft_broadcast_try_recv(&mine, &v) == -EPIPE);
	return 0;
}

static void broadcast_to_all(struct station *s)
{
	static uint64_t room[ROOM];

	s->news = (struct weft_broadcast)WEFT_BROADCAST_INIT(room);
	s->ready = (struct weft_wait_group)WEFT_WAIT_GROUP_INIT(LISTENERS);
	WEFT_SCOPE(all, NULL) {
		for (unsigned i = 0; i < LISTENERS; i++) {
			struct listener l = { s, i };

			EXPECT(WEFT_GO(all, listen_to, l) == 0);
		}
		EXPECT(weft_wait_group_wait(&s->ready) == 0);
		for (uint64_t i = 0; i < SENT; i++) {
			EXPECT(weft_broadcast_send(&s->news, &i) == 0);
			if (!s->slowly || i % 16 == 15)
				EXPECT(weft_sleep(WEFT_US(50)) == 0);
		}
		weft_broadcast_close(&s->news);
		EXPECT(weft_broadcast_send(&s->news, &(uint64_t){ 0 }) ==
		       -EPIPE);
	}
}

static int64_t all_in_time(void *arg)
{
	struct station s = { .slowly = false };

	(void)arg;
	broadcast_to_all(&s);
	for (unsigned i = 0; i < LISTENERS; i++)
		EXPECT(s.heard[i] == SENT && s.missed[i] == 0);
	return 0;
}

START_TEST(every_subscriber_gets_every_value)
{
	(void)run_main(_i, all_in_time);
}
END_TEST

static int64_t some_too_slow(void *arg)
{
	struct station s = { .slowly = true };

	(void)arg;
	broadcast_to_all(&s);
	for (unsigned i = 0; i < LISTENERS; i++) {
		EXPECT(s.heard[i] + s.missed[i] == SENT);
		/* At most 16 values fit, so each listener misses some. */
		EXPECT(s.missed[i] > 0);
	}
	return 0;
}

START_TEST(who_is_too_slow_is_told_how_much_was_missed)
{
	(void)run_main(_i, some_too_slow);
}
END_TEST

static int64_t join_late_and_give_up(void *arg)
{
	int room[2], v = 0;
	struct weft_broadcast news = WEFT_BROADCAST_INIT(room);
	struct weft_subscriber early, late;
	int64_t r = 0;

	(void)arg;
	weft_subscribe(&news, &early);
	EXPECT(weft_broadcast_send(&news, &(int){ 1 }) == 0);
	weft_subscribe(&news, &late);
	EXPECT(weft_broadcast_try_recv(&late, &v) == -EAGAIN);
	EXPECT(weft_broadcast_try_recv(&early, &v) == 0 && v == 1);
	WEFT_WITHIN(WEFT_MS(1))
		r = weft_broadcast_recv(&late, &v);
	EXPECT(r == -ETIMEDOUT);
	/* The wait that was given up has taken nothing. */
	for (int i = 2; i <= 4; i++)
		EXPECT(weft_broadcast_send(&news, &i) == 0);
	EXPECT(weft_broadcast_recv(&late, &v) == 1 && v == 3);
	EXPECT(weft_broadcast_recv(&late, &v) == 0 && v == 4);
	EXPECT(weft_broadcast_init(&news, room, 0, 4) == -EINVAL);
	EXPECT(weft_broadcast_init(&news, room, 2, 0) == -EINVAL);
	EXPECT(weft_broadcast_init(&news, room, 2, 4097) == -EINVAL);
	EXPECT(weft_broadcast_init(&news, NULL, 2, 4) == -EINVAL);
	EXPECT(weft_broadcast_init(&news, room, 2, sizeof(int)) == 0);
	return 0;
}

START_TEST(subscriber_gets_what_is_sent_from_then_on)
{
	(void)run_main(_i, join_late_and_give_up);
}
END_TEST

/* ---- Watches ------------------------------------------------------------- */

static int64_t watch_to_the_end(void *arg)
{
	struct weft_watch *watch = *(struct weft_watch **)arg;
	uint64_t version = 0, before = 0;
	int value = -1, last = -1, r;

	while ((r = weft_watch_wait(watch, &version, &value)) == 0) {
		EXPECT(version > before && value > last);
		EXPECT(version == (uint64_t)value + 1);
		before = version;
		last = value;
	}
	EXPECT(r == -EPIPE && value == 99);
	return 0;
}

static int64_t change_it(void *arg)
{
	int variable = 0, value;
	struct weft_watch watch = WEFT_WATCH_INIT(variable);
	struct weft_watch *pointer = &watch;
	uint64_t version = 1;
	int r = 0;

	(void)arg;
	WEFT_SCOPE(all, NULL) {
		for (int i = 0; i < LISTENERS; i++)
			EXPECT(WEFT_GO(all, watch_to_the_end, pointer) == 0);
		for (int i = 1; i < 100; i++) {
			EXPECT(weft_watch_set(&watch, &i) == 0);
			if (fake_random(3) == 0)
				EXPECT(weft_yield() == 0);
		}
		weft_watch_close(&watch);
		EXPECT(weft_watch_set(&watch, &(int){ 100 }) == -EPIPE);
	}
	EXPECT(weft_watch_get(&watch, &value) == 100 && value == 99);
	watch = (struct weft_watch)WEFT_WATCH_INIT(variable);
	WEFT_WITHIN(WEFT_MS(1))
		r = weft_watch_wait(&watch, &version, &value);
	EXPECT(r == -ETIMEDOUT && version == 1);
	return 0;
}

START_TEST(who_watches_sees_the_latest_value)
{
	(void)run_main(_i, change_it);
}
END_TEST

/* ---- Waits that are given up, or refused --------------------------------- */

struct waits {
	struct weft_subscriber *mine;
	struct weft_watch *watch;
	bool over[2];
};

static int64_t wait_for_news(void *arg)
{
	struct waits *w = *(struct waits **)arg;
	int v = 5;

	EXPECT(weft_broadcast_recv(w->mine, &v) == -ECANCELED && v == 5);
	w->over[0] = true;
	return 0;
}

static int64_t wait_for_change(void *arg)
{
	struct waits *w = *(struct waits **)arg;
	uint64_t version = 1;
	int v = 5;

	EXPECT(weft_watch_wait(w->watch, &version, &v) == -ECANCELED);
	EXPECT(version == 1 && v == 5);
	w->over[1] = true;
	return 0;
}

static int64_t cancel_both(void *arg)
{
	int room[2], v = 0, variable = 0;
	struct weft_broadcast news = WEFT_BROADCAST_INIT(room);
	struct weft_watch watch = WEFT_WATCH_INIT(variable);
	struct weft_subscriber mine;
	struct waits waits = { &mine, &watch, { false, false } };
	struct waits *pointer = &waits;
	uint64_t version = 1;

	(void)arg;
	weft_subscribe(&news, &mine);
	WEFT_SUPERVISE(all) {
		EXPECT(WEFT_GO(all, wait_for_news, pointer) == 0);
		EXPECT(WEFT_GO(all, wait_for_change, pointer) == 0);
		EXPECT(weft_sleep(fake_random(2) ? WEFT_US(10) : 1) == 0);
		weft_scope_cancel(all);
	}
	EXPECT(waits.over[0] && waits.over[1]);
	/* The waits have taken nothing. */
	EXPECT(weft_broadcast_send(&news, &(int){ 1 }) == 0);
	EXPECT(weft_broadcast_recv(&mine, &v) == 0 && v == 1);
	EXPECT(weft_watch_set(&watch, &(int){ 2 }) == 0);
	EXPECT(weft_watch_wait(&watch, &version, &v) == 0 && v == 2);
	return 0;
}

START_TEST(cancelled_waits_take_nothing)
{
	(void)run_main(_i, cancel_both);
}
END_TEST

static int64_t try_to_wait(void *state)
{
	int room[2], v = 0, variable = 0;
	struct weft_broadcast news = WEFT_BROADCAST_INIT(room);
	struct weft_watch watch = WEFT_WATCH_INIT(variable);
	struct weft_subscriber mine;
	struct weft_oneshot *oneshot;
	uint64_t version = 1;

	(void)state;
	weft_subscribe(&news, &mine);
	EXPECT(weft_broadcast_recv(&mine, &v) == -EPERM);
	EXPECT(weft_watch_wait(&watch, &version, &v) == -EPERM);
	EXPECT(weft_oneshot_new(sizeof(v), &oneshot) == 0);
	EXPECT(weft_oneshot_recv(oneshot, &v) == -EPERM);
	weft_oneshot_drop(oneshot);
	EXPECT(weft_oneshot_try_recv(oneshot, &v) == -EPIPE);
	return 0;
}

static int64_t start_a_future(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(all)
		EXPECT(weft_go_future(all, try_to_wait, NULL, 0) == 0);
	return 0;
}

START_TEST(future_cannot_wait_for_a_value)
{
	(void)run_main(_i, start_a_future);
}
END_TEST

/* ---- Oneshots ------------------------------------------------------------ */

struct reply {
	struct weft_oneshot *oneshot;
	uint64_t value; /* 0: the oneshot is dropped */
	int expected;
};

static int64_t reply_later(void *arg)
{
	const struct reply *reply = arg;

	for (uint64_t n = fake_random(3); n > 0; n--)
		(void)weft_yield();
	if (!reply->value)
		weft_oneshot_drop(reply->oneshot);
	else
		EXPECT(weft_oneshot_send(reply->oneshot, &reply->value) ==
		       reply->expected);
	return 0;
}

static struct weft_oneshot *ask(struct weft_scope *scope, uint64_t value,
				int expected)
{
	struct reply reply = { .value = value, .expected = expected };

	EXPECT(weft_oneshot_new(sizeof(value), &reply.oneshot) == 0);
	EXPECT(WEFT_GO(scope, reply_later, reply) == 0);
	return reply.oneshot;
}

static int64_t ask_often(void *arg)
{
	struct weft_oneshot *o;
	uint64_t v;

	(void)arg;
	EXPECT(weft_oneshot_new(0, &o) == -EINVAL);
	EXPECT(weft_oneshot_new(4097, &o) == -EINVAL);
	WEFT_SCOPE(all, NULL)
		for (uint64_t i = 1; i <= 100; i++) {
			int r;

			EXPECT(weft_oneshot_recv(ask(all, i, 0), &v) == 0);
			EXPECT(v == i);
			EXPECT(weft_oneshot_recv(ask(all, 0, 0), &v) ==
			       -EPIPE);
			o = ask(all, i, 0);
			while ((r = weft_oneshot_try_recv(o, &v)) == -EAGAIN)
				EXPECT(weft_yield() == 0);
			EXPECT(r == 0 && v == i);
		}
	return 0;
}

START_TEST(oneshot_brings_its_value_or_says_that_none_comes)
{
	(void)run_main(_i, ask_often);
}
END_TEST

/* The receiver has left: the sender gets -EPIPE, and frees the memory (a leak
 * checker sees whether it does). */
static int64_t give_up_first(void *arg)
{
	uint64_t v = 0, wait_ns = *(uint64_t *)arg;
	struct reply reply = { .value = 7, .expected = -EPIPE };
	int r = 0;

	EXPECT(weft_oneshot_new(sizeof(v), &reply.oneshot) == 0);
	WEFT_WITHIN(wait_ns)
		r = weft_oneshot_recv(reply.oneshot, &v);
	EXPECT(r == -ETIMEDOUT);
	weft_oneshot_abandon(reply.oneshot);
	return reply_later(&reply);
}

static int64_t give_up_by_chance(void *arg)
{
	(void)arg;
	WEFT_SCOPE(all, NULL)
		for (int i = 0; i < 50; i++) {
			uint64_t wait_ns = fake_random(3000);

			EXPECT(WEFT_GO(all, give_up_first, wait_ns) == 0);
		}
	return 0;
}

START_TEST(sender_is_told_that_nobody_waits_any_more)
{
	(void)run_main(_i, give_up_by_chance);
}
END_TEST

/* The same, but sender and receiver leave at the same time: the last one frees
 * the memory. */
static int64_t meet(void *arg)
{
	uint64_t v = 0;
	int r = 0;

	(void)arg;
	WEFT_SUPERVISE(senders)
		for (int i = 0; i < 50; i++) {
			struct weft_oneshot *o;

			EXPECT(weft_oneshot_new(sizeof(v), &o) == 0);
			EXPECT(WEFT_GO(senders, reply_later,
				       ((struct reply){ o, 0, 0 })) == 0);
			WEFT_WITHIN(fake_random(4000))
				r = weft_oneshot_recv(o, &v);
			if (r == -ETIMEDOUT)
				weft_oneshot_abandon(o);
			else
				EXPECT(r == -EPIPE);
		}
	return 0;
}

START_TEST(who_leaves_last_frees_the_oneshot)
{
	(void)run_main(_i, meet);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test(tc, test, 0, seeds(SEEDS))

static Suite *broadcast_suite(void)
{
	Suite *suite = suite_create("sync/broadcast");
	TCase *tc = tcase_create("broadcast");

	ADD(tc, every_subscriber_gets_every_value);
	ADD(tc, who_is_too_slow_is_told_how_much_was_missed);
	ADD(tc, subscriber_gets_what_is_sent_from_then_on);
	suite_add_tcase(suite, tc);
	tc = tcase_create("watch");
	ADD(tc, who_watches_sees_the_latest_value);
	suite_add_tcase(suite, tc);
	tc = tcase_create("waits");
	ADD(tc, cancelled_waits_take_nothing);
	ADD(tc, future_cannot_wait_for_a_value);
	suite_add_tcase(suite, tc);
	tc = tcase_create("oneshot");
	ADD(tc, oneshot_brings_its_value_or_says_that_none_comes);
	ADD(tc, sender_is_told_that_nobody_waits_any_more);
	ADD(tc, who_leaves_last_frees_the_oneshot);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { broadcast_suite };

	return run_suites(make, 1);
}
