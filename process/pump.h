/* SPDX-License-Identifier: MIT */
/*
 * Pump - moves the input and the output of children until all have ended and
 * their output has been read to its end.
 *
 *	input ----> [0]--\			/--> child 0
 *	output <--- [1]---- one epoll set ------>  ...
 *	errors <--- [2]--/   (and pidfds)	\--> child n
 *
 * One task does all of it: it waits for the set, and then serves what is ready
 * without waiting.  So no order in which the children read and write can stop
 * them.
 */
#ifndef WEFT_PROCESS_PUMP_H
#define WEFT_PROCESS_PUMP_H

#include <weft/process.h>

enum {
	WEFT__PORT_INPUT,
	WEFT__PORT_OUTPUT,
	WEFT__PORT_ERRORS,
	WEFT__PORTS,
};

struct weft__port {
	int fd; /* -1: closed */
	char *bytes;
	size_t bytes_max, done;
	bool cut;
};

/* All fields are the owner's, a task. */
struct weft__pump {
	int epoll_fd;
	struct weft__port ports[WEFT__PORTS];
	struct weft_process *processes[WEFT_COMMANDS_MAX];
	bool ended[WEFT_COMMANDS_MAX];
	bool blind[WEFT_COMMANDS_MAX]; /* not in the set: is looked at */
	unsigned count, running;
	bool cuts; /* drops what does not fit */
	bool persists; /* goes on without a set that can be waited for */
	bool left_open; /* another process holds a pipe */
	weft_nsec linger_ns;
	weft_nsec linger_until_ns; /* set when the last child has ended */
};

/* A pump without ports and children.  0 or an error. */
int weft__pump_open(struct weft__pump *pump);
/* Closes the ports that are left; the processes are the caller's. */
void weft__pump_close(struct weft__pump *pump);

/* Adds what is in `ports`, and a child, which is then in `processes`. */
int weft__pump_watch_ports(struct weft__pump *pump);
void weft__pump_add(struct weft__pump *pump, struct weft_process *process);

/* The linger is at most `linger_ns` from now on; none if no child is left. */
void weft__pump_hurry(struct weft__pump *pump, weft_nsec linger_ns);

/* Until all is done (0), -ETIME (it is until_ns), -EMSGSIZE, -ECANCELED or
 * -ETIMEDOUT, or an error of weft_poll(). */
int weft__pump_run(struct weft__pump *pump, weft_nsec until_ns);

#endif
