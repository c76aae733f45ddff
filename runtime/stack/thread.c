/* SPDX-License-Identifier: MIT */
#include "runtime/stack/thread.h"

#include <signal.h>

static void signals_block(sigset_t *ret_before)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV,
				      SIGSYS, SIGTRAP };
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&set, faults[i]);
	pthread_sigmask(SIG_SETMASK, &set, ret_before);
}

int weft__thread_make(pthread_t *ret_thread, size_t stack_bytes,
		      void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	sigset_t before;
	int error = pthread_attr_init(&attr);

	if (error)
		return -error;
	error = pthread_attr_setstacksize(&attr, stack_bytes);
	if (!error) {
		signals_block(&before);
		error = pthread_create(ret_thread, &attr, fn, arg);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attr);
	return -error;
}
