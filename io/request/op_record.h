/* SPDX-License-Identifier: MIT */
/*
 * Operation record - what io keeps of an operation in the record of the task
 * that waits for it (io_words in runtime/sched/task.h).
 */
#ifndef WEFT_IO_REQUEST_OP_RECORD_H
#define WEFT_IO_REQUEST_OP_RECORD_H

#include "runtime/sched/task.h"

struct weft__op_record {
	/* Under the lock of the descriptor's entry: the tasks whose operations
	 * are in flight on it. */
	struct weft__task *fd_next;
	struct weft__task **fd_link;
	int32_t fd;
	uint16_t shard; /* index of the worker in whose ring it is */
	uint16_t flags; /* WEFT__OP_CLOSED and others, see op.h */
	/* The rest is a future's.  A task keeps its blocks and scopes there. */
	union {
		uint64_t call; /* blank between two calls */
		struct {
			/* How often the number had begun to be closed, see
			 * call.h; of one that closes: whether it has an
			 * entry. */
			uint8_t closes;
			bool begins; /* in its next turn */
			/* Of one that connects or accepts: which step of it is
			 * done, and how often it was tried. */
			uint8_t step;
			union {
				uint16_t tries;
				/* Of others: what they ask for; see
				 * io/await_socket.c. */
				uint32_t asks;
			};
		};
	};
	uint64_t reason; /* see runtime/sched/wait_reason.h */
} __attribute__((may_alias));

_Static_assert(sizeof(struct weft__op_record) ==
		       sizeof(((struct weft__task *)0)->io_words),
	       "the record of a task has room for it");

static inline struct weft__op_record *weft__op_of(struct weft__task *task)
{
	return (struct weft__op_record *)(void *)task->io_words;
}

/* Takes the task out of the list that it is in by fd_next and fd_link. */
static inline void weft__op_unlink(struct weft__task *task)
{
	struct weft__op_record *record = weft__op_of(task);

	*record->fd_link = record->fd_next;
	if (record->fd_next)
		weft__op_of(record->fd_next)->fd_link = record->fd_link;
}

#endif
