/* SPDX-License-Identifier: MIT */
/*
 * Names, asked - the task of a runtime that asks over c-ares.
 *
 * The task begins with the first question and ends when none is under way.  It
 * alone calls c-ares, and does not suspend inside of it: it takes questions,
 * gives c-ares the sockets that are ready and the time, and then waits for all
 * sockets together, which c-ares names, in an epoll set.  So numbers that
 * c-ares closes are never those of a wait of weft.
 *
 * The task runs inside a WEFT_SHIELD: its life is that of the waits for it.
 * When the last of them is given up, be it by a deadline, a cancellation or the
 * runtime's end, it destroys the channel with what c-ares still has, and ends.
 *
 * When the files or the options change, the channel is made again; what was
 * under way is asked again.
 *
 * Invariants, besides those of names.c
 *   NA1  A question is in `under_way` from ask() to its callback, which comes
 *       from within a call of c-ares.  One whose callback never came is taken
 *       from there when the channel is destroyed.
 */
#include "net/names.h"

#include <ares.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>
#include <weft/io.h>
#include <weft/task.h>

#include "io/os/syscall.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"

enum {
	SERVERS_MAX = 8,
	/* Between two pauses in which other tasks of the worker may run. */
	QUESTIONS_BATCH = 16,
	EVENTS_BATCH = 16,
	RECEIVE_BYTES = 1 << 20, /* the system may allow less */
	TTL_MAX_S = 86400,
	TTL_ONE_FAMILY_S = 60,
	TTL_NEGATIVE_S = 5,
};

struct weft__names_engine {
	ares_channel channel; /* NULL: none */
	int epoll_fd;
	unsigned version; /* of the files and options that the channel has */
	struct weft__question *under_way; /* that c-ares has */
	bool gives_up;			  /* the channel is being destroyed */
};

#define LEAF __attribute__((noinline))

static LEAF int result(int r)
{
	return r < 0 ? -errno : r;
}

/* ---- Servers ------------------------------------------------------------- */

/* Takes one server of a list, with port 53 if it has none. */
static int server_parse(const char *text, size_t bytes, struct weft_addr *addr)
{
	char whole[WEFT_ADDR_TEXT_BYTES];

	/* ":53" alone is an address, but not that of a server. */
	if (bytes == 0 || text[0] == ':' ||
	    bytes + sizeof(":53") > sizeof(whole))
		return -EINVAL;
	memcpy(whole, text, bytes);
	whole[bytes] = '\0';
	if (weft_addr_parse(whole, addr) < 0) {
		memcpy(whole + bytes, ":53", sizeof(":53"));
		if (weft_addr_parse(whole, addr) < 0)
			return -EINVAL;
	}
	return weft_addr_port(addr) > 0 ? 0 : -EINVAL;
}

/* Returns their number. */
static int servers_parse(const char *text, struct weft_addr addrs[SERVERS_MAX])
{
	int count = 0;

	for (;;) {
		size_t bytes = strcspn(text, ",");

		if (count == SERVERS_MAX ||
		    server_parse(text, bytes, &addrs[count++]) < 0)
			return -EINVAL;
		if (text[bytes] == '\0')
			return count;
		text += bytes + 1;
	}
}

bool weft__names_servers_valid(const char *servers)
{
	struct weft_addr addrs[SERVERS_MAX];

	return servers_parse(servers, addrs) > 0;
}

static void server_node(const struct weft_addr *addr,
			struct ares_addr_port_node *node)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	node->family = weft_addr_family(addr);
	node->udp_port = node->tcp_port = weft_addr_port(addr);
	if (node->family == AF_INET) {
		memcpy(&in, &addr->storage, sizeof(in));
		node->addr.addr4 = in.sin_addr;
	} else {
		memcpy(&in6, &addr->storage, sizeof(in6));
		memcpy(&node->addr.addr6, &in6.sin6_addr,
		       sizeof(node->addr.addr6));
	}
}

static int servers_set(ares_channel channel, const char *servers)
{
	struct ares_addr_port_node nodes[SERVERS_MAX] = { 0 };
	struct weft_addr addrs[SERVERS_MAX];
	int count = servers_parse(servers, addrs);

	for (int i = 0; i < count; i++) {
		server_node(&addrs[i], &nodes[i]);
		nodes[i].next = i + 1 < count ? &nodes[i + 1] : NULL;
	}
	return ares_set_servers_ports(channel, nodes);
}

