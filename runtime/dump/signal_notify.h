/* SPDX-License-Identifier: MIT */
/*
 * Signal notify - passes a signal on to a descriptor: the handler writes to an
 * eventfd, and a thread waits for that.
 *
 * Invariant
 *   SIG1  A descriptor is not written to after weft__signal_notify_stop(): stop
 *       waits for running handlers, which may have read the descriptor before.
 *
 * Orderings
 *   [signal_notify.run]  seq_cst: the count of handlers, then the descriptor
 *       (handler) against the descriptor, then the count (stop).
 */
#ifndef WEFT_RUNTIME_DUMP_SIGNAL_NOTIFY_H
#define WEFT_RUNTIME_DUMP_SIGNAL_NOTIFY_H

/* From now on the signal writes to the eventfd, too.  -EINVAL: the signal
 * cannot be caught; -EBUSY: all BELLS entries are taken. */
int weft__signal_notify_start(int number, int fd);

/* If this was the last entry for the signal, its former action is restored. */
void weft__signal_notify_stop(int number, int fd);

/* In a child after fork(): the same for all, since the eventfds are the
 * parent's too. */
void weft__signal_notify_forget(void);

#endif
