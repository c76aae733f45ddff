/* SPDX-License-Identifier: MIT */
/*
 * Suite dump/waits: the dump describes each kind of wait correctly.
 *
 * The table below has one task for each kind of wait, with the words, object,
 * descriptor and state that its line in the dump must show.
 */
#include "tests/support/dump_scene.h"

static struct weft_mutex mutex;
static struct weft_rwlock rwlock;
static struct weft_sem sem;
static struct weft_cond cond;
static struct weft_event event;
static struct weft_notify notify;
static struct weft_wait_group count = WEFT_WAIT_GROUP_INIT(1);
static struct weft_barrier barrier = WEFT_BARRIER_INIT(2);
static struct weft_once once;
static struct weft_chan chan, full;
static struct weft_oneshot *oneshot;
static struct weft_broadcast broadcast;
static int full_room[2], broadcast_room[4], watched;
static struct weft_watch watch = WEFT_WATCH_INIT(watched);
static struct weft_scope *small;
static struct weft_lane lane = WEFT_LANE_INIT("slow", 1);
static int pipe_fds[2], listener_fd, socket_fds[2];
static weft__atomic(bool) job_ends;

/* A task that waits, and how the dump must describe it. */
struct waiting {
	const char *name;
	weft_fn fn;
	const char *words;
	const void *object; /* its address follows the words; or NULL */
	const int *fd;	    /* its number follows; or NULL */
	const char *state;  /* of the object, or NULL */
};

#define WAITS(name, call)                   \
	static int64_t name(void *arg)      \
	{                                   \
		int64_t r = call;           \
                                            \
		(void)arg;                  \
		return r < 0 ? 0 : 1;       \
	}

static int64_t job(void *arg)
{
	(void)arg;
	while (!weft__load(&job_ends, acquire))
		thread_pause_ns(1000000);
	return 0;
}

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int64_t wait_for_once(void *arg);
static int64_t once_again(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(1000));
}

static int64_t receive_broadcast(void)
{
	struct weft_subscriber subscriber;
	int item;

	weft_subscribe(&broadcast, &subscriber);
	return weft_broadcast_recv(&subscriber, &item);
}

static int64_t await_watch(void)
{
	int item;
	uint64_t version = weft_watch_get(&watch, &item);

	return weft_watch_wait(&watch, &version, &item);
}

static int64_t await_condition(void)
{
	struct weft_mutex own = WEFT_MUTEX_INIT;
	int r = weft_mutex_lock(&own);

	if (r == 0) {
		r = weft_cond_wait(&cond, &own);
		weft_mutex_unlock(&own);
	}
	return r;
}

static int64_t await_cases(void)
{
	struct weft_case cases[] = {
		WEFT_RECV(&chan, &(int){ 0 }),
		WEFT_AT(weft_now() + WEFT_SEC(1000)),
	};

	return weft_select(cases, 2);
}

static int64_t await_timer(void)
{
	struct weft_timer timer = { { 0 } };
	int64_t r = weft_timer_set(&timer, weft_now() + WEFT_SEC(1000));

	if (r == 0)
		r = weft_timer_wait(&timer);
	(void)weft_timer_clear(&timer);
	return r;
}

static int64_t await_child(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task child;
	int64_t r = 0;

	opts.name = "joined";
	opts.ret_task = &child;
	WEFT_SUPERVISE(all) {
		ck_assert_int_eq(weft_go_opts(all, once_again, NULL, 0, &opts),
				 0);
		/* Moves the child out of the hand-off slot, from which it would
		 * be switched to directly. */
		(void)weft_yield();
		r = weft_join(child, NULL);
	}
	return r;
}

static int64_t await_scope(void)
{
	WEFT_SUPERVISE(all)
		ck_assert_int_eq(weft_go(all, once_again, NULL, 0), 0);
	return 0;
}

static int64_t lock_shortly(void)
{
	int r = weft_mutex_lock(&mutex);

	if (r == 0)
		weft_mutex_unlock(&mutex);
	return r;
}

static char byte;

WAITS(lock, lock_shortly())
WAITS(read_lock, weft_rwlock_read(&rwlock))
WAITS(write_lock, weft_rwlock_write(&rwlock))
WAITS(acquire, weft_sem_acquire(&sem, 1))
WAITS(wait_for_condition, await_condition())
WAITS(wait_for_event, weft_event_wait(&event))
WAITS(wait_for_notification, weft_notify_wait(&notify))
WAITS(wait_for_count, weft_wait_group_wait(&count))
WAITS(wait_at_barrier, weft_barrier_wait(&barrier))
WAITS(wait_for_once, weft_once_run(&once, once_again, NULL))
WAITS(send_to_channel, weft_chan_send(&full, &(int){ 1 }))
WAITS(receive, weft_chan_recv(&chan, &(int){ 1 }))
WAITS(wait_for_oneshot, weft_oneshot_recv(oneshot, &(int){ 1 }))
WAITS(wait_for_broadcast, receive_broadcast())
WAITS(wait_for_watch, await_watch())
WAITS(wait_for_select, await_cases())
WAITS(wait_for_place, weft_go(small, nothing, NULL, 0))
WAITS(wait_for_job, weft_blocking_lane(&lane, job, NULL))
WAITS(nap, weft_sleep(WEFT_SEC(1000)))
WAITS(wait_for_timer, await_timer())
WAITS(join, await_child())
WAITS(end_scope, await_scope())
WAITS(read_pipe, weft_read(pipe_fds[0], &byte, 1))
WAITS(poll_pipe, weft_poll(pipe_fds[0], POLLIN))
WAITS(accept_peer, weft_accept(listener_fd, NULL))
WAITS(receive_socket, weft_recv(socket_fds[0], &byte, 1, 0))