/* ---- Channel ------------------------------------------------------------- */

static int library_status;

static void library_init(void)
{
	library_status = ares_library_init(ARES_LIB_INIT_ALL);
}

/* c-ares begins or ends to wait for a socket. */
static void socket_state(void *arg, ares_socket_t fd, int readable,
			 int writable)
{
	struct weft__names_engine *engine = arg;
	struct epoll_event event = { .data.fd = fd };

	event.events = (readable ? (uint32_t)EPOLLIN : 0u) |
		       (writable ? (uint32_t)EPOLLOUT : 0u);
	if (!event.events)
		(void)epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0)
		/* Without memory for it, the query runs into its timeout. */
		(void)epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int status_error(int status)
{
	switch (status) {
	case ARES_SUCCESS:
		return 0;
	case ARES_ENOTFOUND:
		return -ENOENT;
	case ARES_ENODATA:
		return -ENODATA;
	case ARES_ETIMEOUT:
		return -ETIMEDOUT;
	case ARES_ENOMEM:
		return -ENOMEM;
	case ARES_EBADNAME:
	case ARES_EBADSTR:
		return -EINVAL;
	case ARES_ESERVFAIL:
	case ARES_EREFUSED:
	case ARES_ENOTIMP:
	case ARES_ECONNREFUSED:
		return -EAGAIN;
	case ARES_ECANCELLED:
	case ARES_EDESTRUCTION:
		return -ECANCELED;
	default:
		return -EBADMSG;
	}
}

static int channel_init(struct weft__names_engine *engine,
			const struct weft__names_opts *opts)
{
	struct ares_options options = { 0 };
	int mask = ARES_OPT_SOCK_STATE_CB, status;

	options.sock_state_cb = socket_state;
	options.sock_state_cb_data = engine;
	/* Many answers may come at the same time. */
	options.socket_receive_buffer_size = RECEIVE_BYTES;
	mask |= ARES_OPT_SOCK_RCVBUF;
	if (opts->resolv_conf) {
		options.resolvconf_path = opts->resolv_conf;
		mask |= ARES_OPT_RESOLVCONF;
	}
	if (opts->timeout_ns) {
		uint64_t ms = opts->timeout_ns / 1000000;

		options.timeout = ms > 0 ? (int)ms : 1;
		mask |= ARES_OPT_TIMEOUTMS;
	}
	if (opts->tries) {
		options.tries = (int)opts->tries;
		mask |= ARES_OPT_TRIES;
	}
	status = ares_init_options(&engine->channel, &options, mask);
	if (status != ARES_SUCCESS) {
		engine->channel = NULL;
		return status_error(status);
	}
	if (opts->servers)
		status = servers_set(engine->channel, opts->servers);
	if (status != ARES_SUCCESS) {
		ares_destroy(engine->channel);
		engine->channel = NULL;
	}
	return status_error(status);
}

static LEAF int epoll_open(int wake_fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = wake_fd };
	int fd = weft__fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
	int r;

	if (fd < 0)
		return fd;
	r = result(epoll_ctl(fd, EPOLL_CTL_ADD, wake_fd, &event));
	if (r == 0)
		return fd;
	weft__syscall_close(fd);
	return r;
}

static int engine_new(struct weft__names *names)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct weft__names_engine *engine;
	int fd;

	pthread_once(&once, library_init);
	if (library_status != ARES_SUCCESS)
		return status_error(library_status);
	engine = weft__memory_zeroed(names->runtime->memory, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	fd = epoll_open(names->wake_fd);
	if (fd < 0) {
		weft__memory_free(names->runtime->memory, engine,
				  sizeof(*engine));
		return fd;
	}
	engine->epoll_fd = fd;
	names->engine = engine;
	return 0;
}

void weft__names_engine_free(struct weft__names *names)
{
	struct weft__names_engine *engine = names->engine;

	if (!engine)
		return;
	if (engine->channel)
		ares_destroy(engine->channel);
	weft__syscall_close(engine->epoll_fd);
	weft__memory_free(names->runtime->memory, engine, sizeof(*engine));
	names->engine = NULL;
}

