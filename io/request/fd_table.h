/* SPDX-License-Identifier: MIT */
/*
 * Descriptors - the operations that wait on each descriptor, so that a close
 * can end them.
 *
 *	chunks[fd >> 12] --> [entry][entry]...[entry]	4096 of 32 bytes
 *	                        |
 *	                        '--> task <-> task <-> task   in flight
 *
 * Chunks are made on demand and stay.  An entry that was never used is all
 * zero.
 *
 * Invariants
 *   FD1  A task is in the list exactly while its operation is in flight: it is
 *       linked under the lock together with the publication of its request, and
 *       unlinked by the worker that reaps the completion.  So a closer that
 *       holds the lock can find every request of the list in a ring, and the
 *       list becomes empty without any of its tasks having to run.  Except for
 *       a transfer in the pool (WEFT__OP_IN_POOL), see io/position.c: it is in
 *       no ring, cannot be cancelled, and its task unlinks itself.
 *   FD2  While `closing` is set no task is linked.  It is cleared before the
 *       kernel closes the descriptor, because from then on the number may
 *       belong to another file.
 *   FD3  A task that is linked from then until the kernel has certainly closed
 *       the descriptor (`going`) is marked as late: its request may refer to
 *       the file that was closed, or to the file that has the number now.
 *       Afterwards the request is cancelled and begun again, and then it
 *       refers to the new file, or fails.  Rings that remember numbers are to
 *       learn nothing from it (WEFT__REQUEST_LATE).
 */
#ifndef WEFT_IO_REQUEST_FD_TABLE_H
#define WEFT_IO_REQUEST_FD_TABLE_H

#include "io/os/fd_kind.h"
#include "io/request/op_record.h"
#include "runtime/base/lock.h"
#include "runtime/sched/task.h"

struct weft__write;

struct weft__fd {
	struct weft__lock lock;
	weft__atomic(uint8_t) kind;  /* a hint */
	uint16_t closing : 1; /* under lock */
	uint16_t owned : 1;   /* under lock: a stream closes it */
	uint16_t going : 14;  /* under lock: closes in progress in the kernel */
	struct weft__task *waiting;  /* under lock; newest first */
	union { /* under lock */
		uint64_t closer; /* while `closing`: the task that closes */
		/* Else the last of the writes that wait for each other in the
		 * pool, or NULL: see io/position.c. */
		struct weft__write *last_write;
	};
	/* Wraps.  Under lock; but see weft__call_closes(). */
	weft__atomic(uint32_t) closes;
};

_Static_assert(sizeof(struct weft__fd) == 32, "two to a line");

enum { WEFT__FD_CHUNK_BITS = 12, WEFT__FD_CHUNK = 1 << WEFT__FD_CHUNK_BITS };

/* A table for every int; pages that are not touched take no memory. */
#define WEFT__FD_CHUNKS ((size_t)1 << (31 - WEFT__FD_CHUNK_BITS))

struct weft__fd_table {
	weft__atomic(struct weft__fd *) *chunks; /* the table is immutable */
	weft__atomic(uint32_t) chunks_end; /* the end of those made */
	const struct weft_allocator *memory; /* immutable */
};

/* memory: for the chunks; see runtime/base/memory.h. */
int weft__fd_table_init(struct weft__fd_table *fds,
			const struct weft_allocator *memory);
void weft__fd_table_fini(struct weft__fd_table *fds);

/* The entry of a descriptor, made if need be.  0, -EBADF, -ENOMEM. */
int weft__fd_make(struct weft__fd_table *fds, int fd,
		  struct weft__fd **ret_entry);

/* The entry, or NULL if no descriptor near it was ever used. */
static inline struct weft__fd *weft__fd_find(struct weft__fd_table *fds, int fd)
{
	struct weft__fd *chunk;

	if (weft__unlikely(fd < 0))
		return NULL;
	/* pairs: [fd.chunk] in io/request/fd_table.c */
	chunk = weft__load(&fds->chunks[fd >> WEFT__FD_CHUNK_BITS], acquire);
	return weft__likely(chunk != NULL) ?
		       &chunk[fd & (WEFT__FD_CHUNK - 1)] :
		       NULL;
}