static const struct waiting all_waits[] = {
	{ "w1", lock, "to lock mutex", &mutex, NULL, NULL },
	{ "w2", read_lock, "to read-lock", &rwlock, NULL, " held by task " },
	{ "w3", write_lock, "to write-lock", &rwlock, NULL,
	  " held by task " },
	{ "w4", acquire, "for permits of semaphore", &sem, NULL,
	  "(0 free)" },
	{ "w5", wait_for_condition, "for condition", &cond, NULL, NULL },
	{ "w6", wait_for_event, "for event", &event, NULL, NULL },
	{ "w7", wait_for_notification, "for notification", &notify,
	  NULL, NULL },
	{ "w8", wait_for_count, "for the end of count", &count, NULL,
	  "(1 left)" },
	{ "w9", wait_at_barrier, "at barrier", &barrier, NULL,
	  "(1 of 2 came)" },
	{ "w10", wait_for_once, "for the result of once", &once, NULL, NULL },
	{ "w11", send_to_channel, "to send to channel", &full, NULL,
	  "(2 of 2 values)" },
	{ "w12", receive, "to receive from channel", &chan, NULL,
	  "(without room)" },
	{ "w13", wait_for_oneshot, "for oneshot", NULL, NULL, NULL },
	{ "w14", wait_for_broadcast, "to receive from broadcast", &broadcast,
	  NULL, NULL },
	{ "w15", wait_for_watch, "for a change of watch", &watch, NULL, NULL },
	{ "w16", wait_for_select, "for one of 2 cases: to receive from channel",
	  &chan, NULL, "(without room); for 9" },
	{ "w17", wait_for_place, "for a place in scope", NULL, NULL, NULL },
	{ "w18", wait_for_job, "for blocking work", NULL, NULL, NULL },
	{ "w19", nap, "for 9", NULL, NULL, NULL },
	{ "w20", wait_for_timer, "for 9", NULL, NULL, NULL },
	{ "w21", join, "to join task", NULL, NULL, NULL },
	{ "w22", end_scope, "for 1 task of its scope to end", NULL,
	  NULL, NULL },
	{ "w23", read_pipe, "to read from descriptor", NULL,
	  &pipe_fds[0], NULL },
	{ "w24", poll_pipe, "to read from descriptor", NULL,
	  &pipe_fds[0], NULL },
	{ "w25", accept_peer, "to accept from descriptor", NULL,
	  &listener_fd, NULL },
	{ "w26", receive_socket, "to receive from descriptor", NULL,
	  &socket_fds[0], NULL },
};

enum { ALL_WAITS = sizeof(all_waits) / sizeof(all_waits[0]) };

static void waiting_start(struct weft_scope *scope,
			  const struct waiting *waiting)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = waiting->name;
	ck_assert_int_eq(weft_go_opts(scope, waiting->fn, NULL, 0, &opts), 0);
}

/* Builds the words that follow the age on the task's line. */
static void words_of(const struct waiting *waiting, char *ret, size_t bytes)
{
	if (waiting->object)
		snprintf(ret, bytes, "waits %s %p", waiting->words,
			 waiting->object);
	else if (waiting->fd)
		snprintf(ret, bytes, "waits %s %d", waiting->words,
			 *waiting->fd);
	else
		snprintf(ret, bytes, "waits %s", waiting->words);
}

static bool is_told(const char *text, const struct waiting *waiting)
{
	char name[32], words[128], line[512];

	snprintf(name, sizeof(name), " %s (", waiting->name);
	words_of(waiting, words, sizeof(words));
	return line_with(text, name, line, sizeof(line)) &&
	       strstr(line, words) &&
	       (!waiting->state || strstr(line, waiting->state));
}

static void expect_all_told(void)
{
	weft_nsec by = weft_now() + WEFT_SEC(20);
	char *text = dump_text(NULL);

	for (int i = 0; i < ALL_WAITS;) {
		if (is_told(text, &all_waits[i])) {
			i++;
			continue;
		}
		ck_assert_msg(weft_now() < by, "%s is not told in\n%s",
			      all_waits[i].name, text);
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		free(text);
		text = dump_text(NULL);
		i = 0;
	}
	free(text);
}

