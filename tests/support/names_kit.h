/* SPDX-License-Identifier: MIT */
/*
 * A server of names for tests, in tasks of the runtime that asks it, on a free
 * port of the loopback.  It answers by the first part of a name:
 *
 *	both	127.0.0.1 and ::1		four	127.0.0.4 alone
 *	short	127.0.0.4, for a second		zero	127.0.0.4, for no time
 *	pair	127.0.0.4, when it has been asked for both families
 *	late	127.0.0.4, when `gate` is set	none	no such name
 *	empty	no address			fail	SERVFAIL
 *	broken	an answer that is cut off	silent	nothing
 *	big	truncated; over TCP 127.0.0.9
 *	half	127.0.0.4; for IPv6 SERVFAIL
 *	lost6	127.0.0.4; for IPv6 nothing
 *	many	127.0.0.1, 40 times, and ::1, 17 times
 *
 * and with 127.0.0.4 to all else, but for one.test and six.one.test, which have
 * ::1 alone.  NAMES_TEST has one, to which the runtime's
 * resolver is pointed.
 */
#ifndef WEFT_TESTS_SUPPORT_NAMES_KIT_H
#define WEFT_TESTS_SUPPORT_NAMES_KIT_H

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>

#include "net/names.h"
#include "tests/support/io_kit.h"

enum { TYPE_A = 1, TYPE_AAAA = 28, QUERIES_MAX = 4096, MESSAGE_BYTES = 1024 };

struct query {
	char name[256];
	int type;
	bool tcp;
};

struct server {
	int udp, tcp;
	char address[WEFT_ADDR_TEXT_BYTES];
	struct weft_scope *scope;
	struct weft_event gate;
	pthread_mutex_t mutex; /* of what follows */
	struct query *queries;
	int count;
};

struct message {
	struct server *server;
	struct weft_addr peer;
	int bytes;
	uint8_t data[MESSAGE_BYTES];
};

/* Notes a query; returns how often the name has been asked for, by type. */
static inline void server_note(struct server *server, const char *name,
			       int type, bool tcp, int counts[2])
{
	counts[0] = counts[1] = 0;
	pthread_mutex_lock(&server->mutex);
	ck_assert_int_lt(server->count, QUERIES_MAX);
	snprintf(server->queries[server->count].name, 256, "%s", name);
	server->queries[server->count].type = type;
	server->queries[server->count++].tcp = tcp;
	for (int i = 0; i < server->count; i++)
		if (strcmp(server->queries[i].name, name) == 0)
			counts[server->queries[i].type == TYPE_AAAA]++;
	pthread_mutex_unlock(&server->mutex);
}

/* The queries for a name, or for all if it is NULL. */
static inline int server_asked(struct server *server, const char *name)
{
	int count = 0;

	pthread_mutex_lock(&server->mutex);
	for (int i = 0; i < server->count; i++)
		count += !name || strcmp(server->queries[i].name, name) == 0;
	pthread_mutex_unlock(&server->mutex);
	return count;
}

/* Reads the question; returns the bytes up to its end. */
static inline int question_read(const uint8_t *data, char name[256],
				int *ret_type)
{
	int at = 12, n = 0;

	while (data[at]) {
		if (n)
			name[n++] = '.';
		memcpy(name + n, data + at + 1, data[at]);
		n += data[at];
		at += data[at] + 1;
	}
	name[n] = '\0';
	*ret_type = data[at + 1] << 8 | data[at + 2];
	return at + 5;
}

static inline bool name_is(const char *name, const char *part)
{
	return strncmp(name, part, strlen(part)) == 0;
}

static inline int record_put(uint8_t *data, int at, int type, uint32_t ttl,
			     const char *address)
{
	const uint8_t head[] = { 0xc0,
				 12,
				 0,
				 (uint8_t)type,
				 0,
				 1,
				 0,
				 0,
				 (uint8_t)(ttl >> 8),
				 (uint8_t)ttl,
				 0,
				 type == TYPE_A ? 4 : 16 };

	memcpy(data + at, head, sizeof(head));
	ck_assert_int_eq(inet_pton(type == TYPE_A ? AF_INET : AF_INET6, address,
				   data + at + sizeof(head)),
			 1);
	data[7]++;
	return at + (int)sizeof(head) + (type == TYPE_A ? 4 : 16);
}

