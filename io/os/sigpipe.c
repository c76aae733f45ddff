/* SPDX-License-Identifier: MIT */
#include "io/os/sigpipe.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* An empty write would not do: the kernel does not check its flags. */
bool weft__sigpipe_is_avoidable(void)
{
	struct iovec byte = { (char[]){ 0 }, 1 };
	int fds[2];
	bool has;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	has = syscall(SYS_pwritev2, fds[1], &byte, 1, -1L, -1L,
		      RWF_NOSIGNAL) == 1;
	close(fds[0]);
	close(fds[1]);
	return has;
}

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

void weft__sigpipe_restore(bool blocked, bool raised)
{
	sigset_t set = sigpipe_set();
	struct timespec none = { 0, 0 };

	if (raised)
		sigtimedwait(&set, NULL, &none);
	if (blocked)
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