static inline int weft__fd_get(struct weft__fd_table *fds, int fd,
			       struct weft__fd **ret_entry)
{
	struct weft__fd *entry = weft__fd_find(fds, fd);

	if (weft__unlikely(!entry))
		return weft__fd_make(fds, fd, ret_entry);
	*ret_entry = entry;
	return 0;
}

/* How often a close of the number began or ended; see weft__call_closes().  All
 * of it is for a call that waits elsewhere, while the number may be closed and
 * used again many times. */
static inline uint32_t weft__fd_closes_long(struct weft__fd *entry)
{
	/* relaxed: orders nothing.  The caller has to exclude a close that runs
	 * at the same moment as the step itself, as with POSIX. */
	return weft__load(&entry->closes, relaxed);
}

/* Its last bits, for which an operation's record has room. */
static inline uint8_t weft__fd_closes(struct weft__fd *entry)
{
	return (uint8_t)weft__fd_closes_long(entry);
}

/* The flags of a kind that weft__fd_kind() leaves out. */
#define WEFT__FD_PASSING (WEFT__FD_DRAINED | WEFT__FD_POOLED)

/* Looks at the descriptor itself; a kind that is as before keeps its flags. */
int weft__fd_kind_now(struct weft__fd *entry, int fd);

/* The kind, with the NO_QUICK flags; or -EBADF.  It may be that of a file that
 * had the number before: the program may close one without weft_close(), or put
 * another in its place.  So it only chooses the way to begin with. */
static inline int weft__fd_kind(struct weft__fd *entry, int fd)
{
	/* relaxed: a hint, found out again if it is missing. */
	int kind = weft__load(&entry->kind, relaxed) & ~WEFT__FD_PASSING;

	return weft__likely(kind != WEFT__FD_UNKNOWN) ?
		       kind :
		       weft__fd_kind_now(entry, fd);
}

static inline void weft__fd_set_kind(struct weft__fd *entry, int kind)
{
	/* relaxed: a hint. */
	weft__store(&entry->kind, (uint8_t)kind, relaxed);
}

/* Is a thread of the pool at the file's position? */
static inline bool weft__fd_pooled(struct weft__fd *entry)
{
	/* relaxed: a hint. */
	return weft__load(&entry->kind, relaxed) & WEFT__FD_POOLED;
}

/* Is it known that nothing was left to receive? */
static inline bool weft__fd_drained(struct weft__fd *entry)
{
	/* relaxed: a hint. */
	return weft__load(&entry->kind, relaxed) & WEFT__FD_DRAINED;
}

static inline void weft__fd_set_drained(struct weft__fd *entry, bool drained)
{
	/* relaxed: a hint. */
	uint8_t old = weft__load(&entry->kind, relaxed);
	uint8_t kind = drained ? WEFT__FD_SOCKET | WEFT__FD_DRAINED :
				 WEFT__FD_SOCKET;

	if (old != kind && (old & ~WEFT__FD_DRAINED) == WEFT__FD_SOCKET)
		/* relaxed: a hint. */
		weft__store(&entry->kind, kind, relaxed);
}

/* Under the lock. */
static inline void weft__fd_link(struct weft__fd *entry,
				 struct weft__task *task)
{
	weft__op_of(task)->fd_next = entry->waiting;
	weft__op_of(task)->fd_link = &entry->waiting;
	if (entry->waiting)
		weft__op_of(entry->waiting)->fd_link =
			&weft__op_of(task)->fd_next;
	entry->waiting = task;
}

/* Under the lock.  Returns the task that closes the descriptor, if it has
 * nothing left to wait for, or 0. */
static inline uint64_t weft__fd_unlink(struct weft__fd *entry,
				       struct weft__task *task)
{
	weft__op_unlink(task);
	return weft__unlikely(entry->closing && !entry->waiting) ?
		       entry->closer :
		       0;
}

#endif
