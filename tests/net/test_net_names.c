/* SPDX-License-Identifier: MIT */
/*
 * Names: what servers are asked, what is kept, and who waits how long.
 *
 * All servers are on the loopback, and part of the test (names_kit.h).
 */
#include "tests/support/names_kit.h"

/* ---- Answers ------------------------------------------------------------- */

NAMES_TEST(both_families_are_returned)
{
	struct weft_addr addrs[4];
	bool seen[2] = { false, false };
	int n = weft_resolve("both.test:443", NULL, addrs, 4);

	ck_assert_int_eq(n, 2);
	for (int i = 0; i < n; i++) {
		ck_assert_int_eq(weft_addr_port(&addrs[i]), 443);
		seen[weft_addr_family(&addrs[i]) == AF_INET6] = true;
	}
	ck_assert(seen[0] && seen[1]);
	/* No more than there is room for. */
	ck_assert_int_eq(weft_resolve("both.test:443", NULL, addrs, 1), 1);
	ck_assert_int_eq(server_asked(server, NULL), 2);
}

NAMES_TEST(one_family_is_asked_for_alone)
{
	struct weft_resolve_opts opts = WEFT_RESOLVE_OPTS_INIT;
	struct weft_addr addrs[4];

	opts.family = AF_INET6;
	ck_assert_int_eq(weft_resolve("both.test:1", &opts, addrs, 4), 1);
	ck_assert_int_eq(weft_addr_family(&addrs[0]), AF_INET6);
	ck_assert_int_eq(server_asked(server, NULL), 1);
	ck_assert_int_eq(weft_resolve("four.test:1", &opts, addrs, 4),
			 -ENODATA);
}

/* The server answers no query before it has both. */
NAMES_TEST(families_are_asked_at_the_same_time)
{
	expect_first("pair.test:1", "127.0.0.4:1");
	ck_assert_int_eq(server_asked(server, "pair.test"), 2);
}

NAMES_TEST(errors_differ)
{
	ck_assert_int_eq(look_up("none.test:1"), -ENOENT);
	ck_assert_int_eq(look_up("empty.test:1"), -ENODATA);
	ck_assert_int_eq(look_up("fail.test:1"), -EAGAIN);
	ck_assert_int_eq(look_up("broken.test:1"), -EBADMSG);
	ck_assert_int_eq(weft_tcp_listen("none.test:0", NULL), -ENOENT);
	ck_assert_int_eq(weft_tcp_connect("empty.test:1", NULL), -ENODATA);
	ck_assert_int_eq(weft_tcp_connect("fail.test:1", NULL), -EAGAIN);
	ck_assert_int_gt(server_asked(server, "broken.test"), 0);
}

NAMES_TEST(truncated_answer_is_asked_for_over_tcp)
{
	expect_first("big.test:1", "127.0.0.9:1");
	/* Either family over UDP, and again over TCP. */
	ck_assert_int_eq(server_asked(server, "big.test"), 4);
}

NAMES_TEST(name_is_one_however_it_is_written)
{
	ck_assert_int_eq(look_up("four.test:1"), 1);
	ck_assert_int_eq(look_up("FOUR.test:2"), 1);
	ck_assert_int_eq(server_asked(server, NULL), 2);
}

NAMES_TEST(localhost_is_known_without_a_server)
{
	struct weft_addr addrs[4];
	int n = weft_resolve("localhost:7000", NULL, addrs, 4);

	ck_assert_int_ge(n, 1);
	ck_assert_int_eq(weft_addr_port(&addrs[n - 1]), 7000);
	ck_assert_int_eq(server_asked(server, NULL), 0);
}

NAMES_TEST(server_that_does_not_answer_is_given_up)
{
	struct weft_resolver_opts opts = server_opts(server);

	opts.timeout_ns = WEFT_MS(20);
	opts.tries = 2;
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	ck_assert_int_eq(look_up("silent.test:1"), -ETIMEDOUT);
	ck_assert(!weft_deadline_passed());
	/* The server may read the last ones later. */
	wait_until(server_asked(server, "silent.test") >= 4);
	ck_assert_int_eq(server_asked(server, "silent.test"), 4);
}

/* Nothing listens on the port of a socket that is closed.  The kernel reports
 * the refusal of one query to the next one on its socket, or may not report it:
 * so c-ares may learn of it by time alone. */
