/* SPDX-License-Identifier: MIT */
/*
 * Bell - a signal that is passed on to a descriptor: the handler writes to an
 * eventfd, for whoever waits for that.
 *
 * Invariant
 *   B1  A descriptor that was muted is written to no more: who mutes it waits
 *       for handlers that run, which may have read it before.
 *
 * Orderings
 *   [bell.run]  seq_cst: count of handlers, then the descriptor (handler)
 *       against the descriptor, then the count (mute).
 */
#ifndef WEFT_RUNTIME_DUMP_SIGNAL_NOTIFY_H
#define WEFT_RUNTIME_DUMP_SIGNAL_NOTIFY_H

/* From now on the signal rings the eventfd, too.  -EINVAL: it cannot be caught;
 * -EBUSY: there are BELLS already. */
int weft__signal_notify_start(int number, int fd);

/* Its action is what it was before, if this was the last for that signal. */
void weft__signal_notify_stop(int number, int fd);

#endif
