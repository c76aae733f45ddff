/* SPDX-License-Identifier: MIT */
/*
 * Watches: the table, and the epoll set.
 */
#include "io/ring/soft/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "io/os/syscall.h"
#include "io/ring/soft/soft.h"
#include "runtime/base/memory.h"

enum { CHUNK_BITS = 9, CHUNK = 1 << CHUNK_BITS, CHUNKS_FIRST = 16 };

/* ---- The table ---------------------------------------------------------- */

void weft__soft_watches_init(struct weft__soft_watches *watches,
			     const struct weft_allocator *memory)
{
	watches->memory = memory;
	watches->again = watches->again_last = -1;
}

void weft__soft_watches_fini(struct weft__soft_watches *watches)
{
	for (uint32_t i = 0; i < watches->chunks_count; i++)
		weft__memory_free(watches->memory, watches->chunks[i],
				  CHUNK * sizeof(*watches->chunks[i]));
	weft__memory_free(watches->memory, watches->chunks,
			  watches->chunks_count * sizeof(*watches->chunks));
}

struct weft__soft_watch *
weft__soft_watch_find(struct weft__soft_watches *watches, int fd)
{
	uint32_t index = (uint32_t)fd >> CHUNK_BITS;
	struct weft__soft_watch *chunk;

	if (fd < 0 || index >= watches->chunks_count)
		return NULL;
	chunk = watches->chunks[index];
	return chunk ? &chunk[fd & (CHUNK - 1)] : NULL;
}

/* Makes room for that chunk. */
static bool table_grow(struct weft__soft_watches *watches, uint32_t index)
{
	uint32_t old = watches->chunks_count, count = old ? old : CHUNKS_FIRST;
	struct weft__soft_watch **chunks;

	if (index < old)
		return true;
	while (count <= index)
		count *= 2;
	chunks = weft__memory_resize(watches->memory, watches->chunks,
				     old * sizeof(*chunks),
				     count * sizeof(*chunks));
	if (!chunks)
		return false;
	memset(&chunks[old], 0, (count - old) * sizeof(*chunks));
	watches->chunks = chunks;
	watches->chunks_count = count;
	return true;
}

/* A number that is no descriptor must not cost memory: the caller has used it
 * before. */
static struct weft__soft_watch *watch_get(struct weft__soft_watches *watches,
					  int fd)
{
	uint32_t index = (uint32_t)fd >> CHUNK_BITS;
	struct weft__soft_watch *watch = weft__soft_watch_find(watches, fd);

	if (watch || !table_grow(watches, index))
		return watch;
	watches->chunks[index] = weft__memory_zeroed(
		watches->memory, CHUNK * sizeof(struct weft__soft_watch));
	return weft__soft_watch_find(watches, fd);
}

/* ---- The epoll set ------------------------------------------------------ */

static int control(struct weft__soft *soft, int how, int fd, uint32_t events,
		   uint32_t generation)
{
	struct epoll_event event = {
		.events = events | EPOLLET,
		.data.u64 = (uint64_t)generation << 32 | (uint32_t)fd,
	};

	return epoll_ctl(soft->epoll_fd, how, fd, &event) == 0 ? 0 : -errno;
}

/* Learns what is true of the file as long as the number is its. */
static void watch_learn(struct weft__soft_watch *watch, int fd)
{
	watch->flags &= WEFT__WATCH_AGAIN;
	if (weft__syscall_is_tcp(fd))
		watch->flags |= WEFT__WATCH_DRAINS;
}

/* Sets the events, whether the file is in the set or not.  It is not if the
 * number was closed by close(2), and it is if another number of the same file
 * was. */
int weft__soft_watch_set(struct weft__soft *soft, int fd,
			 struct weft__soft_watch *watch, uint32_t events)
{
	bool known = watch->events;
	int r;

	events |= EPOLLRDHUP | EPOLLPRI;
	r = control(soft, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, events,
			watch->generation);

	if (r == -ENOENT) {
		known = false;
		r = control(soft, EPOLL_CTL_ADD, fd, events,
			    ++watch->generation);
	} else if (r == -EEXIST) {
		r = control(soft, EPOLL_CTL_MOD, fd, events,
			    watch->generation);
	}
	watch->events = r < 0 ? 0 : (uint16_t)events;
	/* A copy of an older file may still be in the set. */
	watch->generation += r < 0;
	if (r == 0 && !known)
		watch_learn(watch, fd);
	return r;
}

int weft__soft_watch(struct weft__soft *soft, int fd, uint32_t events,
		     struct weft__soft_watch **ret_watch)
{
	struct weft__soft_watch *watch = watch_get(&soft->watches, fd);
	uint32_t all;
	int r;

	if (!watch)
		return -ENOMEM;
	*ret_watch = watch;
	all = watch->events | events | EPOLLRDHUP | EPOLLPRI;
	if (all == watch->events)
		return 0;
	r = weft__soft_watch_set(soft, fd, watch, all);
	return r < 0 ? r : 1;
}

void weft__soft_unwatch(struct weft__soft *soft, int fd,
			struct weft__soft_watch *watch)
{
	if (watch->events)
		(void)control(soft, EPOLL_CTL_DEL, fd, 0, 0);
	watch->events = 0;
	watch->vain = 0;
	watch->generation++;
	watch->flags &= WEFT__WATCH_AGAIN;
}

int weft__soft_watch_late(struct weft__soft *soft, int fd,
			  struct weft__soft_watch **ret_watch)
{
	struct weft__soft_watch *watch =
		weft__soft_watch_find(&soft->watches, fd);
	int r;

	*ret_watch = &soft->late;
	/* The file that goes, before it is forgotten; or a stream's. */
	if (watch && watch->events)
		return 1;
	/* Nothing is to be taken out: it shows whether there is a file, and
	 * whether that has readiness. */
	r = control(soft, EPOLL_CTL_DEL, fd, 0, 0);
	return r == 0 || r == -ENOENT ? 1 : r;
}

/* ---- The next turn ------------------------------------------------------ */

void weft__soft_again_add(struct weft__soft *soft, int fd,
			  struct weft__soft_watch *watch)
{
	struct weft__soft_watches *watches = &soft->watches;
	struct weft__soft_watch *last =
		weft__soft_watch_find(watches, watches->again_last);

	if (watch->flags & WEFT__WATCH_AGAIN)
		return;
	watch->flags |= WEFT__WATCH_AGAIN;
	watch->again_next = -1;
	if (watches->again < 0)
		watches->again = fd;
	else
		last->again_next = fd;
	watches->again_last = fd;
}

int weft__soft_again_take(struct weft__soft *soft)
{
	struct weft__soft_watches *watches = &soft->watches;
	struct weft__soft_watch *watch;
	int fd = watches->again;

	if (fd < 0)
		return -1;
	watch = weft__soft_watch_find(watches, fd);
	watches->again = watch->again_next;
	watch->flags &= (uint8_t)~WEFT__WATCH_AGAIN;
	return fd;
}

/* ---- Requests ----------------------------------------------------------- */

void weft__soft_link(struct weft__soft_watch *watch, struct weft__soft_op *op)
{
	op->next = NULL;
	op->prev = watch->tail;
	*(watch->tail ? &watch->tail->next : &watch->head) = op;
	watch->tail = op;
}

void weft__soft_unlink(struct weft__soft_watch *watch, struct weft__soft_op *op)
{
	*(op->prev ? &op->prev->next : &watch->head) = op->next;
	*(op->next ? &op->next->prev : &watch->tail) = op->prev;
}
