/* SPDX-License-Identifier: MIT */
/*
 * Socket - makes stream sockets that listen or are connected, reads the
 * addresses of their two ends, and sets options.
 *
 * A call checks the options, opens the socket, sets what all families have in
 * common, and calls the family's `set` for the rest; then it binds and listens,
 * or connects.  If a step fails the socket is closed.  Only connecting suspends
 * the task.
 */
#include "net/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "io/os/syscall.h"
#include "io/request/engine.h"
#include "io/request/shard.h"
#include "runtime/sched/wait.h"

enum { BACKLOG_DEFAULT = 4096 };

static const struct weft_socket_opts defaults = WEFT_SOCKET_OPTS_INIT;

/* errno is read in leaf functions only; see io/os/syscall.h. */
#define LEAF __attribute__((noinline))

static LEAF int result(int r)
{
	return r < 0 ? -errno : r;
}

LEAF int weft__socket_set_option(int fd, int level, int option,
				 const void *value, socklen_t bytes)
{
	return result(setsockopt(fd, level, option, value, bytes));
}

int weft__socket_set_int(int fd, int level, int option, int value)
{
	return weft__socket_set_option(fd, level, option, &value,
				       sizeof(value));
}

LEAF int weft__socket_get_option(int fd, int level, int option, void *ret_value,
				 socklen_t bytes)
{
	socklen_t room = bytes;
	int r = result(getsockopt(fd, level, option, ret_value, &room));

	return r == 0 && room != bytes ? -EINVAL : r;
}

LEAF int weft__socket_new(int family, int type)
{
	return result(socket(family, type | SOCK_CLOEXEC, 0));
}

static int opts_check(const struct weft_socket_opts *opts)
{
	if (opts->size != sizeof(*opts) || opts->backlog < 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(opts->reserved) / sizeof(unsigned); i++)
		if (opts->reserved[i])
			return -EINVAL;
	return 0;
}

/* On epoll it takes a thread of the pool to accept or to connect without
 * O_NONBLOCK. */
static int nonblock_flag(void)
{
	struct weft__worker *worker = weft__worker_self();
	bool wants =
		worker ? weft__ring_wants_nonblock(&weft__shard(worker)->ring) :
			 weft__engine_is_likely_epoll();

	return wants ? SOCK_NONBLOCK : 0;
}

/* Opens a socket and sets its options.  flags: SOCK_NONBLOCK or 0. */
static int socket_open(const struct weft_addr *addr,
		       const struct weft_socket_opts *opts,
		       weft__socket_set set, int flags)
{
	int fd, r = 0;

	fd = weft__socket_new(weft_addr_family(addr), SOCK_STREAM | flags);
	if (fd < 0)
		return fd;
	if (opts->reuse_port)
		r = weft__socket_set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (r == 0 && opts->keepalive)
		r = weft__socket_set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (r == 0 && set)
		r = set(fd, addr, opts);
	if (r == 0)
		return fd;
	weft__syscall_close(fd);
	return r;
}

/* The path of a Unix socket is made on a file system, and a signal may
 * interrupt that. */
LEAF int weft__socket_bind(int fd, const struct weft_addr *addr)
{
	int r;

	do
		r = result(bind(fd, weft_addr_sockaddr(addr),
				weft_addr_sockaddr_bytes(addr)));
	while (r == -EINTR);
	return r;
}

int weft__socket_listen(const struct weft_addr *addr,
			const struct weft_socket_opts *opts,
			weft__socket_set set)
{
	int fd, r = 0;

	opts = opts ? opts : &defaults;
	r = opts_check(opts);
	if (r < 0)
		return r;
	fd = socket_open(addr, opts, set, nonblock_flag());
	if (fd < 0)
		return fd;
	/* Not for a Unix path: SO_REUSEADDR must not decide if it is bound. */
	if (weft_addr_family(addr) != AF_UNIX)
		r = weft__socket_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (r == 0)
		r = weft__socket_bind(fd, addr);
	if (r == 0)
		r = result(listen(fd, opts->backlog ? opts->backlog :
						      BACKLOG_DEFAULT));
	if (r == 0)
		return fd;
	weft__syscall_close(fd);
	return r;
}

