/* SPDX-License-Identifier: MIT */
#ifndef DRAIN_SERVER_H
#define DRAIN_SERVER_H

#include <weft/weft.h>

struct server {
	int listener;
	int signal_fd;
	weft_nsec grace_ns; /* for open connections, after the signal */
	struct weft_scope *connections;
	struct weft_wait_group
		open; /* connections; a count can be waited for with a
				  deadline */
};

/* Accepts connections until the signal comes, lets them finish, and closes both
 * descriptors.  arg is a struct server. */
int64_t server_run(void *arg);

#endif
