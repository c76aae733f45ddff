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

/* Opens a descriptor to wait for these signals of the process; the caller
 * closes it with weft_close().  Does not suspend; from any thread.  The signals
 * must be blocked in all threads, or they take their usual action.  Returns the
 * descriptor, -EINVAL (NULL, an empty set, or a signal that is not blocked in
 * the calling thread), or an error of signalfd(2). */
#ifdef SIG_BLOCK /* strict C11 has no sigset_t */
WEFT_API int weft_signal_open(const sigset_t *signals) WEFT_WARN_UNUSED;
#endif

/* Waits for one of the signals, takes it, and stores its number, for which
 * there must be room.  Suspends.  Returns 0, or, with no signal taken,
 * -ECANCELED, -ETIMEDOUT, -EINVAL (not such a descriptor), or another error of
 * weft_read(). */
WEFT_API int weft_signal_wait(int fd, int *ret_number) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
