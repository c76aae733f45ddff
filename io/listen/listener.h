/* SPDX-License-Identifier: MIT */
/*
 * Listener - what a listening descriptor has besides its entry: a request that
 * accepts connection after connection, those nobody took yet, and the tasks
 * that wait for one, oldest first.
 *
 *	               a task waits
 *	      IDLE ---------------------------------> ARMED
 *	       ^  ^                                    |  |
 *	       |  '--- last completion (an error, or --'  | too many not taken
 *	       |       one connection at a time)          v
 *	       '------------- last completion -------- STOPPING
 *
 * A listener that lacks descriptors (EMFILE) is starved: it stays IDLE until
 * this runtime closes one, or for a while, whichever is first.  The oldest
 * waiting task keeps that time.
 *
 * Invariants
 *   ACC1  Everything is under the lock of the descriptor's entry, where nothing
 *       is woken, armed or closed: what is to be done is noted, and done after.
 *   ACC2  The listener is freed by the task that closes the descriptor, when it
 *       is IDLE and nobody waits.  After the lock was dropped it may be gone;
 *       what is to be done then names it by its number.
 *   ACC3  Of two workers that reap one ring the second may be the first to look
 *       at what it took, so the last completion can overtake others.  Those
 *       then meet no listener, or another number, and their connections are
 *       closed: perhaps just after the listener's weft_close() has returned.
 *   ACC4  A listener is made only while its descriptor is open, and is freed by
 *       the close of it.  A request outlives the call that armed it, and may
 *       stay in the ring until the tick ends: armed at a number that is not
 *       open it would accept for the descriptor that gets the number next.
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
	struct weft__listener **link; /* likewise */
	uint32_t number;	      /* immutable */
	int fd;			      /* immutable */

	/* All under the lock of the descriptor's entry. */
	struct weft__task *waiting; /* oldest first, by fd_next */
	struct weft__task **waiting_end;
	int accepted_first; /* not taken; oldest first, by next_accepted */
	int accepted_last;
	uint32_t accepted_count;
	uint16_t shard; /* that the request was given to */
	uint8_t state;	/* enum weft__listener_state */
	bool single;	/* the kernel refuses more than one at a time */
	bool starved;
};

/* The actions to take once the entry's lock is dropped (ACC1). */
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

/* Makes sure that the entry has a listener, but while what had the number is
 * being closed.  0, -EBADF (closing, or not open), -ENOMEM. */
int weft__listener_make(struct weft__reactor *reactor, struct weft__fd *entry,
			int fd);

/* All of these under the entry's lock. */
void weft__listener_add(struct weft__listener *listener,
			struct weft__task *task);
void weft__listener_remove(struct weft__listener *listener,
			   struct weft__task *task);
/* Ends the wait of the oldest; returns its id, to be woken. */
uint64_t weft__listener_give(struct weft__listener *listener, int32_t result);
/* Keeps a connection that nobody waits for; false: no memory to. */
bool weft__listener_keep(struct weft__reactor *reactor,
			 struct weft__listener *listener, int fd);
int weft__listener_take(struct weft__reactor *reactor,
			struct weft__listener *listener);
void weft__listener_set_starved(struct weft__reactor *reactor,
				struct weft__listener *listener, bool starved);

/* No worker runs any more: closes what nobody took. */
void weft__listeners_close(struct weft__reactor *reactor);

/* ---- multishot_accept.c: the request and its completions
 * ------------------------ */

static inline uint64_t weft__multishot_accept_user_data(uint32_t number, int fd)
{
	return weft__user_data(WEFT__TAG_ACCEPT, number, (uint32_t)fd);
}

/* Under the entry's lock: arms a request if somebody waits and none is. */
void weft__multishot_accept_want(struct weft__worker *here,
			 struct weft__listener *listener,
			 struct weft__multishot_accept *incoming);

/* Does what was noted; returns how many tasks were made ready. */
unsigned weft__multishot_accept_do(struct weft__worker *here,
			   const struct weft__multishot_accept *incoming);

unsigned weft__multishot_accept_complete(struct weft__worker *here,
				 const struct weft__completion *completion);

#endif
