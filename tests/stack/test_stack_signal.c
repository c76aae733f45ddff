/* SPDX-License-Identifier: MIT */
/*
 * Suite stack/signal: SIGSEGV and SIGBUS, for which weft has a handler that
 * names the task whose stack has overflowed.
 *
 * A fault elsewhere, and a signal that was sent, do what they would do without
 * weft: the program's own action, with its flags.  When the last runtime has
 * ended, that action is in force again.
 *
 * The tests run in children; test_stack_signal_end.c is about later runtimes.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "tests/support/signal_scene.h"

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

static void expect_killed_by(const weft_fn *ways, int count)
{
	for (int i = 0; i < count; i++) {
		struct scene scene = { .within = ways[i] };

		expect_killed(&scene);
	}
}

START_TEST(signal_ends_the_process_by_default)
{
	static const weft_fn ways[] = { raise_it, queue_with_address, fault };

	number = numbers[_i];
	expect_killed_by(ways, 3);
}
END_TEST

START_TEST(signal_to_any_thread_ends_the_process_by_default)
{
	static const weft_fn ways[] = { kill_it, queue_it };

	number = numbers[_i];
	expect_killed_by(ways, 2);
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

static volatile siginfo_t last;

static void handle_info(int signal_number, siginfo_t *info, void *context)
{
	NEED(signal_number == number && context);
	last = *info;
	calls = calls + 1;
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
	siginfo_t queued = { .si_signo = number, .si_code = SI_QUEUE };

	(void)arg;
	queued.si_value.sival_int = 77;
	raise(number);
	NEED(calls == 1 && last.si_code == SI_TKILL);
	NEED(last.si_pid == getpid());
	NEED(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid),
		     number, &queued) == 0);
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

int main(void)
{
	Suite *suite = suite_create("stack/signal");
	TCase *tcase = tcase_create("signals");

	if (!test_needs(TEST_HAS_SIGNALS, "stack/signal",
			"signals of the kernel's"))
		return 77;
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, signal_ends_the_process_by_default, 0,
			    NUMBERS);
	if (test_needs(!WITH_TSAN,
		       "signal_to_any_thread_ends_the_process_by_default",
		       "a sanitizer that can be interrupted anywhere"))
		tcase_add_loop_test(
			tcase, signal_to_any_thread_ends_the_process_by_default,
			0, NUMBERS);
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
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