/* The objects that the tasks wait for are held, full or empty. */
static void scene_open(void)
{
	char address[WEFT_ADDR_TEXT_BYTES];

	memset(&mutex, 0, sizeof(mutex));
	memset(&rwlock, 0, sizeof(rwlock));
	ck_assert_int_eq(weft_mutex_lock(&mutex), 0);
	ck_assert_int_eq(weft_rwlock_write(&rwlock), 0);
	ck_assert_int_eq(weft_chan_init(&chan, NULL, 0, sizeof(int)), 0);
	ck_assert_int_eq(weft_chan_init(&full, full_room, 2, sizeof(int)), 0);
	while (weft_chan_try_send(&full, &(int){ 1 }) == 0)
		;
	ck_assert_int_eq(weft_oneshot_new(sizeof(int), &oneshot), 0);
	ck_assert_int_eq(weft_broadcast_init(&broadcast, broadcast_room, 4,
					     sizeof(int)),
			 0);
	ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	socket_pair(socket_fds);
	listener_fd = tcp_listener(address);
	weft__store(&job_ends, false, relaxed);
}

static void scene_close(void)
{
	weft_mutex_unlock(&mutex);
	weft_rwlock_unlock(&rwlock);
	weft_oneshot_drop(oneshot);
	weft_oneshot_abandon(oneshot);
	close_both(pipe_fds);
	close_both(socket_fds);
	ck_assert_int_eq(weft_close(listener_fd), 0);
}

static int64_t run_once(void *arg)
{
	(void)arg;
	return weft_once_run(&once, once_again, NULL) < 0 ? 0 : 1;
}

IO_TEST(every_kind_of_wait_is_told)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task first;

	opts.ret_task = &first;
	scene_open();
	WEFT_SUPERVISE(all) {
		ck_assert_int_eq(weft_go_opts(all, run_once, NULL, 0, &opts),
				 0);
		/* The next one that runs it waits. */
		wait_until(task_has_settled(first));
		WEFT_SUPERVISE(one) {
			ck_assert_int_eq(weft_scope_limit(one, 1), 0);
			ck_assert_int_eq(weft_go(one, once_again, NULL, 0), 0);
			small = one;
			for (int i = 0; i < ALL_WAITS; i++)
				waiting_start(all, &all_waits[i]);
			expect_all_told();
			weft__store(&job_ends, true, release);
			weft_scope_cancel(all);
			weft_scope_cancel(one);
		}
	}
	scene_close();
	return 0;
}

/* ---- A select ------------------------------------------------------------ */

static int64_t select_all_kinds(struct weft_task child)
{
	const struct weft_case never = WEFT_AT(WEFT_NEVER);
	struct weft_case cases[12] = {
		WEFT_AT(0),
		WEFT_SEND(&full, &watched),
		WEFT_JOINED(child),
		WEFT_READY(pipe_fds[0], POLLIN),
	};

	cases[0].kind = WEFT_CASE_NONE;
	for (int i = 4; i < 12; i++)
		cases[i] = never;
	return weft_select(cases, 12);
}

static int64_t select_with_child(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int64_t r = 0;

	opts.ret_task = *(struct weft_task **)arg;
	WEFT_SUPERVISE(all) {
		ck_assert_int_eq(weft_go_opts(all, once_again, NULL, 0, &opts),
				 0);
		r = select_all_kinds(*opts.ret_task);
		weft_scope_cancel(all);
	}
	return r < 0 ? 0 : 1;
}

IO_TEST(cases_of_a_select_are_told)
{
	struct weft_task child = { 0 }, *place = &child;
	char words[256], function[32] = "once_again", *text;

	scene_open();
	WEFT_SUPERVISE(all) {
		ck_assert_int_eq(WEFT_GO(all, select_with_child, place), 0);
		text = dump_until("for one of 11 cases");
		if (!dump_has_backtraces(text))
			snprintf(function, sizeof(function), "%p",
				 (void *)(uintptr_t)once_again);
		snprintf(words, sizeof(words),
			 "cases: to send to channel %p%s (2 of 2 values); "
			 "for the end of task %llx (%s); "
			 "to read from descriptor %d; for ever; for ever; "
			 "for ever; for ever; for ever; and 3 more\n",
			 (void *)&full,
			 dump_has_backtraces(text) ? " <full>" : "",
			 (unsigned long long)child.id, function,
			 pipe_fds[0]);
		ck_assert_msg(strstr(text, words), "%s not in\n%s", words,
			      text);
		free(text);
		weft_scope_cancel(all);
	}
	scene_close();
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("dump/waits");
	TCase *tcase = tcase_create("waits");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, every_kind_of_wait_is_told);
	io_add_test(tcase, cases_of_a_select_are_told);
	return io_tests_run(suite);
}
