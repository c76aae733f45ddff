/* SPDX-License-Identifier: MIT */
/*
 * Signals that a task waits for, by way of signalfd(2).
 *
 *	sigemptyset(&set);
 *	sigaddset(&set, SIGTERM);
 *	pthread_sigmask(SIG_BLOCK, &set, NULL);	in main, before weft_run()
 *	...
 *	fd = weft_signal_open(&set);
 *	r = weft_signal_wait(fd, &number);	or WEFT_READY(fd, POLLIN) in a
 *						select, and then this
 */
#ifndef WEFT_SIGNAL_H
#define WEFT_SIGNAL_H

#include <signal.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/*
 * A descriptor to wait for these signals of the process, to be closed by
 * weft_close().  Does not suspend.  The signals must be blocked in all threads,
 * or they do what they do: -EINVAL if the calling thread has one that is not,
 * or if the set is empty.  Or an error of signalfd(2).
 */
#ifdef SIG_BLOCK /* not in strict C11, which knows no sets of signals */
WEFT_API int weft_signal_open(const sigset_t *signals) WEFT_WARN_UNUSED;
#endif

/* Waits for one of them, and takes it; suspends.  0; -ECANCELED, -ETIMEDOUT:
 * none was taken; or an error of weft_read(). */
WEFT_API int weft_signal_wait(int fd, int *ret_number) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
