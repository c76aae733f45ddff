/* SPDX-License-Identifier: MIT */
#ifndef PUBSUB_TOPIC_H
#define PUBSUB_TOPIC_H

#include <weft/weft.h>

#define TOPICS 64
#define NAME_BYTES 64
#define LINE_BYTES 512

struct line {
	char text[LINE_BYTES];
};

struct topic {
	char name[NAME_BYTES];
	unsigned members; /* 0: unused, the name may be replaced */
	struct weft_broadcast lines;
	struct line room[64];
};

int topics_init(void);

/* Finds the topic of that name, or makes one; it exists until all members have
 * left.  Suspends.  Returns 0, -EINVAL (not a name), -ENOSPC, or an error of
 * weft_rwlock_write(). */
int topic_join(const char *name, struct topic **ret_topic);

/* Suspends, and ignores deadlines and cancellation. */
void topic_leave(struct topic *topic);

/* Sends text to the topic whose name it begins with, if that exists.  Suspends.
 * Returns 0 or an error. */
int topic_publish(const char *text);

#endif
