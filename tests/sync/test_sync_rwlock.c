/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/rwlock: which tasks hold a reader-writer lock, and in what order
 * they get it.  Every test runs over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <string.h>

#include <weft/weft.h>

#include "tests/support/sync_scene.h"

enum { TASKS = 8, ROUNDS = 20 };

static struct weft_rwlock rwlock;
static unsigned readers, writers, entries;

static void read_a_while(void)
{
	EXPECT(weft_rwlock_read(&rwlock) == 0);
	EXPECT(writers == 0);
	readers++;
	dwell();
	EXPECT(writers == 0);
	readers--;
	weft_rwlock_unlock(&rwlock);
}

static void write_a_while(void)
{
	unsigned before;

	EXPECT(weft_rwlock_write(&rwlock) == 0);
	EXPECT(writers++ == 0 && readers == 0);
	before = entries;
	dwell();
	entries = before + 1;
	EXPECT(--writers == 0 && readers == 0);
	weft_rwlock_unlock(&rwlock);
}

static int64_t read_and_write(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 4 == 0)
			write_a_while();
		else
			read_a_while();
		if (fake_random(2))
			dwell();
	}
	return 0;
}

static void rwlock_begin(void)
{
	rwlock = (struct weft_rwlock)WEFT_RWLOCK_INIT;
	readers = writers = entries = 0;
}

static int64_t share(void *arg)
{
	(void)arg;
	rwlock_begin();
	WEFT_SUPERVISE (all)
		for (int i = 0; i < TASKS; i++)
			EXPECT(weft_go(all, read_and_write, NULL, 0) == 0);
	EXPECT(entries == TASKS * ROUNDS / 4);
	EXPECT(weft_rwlock_try_write(&rwlock) == 0);
	weft_rwlock_unlock(&rwlock);
	return 0;
}

START_TEST(writer_is_alone)
{
	(void)run_main(_i, share);
}
END_TEST

/* The order of arrival, while a writer holds the lock. */
static const char comers[] = "rrwrrrwwrwr";

/* Counts the comers of a kind before this one. */
static unsigned before_it(int number, char kind)
{
	unsigned count = 0;

	for (int i = 0; i < number; i++)
		count += comers[i] == kind;
	return count;
}

/* Counts the readers that stand together around this one. */
static unsigned neighbours(int number)
{
	int first = number, end = number;

	while (first > 0 && comers[first - 1] == 'r')
		first--;
	while (comers[end] == 'r')
		end++;
	return (unsigned)(end - first);
}

static unsigned read_by, written_by;

static void read_in_turn(int number)
{
	EXPECT(weft_rwlock_read(&rwlock) == 0);
	EXPECT(written_by == before_it(number, 'w'));
	readers++;
	EXPECT(weft_sleep(WEFT_US(500)) == 0);
	EXPECT(readers == neighbours(number));
	EXPECT(weft_sleep(WEFT_US(500)) == 0);
	readers--;
	read_by++;
	weft_rwlock_unlock(&rwlock);
}

static void write_in_turn(int number)
{
	EXPECT(weft_rwlock_write(&rwlock) == 0);
	EXPECT(written_by == before_it(number, 'w'));
	EXPECT(read_by == before_it(number, 'r'));
	EXPECT(weft_sleep(WEFT_US(500)) == 0);
	written_by++;
	weft_rwlock_unlock(&rwlock);
}

static int64_t read_or_write_in_turn(void *arg)
{
	int number = *(int *)arg;

	EXPECT(weft_sleep(WEFT_MS(1 + number)) == 0);
	if (comers[number] == 'r')
		read_in_turn(number);
	else
		write_in_turn(number);
	return 0;
}

static int64_t serve_in_order(void *arg)
{
	int count = (int)strlen(comers);

	(void)arg;
	rwlock_begin();
	read_by = written_by = 0;
	WEFT_SUPERVISE (all) {
		EXPECT(weft_rwlock_write(&rwlock) == 0);
		for (int i = 0; i < count; i++)
			EXPECT(WEFT_GO(all, read_or_write_in_turn, i) == 0);
		EXPECT(weft_sleep(WEFT_MS(count + 1)) == 0);
		weft_rwlock_unlock(&rwlock);
		EXPECT(weft_rwlock_try_read(&rwlock) == -EBUSY);
		EXPECT(weft_rwlock_write(&rwlock) == 0);
		EXPECT(read_by + written_by == (unsigned)count);
		weft_rwlock_unlock(&rwlock);
	}
	return 0;
}

START_TEST(rwlock_is_handed_over_in_order_to_readers_together)
{
	(void)run_main(_i, serve_in_order);
}
END_TEST

static bool enough;

