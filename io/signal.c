/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

#include <weft/io.h>
#include <weft/signal.h>

/* Are there signals, and has the calling thread blocked all of them? */
static bool all_blocked(const sigset_t *signals)
{
	sigset_t blocked;
	bool any = false;

	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0)
		return false;
	for (int number = 1; number <= SIGRTMAX; number++) {
		if (sigismember(signals, number) != 1)
			continue;
		if (sigismember(&blocked, number) != 1)
			return false;
		any = true;
	}
	return any;
}

int weft_signal_open(const sigset_t *signals)
{
	int fd;

	if (!signals || !all_blocked(signals))
		return -EINVAL;
	fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int weft_signal_wait(int fd, int *ret_number)
{
	struct signalfd_siginfo info;
	ssize_t n = weft_read(fd, &info, sizeof(info));

	if (n < 0)
		return (int)n;
	/* A signalfd gives whole records; a descriptor of another kind may give
	 * parts, or other data. */
	if (n != (ssize_t)sizeof(info) || info.ssi_signo < 1 ||
	    info.ssi_signo > (uint32_t)SIGRTMAX)
		return -EINVAL;
	*ret_number = (int)info.ssi_signo;
	return 0;
}
