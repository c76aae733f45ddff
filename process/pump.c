/* SPDX-License-Identifier: MIT */
/*
 * Pump - the header has the model.  The pipes' ends here are in O_NONBLOCK
 * mode, and no other process has them, so that mode is theirs alone.
 */
#include "process/pump.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <weft/io.h>
#include <weft/task.h>

#include "io/os/sigpipe.h"
#include "io/request/call.h"
#include "process/process.h"
#include "runtime/base/nsec.h"
#include "runtime/base/own_fd.h"

enum { EVENTS = 8, DROP_BYTES = 4096 };

/* How often a set is looked at that cannot be waited for. */
#define PERSIST_NS WEFT_MS(1)

static int watch(struct weft__pump *pump, int fd, uint32_t events,
		 uint32_t number)
{
	struct epoll_event event = { .events = events };

	event.data.u32 = number;
	if (epoll_ctl(pump->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	/* ENOSPC: the user has all the watches that it may have. */
	return errno == ENOSPC ? -ENOMEM : -errno;
}

static void unwatch(struct weft__pump *pump, int fd)
{
	(void)epoll_ctl(pump->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

int weft__pump_open(struct weft__pump *pump)
{
	struct weft__worker *worker = weft__worker_self();

	for (int i = 0; i < WEFT__PORTS; i++)
		pump->ports[i].fd = -1;
	pump->epoll_fd = weft__fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
	if (pump->epoll_fd >= 0)
		weft__reactor_forget(worker, pump->epoll_fd);
	return pump->epoll_fd < 0 ? pump->epoll_fd : 0;
}

static void port_close(struct weft__pump *pump, struct weft__port *port)
{
	if (port->fd < 0)
		return;
	unwatch(pump, port->fd);
	close(port->fd);
	port->fd = -1;
}

void weft__pump_close(struct weft__pump *pump)
{
	for (int i = 0; i < WEFT__PORTS; i++)
		port_close(pump, &pump->ports[i]);
	WEFT_SHIELD
		(void)weft_close(pump->epoll_fd);
}

int weft__pump_watch_ports(struct weft__pump *pump)
{
	int r = 0;

	for (unsigned i = 0; i < WEFT__PORTS && r == 0; i++)
		if (pump->ports[i].fd >= 0)
			r = watch(pump, pump->ports[i].fd,
				  i == WEFT__PORT_INPUT ? EPOLLOUT : EPOLLIN,
				  i);
	return r;
}

/* The user may have no watches left, or the kernel no memory: a child that has
 * begun is waited for all the same. */
void weft__pump_add(struct weft__pump *pump, struct weft_process *process)
{
	unsigned i = pump->count++;

	pump->processes[i] = process;
	pump->ended[i] = false;
	pump->running++;
	pump->blind[i] =
		process->pidfd < 0 ||
		watch(pump, process->pidfd, EPOLLIN, WEFT__PORTS + i) < 0;
}

void weft__pump_hurry(struct weft__pump *pump, weft_nsec linger_ns)
{
	weft_nsec now_ns = weft_now();

	if (pump->linger_ns > linger_ns)
		pump->linger_ns = linger_ns;
	if (!pump->running && pump->linger_until_ns > now_ns)
		pump->linger_until_ns = now_ns;
}

/* ---- Serving ------------------------------------------------------------- */

static void child_look(struct weft__pump *pump, unsigned i)
{
	struct weft_process *process = pump->processes[i];

	if (pump->ended[i] || !weft__process_has_ended(process))
		return;
	pump->ended[i] = true;
	pump->running--;
	if (!pump->blind[i])
		unwatch(pump, process->pidfd);
	if (pump->running)
		return;
	pump->linger_until_ns = weft__nsec_after(weft_now(), pump->linger_ns);
	port_close(pump, &pump->ports[WEFT__PORT_INPUT]);
}

/* A child that reads no more ends its input, which is no error. */
static void port_feed(struct weft__pump *pump, struct weft__port *port)
{
	struct iovec iov = { port->bytes + port->done,
			     port->bytes_max - port->done };
	bool blocked = weft__sigpipe_block();
	ssize_t n = weft__syscall_writev(port->fd, &iov, 1, -1, 0);

	weft__sigpipe_restore(blocked, n == -EPIPE);
	if (n > 0)
		port->done += (size_t)n;
	if (port->done == port->bytes_max || (n < 0 && n != -EAGAIN))
		port_close(pump, port);
}

/* One read.  The bytes, 0 (there are none now, or no more) or an error. */
static ssize_t port_drain(struct weft__pump *pump, struct weft__port *port)
{
	char dropped[DROP_BYTES];
	bool full = port->done == port->bytes_max;
	struct iovec iov = { full ? dropped : port->bytes + port->done,
			     full ? sizeof(dropped) :
				    port->bytes_max - port->done };
	ssize_t n = weft__syscall_readv(port->fd, &iov, 1, -1, 0);

	if (n == -EAGAIN)
		return 0;
	if (n <= 0) {
		port_close(pump, port);
		return n;
	}
	if (!full)
		port->done += (size_t)n;
	else
		port->cut = true;
	return port->cut && !pump->cuts ? -EMSGSIZE : n;
}

/* Reads all that is in the pipe now, and its end if that follows; what others
 * write meanwhile may have no end. */
static int port_drain_all(struct weft__pump *pump, struct weft__port *port)
{
	ssize_t n = 1, done = 0;
	int bytes = 0;

	if (port->fd < 0)
		return 0;
	(void)ioctl(port->fd, FIONREAD, &bytes);
	while (n > 0 && done <= bytes) {
		n = port_drain(pump, port);
		done += n;
	}
	return n < 0 ? (int)n : 0;
}

static int event_serve(struct weft__pump *pump, uint32_t number)
{
	if (number >= WEFT__PORTS) {
		child_look(pump, number - WEFT__PORTS);
		return 0;
	}
	if (pump->ports[number].fd < 0)
		return 0;
	if (number != WEFT__PORT_INPUT)
		return (int)port_drain(pump, &pump->ports[number]);
	port_feed(pump, &pump->ports[number]);
	return 0;
}

static int serve(struct weft__pump *pump)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(pump->epoll_fd, events, EVENTS, 0), r = 0;

	for (int i = 0; i < n && r >= 0; i++)
		r = event_serve(pump, events[i].data.u32);
	for (unsigned i = 0; i < pump->count; i++)
		if (pump->blind[i])
			child_look(pump, i);
	return r;
}

/* ---- Waiting ------------------------------------------------------------- */

static weft_nsec next_ns(const struct weft__pump *pump, weft_nsec until_ns)
{
	if (!pump->running && pump->linger_until_ns < until_ns)
		until_ns = pump->linger_until_ns;
	for (unsigned i = 0; i < pump->count; i++) {
		weft_nsec look_ns = WEFT_NEVER;

		if (pump->blind[i] && !pump->ended[i])
			look_ns = weft__process_next_look(pump->processes[i]);
		if (look_ns < until_ns)
			until_ns = look_ns;
	}
	return until_ns;
}

/* 0 also when that time has come. */
static int await(struct weft__pump *pump, weft_nsec until_ns)
{
	struct weft__worker *worker;
	int r = 0;

	if (until_ns >= WEFT_NEVER)
		return weft_poll(pump->epoll_fd, POLLIN);
	WEFT_WITHIN_UNTIL(until_ns)
		r = weft_poll(pump->epoll_fd, POLLIN);
	if (r == -ETIMEDOUT)
		return 0;
	if (r != -ECANCELED)
		return r;
	/* By a deadline around the call, or by a cancellation. */
	worker = weft__worker_self();
	r = weft__interrupted(worker, worker->current);
	return r < 0 ? r : -ECANCELED;
}

static bool is_done(const struct weft__pump *pump)
{
	return !pump->running && pump->ports[WEFT__PORT_OUTPUT].fd < 0 &&
	       pump->ports[WEFT__PORT_ERRORS].fd < 0;
}

/* No child is left, but another process may write. */
static bool has_lingered(const struct weft__pump *pump)
{
	return !pump->running && weft_now() >= pump->linger_until_ns;
}

/* All that the children have written counts, however short the linger. */
static int linger_end(struct weft__pump *pump)
{
	int r = port_drain_all(pump, &pump->ports[WEFT__PORT_OUTPUT]);
	int errors = port_drain_all(pump, &pump->ports[WEFT__PORT_ERRORS]);

	pump->left_open = !is_done(pump);
	return r < 0 ? r : errors;
}

int weft__pump_run(struct weft__pump *pump, weft_nsec until_ns)
{
	while (!is_done(pump)) {
		int r = await(pump, next_ns(pump, until_ns));

		if (r < 0 && !pump->persists)
			return r;
		if (r < 0)
			(void)weft_sleep(PERSIST_NS);
		r = serve(pump);
		if (r < 0 && !pump->persists)
			return r;
		if (is_done(pump))
			break;
		if (has_lingered(pump))
			return linger_end(pump);
		if (weft_now() >= until_ns)
			return -ETIME;
	}
	return 0;
}
