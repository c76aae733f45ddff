/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/loop: a runtime inside a foreign loop, which waits for one
 * descriptor (G01, G03, G06).
 *
 * The loop is poll(2) or epoll_wait(2).  Other threads wake it in
 * tests/sched/test_sched_loop_races.c.  Most tests fail by a wait that is not
 * ended.
 */
#include <pthread.h>
#include <sys/epoll.h>

#include "tests/support/loop_kit.h"

/* ---- Readable ----------------------------------------------------------- */

static int64_t count_up(void *arg)
{
	++**(int **)arg;
	return 0;
}

START_TEST(task_of_the_loops_thread_makes_it_readable)
{
	struct weft_runtime *runtime = loop_begin();
	int ran = 0;

	loop_settle(runtime);
	for (int i = 0; i < 10; i++) {
		loop_submit(runtime, count_up, &ran);
		ck_assert_int_eq(ran, i);
		loop_until(runtime, ran > i);
		ck_assert_int_eq(ran, i + 1);
		loop_settle(runtime);
	}
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

START_TEST(first_turn_needs_no_wait)
{
	struct weft_runtime *runtime = loop_begin();
	int ran = 0;

	loop_submit(runtime, count_up, &ran);
	ck_assert(loop_readable(runtime, 0));
	loop_until(runtime, ran);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

struct sleeper {
	weft_nsec for_ns;
	weft_nsec woken_at;
};

static int64_t sleeps(void *arg)
{
	struct sleeper *sleeper = *(struct sleeper **)arg;

	ck_assert_int_eq(weft_sleep(sleeper->for_ns), 0);
	sleeper->woken_at = weft_now();
	return 0;
}

/* Also one that comes before those that are set already. */
START_TEST(time_that_comes_makes_it_readable)
{
	struct weft_runtime *runtime = loop_begin();
	struct sleeper sleepers[3] = {
		{ WEFT_MS(40), 0 },
		{ WEFT_MS(5), 0 },
		{ WEFT_MS(20), 0 },
	};
	weft_nsec began_at = weft_now();

	for (int i = 0; i < 3; i++) {
		loop_submit(runtime, sleeps, &sleepers[i]);
		loop_settle(runtime);
	}
	for (int i = 0; i < 3; i++) {
		loop_until(runtime, sleepers[i].woken_at);
		ck_assert_uint_ge(sleepers[i].woken_at,
				  began_at + sleepers[i].for_ns);
	}
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

static int64_t sleeps_for_long(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(3600));
}

static weft_nsec next_turn(struct weft_runtime *runtime)
{
	weft_nsec next_ns = 1;

	while (weft_turn(runtime, &next_ns))
		ck_assert_uint_eq(next_ns, 0);
	return next_ns;
}

START_TEST(time_of_the_next_turn_is_known)
{
	struct weft_runtime *runtime = loop_begin();
	weft_nsec began_at = weft_now(), next_ns;

	ck_assert_uint_eq(next_turn(runtime), WEFT_NEVER);
	loop_submit(runtime, sleeps_for_long, NULL);
	next_ns = next_turn(runtime);
	ck_assert_uint_ge(next_ns, began_at + WEFT_SEC(3600));
	ck_assert_uint_le(next_ns, weft_now() + WEFT_SEC(3601));
	ck_assert_uint_eq(next_turn(runtime), next_ns);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* Both ends are tasks; or the loop has one end itself. */
struct echo {
	int fds[2];
	int rounds;
	int64_t result;
	bool over;
};

static int64_t echoes(void *arg)
{
	struct echo *echo = *(struct echo **)arg;
	char buffer[64];
	int64_t n = 0;

	for (int i = 0; i < echo->rounds && n >= 0; i++) {
		n = weft_read(echo->fds[1], buffer, sizeof(buffer));
		if (n > 0)
			n = weft_write_all(echo->fds[1], buffer, (size_t)n,
					   NULL);
	}
	echo->result = n < 0 ? n : 0;
	echo->over = true;
	return 0;
}

START_TEST(socket_that_the_loop_writes_makes_it_readable)
{
	struct weft_runtime *runtime = loop_begin();
	struct echo echo = { .rounds = 100 };
	char byte;

	socket_pair(echo.fds);
	loop_submit(runtime, echoes, &echo);
	loop_settle(runtime);
	for (int i = 0; i < echo.rounds; i++) {
		struct pollfd answer = { echo.fds[0], POLLIN, 0 };

		ck_assert_int_eq(write(echo.fds[0], &(char){ (char)i }, 1), 1);
		loop_until(runtime, poll(&answer, 1, 0) == 1);
		ck_assert_int_eq(read(echo.fds[0], &byte, 1), 1);
		ck_assert_int_eq(byte, (char)i);
	}
	loop_until(runtime, echo.over);
	ck_assert_int_eq(echo.result, 0);
	close(echo.fds[0]);
	close(echo.fds[1]);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* Files, the pool, channels, deadlines, other tasks. */
struct works {
	pthread_t thread;
	struct weft_chan chan;
	int fds[2];
	bool over;
};

static int64_t blocks(void *arg)
{
	struct works *works = *(struct works **)arg;

	ck_assert(!pthread_equal(pthread_self(), works->thread));
	thread_pause_ns(1000000);
	return 5;
}

static int64_t sends(void *arg)
{
	struct works *works = *(struct works **)arg;

	ck_assert(pthread_equal(pthread_self(), works->thread));
	ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	return weft_chan_send(&works->chan, &(int){ 7 });
}

static int64_t works(void *arg)
{
	struct works *works = *(struct works **)arg;
	char byte, name[] = "/tmp/weft-loop-XXXXXX";
	int value = 0, fd = mkstemp(name);
	int64_t r = 0;

	ck_assert_int_ge(fd, 0);
	ck_assert(pthread_equal(pthread_self(), works->thread));
	ck_assert_int_eq(weft_blocking(blocks, &works), 5);
	ck_assert_int_eq(weft_pwrite(fd, "x", 1, 0), 1);
	ck_assert_int_eq(weft_fsync(fd), 0);
	ck_assert_int_eq(weft_pread(fd, &byte, 1, 0), 1);
	unlink(name);
	ck_assert_int_eq(weft_close(fd), 0);
	WEFT_SCOPE (scope, &r) {
		ck_assert_int_eq(weft_go(scope, sends, &works, sizeof(works)),
				 0);
		ck_assert_int_eq(weft_chan_recv(&works->chan, &value), 0);
	}
	ck_assert_int_eq(value, 7);
	WEFT_WITHIN (WEFT_MS(3))
		r = weft_read(works->fds[0], &byte, 1);
	ck_assert_int_eq(r, -ETIMEDOUT);
	works->over = true;
	return 0;
}

START_TEST(tasks_do_all_that_they_do_elsewhere)
{
	struct weft_runtime *runtime = loop_begin();
	struct works all = { .thread = pthread_self() };

	all.chan = (struct weft_chan)WEFT_CHAN_DIRECT(int);
	socket_pair(all.fds);
	loop_submit(runtime, works, &all);
	loop_until(runtime, all.over);
	close(all.fds[0]);
	close(all.fds[1]);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* ---- Bounds ------------------------------------------------------------- */

static int64_t yields_for_ever(void *arg)
{
	int *over = *(int **)arg;

	while (weft_yield() == 0)
		;
	*over = 1;
	return 0;
}

/* A timer that was set before is not late for it either. */
START_TEST(turn_ends_though_tasks_go_on_and_stays_readable)
{
	struct weft_runtime *runtime = loop_begin();
	struct sleeper sleeper = { WEFT_MS(3), 0 };
	weft_nsec next_ns = 1;
	int over = 0;

	loop_settle(runtime);
	loop_submit(runtime, yields_for_ever, &over);
	loop_submit(runtime, sleeps, &sleeper);
	for (int i = 0; i < 20 || !sleeper.woken_at; i++) {
		ck_assert_int_eq(weft_turn(runtime, &next_ns), 1);
		ck_assert_uint_eq(next_ns, 0);
		ck_assert(loop_readable(runtime, LOOP_PATIENCE_MS));
	}
	weft_cancel_all(runtime);
	loop_until(runtime, over);
	loop_settle(runtime);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

static int64_t waits_within(void *arg)
{
	int64_t r = 0;
	char byte;

	for (;;) {
		WEFT_WITHIN (WEFT_SEC(3600))
			r = weft_read(**(int **)arg, &byte, 1);
		if (r <= 0)
			return r;
	}
}

/* A request on epoll is looked at again a while after it has begun to wait. */
START_TEST(idle_runtime_is_quiet)
{
	enum { LOOKS_MAX = 5 };
	struct weft_runtime *runtime = loop_begin();
	struct weft_stats before, after;
	int fds[2], looks = 0;

	socket_pair(fds);
	loop_submit(runtime, waits_within, &fds[1]);
	loop_settle(runtime);
	ck_assert_int_eq(write(fds[0], "x", 1), 1);
	while (loop_readable(runtime, 300) && looks++ < LOOKS_MAX)
		ck_assert_int_ge(weft_turn(runtime, NULL), 0);
	ck_assert_int_lt(looks, LOOKS_MAX);
	weft_stats_get(runtime, &before);
	ck_assert(!loop_readable(runtime, 100));
	weft_stats_get(runtime, &after);
	ck_assert_uint_eq(before.total.ticks, after.total.ticks);
	ck_assert_int_eq(weft_stop(runtime), 0);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* ---- System calls ------------------------------------------------------- */

static bool counts;
static unsigned reads, waits, settings, enters;

struct itimerspec;
ssize_t __real_read(int fd, void *buf, size_t bytes);
ssize_t __wrap_read(int fd, void *buf, size_t bytes);
int __real_epoll_wait(int fd, struct epoll_event *events, int max, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *old);

ssize_t __wrap_read(int fd, void *buf, size_t bytes)
{
	reads += counts;
	return __real_read(fd, buf, bytes);
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	waits += counts;
	return __real_epoll_wait(fd, events, max, timeout);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *old)
{
	settings += counts;
	return __real_timerfd_settime(fd, flags, at, old);
}

#ifdef WITH_URING
int __real_io_uring_enter2(unsigned fd, unsigned submit, unsigned want,
			   unsigned flags, void *arg, size_t bytes);
int __wrap_io_uring_enter2(unsigned fd, unsigned submit, unsigned want,
			   unsigned flags, void *arg, size_t bytes);

int __wrap_io_uring_enter2(unsigned fd, unsigned submit, unsigned want,
			   unsigned flags, void *arg, size_t bytes)
{
	enters += counts;
	return __real_io_uring_enter2(fd, submit, want, flags, arg, bytes);
}
#endif

START_TEST(turn_in_vain_is_one_system_call_at_most)
{
	enum { TURNS = 1000 };
	struct weft_runtime *runtime = loop_begin();

	loop_submit(runtime, sleeps_for_long, NULL);
	loop_settle(runtime);
	counts = true;
	for (int i = 0; i < TURNS; i++)
		ck_assert_int_eq(weft_turn(runtime, NULL), 0);
	counts = false;
	ck_assert_uint_eq(settings, 0);
	ck_assert_uint_eq(enters, 0);
	ck_assert_uint_le(waits, TURNS);
	ck_assert_uint_eq(reads, 0);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* ---- Loops of others ---------------------------------------------------- */

/* In an epoll set, in another one, edge-triggered: a turn that returns 0 has
 * left nothing. */
START_TEST(descriptor_lies_in_sets_of_the_loops)
{
	struct weft_runtime *runtime = loop_begin();
	int inner = epoll_create1(EPOLL_CLOEXEC);
	int outer = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct sleeper sleeper;

	ck_assert_int_eq(epoll_ctl(inner, EPOLL_CTL_ADD, weft_loop_fd(runtime),
				   &event),
			 0);
	event.events = EPOLLIN;
	ck_assert_int_eq(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event), 0);
	for (int i = 0; i < 20; i++) {
		sleeper = (struct sleeper){ WEFT_MS(1), 0 };
		loop_submit(runtime, sleeps, &sleeper);
		while (!sleeper.woken_at) {
			if (epoll_wait(outer, &event, 1, -1) < 0)
				ck_assert_int_eq(errno, EINTR);
			(void)epoll_wait(inner, &event, 1, 0);
			while (weft_turn(runtime, NULL))
				;
		}
	}
	close(outer);
	close(inner);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched/loop");
	TCase *turns = tcase_create("turns");

	tcase_set_timeout(turns, 60);
	tcase_add_test(turns, task_of_the_loops_thread_makes_it_readable);
	tcase_add_test(turns, first_turn_needs_no_wait);
	tcase_add_test(turns, time_that_comes_makes_it_readable);
	tcase_add_test(turns, time_of_the_next_turn_is_known);
	tcase_add_test(turns, socket_that_the_loop_writes_makes_it_readable);
	tcase_add_test(turns, tasks_do_all_that_they_do_elsewhere);
	tcase_add_test(turns, turn_ends_though_tasks_go_on_and_stays_readable);
	tcase_add_test(turns, idle_runtime_is_quiet);
	tcase_add_test(turns, turn_in_vain_is_one_system_call_at_most);
	tcase_add_test(turns, descriptor_lies_in_sets_of_the_loops);
	suite_add_tcase(suite, turns);
	return io_tests_run(suite);
}
