/* SPDX-License-Identifier: MIT */
#include "io/os/sigpipe.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

static sigset_t sigpipe_set(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	return set;
}

bool weft__sigpipe_block(void)
{
	sigset_t set = sigpipe_set(), old;

	if (pthread_sigmask(SIG_BLOCK, &set, &old) != 0)
		return false;
	return !sigismember(&old, SIGPIPE);
}

void weft__sigpipe_discard(void)
{
	sigset_t set = sigpipe_set();
	struct timespec none = { 0, 0 };

	sigtimedwait(&set, NULL, &none);
}

void weft__sigpipe_unblock(void)
{
	sigset_t set = sigpipe_set();

	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
