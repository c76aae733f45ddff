/* SPDX-License-Identifier: MIT */
/* A list in two directions, whose head is a link. */
#ifndef WEFT_ADAPTERS_REDIS_LINK_H
#define WEFT_ADAPTERS_REDIS_LINK_H

#include <stdbool.h>
#include <stddef.h>

struct link {
	struct link *next, *before; /* NULL: in no list */
};

/* The struct that a link is in. */
#define LINK_OWNER(link, type, field) \
	((type *)(void *)((char *)(link) - offsetof(type, field)))

static inline void link_init(struct link *head)
{
	head->next = head->before = head;
}

static inline bool link_is_empty(const struct link *head)
{
	return head->next == head;
}

static inline bool link_is_in(const struct link *link)
{
	return link->next;
}

static inline void link_append(struct link *head, struct link *link)
{
	link->next = head;
	link->before = head->before;
	head->before->next = link;
	head->before = link;
}

static inline void link_remove(struct link *link)
{
	link->before->next = link->next;
	link->next->before = link->before;
	link->next = link->before = NULL;
}

#endif
