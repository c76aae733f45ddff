/* SPDX-License-Identifier: MIT */
/*
 * pubsub [ADDR] - passes on what is published to who has subscribed.
 *
 * Shows	a table of topics, each a broadcast, under a reader-writer lock;
 *		a task a subscription, beside the one that obeys commands, all
 *		writing to one connection under a mutex.  A subscriber that is
 *		slow misses lines, and is told how many; it holds nobody up.
 * Run		build/examples/pubsub 127.0.0.1:7000 &  nc 127.0.0.1 7000
 *		SUB weather			answered by OK, or by ERR why
 *		PUB weather rain at noon	sent as "weather rain at noon"
 * Needs	Linux 6.1 or newer
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#define TOPICS 64
#define NAME_BYTES 64
#define LINE_BYTES 512

struct line {
	char text[LINE_BYTES];
};

struct topic {
	char name[NAME_BYTES];
	unsigned subscribers; /* 0: the name may be given away */
	struct weft_broadcast lines;
	struct line room[64];
};

static struct topic topics[TOPICS];
static struct weft_rwlock table = WEFT_RWLOCK_INIT;

struct subscription {
	struct session *session;
	struct topic *topic; /* NULL: not subscribed */
	struct weft_subscriber lines;
};

struct session {
	int fd;
	struct weft_mutex writing;
	struct subscription subscriptions[TOPICS];
};

/* One line, whole, whoever else writes to the connection. */
__attribute__((format(printf, 2, 3)))
static int say(struct session *session, const char *format, ...)
{
	char text[LINE_BYTES + 1];
	va_list values;
	int bytes, r;

	va_start(values, format);
	bytes = vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	r = weft_mutex_lock(&session->writing);
	if (r < 0)
		return r;
	r = weft_write_all(session->fd, text, (size_t)bytes, NULL);
	weft_mutex_unlock(&session->writing);
	return r;
}

static int64_t deliver(void *arg)
{
	struct subscription *mine = *(struct subscription **)arg;
	struct line line;
	int r = 0;

	while (r == 0) {
		int64_t missed = weft_broadcast_recv(&mine->lines, &line);

		if (missed < 0)
			return missed;
		if (missed > 0)
			r = say(mine->session, "MISSED %s %lld\n",
				mine->topic->name, (long long)missed);
		if (r == 0)
			r = say(mine->session, "%s\n", line.text);
	}
	return r;
}

/* The topic of that name, or NULL; else, if wanted, an unused one. */
static struct topic *find_topic(const char *name, size_t bytes, bool unused)
{
	struct topic *found = NULL;

	for (struct topic *topic = topics; topic < topics + TOPICS; topic++) {
		if (topic->subscribers > 0 && strlen(topic->name) == bytes &&
		    memcmp(topic->name, name, bytes) == 0)
			return topic;
		if (topic->subscribers == 0 && unused)
			found = topic;
	}
	return found;
}

/* Lines are kept for it from here on; deliver() then takes them. */
static int subscribe(struct session *session, const char *name,
		     struct subscription **ret_subscription)
{
	size_t bytes = strlen(name);
	struct subscription *mine;
	struct topic *topic;
	int r;

	if (bytes == 0 || bytes >= NAME_BYTES || strchr(name, ' '))
		return -EINVAL;
	r = weft_rwlock_write(&table);
	if (r < 0)
		return r;
	topic = find_topic(name, bytes, true);
	mine = topic ? &session->subscriptions[topic - topics] : NULL;
	if (!mine) {
		r = -ENOSPC;
	} else if (mine->topic) {
		r = -EEXIST;
	} else {
		memcpy(topic->name, name, bytes + 1);
		topic->subscribers++;
		weft_subscribe(&topic->lines, &mine->lines);
		mine->topic = topic;
		mine->session = session;
		*ret_subscription = mine;
	}
	weft_rwlock_unlock(&table);
	return r;
}

static void unsubscribe_all(struct session *session)
{
	WEFT_SHIELD /* whatever ended it */
		if (weft_rwlock_write(&table) == 0) {
			for (int i = 0; i < TOPICS; i++)
				if (session->subscriptions[i].topic)
					topics[i].subscribers--;
			weft_rwlock_unlock(&table);
		}
}

static int publish(const char *text)
{
	struct topic *topic;
	struct line line;
	int r = weft_rwlock_read(&table);

	if (r < 0)
		return r;
	topic = find_topic(text, strcspn(text, " "), false);
	if (topic) {
		snprintf(line.text, sizeof(line.text), "%s", text);
		r = weft_broadcast_send(&topic->lines, &line);
	}
	weft_rwlock_unlock(&table);
	return r;
}

/* Answers a command, and only then lets the lines come that it asked for. */
static int obey(struct session *session, const char *command,
		struct weft_scope *tasks)
{
	struct subscription *added = NULL;
	int r = -EINVAL;

	if (strncmp(command, "SUB ", 4) == 0)
		r = subscribe(session, command + 4, &added);
	else if (strncmp(command, "PUB ", 4) == 0)
		r = publish(command + 4);
	r = r < 0 ? say(session, "ERR %s\n", strerror(-r)) :
		    say(session, "OK\n");
	return r == 0 && added ? WEFT_GO(tasks, deliver, added) : r;
}

/* Until the end of the stream, an error, or a line that is too long. */
static void obey_all(struct session *session, struct weft_scope *tasks)
{
	char buf[LINE_BYTES], *end;
	size_t bytes = 0;
	ssize_t n;

	while ((n = weft_read(session->fd, buf + bytes, sizeof(buf) - bytes)) >
	       0) {
		bytes += (size_t)n;
		while ((end = memchr(buf, '\n', bytes))) {
			*end++ = '\0';
			if (obey(session, buf, tasks) < 0)
				return;
			bytes -= (size_t)(end - buf);
			memmove(buf, end, bytes);
		}
	}
}

static int64_t attend(void *arg)
{
	struct session session = { .fd = *(int *)arg };

	WEFT_SUPERVISE(tasks) {
		obey_all(&session, tasks);
		weft_scope_cancel(tasks);
	}
	unsubscribe_all(&session);
	return weft_close(session.fd);
}

static int64_t serve(void *arg)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int fd = -1, listener = weft_tcp_listen(arg, NULL);

	if (listener < 0)
		return listener;
	printf("listening on %s\n", weft_local_addr_text(listener, text));
	fflush(stdout);
	WEFT_SUPERVISE(sessions)
		while ((fd = weft_accept(listener, NULL)) >= 0)
			if (WEFT_GO(sessions, attend, fd) < 0)
				weft_close(fd);
	weft_close(listener);
	return fd;
}

int main(int argc, char **argv)
{
	char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	int64_t result = 0;

	for (int i = 0; i < TOPICS && result == 0; i++)
		result = weft_broadcast_init(&topics[i].lines, topics[i].room,
					     64, sizeof(struct line));
	if (result == 0)
		result = weft_run(serve, address, NULL);
	fprintf(stderr, "pubsub: %s: %s\n", address, strerror((int)-result));
	return 1;
}
