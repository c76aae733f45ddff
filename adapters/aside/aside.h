/* SPDX-License-Identifier: MIT */
/* A function on a thread, whose caller may leave before it returns. */
#ifndef WEFT_ADAPTERS_ASIDE_ASIDE_H
#define WEFT_ADAPTERS_ASIDE_ASIDE_H

#include <pthread.h>
#include <stdbool.h>
#include <weft/weft.h>

struct aside {
	void (*run)(struct aside *aside);  /* on a thread; may block */
	void (*drop)(struct aside *aside); /* frees it, if its owner left */
	struct weft_event event;
	pthread_mutex_t lock;
	/* Under lock: */
	bool done, left;
	int error; /* of the thread; then it has not run */
};

void weft__aside_init(struct aside *aside, void (*run)(struct aside *),
			 void (*drop)(struct aside *));
void weft__aside_fini(struct aside *aside);

/* Lets it run; again, after it is done.  0, or an error and it does not. */
int weft__aside_start(struct aside *aside);

/* Waits until it is done: 0, and then `error` says how; or what ended the wait,
 * which may be repeated. */
int weft__aside_wait(struct aside *aside);

/* Its owner leaves.  True: it does not run, and the owner frees it.  False: it
 * is dropped when it is done. */
bool weft__aside_leave(struct aside *aside);

#endif
