/* SPDX-License-Identifier: MIT */
/*
 * A connection: one task executes its commands, and one task for each of its
 * subscriptions sends lines.
 */
#include <errno.h>
#include <string.h>

#include "peer.h"
#include "session.h"
#include "subscription.h"
#include "topic.h"

struct session {
	struct peer peer;
	struct weft_scope *tasks;
	unsigned count;
	struct subscription subscriptions[TOPICS];
};

/* Lines are kept for the subscription from here on; later subscription_run()
 * sends them. */
static int subscribe(struct session *session, const char *name)
{
	struct subscription *mine = session->subscriptions;
	struct topic *topic;
	int r = topic_join(name, &topic);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < session->count; i++, mine++)
		if (mine->topic == topic) {
			topic_leave(topic);
			return -EEXIST;
		}
	mine->peer = &session->peer;
	mine->topic = topic;
	weft_subscribe(&topic->lines, &mine->lines);
	session->count++;
	return 0;
}

/* Answers a command first, and then starts the task for a new subscription. */
static int obey(struct session *session, const char *command)
{
	struct subscription *next = &session->subscriptions[session->count];
	unsigned count = session->count;
	int r = -EINVAL;

	if (strncmp(command, "SUB ", 4) == 0)
		r = subscribe(session, command + 4);
	else if (strncmp(command, "PUB ", 4) == 0)
		r = topic_publish(command + 4);
	r = r < 0 ? peer_say(&session->peer, "ERR %s\n", strerror(-r)) :
		    peer_say(&session->peer, "OK\n");
	return r == 0 && session->count > count ?
		       WEFT_GO(session->tasks, subscription_run, next) :
		       r;
}

/* Runs until the end of the stream, an error, or a line that is too long. */
static void obey_all(struct session *session)
{
	char buf[LINE_BYTES], *end;
	size_t bytes = 0;
	ssize_t n;

	while ((n = weft_read(session->peer.fd, buf + bytes,
			      sizeof(buf) - bytes)) > 0) {
		bytes += (size_t)n;
		while ((end = memchr(buf, '\n', bytes))) {
			*end++ = '\0';
			if (obey(session, buf) < 0)
				return;
			bytes -= (size_t)(end - buf);
			memmove(buf, end, bytes);
		}
	}
}

int64_t session_run(void *arg)
{
	struct session session = { .peer.fd = *(int *)arg };

	WEFT_SUPERVISE (tasks) {
		session.tasks = tasks;
		obey_all(&session);
		weft_scope_cancel(tasks);
	}
	while (session.count > 0)
		topic_leave(session.subscriptions[--session.count].topic);
	return weft_close(session.peer.fd);
}