/* Before a socket is connected.  Without a port the kernel picks one at that
 * time, when it knows both ends: so more connections have room.  With one,
 * several may have it, to different peers: weft_dial() tries some at the same
 * time. */
static int socket_bind_local(int fd, const struct weft_addr *local)
{
	int port = weft_addr_port(local), r = 0;

	if (port == 0)
		/* It does so now, if it does not know the option. */
		(void)weft__socket_set_int(fd, IPPROTO_IP,
					   IP_BIND_ADDRESS_NO_PORT, 1);
	else if (port > 0)
		r = weft__socket_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return r < 0 ? r : weft__socket_bind(fd, local);
}

/* The kernel may pick the very port that is dialled for the near end, if no
 * socket listens there: then it connects the socket with itself. */
static bool is_its_own_peer(int fd, const struct weft_addr *addr)
{
	struct weft_addr near, far;
	int port = weft_addr_port(addr);

	return port > 0 && weft_local_addr(fd, &near) == 0 &&
	       weft_addr_port(&near) == port &&
	       weft_peer_addr(fd, &far) == 0 && weft_addr_equal(&near, &far);
}

/* So that the port is free for the one that is to listen there. */
static void close_its_own_peer(int fd)
{
	struct linger none = { .l_onoff = 1, .l_linger = 0 };

	(void)weft__socket_set_option(fd, SOL_SOCKET, SO_LINGER, &none,
				      sizeof(none));
	weft_close(fd);
}

static int socket_connect_once(const struct weft_addr *addr,
			       const struct weft_addr *local,
			       const struct weft_socket_opts *opts,
			       weft__socket_set set)
{
	int fd, r = 0, flags = nonblock_flag();

	fd = socket_open(addr, opts, set, flags);
	if (fd < 0)
		return fd;
	if (local)
		r = socket_bind_local(fd, local);
	if (r == 0)
		r = weft_connect(fd, addr);
	if (r == 0 && flags)
		r = result(fcntl(fd, F_SETFL, 0));
	if (r == 0)
		return fd;
	weft_close(fd);
	return r;
}

int weft__socket_connect(const struct weft_addr *addr,
			 const struct weft_addr *local,
			 const struct weft_socket_opts *opts,
			 weft__socket_set set)
{
	enum { TRIES = 3 };
	bool port_is_free = !local || weft_addr_port(local) == 0;
	int r;

	if (!weft__running(weft__worker_self()))
		return -EPERM;
	if (!addr || weft_addr_family(addr) == AF_UNSPEC)
		return -EINVAL;
	opts = opts ? opts : &defaults;
	r = opts_check(opts);
	if (r < 0)
		return r;
	for (int i = 0; i < TRIES; i++) {
		r = socket_connect_once(addr, local, opts, set);
		if (r < 0 || !port_is_free || !is_its_own_peer(r, addr))
			return r;
		close_its_own_peer(r);
	}
	return -ECONNREFUSED;
}

static LEAF int name_of(int fd, bool peer, struct sockaddr_storage *ret_name,
			socklen_t *ret_bytes)
{
	struct sockaddr *name = (struct sockaddr *)ret_name;

	*ret_bytes = sizeof(*ret_name);
	return result(peer ? getpeername(fd, name, ret_bytes) :
			     getsockname(fd, name, ret_bytes));
}

static int addr_of(int fd, bool peer, struct weft_addr *ret_addr)
{
	struct sockaddr_storage name;
	socklen_t bytes;
	int r;

	if (!ret_addr)
		return -EINVAL;
	r = name_of(fd, peer, &name, &bytes);
	if (r < 0)
		return r;
	return weft_addr_from_sockaddr((struct sockaddr *)&name, bytes,
				       ret_addr);
}

int weft_local_addr(int fd, struct weft_addr *ret_addr)
{
	return addr_of(fd, false, ret_addr);
}

const char *weft_local_addr_text(int fd, char *text)
{
	struct weft_addr addr;

	if (weft_local_addr(fd, &addr) < 0 ||
	    weft_addr_format(&addr, text, WEFT_ADDR_TEXT_BYTES) < 0)
		memcpy(text, "?", sizeof("?"));
	return text;
}

int weft_peer_addr(int fd, struct weft_addr *ret_addr)
{
	return addr_of(fd, true, ret_addr);
}
