/* SPDX-License-Identifier: MIT */
/*
 * Suite stack/signal: SIGSEGV and SIGBUS, for which weft has a handler that
 * names the task whose stack has overflowed.
 *
 * A fault elsewhere, and a signal that was sent, do what they would do without
 * weft: the program's own action, with its flags.  When the last runtime has
 * ended, that action is in force again.
 *
 * Most tests run in a child, whose end they look at: a signal, or a status.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "tests/support/death.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

#ifdef WEFT__TSAN
enum { WITH_TSAN = 1 };
#else
enum { WITH_TSAN = 0 };
#endif

static const int numbers[] = { SIGSEGV, SIGBUS };
enum { NUMBERS = 2, HANGS_S = 50 };

/* Ends the child with the line's number + 1. */
#define NEED(holds)                                \
	do {                                       \
		if (!(holds))                      \
			_exit(1 + __LINE__ % 255); \
	} while (0)

/* ---- Children ------------------------------------------------------------ */

static int number; /* of the signal that the test is about */

/* Calls of a child: before its runtime, in it, and after it. */
struct scene {
	void (*before)(void);
	weft_fn within;
	void (*after)(void);
};

static void play(void *arg)
{
	const struct scene *scene = arg;
	struct weft_opts opts = WEFT_OPTS_INIT;

	alarm(HANGS_S);
	/* The test runner and sanitizers have handlers. */
	signal(number, SIG_DFL);
	if (scene->before)
		scene->before();
	opts.workers = 2;
	NEED(weft_run(scene->within, NULL, &opts) == 0);
	if (scene->after)
		scene->after();
}

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void expect_killed(const struct scene *scene)
{
	struct death death = death_of(play, (void *)(uintptr_t)scene);

	ck_assert_msg(WIFSIGNALED(death.status) &&
			      WTERMSIG(death.status) == number,
		      "status %#x, it said: %s", (unsigned)death.status,
		      death.text);
	ck_assert_msg(!strstr(death.text, "stack overflow"), "it said: %s",
		      death.text);
}

static void expect_end(const struct scene *scene)
{
	struct death death = death_of(play, (void *)(uintptr_t)scene);

	ck_assert_msg(WIFEXITED(death.status) &&
			      WEXITSTATUS(death.status) == 0,
		      "status %#x, it said: %s", (unsigned)death.status,
		      death.text);
}

/* ---- The default action -------------------------------------------------- */

static int64_t raise_it(void *arg)
{
	(void)arg;
	raise(number);
	return weft_sleep(WEFT_NEVER);
}

static int64_t kill_it(void *arg)
{
	(void)arg;
	kill(getpid(), number);
	return weft_sleep(WEFT_NEVER);
}

static int64_t queue_it(void *arg)
{
	(void)arg;
	sigqueue(getpid(), number, (union sigval){ .sival_int = 1 });
	return weft_sleep(WEFT_NEVER);
}

/* In the place of an address the signal has one in the guard of a stack. */
static int64_t queue_with_address(void *arg)
{
	siginfo_t info = { .si_signo = number, .si_code = SI_QUEUE };

	(void)arg;
	info.si_addr = weft__worker_self()->current->stack->low - 64;
	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number,
		&info);
	return weft_sleep(WEFT_NEVER);
}

/* A page that may not be read, or one behind the end of its file. */
static int64_t fault(void *arg)
{
	int fd = memfd_create("empty", MFD_CLOEXEC);
	volatile char *page =
		mmap(NULL, 4096, number == SIGBUS ? PROT_READ : PROT_NONE,
		     MAP_SHARED, fd, 0);

	(void)arg;
	NEED(page != MAP_FAILED);
	return page[0];
}

START_TEST(signal_ends_the_process_by_default)
{
	static const weft_fn ways[] = { raise_it, kill_it, queue_it,
					queue_with_address, fault };

	number = numbers[_i];
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct scene scene = { .within = ways[i] };

		expect_killed(&scene);
	}
}
END_TEST

