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
	unsigned members; /* 0: the name may be given away */
	struct weft_broadcast lines;
	struct line room[64];
};

int topics_init(void);

/* The topic of that name, made if there is none; it stays so until it is left.
 * Suspends.  0, -EINVAL (no name), -ENOSPC, or of a mutex. */
int topic_join(const char *name, struct topic **ret_topic);

/* Suspends, but is not to be interrupted. */
void topic_leave(struct topic *topic);

/* Sends text to the topic whose name it begins with, if there is such a one.
 * Suspends. */
int topic_publish(const char *text);

#endif