static inline int many_put(uint8_t *data, int at, int type)
{
	for (int i = 0; i < (type == TYPE_A ? 40 : 17); i++)
		at = record_put(data, at, type, 3600,
				type == TYPE_A ? "127.0.0.1" : "::1");
	return at;
}

static inline bool is_lost(const char *name, int type)
{
	return name_is(name, "silent") ||
	       (name_is(name, "lost6") && type == TYPE_AAAA);
}

static inline bool is_six(const char *name)
{
	return strcmp(name, "one.test") == 0 ||
	       strcmp(name, "six.one.test") == 0;
}

/* Turns a query into its answer; returns its bytes, or 0 for none. */
static inline int answer_make(const char *name, int type, bool tcp,
			      uint8_t *data, int at)
{
	uint32_t ttl = name_is(name, "short") ? 1 :
		       name_is(name, "zero")  ? 0 :
						3600;

	data[2] = 0x81; /* a response; recursion was desired */
	data[3] = 0x80; /* and available */
	memset(data + 6, 0, 6);
	if (name_is(name, "none"))
		data[3] |= 3;
	else if (name_is(name, "fail") ||
		 (name_is(name, "half") && type == TYPE_AAAA))
		data[3] |= 2;
	else if (name_is(name, "big") && !tcp)
		data[2] |= 2;
	else if (name_is(name, "big") && type == TYPE_A)
		at = record_put(data, at, type, ttl, "127.0.0.9");
	else if (name_is(name, "many"))
		at = many_put(data, at, type);
	else if (is_six(name) && type == TYPE_AAAA)
		at = record_put(data, at, type, ttl, "::1");
	else if (name_is(name, "both"))
		at = record_put(data, at, type, ttl,
				type == TYPE_A ? "127.0.0.1" : "::1");
	else if (!name_is(name, "empty") && !is_six(name) && type == TYPE_A)
		at = record_put(data, at, type, ttl, "127.0.0.4");
	if (name_is(name, "broken")) {
		data[7] = 1;
		at += type == TYPE_A ? -7 : 3;
	}
	return is_lost(name, type) ? 0 : at;
}

static inline int64_t answer_later(void *arg)
{
	struct message *message = arg;
	struct server *server = message->server;

	if (weft_event_wait(&server->gate) == 0)
		(void)!weft_sendto(server->udp, message->data,
				   (size_t)message->bytes, 0, &message->peer);
	return 0;
}

/* The answers to two queries go out when the second has come. */
static inline int answer_pair(struct server *server, struct message *message,
			      struct message *first, const int counts[2])
{
	if (counts[0] != counts[1]) {
		*first = *message;
		return 0;
	}
	return (int)weft_sendto(server->udp, first->data, (size_t)first->bytes,
				0, &first->peer);
}

static inline int64_t serve_udp(void *arg)
{
	struct server *server = *(struct server **)arg;
	struct message message = { .server = server }, first;
	char name[256];
	int type, at, counts[2];
	ssize_t n;

	while ((n = weft_recvfrom(server->udp, message.data, MESSAGE_BYTES, 0,
				  &message.peer)) > 0) {
		at = question_read(message.data, name, &type);
		server_note(server, name, type, false, counts);
		message.bytes =
			answer_make(name, type, false, message.data, at);
		if (name_is(name, "late"))
			ck_assert_int_eq(weft_go(server->scope, answer_later,
						 &message, sizeof(message)),
					 0);
		if (message.bytes == 0 || name_is(name, "late"))
			continue;
		if (name_is(name, "pair") &&
		    answer_pair(server, &message, &first, counts) == 0)
			continue;
		(void)!weft_sendto(server->udp, message.data,
				   (size_t)message.bytes, 0, &message.peer);
	}
	return 0;
}

static inline void serve_connection(struct server *server, int fd)
{
	uint8_t data[2 + MESSAGE_BYTES];
	char name[256];
	int type, at, counts[2];

	while (weft_read_all(fd, data, 2, NULL) == 0 &&
	       weft_read_all(fd, data + 2, data[1], NULL) == 0) {
		at = question_read(data + 2, name, &type);
		server_note(server, name, type, true, counts);
		at = answer_make(name, type, true, data + 2, at);
		data[0] = (uint8_t)(at >> 8);
		data[1] = (uint8_t)at;
		if (weft_write_all(fd, data, (size_t)at + 2, NULL) < 0)
			return;
	}
}

