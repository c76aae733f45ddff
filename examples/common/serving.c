/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <weft/weft.h>

#include "serving.h"

int serving_open_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return weft_signal_open(&signals);
}

int64_t serving_wait_for_signal(void *arg)
{
	int number, r = weft_signal_wait(*(int *)arg, &number);

	return r < 0 ? r : -EINTR;
}

void serving_raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}
