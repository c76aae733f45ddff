/* SPDX-License-Identifier: MIT */
/*
 * The open connections, so that the server can end them.
 */
#ifndef KV_CLIENTS_H
#define KV_CLIENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <weft/weft.h>

/* In the memory of a connection's task, which joins and leaves. */
struct client {
	int fd;
	struct client *next;
	struct client **place; /* that points to this one */
};

struct clients {
	struct weft_wait_group open; /* counts from the accept on */
	pthread_mutex_t lock;	     /* for the following */
	struct client *first;
	bool ending;
};

#define CLIENTS_INIT                                                      \
	{                                                                 \
		WEFT_WAIT_GROUP_INIT(0), PTHREAD_MUTEX_INITIALIZER, NULL, \
			false                                             \
	}

void clients_join(struct clients *clients, struct client *client, int fd);

/* Before the descriptor is closed. */
void clients_leave(struct clients *clients, struct client *client);

/* Ends the input of all clients, also of those that join later.  Requests that
 * have come are still executed and answered.  Does not suspend. */
void clients_end(struct clients *clients);

#endif