static void raise_now(void)
{
	raise(number);
	_exit(0);
}

START_TEST(signal_ends_the_process_after_its_runtime)
{
	struct scene scene = { .within = nothing, .after = raise_now };

	number = numbers[_i];
	expect_killed(&scene);
}
END_TEST

/* ---- The program's own action -------------------------------------------- */

static volatile sig_atomic_t calls, nested;
static volatile siginfo_t last;

static void handle(int signal_number)
{
	NEED(signal_number == number);
	calls = calls + 1;
}

static void handle_info(int signal_number, siginfo_t *info, void *context)
{
	NEED(signal_number == number && context);
	last = *info;
	calls = calls + 1;
}

static void has_handler(void)
{
	signal(number, handle);
}

static void has_handler_of_info(void)
{
	struct sigaction action = { .sa_sigaction = handle_info,
				    .sa_flags = SA_SIGINFO };

	sigaction(number, &action, NULL);
}

static int64_t is_called_for_each(void *arg)
{
	(void)arg;
	for (int i = 1; i <= 3; i++) {
		raise(number);
		NEED(calls == i);
	}
	return 0;
}

static int64_t knows_the_sender(void *arg)
{
	union sigval value = { .sival_int = 77 };

	(void)arg;
	raise(number);
	NEED(calls == 1 && last.si_code == SI_TKILL);
	NEED(last.si_pid == getpid());
	NEED(pthread_sigqueue(pthread_self(), number, value) == 0);
	NEED(calls == 2 && last.si_code == SI_QUEUE);
	NEED(last.si_value.sival_int == 77);
	return 0;
}

START_TEST(handler_of_the_program_is_called_for_each_signal)
{
	struct scene plain = { has_handler, is_called_for_each, NULL };
	struct scene info = { has_handler_of_info, knows_the_sender, NULL };

	number = numbers[_i];
	expect_end(&plain);
	expect_end(&info);
}
END_TEST

static void ends_at_fault(int signal_number, siginfo_t *info, void *context)
{
	(void)context;
	_exit(signal_number == number && info->si_code > 0 && info->si_addr ?
		      0 :
		      1);
}

static void has_crash_handler(void)
{
	struct sigaction action = { .sa_sigaction = ends_at_fault,
				    .sa_flags = SA_SIGINFO };

	sigaction(number, &action, NULL);
}

START_TEST(handler_of_the_program_gets_faults)
{
	struct scene scene = { has_crash_handler, fault, NULL };

	number = numbers[_i];
	expect_end(&scene);
}
END_TEST

static void has_handler_once(void)
{
	struct sigaction action = { .sa_handler = handle,
				    .sa_flags = (int)SA_RESETHAND };

	sigaction(number, &action, NULL);
}

static int64_t raise_once(void *arg)
{
	(void)arg;
	raise(number);
	NEED(calls == 1);
	return 0;
}

static int64_t raise_twice(void *arg)
{
	NEED(raise_once(arg) == 0);
	return raise_it(arg);
}

static void is_default(void)
{
	struct sigaction now;

	NEED(sigaction(number, NULL, &now) == 0);
	NEED(now.sa_handler == SIG_DFL);
}

START_TEST(handler_with_resethand_is_called_once)
{
	struct scene twice = { has_handler_once, raise_twice, NULL };
	struct scene once = { has_handler_once, raise_once, is_default };

	number = numbers[_i];
	expect_killed(&twice);
	expect_end(&once);
}
END_TEST

static volatile sig_atomic_t begun;

/* The first call raises two signals, which have the same handler.  Those that
 * are not blocked begin before it returns. */
static void handle_and_raise(int signal_number)
{
	(void)signal_number;
	begun = begun + 1;
	if (begun > 1)
		return;
	raise(SIGUSR1);
	raise(number);
	calls = begun;
}