/* A copy, so that no lock is held while c-ares reads its files. */
static int opts_now(struct weft__names *names, struct weft__names_opts *opts,
		    unsigned *ret_version)
{
	const struct weft_allocator *memory = names->runtime->memory;
	const struct weft__names_opts *from = &names->opts;
	int r;

	weft__lock_take(&names->lock);
	*ret_version = names->version;
	*opts = *from;
	opts->resolv_conf = NULL;
	r = weft__names_text(memory, from->servers, &opts->servers);
	if (r == 0)
		r = weft__names_text(memory, from->resolv_conf,
				     &opts->resolv_conf);
	weft__lock_drop(&names->lock);
	if (r < 0)
		weft__names_opts_free(memory, opts);
	return r;
}

static void under_way_remove(struct weft__names_engine *engine,
			     struct weft__question *question)
{
	struct weft__question **link = question->before ?
					       &question->before->next_asked :
					       &engine->under_way;

	*link = question->next_asked;
	if (question->next_asked)
		question->next_asked->before = question->before;
}

/* Questions under way are asked again, if a task waits for them. */
static void channel_end(struct weft__names_engine *engine)
{
	if (!engine->channel)
		return;
	engine->gives_up = true;
	ares_destroy(engine->channel);
	engine->gives_up = false;
	engine->channel = NULL;
	while (engine->under_way) {
		struct weft__question *question = engine->under_way;

		under_way_remove(engine, question);
		weft__names_answer(question, -ECANCELED, NULL, 0, 0, true);
	}
}

static unsigned locked(struct weft__names *names, const unsigned *word)
{
	unsigned value;

	weft__lock_take(&names->lock);
	value = *word;
	weft__lock_drop(&names->lock);
	return value;
}

/* Makes the channel, or makes it again if something has changed. */
static int channel_renew(struct weft__names *names)
{
	const struct weft_allocator *memory = names->runtime->memory;
	struct weft__names_engine *engine = names->engine;
	struct weft__names_opts opts;
	int r;

	if (engine->channel &&
	    engine->version == locked(names, &names->version))
		return 0;
	channel_end(engine);
	r = opts_now(names, &opts, &engine->version);
	if (r < 0)
		return r;
	r = channel_init(engine, &opts);
	weft__names_opts_free(memory, &opts);
	return r;
}

/* ---- Questions ----------------------------------------------------------- */

/* Takes the addresses, and returns the shortest TTL.  Of two families c-ares
 * does not say if one has none or its query failed. */
static int nodes_take(const struct ares_addrinfo *info, int family,
		      struct weft_addr addrs[WEFT_RESOLVE_MAX],
		      unsigned *ret_count)
{
	bool seen[2] = { family == AF_INET6, family == AF_INET };
	int ttl_s = TTL_MAX_S;
	unsigned count = 0;

	for (const struct ares_addrinfo_cname *cname = info->cnames; cname;
	     cname = cname->next)
		if (cname->ttl < ttl_s)
			ttl_s = cname->ttl;
	for (const struct ares_addrinfo_node *node = info->nodes;
	     node && count < WEFT_RESOLVE_MAX; node = node->ai_next) {
		seen[node->ai_family == AF_INET6] = true;
		if (node->ai_ttl < ttl_s)
			ttl_s = node->ai_ttl;
		if (weft_addr_from_sockaddr(node->ai_addr, node->ai_addrlen,
					    &addrs[count]) == 0)
			count++;
	}
	*ret_count = count;
	if (!(seen[0] && seen[1]) && ttl_s > TTL_ONE_FAMILY_S)
		ttl_s = TTL_ONE_FAMILY_S;
	return ttl_s > 0 ? ttl_s : 0;
}

static void on_answer(void *arg, int status,
		      int timeouts __attribute__((unused)),
		      struct ares_addrinfo *info)
{
	struct weft__question *question = arg;
	struct weft__names_engine *engine = question->names->engine;
	struct weft_addr addrs[WEFT_RESOLVE_MAX];
	int error = status_error(status), ttl_s = 0;
	unsigned count = 0;

	under_way_remove(engine, question);
	if (engine->gives_up) {
		/* An answer for one family is not the whole. */
		error = -ECANCELED;
	} else if (error == 0 && info) {
		ttl_s = nodes_take(info, question->family, addrs, &count);
		error = count > 0 ? 0 : -ENODATA;
	} else if (error == -ENOENT || error == -ENODATA) {
		ttl_s = TTL_NEGATIVE_S;
	}
	if (info)
		ares_freeaddrinfo(info);
	weft__names_answer(question, error, addrs, count, WEFT_SEC(ttl_s),
			   engine->gives_up);
}

static void ask(struct weft__names_engine *engine,
		struct weft__question *question)
{
	struct ares_addrinfo_hints hints = {
		.ai_family = question->family,
		.ai_socktype = SOCK_STREAM,
	};