static inline int64_t serve_tcp(void *arg)
{
	struct server *server = *(struct server **)arg;
	int fd;

	while ((fd = weft_accept(server->tcp, NULL)) >= 0) {
		serve_connection(server, fd);
		weft_close(fd);
	}
	return 0;
}

/* UDP on the port that TCP got. */
static inline void server_open(struct server *server)
{
	struct weft_addr addr;

	do {
		server->tcp = tcp_listener(server->address);
		ck_assert_int_eq(weft_addr_parse(server->address, &addr), 0);
		server->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		ck_assert_int_ge(server->udp, 0);
		if (bind(server->udp, weft_addr_sockaddr(&addr),
			 weft_addr_sockaddr_bytes(&addr)) == 0)
			break;
		weft_close(server->udp);
		weft_close(server->tcp);
	} while (true);
	server->queries = calloc(QUERIES_MAX, sizeof(*server->queries));
	ck_assert_ptr_nonnull(server->queries);
}

static inline struct weft_resolver_opts server_opts(const struct server *server)
{
	struct weft_resolver_opts opts = WEFT_RESOLVER_OPTS_INIT;

	opts.servers = server->address;
	/* No test waits for it, and no slow machine asks twice. */
	opts.timeout_ns = WEFT_SEC(100);
	return opts;
}

typedef void (*names_body)(struct server *server);

static inline void names_run(names_body body)
{
	struct server server = { .mutex = PTHREAD_MUTEX_INITIALIZER };
	struct server *at = &server;
	struct weft_resolver_opts opts;

	server_open(&server);
	opts = server_opts(&server);
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
	WEFT_SUPERVISE(scope) {
		server.scope = scope;
		ck_assert_int_eq(WEFT_GO(scope, serve_udp, at), 0);
		ck_assert_int_eq(WEFT_GO(scope, serve_tcp, at), 0);
		body(&server);
		weft_scope_cancel(scope);
	}
	close_both((int[]){ server.udp, server.tcp });
	free(server.queries);
}

#define NAMES_TEST(name)                                \
	static void name##_body(struct server *server); \
	IO_TEST(name)                                   \
	{                                               \
		names_run(name##_body);                 \
		return 0;                               \
	}                                               \
	static void name##_body(struct server *server)

static inline struct weft__names *names_here(void)
{
	return (struct weft__names *)weft__load(
		&weft__reactor(weft_runtime_self())->names, acquire);
}

/* The tasks that wait for an answer. */
static inline unsigned names_waiters(void)
{
	struct weft__names *names = names_here();
	unsigned count;

	weft__lock_take(&names->lock);
	count = names->waiters;
	weft__lock_drop(&names->lock);
	return count;
}

/* Does the task that asks exist? */
static inline bool names_serving(void)
{
	struct weft__names *names = names_here();
	bool serving;

	weft__lock_take(&names->lock);
	serving = names->serving;
	weft__lock_drop(&names->lock);
	return serving;
}

/* Looks up one name, for one address. */
static inline int look_up(const char *name)
{
	struct weft_addr addr;

	return weft_resolve(name, NULL, &addr, 1);
}

static inline void expect_first(const char *name, const char *address)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addrs[4];

	ck_assert_int_ge(weft_resolve(name, NULL, addrs, 4), 1);
	weft_addr_format(&addrs[0], text, sizeof(text));
	ck_assert_str_eq(text, address);
}

static inline void file_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

#define RESOLV_CONF "/tmp/weft-names-XXXXXX"

/* Makes a file with that text, whose path replaces RESOLV_CONF, and has names
 * looked up by it. */
static inline void resolv_conf_use(const struct server *server, char *path,
				   const char *text)
{
	struct weft_resolver_opts opts = server_opts(server);
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	file_write(path, text);
	opts.resolv_conf = path;
	ck_assert_int_eq(weft_resolver_set(&opts), 0);
}

#endif