/* Flags, whether the mask has the other signal, and how many calls begin. */
static const struct nesting {
	int flags;
	bool masks_other;
	int count;
} nestings[] = { { SA_NODEFER, false, 3 }, { 0, false, 2 }, { 0, true, 1 } };

static const struct nesting *nesting;

static void has_handler_that_raises(void)
{
	struct sigaction action = { .sa_handler = handle_and_raise,
				    .sa_flags = nesting->flags };

	if (nesting->masks_other)
		sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(number, &action, NULL);
	signal(SIGUSR1, handle_and_raise);
}

static int64_t nests(void *arg)
{
	(void)arg;
	raise(number);
	NEED(calls == nesting->count);
	return 0;
}

START_TEST(handler_of_the_program_has_its_mask)
{
	struct scene scene = { has_handler_that_raises, nests, NULL };

	number = numbers[_i];
	for (int i = 0; i < 3; i++) {
		nesting = &nestings[i];
		expect_end(&scene);
	}
}
END_TEST

static void ignores(void)
{
	signal(number, SIG_IGN);
}

static int64_t outlives_signals(void *arg)
{
	(void)arg;
	raise(number);
	kill(getpid(), number);
	return weft_sleep(WEFT_MS(1));
}

/* The kernel ignores no fault. */
START_TEST(ignored_signal_is_ignored_but_no_fault)
{
	struct scene sent = { ignores, outlives_signals, NULL };
	struct scene faults = { ignores, fault, NULL };

	number = numbers[_i];
	expect_end(&sent);
	expect_killed(&faults);
}
END_TEST

/* ---- The end of the runtimes --------------------------------------------- */

static struct sigaction action_now(void)
{
	struct sigaction now;

	ck_assert_int_eq(sigaction(number, NULL, &now), 0);
	return now;
}

START_TEST(action_comes_back_with_the_last_runtime)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	number = numbers[_i];
	/* Both together fit where 64 KiB may be locked. */
	opts.workers = 1;
	opts.ring_entries = 2;
	has_handler();
	for (int i = 0; i < 3; i++) {
		struct weft_runtime *first, *second;

		ck_assert_int_eq(weft_start(&opts, &first), 0);
		ck_assert_int_eq(weft_start(&opts, &second), 0);
		ck_assert_int_eq(weft_stop(first), 0);
		ck_assert(action_now().sa_handler != handle);
		ck_assert_int_eq(weft_stop(second), 0);
		ck_assert(action_now().sa_handler == handle);
	}
}
END_TEST

START_TEST(runtime_that_could_not_start_gives_the_action_back)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;

	number = numbers[_i];
	has_handler();
	opts.dump_path = "/no/such/directory/for a socket";
	ck_assert_int_lt(weft_start(&opts, &runtime), 0);
	ck_assert(action_now().sa_handler == handle);
}
END_TEST

/* Another library's, which passes all signals on. */
static struct sigaction passes_to;

static void pass_on(int signal_number, siginfo_t *info, void *context)
{
	NEED(nested < 3);
	nested = nested + 1;
	if (passes_to.sa_flags & SA_SIGINFO)
		passes_to.sa_sigaction(signal_number, info, context);
	else
		passes_to.sa_handler(signal_number);
	nested = nested - 1;
}

static int64_t set_over(void *arg)
{
	struct sigaction action = { .sa_sigaction = pass_on,
				    .sa_flags = SA_SIGINFO };

	(void)arg;
	sigaction(number, &action, &passes_to);
	raise(number);
	NEED(calls == 1);
	return 0;
}

static void handler_stays(void)
{
	struct sigaction now;

	for (int i = 2; i <= 4; i++) {
		NEED(sigaction(number, NULL, &now) == 0);
		NEED(now.sa_sigaction == pass_on);
		raise(number);
		NEED(calls == i);
		/* The handler of a further runtime is not set over it: each
		 * would pass signals on to the other. */
		NEED(weft_run(nothing, NULL, NULL) == 0);
	}
	/* The library gives weft's back, which goes with the next runtime. */
	sigaction(number, &passes_to, NULL);
	NEED(weft_run(nothing, NULL, NULL) == 0);
	NEED(sigaction(number, NULL, &now) == 0);
	NEED(now.sa_handler == handle);
}

