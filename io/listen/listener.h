/* SPDX-License-Identifier: MIT */
/*
 * Listener - the state of a listening descriptor besides its entry: a request
 * that accepts connection after connection, the connections that no task has
 * taken yet, and the tasks that wait for one, oldest first.
 *
 *	               a task waits
 *	      IDLE ---------------------------------> ARMED
 *	       ^  ^                                    |  |
 *	       |  '--- last completion (an error, or --'  | too many not taken
 *	       |       one connection at a time)          v
 *	       '------------- last completion -------- STOPPING
 *
 * A listener that lacks descriptors (EMFILE) is marked `starved`: it stays IDLE
 * until this runtime closes a descriptor, or until some time has passed,
 * whichever is first.  The oldest waiting task keeps that time.
 *
 * Invariants
 *   ACC1  All state is under the lock of the descriptor's entry.  Under that
 *       lock nothing is woken, armed or closed: such actions are noted in a
 *       struct weft__multishot_accept, and carried out after the lock was
 *       dropped.
 *   ACC2  The listener is freed by the task that closes the descriptor, when
 *       the listener is IDLE and no task waits.  After the lock was dropped the
 *       listener may have been freed; so the noted actions name it by its
 *       number.
 *   ACC3  Two workers can reap one ring, and the second may handle its
 *       completions first, so the last completion can overtake others.  The
 *       others then find no listener, or another number, and their connections
 *       are closed: perhaps just after the listener's weft_close() has
 *       returned.
 *   ACC4  A listener is made only while its descriptor is open, and is freed by
 *       the close of that descriptor.  A request outlives the call that armed
 *       it, and may stay in the ring until the tick ends: if it were armed for
 *       a number that is not open, it would accept for the next descriptor
 *       that gets the number.
 */
#ifndef WEFT_IO_LISTEN_LISTENER_H
#define WEFT_IO_LISTEN_LISTENER_H

#include "io/request/reactor.h"

enum weft__listener_state {
	WEFT__LISTENER_IDLE,
	WEFT__LISTENER_ARMED,
	WEFT__LISTENER_STOPPING,
};

struct weft__listener {
	struct weft__listener *next;  /* under reactor->listeners_lock */
	struct weft__listener **link; /* same lock */
	uint32_t number;	      /* immutable */
	int fd;			      /* immutable */

	/* All under the lock of the descriptor's entry. */
	struct weft__task *waiting; /* oldest first, by fd_next */
	struct weft__task **waiting_end;
	int accepted_first; /* not taken; oldest first, by next_accepted */
	int accepted_last;
	uint32_t accepted_count;
	uint16_t shard; /* the worker whose ring has the request */
	uint8_t state;	/* enum weft__listener_state */
	bool single;	/* the kernel refuses multishot */
	bool starved;
};

/* Actions to carry out after the entry's lock was dropped (ACC1). */
struct weft__multishot_accept {
	struct weft__fd *entry;
	int fd;
	uint32_t number;
	int close_fd;	/* or -1 */
	uint64_t wakes[2]; /* tasks, or 0 */
	uint16_t shard;
	bool single;
	bool arm;
	bool stop;
};

#define WEFT__MULTISHOT_ACCEPT_INIT(e) \
	((struct weft__multishot_accept){ .entry = (e), .close_fd = -1 })

/* ---- listener.c: the object, its tasks and its connections ------------- */

/* Makes sure that the entry has a listener, except while the file that had the
 * number is being closed.  Returns 0, -EBADF (closing, or not open),
 * -ENOMEM. */
int weft__listener_make(struct weft__reactor *reactor, struct weft__fd *entry,
			int fd);

/* All of these under the entry's lock. */
void weft__listener_add(struct weft__listener *listener,
			struct weft__task *task);
void weft__listener_remove(struct weft__listener *listener,
			   struct weft__task *task);
/* Ends the wait of the oldest task; returns its id, for the caller to wake. */
uint64_t weft__listener_give(struct weft__listener *listener, int32_t result);
/* Keeps a connection that no task waits for.  False: no memory for it. */
bool weft__listener_keep(struct weft__reactor *reactor,
			 struct weft__listener *listener, int fd);
int weft__listener_take(struct weft__reactor *reactor,
			struct weft__listener *listener);
void weft__listener_set_starved(struct weft__reactor *reactor,
				struct weft__listener *listener, bool starved);

/* After the last worker has ended: closes the connections that no task took. */
void weft__listeners_close(struct weft__reactor *reactor);

/* ---- multishot_accept.c: the request and its completions ---------------- */

static inline uint64_t weft__multishot_accept_user_data(uint32_t number, int fd)
{
	return weft__user_data(WEFT__TAG_ACCEPT, number, (uint32_t)fd);
}

/* Under the entry's lock: arms a request if a task waits and none is armed. */
void weft__multishot_accept_want(struct weft__worker *here,
			 struct weft__listener *listener,
			 struct weft__multishot_accept *incoming);

/* Carries out the noted actions; returns how many tasks were made ready. */
unsigned weft__multishot_accept_do(struct weft__worker *here,
			   const struct weft__multishot_accept *incoming);

unsigned weft__multishot_accept_complete(struct weft__worker *here,
				 const struct weft__completion *completion);

#endif