NAMES_TEST(server_that_is_not_there_is_an_error)
{
	struct weft_resolver_opts opts = server_opts(server);
	char text[WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(text), r;

	ck_assert_int_eq(weft_close(fd), 0);
	opts.servers = text;
	opts.timeout_ns = WEFT_MS(50);
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	r = look_up("four.test:1");
	ck_assert(r == -EAGAIN || r == -ETIMEDOUT);
}

/* Likewise. */
NAMES_TEST(next_server_is_asked)
{
	struct weft_resolver_opts opts = server_opts(server);
	char gone[WEFT_ADDR_TEXT_BYTES], text[2 * WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(gone);

	ck_assert_int_eq(weft_close(fd), 0);
	snprintf(text, sizeof(text), "%s,%s", gone, server->address);
	opts.servers = text;
	opts.timeout_ns = WEFT_MS(50);
	opts.tries = 10;
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	ck_assert_int_eq(look_up("four.test:1"), 1);
}

/* The first look-up of a runtime opens descriptors. */
IO_TEST(lack_of_descriptors_is_an_error)
{
	struct rlimit old = limit_set(RLIMIT_NOFILE, 0);

	ck_assert_int_eq(look_up("localhost:1"), -EMFILE);
	limit_reset(RLIMIT_NOFILE, old);
	ck_assert_int_eq(look_up("localhost:1"), 1);
	return 0;
}

/* ---- Kept answers -------------------------------------------------------- */

NAMES_TEST(answer_is_kept_for_its_time)
{
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(look_up("four.test:1"), 1);
	ck_assert_int_eq(server_asked(server, "four.test"), 2);
	ck_assert_int_eq(look_up("short.test:1"), 1);
	ck_assert_int_eq(weft_sleep(WEFT_MS(1100)), 0);
	ck_assert_int_eq(look_up("short.test:1"), 1);
	ck_assert_int_eq(server_asked(server, "short.test"), 4);
}

/* The time that the last answer is kept for. */
static weft_nsec kept_ns(void)
{
	struct weft__names *names = names_here();
	weft_nsec length_ns;

	weft__lock_take(&names->lock);
	ck_assert_ptr_nonnull(names->newest);
	length_ns = names->newest->expires_ns - weft_now();
	weft__lock_drop(&names->lock);
	return length_ns;
}

/* The query for the other family may have failed. */
NAMES_TEST(answer_for_one_family_of_two_is_kept_shortly)
{
	struct weft_resolve_opts opts = WEFT_RESOLVE_OPTS_INIT;
	struct weft_addr addr;

	ck_assert_int_eq(look_up("half.test:1"), 1);
	ck_assert_uint_le(kept_ns(), WEFT_SEC(60));
	ck_assert_int_eq(look_up("both.test:1"), 1);
	ck_assert_uint_gt(kept_ns(), WEFT_SEC(60));
	opts.family = AF_INET;
	ck_assert_int_eq(weft_resolve("half.test:1", &opts, &addr, 1), 1);
	ck_assert_uint_gt(kept_ns(), WEFT_SEC(60));
	ck_assert_int_gt(server_asked(server, NULL), 0);
}

NAMES_TEST(answer_for_no_time_is_not_kept)
{
	ck_assert_int_eq(look_up("zero.test:1"), 1);
	ck_assert_int_eq(look_up("zero.test:1"), 1);
	ck_assert_int_eq(server_asked(server, "zero.test"), 4);
}

/* For 5 s, so that a slow machine asks again. */
NAMES_TEST(no_such_name_is_kept_too)
{
	weft_nsec began_ns = weft_now();

	ck_assert_int_eq(look_up("none.test:1"), -ENOENT);
	ck_assert_int_eq(look_up("none.test:1"), -ENOENT);
	ck_assert_int_eq(look_up("empty.test:1"), -ENODATA);
	ck_assert_int_eq(look_up("empty.test:1"), -ENODATA);
	if (weft_now() - began_ns < WEFT_SEC(4)) {
		ck_assert_int_eq(server_asked(server, "none.test"), 2);
		ck_assert_int_eq(server_asked(server, "empty.test"), 2);
	}
}

NAMES_TEST(failure_is_not_kept)
{
	int asked;

	ck_assert_int_eq(look_up("fail.test:1"), -EAGAIN);
	asked = server_asked(server, "fail.test");
	ck_assert_int_eq(look_up("fail.test:1"), -EAGAIN);
	ck_assert_int_eq(server_asked(server, "fail.test"), 2 * asked);
}

NAMES_TEST(answer_that_was_not_asked_for_longest_makes_room)
{
	struct weft_resolver_opts opts = server_opts(server);

	opts.answers_max = 2;
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	ck_assert_int_eq(look_up("a.test:1"), 1);
	ck_assert_int_eq(look_up("b.test:1"), 1);
	ck_assert_int_eq(look_up("a.test:1"), 1);
	ck_assert_int_eq(look_up("c.test:1"), 1);
	ck_assert_uint_eq(names_here()->answers, 2);
	ck_assert_int_eq(look_up("a.test:1"), 1);
	ck_assert_int_eq(look_up("c.test:1"), 1);
	ck_assert_int_eq(server_asked(server, "a.test"), 2);
	ck_assert_int_eq(server_asked(server, "b.test"), 2);
	ck_assert_int_eq(look_up("b.test:1"), 1);
	ck_assert_int_eq(server_asked(server, "b.test"), 4);
}

/* The name "host" has no dot, so search domains are tried first. */
NAMES_TEST(changed_resolv_conf_is_read)
{
	char path[] = RESOLV_CONF;

	resolv_conf_use(server, path,
			"search one.test\nnameserver 127.0.0.1\n");
	ck_assert_int_eq(look_up("host:1"), 1);
	ck_assert_int_eq(server_asked(server, "host.one.test"), 2);
	ck_assert_int_eq(look_up("host.:1"), 1);
	ck_assert_int_eq(server_asked(server, "host"), 2);
	ck_assert_int_eq(look_up("host.other:1"), 1);
	ck_assert_int_eq(server_asked(server, "host.other"), 2);
	file_write(path, "search number-two.test\nnameserver 127.0.0.1\n");
	ck_assert_int_eq(weft_sleep(WEFT_MS(1100)), 0);
	ck_assert_int_eq(look_up("host:1"), 1);
	ck_assert_int_eq(server_asked(server, "host.number-two.test"), 2);
	ck_assert_int_eq(unlink(path), 0);
}

static int64_t look_up_task(void *arg)
{
	return look_up(*(const char **)arg);
}

/* Another task that wants the same answer notices the change. */
NAMES_TEST(look_up_goes_on_with_a_changed_file)
{
	const char *name = "silent.test:1";
	char path[] = "/tmp/weft-names-XXXXXX";
	struct weft_resolver_opts opts = server_opts(server);
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	opts.resolv_conf = path;
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	WEFT_SUPERVISE(askers) {
		ck_assert_int_eq(WEFT_GO(askers, look_up_task, name), 0);
		wait_until(server_asked(server, "silent.test") == 2);
		file_write(path, "nameserver 127.0.0.1\n");
		ck_assert_int_eq(weft_sleep(WEFT_MS(1100)), 0);
		ck_assert_int_eq(WEFT_GO(askers, look_up_task, name), 0);
		wait_until(server_asked(server, "silent.test") == 4);
		weft_scope_cancel(askers);
	}
	ck_assert_int_eq(unlink(path), 0);
}

/* ---- Waits --------------------------------------------------------------- */

NAMES_TEST(many_that_ask_the_same_ask_once)
{
	enum { TASKS = 50 };
	const char *name = "late.test:1";
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task tasks[TASKS];
	int64_t result = 0;

	WEFT_SCOPE (askers, NULL) {
		for (int i = 0; i < TASKS; i++) {
			opts.ret_task = &tasks[i];
			ck_assert_int_eq(weft_go_opts(askers, look_up_task,
						      &name, sizeof(name),
						      &opts),
					 0);
		}
		wait_until(names_waiters() == TASKS);
		weft_event_set(&server->gate);
		for (int i = 0; i < TASKS; i++) {
			ck_assert_int_eq(weft_join(tasks[i], &result), 0);
			ck_assert_int_eq(result, 1);
		}
	}
	ck_assert_int_eq(server_asked(server, NULL), 2);
}

NAMES_TEST(deadline_ends_the_wait)
{
	int before = fds_open(), r = 0;

	WEFT_WITHIN(WEFT_MS(30)) {
		r = look_up("silent.test:1");
		ck_assert(weft_deadline_passed());
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	/* The task that asks gives up, for no other task waits. */
	wait_until(!names_serving());
	/* The resolver keeps two. */
	ck_assert_int_le(fds_open(), before + 2);
	ck_assert_int_eq(look_up("four.test:1"), 1);
	ck_assert_int_eq(server_asked(server, "four.test"), 2);
}

NAMES_TEST(others_go_on_when_one_gives_up)
{
	const char *name = "late.test:1";
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task first, second;
	int64_t result = 0;

	WEFT_SUPERVISE(askers) {
		opts.ret_task = &first;
		ck_assert_int_eq(weft_go_opts(askers, look_up_task, &name,
					      sizeof(name), &opts),
				 0);
		wait_until(names_waiters() == 1);
		opts.ret_task = &second;
		ck_assert_int_eq(weft_go_opts(askers, look_up_task, &name,
					      sizeof(name), &opts),
				 0);
		wait_until(names_waiters() == 2);
		ck_assert_int_eq(weft_cancel(first), 0);
		ck_assert_int_eq(weft_join(first, &result), 0);
		ck_assert_int_eq(result, -ECANCELED);
		weft_event_set(&server->gate);
		ck_assert_int_eq(weft_join(second, &result), 0);
		ck_assert_int_eq(result, 1);
	}
	ck_assert_int_eq(server_asked(server, NULL), 2);
}

/* New options while a look-up is under way: it is made again by them. */
NAMES_TEST(look_up_goes_on_with_new_options)
{
	const char *name = "four.test:1";
	struct weft_resolver_opts opts = server_opts(server);
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	char deaf[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int64_t result = 0;

	ck_assert_int_eq(weft_addr_parse("127.0.0.1:0", &addr), 0);
	ck_assert_int_eq(bind(fd, weft_addr_sockaddr(&addr),
			      weft_addr_sockaddr_bytes(&addr)),
			 0);
	opts.servers = weft_local_addr_text(fd, deaf);
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	task_opts.ret_task = &task;
	WEFT_SUPERVISE(askers) {
		ck_assert_int_eq(weft_go_opts(askers, look_up_task, &name,
					      sizeof(name), &task_opts),
				 0);
		ck_assert_int_gt(weft_poll(fd, POLLIN), 0);
		opts.servers = server->address;
		ck_assert_int_eq(weft_resolver_set(&opts), 0);
		ck_assert_int_eq(weft_join(task, &result), 0);
		ck_assert_int_eq(result, 1);
	}
	ck_assert_int_eq(weft_close(fd), 0);
}

static int64_t look_up_number(void *arg)
{
	char name[64];

	snprintf(name, sizeof(name), "silent-%d.test:1", *(int *)arg);
	return look_up(name);
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int count = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

NAMES_TEST(thousand_look_ups_make_no_thread_and_hold_up_no_read)
{
	enum { TASKS = 1000 };
	char path[] = "/tmp/weft-names-XXXXXX", byte = 0;
	int fd = mkstemp(path), before = threads();

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	WEFT_SUPERVISE(askers) {
		for (int i = 0; i < TASKS; i++)
			ck_assert_int_eq(WEFT_GO(askers, look_up_number, i), 0);
		wait_until(names_waiters() == TASKS);
		ck_assert_int_le(threads(), before);
		ck_assert_int_eq(weft_pread(fd, &byte, 1, 0), 1);
		wait_until(server_asked(server, NULL) >= 2);
		weft_scope_cancel(askers);
	}
	ck_assert_uint_eq(names_waiters(), 0);
	wait_until(!names_serving());
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(unlink(path), 0);
}

/* ---- The runtime's end --------------------------------------------------- */

/* The server's socket stays until no task waits; else it would refuse. */
static int64_t keep_open(void *arg)
{
	int fd = *(int *)arg;

	ck_assert_int_eq(weft_sleep(WEFT_SEC(3600)), -ECANCELED);
	WEFT_SHIELD {
		wait_until(names_waiters() == 0);
		ck_assert_int_eq(weft_close(fd), 0);
	}
	return 0;
}

static void server_keep(const struct server *server)
{
	int fd = fcntl(server->udp, F_DUPFD_CLOEXEC, 3);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_submit(weft_runtime_self(), keep_open, &fd,
				     sizeof(fd), NULL),
			 0);
}

static int64_t expect_canceled(void *arg)
{
	ck_assert_int_eq(look_up_number(arg), -ECANCELED);
	return 0;
}

/* The tasks are the runtime's, and still wait when the first task returns. */
NAMES_TEST(runtime_ends_while_look_ups_are_under_way)
{
	server_keep(server);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(weft_submit(weft_runtime_self(),
					     expect_canceled, &i, sizeof(i),
					     NULL),
				 0);
	wait_until(names_waiters() == 10);
}

static weft__atomic(bool) shielded_is_over;

static int64_t look_up_shielded(void *arg __attribute__((unused)))
{
	int r = 0;

	WEFT_SHIELD {
		WEFT_WITHIN(WEFT_MS(50))
			r = look_up("silent.test:1");
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	weft__store(&shielded_is_over, true, release);
	return 0;
}

/* It waits for a task that ignores cancellation as for any. */
NAMES_TEST(runtime_ends_after_a_shielded_look_up)
{
	server_keep(server);
	weft__store(&shielded_is_over, false, release);
	ck_assert_int_eq(weft_submit(weft_runtime_self(), look_up_shielded,
				     NULL, 0, NULL),
			 0);
	wait_until(names_waiters() == 1 ||
		   weft__load(&shielded_is_over, acquire));
}

static int64_t nothing(void *arg __attribute__((unused)))
{
	return 0;
}

/* A name that would need a task which cannot begin any more. */
static int64_t look_up_at_the_end(void *arg __attribute__((unused)))
{
	struct weft_runtime *runtime = weft_runtime_self();

	WEFT_SHIELD {
		wait_until(weft_submit(runtime, nothing, NULL, 0, NULL) ==
			   -ESHUTDOWN);
		ck_assert_int_eq(look_up("four.test:1"), -ESHUTDOWN);
	}
	return 0;
}

NAMES_TEST(no_look_up_begins_while_the_runtime_ends)
{
	ck_assert_int_eq(weft_submit(weft_runtime_self(), look_up_at_the_end,
				     NULL, 0, NULL),
			 0);
	ck_assert_int_eq(server_asked(server, NULL), 0);
}

int main(void)
{
	Suite *suite = suite_create("net/names");
	TCase *answers = tcase_create("answers");
	TCase *kept = tcase_create("kept");
	TCase *waits = tcase_create("waits");

	io_add_test(answers, both_families_are_returned);
	io_add_test(answers, one_family_is_asked_for_alone);
	io_add_test(answers, families_are_asked_at_the_same_time);
	io_add_test(answers, errors_differ);
	io_add_test(answers, truncated_answer_is_asked_for_over_tcp);
	io_add_test(answers, name_is_one_however_it_is_written);
	io_add_test(answers, localhost_is_known_without_a_server);
	io_add_test(answers, server_that_does_not_answer_is_given_up);
	io_add_test(answers, server_that_is_not_there_is_an_error);
	io_add_test(answers, next_server_is_asked);
	io_add_test(answers, lack_of_descriptors_is_an_error);
	io_add_test(kept, answer_is_kept_for_its_time);
	io_add_test(kept, answer_for_one_family_of_two_is_kept_shortly);
	io_add_test(kept, answer_for_no_time_is_not_kept);
	io_add_test(kept, no_such_name_is_kept_too);
	io_add_test(kept, failure_is_not_kept);
	io_add_test(kept, answer_that_was_not_asked_for_longest_makes_room);
	io_add_test(kept, changed_resolv_conf_is_read);
	io_add_test(kept, look_up_goes_on_with_a_changed_file);
	io_add_test(waits, many_that_ask_the_same_ask_once);
	io_add_test(waits, deadline_ends_the_wait);
	io_add_test(waits, others_go_on_when_one_gives_up);
	io_add_test(waits, look_up_goes_on_with_new_options);
	io_add_test(waits,
		    thousand_look_ups_make_no_thread_and_hold_up_no_read);
	io_add_test(waits, runtime_ends_while_look_ups_are_under_way);
	io_add_test(waits, runtime_ends_after_a_shielded_look_up);
	io_add_test(waits, no_look_up_begins_while_the_runtime_ends);
	suite_add_tcase(suite, answers);
	suite_add_tcase(suite, kept);
	suite_add_tcase(suite, waits);
	return io_tests_run(suite);
}