START_TEST(handler_set_over_it_stays_and_may_pass_signals_on)
{
	struct scene scene = { has_handler, set_over, handler_stays };

	number = numbers[_i];
	expect_end(&scene);
}
END_TEST

/* Each call needs a page, and more stack than the compiler can optimize
 * away. */
static __attribute__((noinline)) int64_t fall(int64_t depth)
{
	volatile char page[4096];

	page[0] = (char)depth;
	page[sizeof(page) - 1] = page[0];
	return depth ? fall(depth - 1) + page[0] : 0;
}

static int64_t fall_deeply(void *arg)
{
	(void)arg;
	return fall(1 << 20);
}

static int64_t start_falling(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	(void)arg;
	opts.name = "icarus";
	WEFT_SUPERVISE(scope)
		NEED(weft_go_opts(scope, fall_deeply, NULL, 0, &opts) == 0);
	return 0;
}

/* The handler is in force in each runtime, also of a process that was forked
 * meanwhile. */
static void fall_in_child(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		is_default();
		_exit((int)weft_run(start_falling, NULL, NULL));
	}
	NEED(waitpid(child, &status, 0) == child);
	_exit(WIFSIGNALED(status) ? 0 : 1);
}

static int64_t fork_within(void *arg)
{
	(void)arg;
	fall_in_child();
	return 0;
}

START_TEST(overflow_is_named_in_each_runtime)
{
	struct scene after = { NULL, nothing, fall_in_child };
	struct scene within = { NULL, fork_within, NULL };
	const struct scene *scenes[] = { &after, &within };

	number = SIGSEGV;
	for (int i = 0; i < 2; i++) {
		struct death death =
			death_of(play, (void *)(uintptr_t)scenes[i]);

		ck_assert(WIFEXITED(death.status) &&
			  WEXITSTATUS(death.status) == 0);
		ck_assert_msg(strstr(death.text,
				     "stack overflow in task 'icarus'"),
			      "it said: %s", death.text);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stack/signal");
	TCase *tcase = tcase_create("signals");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, signal_ends_the_process_by_default, 0,
			    NUMBERS);
	tcase_add_loop_test(tcase, signal_ends_the_process_after_its_runtime, 0,
			    NUMBERS);
	tcase_add_loop_test(tcase,
			    handler_of_the_program_is_called_for_each_signal, 0,
			    NUMBERS);
	tcase_add_loop_test(tcase, handler_of_the_program_gets_faults, 0,
			    NUMBERS);
	tcase_add_loop_test(tcase, handler_with_resethand_is_called_once, 0,
			    NUMBERS);
	if (test_needs(!WITH_TSAN, "handler_of_the_program_has_its_mask",
		       "a sanitizer that leaves masks alone"))
		tcase_add_loop_test(tcase, handler_of_the_program_has_its_mask,
				    0, NUMBERS);
	tcase_add_loop_test(tcase, ignored_signal_is_ignored_but_no_fault, 0,
			    NUMBERS);
	tcase_add_loop_test(tcase, action_comes_back_with_the_last_runtime, 0,
			    NUMBERS);
	tcase_add_loop_test(
		tcase, runtime_that_could_not_start_gives_the_action_back, 0,
		NUMBERS);
	tcase_add_loop_test(tcase,
			    handler_set_over_it_stays_and_may_pass_signals_on,
			    0, NUMBERS);
	if (test_needs(!WITH_TSAN, "overflow_is_named_in_each_runtime",
		       "a sanitizer that knows threads of a forked child"))
		tcase_add_test(tcase, overflow_is_named_in_each_runtime);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