static int64_t keep_reading(void *arg)
{
	int number = *(int *)arg;

	EXPECT(weft_sleep(WEFT_US(250 * number)) == 0);
	while (!enough) {
		EXPECT(weft_rwlock_read(&rwlock) == 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		weft_rwlock_unlock(&rwlock);
	}
	return 0;
}

static int64_t keep_writing(void *arg)
{
	(void)arg;
	while (!enough) {
		EXPECT(weft_rwlock_write(&rwlock) == 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		weft_rwlock_unlock(&rwlock);
	}
	return 0;
}

static int64_t write_among_readers(void *arg)
{
	weft_nsec asked_ns;

	(void)arg;
	rwlock_begin();
	enough = false;
	WEFT_SUPERVISE (all) {
		for (int i = 0; i < 4; i++)
			EXPECT(WEFT_GO(all, keep_reading, i) == 0);
		EXPECT(weft_sleep(WEFT_MS(5)) == 0);
		asked_ns = weft_now();
		EXPECT(weft_rwlock_write(&rwlock) == 0);
		/* The writer gets the lock when the present readers have
		 * left. */
		EXPECT(weft_now() - asked_ns < WEFT_US(1500));
		enough = true;
		weft_rwlock_unlock(&rwlock);
	}
	return 0;
}

START_TEST(readers_do_not_starve_a_writer)
{
	(void)run_main(_i, write_among_readers);
}
END_TEST

static int64_t read_among_writers(void *arg)
{
	weft_nsec asked_ns;

	(void)arg;
	rwlock_begin();
	enough = false;
	WEFT_SUPERVISE (all) {
		for (int i = 0; i < 3; i++)
			EXPECT(weft_go(all, keep_writing, NULL, 0) == 0);
		EXPECT(weft_sleep(WEFT_US(5500)) == 0);
		asked_ns = weft_now();
		EXPECT(weft_rwlock_read(&rwlock) == 0);
		/* The wait is for the present writer and the two that waited
		 * before. */
		EXPECT(weft_now() - asked_ns < WEFT_US(4000));
		enough = true;
		weft_rwlock_unlock(&rwlock);
	}
	return 0;
}

START_TEST(writers_do_not_starve_a_reader)
{
	(void)run_main(_i, read_among_writers);
}
END_TEST

/* Arrives at 1 ms; at 5 ms it gives up or is cancelled. */
static int64_t write_in_vain(void *arg)
{
	bool cancelled = *(bool *)arg;
	int wanted = cancelled ? -ECANCELED : -ETIMEDOUT;

	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	WEFT_WITHIN (cancelled ? WEFT_SEC(1) : WEFT_MS(4))
		EXPECT(weft_rwlock_write(&rwlock) == wanted);
	return 0;
}

static weft_nsec begun_ns;

static int64_t read_at_5_ms(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
	EXPECT(weft_rwlock_try_read(&rwlock) == -EBUSY);
	EXPECT(weft_rwlock_read(&rwlock) == 0);
	EXPECT(is_about(weft_now(), begun_ns + WEFT_MS(5)));
	readers++;
	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
	EXPECT(readers == 3);
	weft_rwlock_unlock(&rwlock);
	return 0;
}

static void give_up_before_readers(bool cancelled)
{
	rwlock_begin();
	begun_ns = weft_now();
	EXPECT(weft_rwlock_read(&rwlock) == 0);
	WEFT_SUPERVISE (all) {
		struct weft_task writer = start(all, write_in_vain, &cancelled,
						sizeof(cancelled));

		for (int i = 0; i < 3; i++)
			EXPECT(weft_go(all, read_at_5_ms, NULL, 0) == 0);
		EXPECT(weft_sleep_until(begun_ns + WEFT_MS(5)) == 0);
		if (cancelled)
			EXPECT(weft_cancel(writer) == 0);
		EXPECT(weft_sleep(WEFT_MS(5)) == 0);
		EXPECT(readers == 3);
		weft_rwlock_unlock(&rwlock);
	}
	EXPECT(weft_rwlock_try_write(&rwlock) == 0);
	weft_rwlock_unlock(&rwlock);
}

static int64_t give_up_before_readers_twice(void *arg)
{
	(void)arg;
	give_up_before_readers(false);
	give_up_before_readers(true);
	return 0;
}

START_TEST(writer_that_gives_up_lets_readers_in_at_once)
{
	(void)run_main(_i, give_up_before_readers_twice);
}
END_TEST

static int64_t try_rwlock(void *arg)
{
	(void)arg;
	rwlock_begin();
	EXPECT(weft_rwlock_try_read(&rwlock) == 0);
	EXPECT(weft_rwlock_try_read(&rwlock) == 0);
	EXPECT(weft_rwlock_try_write(&rwlock) == -EBUSY);
	weft_rwlock_unlock(&rwlock);
	EXPECT(weft_rwlock_try_write(&rwlock) == -EBUSY);
	weft_rwlock_unlock(&rwlock);
	EXPECT(weft_rwlock_try_write(&rwlock) == 0);
	EXPECT(weft_rwlock_try_write(&rwlock) == -EBUSY);
	EXPECT(weft_rwlock_try_read(&rwlock) == -EBUSY);
	weft_rwlock_unlock(&rwlock);
	EXPECT(weft_rwlock_read(&rwlock) == 0);
	weft_rwlock_unlock(&rwlock);
	return 0;
}

START_TEST(rwlock_is_tried_without_waiting)
{
	(void)run_main(_i, try_rwlock);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *rwlock_suite(void)
{
	Suite *suite = suite_create("sync/rwlock");
	TCase *tc = tcase_create("order");

	ADD(tc, writer_is_alone);
	ADD(tc, rwlock_is_handed_over_in_order_to_readers_together);
	ADD(tc, readers_do_not_starve_a_writer);
	ADD(tc, writers_do_not_starve_a_reader);
	ADD(tc, writer_that_gives_up_lets_readers_in_at_once);
	ADD(tc, rwlock_is_tried_without_waiting);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { rwlock_suite };

	return run_suites(make, 1);
}
