/* SPDX-License-Identifier: MIT */
/*
 * Interrupt - gets a thread of the pool out of a system call, by a realtime
 * signal with a handler that does nothing.
 *
 *	the thread of the pool		another
 *	admit: lets the signal in
 *	says that it runs
 *	the system call		<-----	interrupt, again and again
 *	  ... -EINTR
 *	says that it has ended
 *	drop: takes back the rest
 *
 * The thread may not be in the call yet; so the other repeats the signal until
 * the call has ended, and sends none after that.
 */
#ifndef WEFT_IO_OS_INTERRUPT_H
#define WEFT_IO_OS_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Begins and ends the use of the signal in this process.  blocked: the
 * program's mask; a signal in it the program may wait for. */
void weft__interrupt_begin(const sigset_t *blocked);
void weft__interrupt_end(void);

/* Can a call be interrupted?  Not if there is no signal that the program has no
 * use for, or has a use for it now.  After the begin. */
bool weft__interrupt_works(const sigset_t *blocked);

/* In a child after fork(). */
void weft__interrupt_forget(void);

/* Lets the signal through in this thread. */
void weft__interrupt_admit(sigset_t *ret_before);

/* Takes back what was sent to this thread, and has the mask of before. */
void weft__interrupt_drop(const sigset_t *before);

/* thread: its number in the kernel. */
void weft__interrupt(pid_t thread);

#endif
