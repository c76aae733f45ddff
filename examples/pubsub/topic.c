/* SPDX-License-Identifier: MIT */
/*
 * The table of topics, under a reader-writer lock, since it is read far more
 * often than it changes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "topic.h"

static struct topic topics[TOPICS];
static struct weft_rwlock table = WEFT_RWLOCK_INIT;

int topics_init(void)
{
	int r = 0;

	for (int i = 0; i < TOPICS && r == 0; i++)
		r = weft_broadcast_init(&topics[i].lines, topics[i].room,
					sizeof(topics[i].room) /
						sizeof(struct line),
					sizeof(struct line));
	return r;
}

/* The topic of that name; if there is none, an unused topic if or_unused, else
 * NULL. */
static struct topic *find(const char *name, size_t bytes, bool or_unused)
{
	struct topic *unused = NULL;

	for (struct topic *topic = topics; topic < topics + TOPICS; topic++)
		if (topic->members == 0)
			unused = topic;
		else if (strlen(topic->name) == bytes &&
			 memcmp(topic->name, name, bytes) == 0)
			return topic;
	return or_unused ? unused : NULL;
}

int topic_join(const char *name, struct topic **ret_topic)
{
	size_t bytes = strlen(name);
	struct topic *topic;
	int r;

	if (bytes == 0 || bytes >= NAME_BYTES || strchr(name, ' '))
		return -EINVAL;
	r = weft_rwlock_write(&table);
	if (r < 0)
		return r;
	topic = find(name, bytes, true);
	if (topic) {
		memcpy(topic->name, name, bytes + 1);
		topic->members++;
		*ret_topic = topic;
	}
	weft_rwlock_unlock(&table);
	return topic ? 0 : -ENOSPC;
}

void topic_leave(struct topic *topic)
{
	WEFT_SHIELD /* however the session ended */
		if (weft_rwlock_write(&table) == 0) {
			topic->members--;
			weft_rwlock_unlock(&table);
		}
}

int topic_publish(const char *text)
{
	struct topic *topic;
	struct line line;
	int r = weft_rwlock_read(&table);

	if (r < 0)
		return r;
	topic = find(text, strcspn(text, " "), false);
	if (topic) {
		snprintf(line.text, sizeof(line.text), "%s", text);
		r = weft_broadcast_send(&topic->lines, &line);
	}
	weft_rwlock_unlock(&table);
	return r;
}
