/* SPDX-License-Identifier: MIT */
/*
 * Starving - tasks whose call lacks a free descriptor (EMFILE, ENFILE) or the
 * kernel's memory.  Each waits until this runtime closes a descriptor, or for
 * some time: other code closes descriptors as well.
 *
 * A task that waits is in a list of the reactor, by the links of its record;
 * oldest first.  The list is under its lock.  A wake takes the task out.
 */
#ifndef WEFT_IO_REQUEST_STARVING_H
#define WEFT_IO_REQUEST_STARVING_H

#include "io/request/reactor.h"

/* The wait of a task, or the time after which a future is to be polled. */
#define WEFT__STARVING_NS 50000000u

/* Adds the task, which has no operation in flight. */
void weft__starving_add(struct weft__reactor *reactor, struct weft__task *task);

/* The task goes on; it may have been taken out already. */
void weft__starving_remove(struct weft__reactor *reactor,
			   struct weft__task *task);

/* A descriptor was closed: wakes the oldest tasks. */
void weft__starving_wake(struct weft__worker *worker);

#endif