	question->version = engine->version;
	question->before = NULL;
	question->next_asked = engine->under_way;
	if (engine->under_way)
		engine->under_way->before = question;
	engine->under_way = question;
	ares_getaddrinfo(engine->channel, question->name, NULL, &hints,
			 on_answer, question);
}

/* ---- The task ------------------------------------------------------------ */

static LEAF void wake_take(int wake_fd)
{
	uint64_t count;

	(void)!read(wake_fd, &count, sizeof(count));
}

static LEAF int events_take(int epoll_fd, struct epoll_event *events)
{
	return epoll_wait(epoll_fd, events, EVENTS_BATCH, 0);
}

/* Gives c-ares the sockets that are ready, and the time. */
static void process(struct weft__names *names)
{
	struct weft__names_engine *engine = names->engine;
	struct epoll_event events[EVENTS_BATCH];
	int count = events_take(engine->epoll_fd, events);

	for (int i = 0; i < count; i++) {
		int fd = events[i].data.fd;
		bool reads = events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP);
		bool writes = events[i].events & EPOLLOUT;

		if (fd == names->wake_fd)
			wake_take(fd);
		else
			ares_process_fd(engine->channel,
					reads ? fd : ARES_SOCKET_BAD,
					writes ? fd : ARES_SOCKET_BAD);
	}
	ares_process_fd(engine->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

/* Asks for all that came since the last time; error: there is no channel. */
static void ask_all(struct weft__names *names, int error)
{
	struct weft__question *asked = weft__names_take(names);
	unsigned batch = 0;

	while (asked) {
		struct weft__question *next = asked->next_asked;

		if (error < 0)
			weft__names_answer(asked, error, NULL, 0, 0, false);
		else
			ask(names->engine, asked);
		if (++batch % QUESTIONS_BATCH == 0) {
			/* Or answers to the first would find no room in the
			 * sockets' buffers. */
			if (error == 0)
				process(names);
			(void)weft_yield();
		}
		asked = next;
	}
}

/* May the task wait for its sockets?  Under the lock, so that whatever changes
 * then wakes it. */
static bool sleep_begin(struct weft__names *names)
{
	bool asleep;

	weft__lock_take(&names->lock);
	asleep = !names->asked && names->waiters > 0 &&
		 names->engine->version == names->version;
	names->asleep = asleep;
	weft__lock_drop(&names->lock);
	return asleep;
}

static void sleep_end(struct weft__names *names)
{
	weft__lock_take(&names->lock);
	names->asleep = false;
	weft__lock_drop(&names->lock);
}

/* Waits for a socket, for the time that c-ares wants, or to be woken. */
static void await(struct weft__names *names)
{
	struct timeval room,
		*left = ares_timeout(names->engine->channel, NULL, &room);
	weft_nsec length_ns = WEFT_NEVER;
	int r = 0;

	if (left)
		length_ns = WEFT_SEC(left->tv_sec) + WEFT_US(left->tv_usec);
	WEFT_WITHIN(length_ns)
		r = weft_poll(names->engine->epoll_fd, POLLIN);
	/* Without memory for the wait. */
	if (r < 0 && r != -ETIMEDOUT)
		(void)weft_sleep(WEFT_MS(1));
}

static bool serve_ends(struct weft__names *names)
{
	bool ends;

	weft__lock_take(&names->lock);
	ends = !names->asked;
	if (ends)
		names->serving = false;
	weft__lock_drop(&names->lock);
	return ends;
}

/* One round: asks, hears, and gives up what no task waits for any more. */
static void serve_round(struct weft__names *names)
{
	int r = names->engine ? 0 : engine_new(names);

	if (r == 0)
		r = channel_renew(names);
	ask_all(names, r);
	if (r < 0)
		return;
	process(names);
	if (names->engine->under_way && locked(names, &names->waiters) == 0)
		channel_end(names->engine);
}

static void serve(struct weft__names *names)
{
	for (;;) {
		serve_round(names);
		if (names->engine && names->engine->under_way) {
			if (sleep_begin(names)) {
				await(names);
				sleep_end(names);
			}
		} else if (serve_ends(names)) {
			return;
		}
		(void)weft_yield();
	}
}

int64_t weft__names_serve(void *arg)
{
	struct weft__names *names = *(struct weft__names **)arg;

	WEFT_SHIELD
		serve(names);
	return 0;
}
