/* SPDX-License-Identifier: MIT */
#include "io/os/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/atomic.h"
#include "runtime/base/handler.h"

static pthread_mutex_t signal_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned signal_users; /* under signal_lock */
static weft__atomic(int) signal_number; /* set under signal_lock; 0: none */

static void on_signal(int number, siginfo_t *info, void *context);

static struct weft__handler handler = { .fn = on_signal };

static bool is_own(const siginfo_t *info)
{
	return info->si_code == SI_QUEUE &&
	       info->si_value.sival_ptr == (void *)&handler;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	if (!is_own(info))
		weft__handler_pass(&handler, number, info, context);
}

/* An emulator has fewer signals than the C library says, takes an action for
 * the others without an error, and sends none (qemu-user).  A timer that is
 * never started asks for one: a signal that is sent would stop a debugger.
 * It reserves a place in the user's queue of signals, which may be full. */
static bool signal_exists(int number)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = number,
	};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		return errno != EINVAL && errno != EAGAIN;
	timer_delete(timer);
	return true;
}

static bool is_free(int number, const sigset_t *blocked)
{
	struct sigaction action;

	return !sigismember(blocked, number) &&
	       sigaction(number, NULL, &action) == 0 &&
	       action.sa_handler == SIG_DFL && signal_exists(number);
}

/* The last realtime signal that the program has no use for.  One that it has
 * blocked it may wait for. */
static int signal_find(const sigset_t *blocked)
{
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--)
		if (is_free(number, blocked))
			return number;
	return 0;
}

/* relaxed: a number that a thread sees has a handler, which is set before its
 * runtime asks for the first call; the users keep it as it is. */
static int signal_now(void)
{
	return weft__load(&signal_number, relaxed);
}

void weft__interrupt_begin(const sigset_t *blocked)
{
	int number;

	pthread_mutex_lock(&signal_lock);
	number = signal_now();
	/* The program may have found a use for it since the last runtime. */
	if ((!signal_users++ && number && !is_free(number, blocked)) ||
	    !number) {
		number = signal_find(blocked);
		/* relaxed: see signal_now(). */
		weft__store(&signal_number, number, relaxed);
	}
	if (number)
		(void)weft__handler_set(&handler, number);
	pthread_mutex_unlock(&signal_lock);
}

/* Is the handler set, and does it end calls? */
static bool is_in_force(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 &&
	       action.sa_flags & SA_SIGINFO &&
	       action.sa_sigaction == on_signal &&
	       !(action.sa_flags & SA_RESTART);
}

bool weft__interrupt_works(const sigset_t *blocked)
{
	int number = signal_now();

	return number && !sigismember(blocked, number) && is_in_force(number);
}

void weft__interrupt_end(void)
{
	pthread_mutex_lock(&signal_lock);
	if (!--signal_users && signal_now())
		weft__handler_reset(&handler, signal_now());
	pthread_mutex_unlock(&signal_lock);
}

/* Another thread may have held the lock at the fork. */
void weft__interrupt_forget(void)
{
	if (signal_users)
		weft__handler_reset(&handler, signal_now());
	signal_users = 0;
	signal_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

void weft__interrupt_admit(sigset_t *ret_before)
{
	sigset_t set;

	sigemptyset(&set);
	if (signal_now())
		sigaddset(&set, signal_now());
	pthread_sigmask(SIG_UNBLOCK, &set, ret_before);
}

/* The program may let a signal through later that was blocked. */
void weft__interrupt_drop(const sigset_t *before)
{
	static const struct timespec at_once;
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	if (signal_now())
		sigaddset(&set, signal_now());
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	while (sigtimedwait(&set, &info, &at_once) > 0)
		if (!is_own(&info))
			(void)syscall(SYS_rt_sigqueueinfo, getpid(),
				      signal_now(), &info);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* pthread_sigqueue() is only in some C libraries. */
void weft__interrupt(pid_t thread)
{
	siginfo_t info;
	int number = signal_now();

	if (!number)
		return;
	/* The default action, if the program has set it, would end it. */
	if (!is_in_force(number)) {
		pthread_mutex_lock(&signal_lock);
		(void)weft__handler_set(&handler, number);
		pthread_mutex_unlock(&signal_lock);
		if (!is_in_force(number))
			return;
	}
	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = &handler;
	(void)syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, &info);
}
