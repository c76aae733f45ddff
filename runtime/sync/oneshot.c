/* SPDX-License-Identifier: MIT */
/*
 * Oneshot - one value, from one sender to one receiver, in memory that belongs
 * to both: the second side to leave frees it.
 *
 *	      send, drop		      send, drop
 *	EMPTY ----------> FULL, DROPPED	<----------- waiter
 *	  ^ |		       | receive, abandon	^ |
 *	  | '--- receive waits-|------------------------' |
 *	  '------ gives up ----|--------------------------'
 *	  | abandon	       v
 *	  '------> GONE ---> freed, by the sender, by the receiver
 *
 * Invariants
 *   ONE1  Each side leaves once, with its last call.  The side that finds that
 *       the other has left frees the memory; the other side no longer touches
 *       it.
 *   ONE2  A waiter that the sender finds is granted once, after the value is
 *       there, and is not touched after that.  An interrupted receiver takes
 *       its waiter back first.  If it cannot, the value or the end is coming,
 *       and it waits for that.
 *
 * Orderings
 *   [oneshot.pass]  each leave acq_rel, the waiter's address release, loads
 *       acquire: the value, the waiter, and that the other side no longer uses
 *       the memory.
 *
 * Modelled in tests/model/model_oneshot.c.
 */
#include <string.h>

#include <weft/chan.h>

#include "runtime/base/memory.h"
#include "runtime/sched/runtime.h"
#include "runtime/sched/waiter.h"

/* Values of the word, which otherwise holds the address of the waiter. */
enum { EMPTY, FULL, DROPPED, GONE };

struct weft_oneshot {
	weft__atomic(uintptr_t) word;
	uint32_t item_bytes; /* immutable */
	bool has_allocator;  /* immutable; see allocator_of() */
	/* Of the sender, then of the receiver. */
	_Alignas(max_align_t) unsigned char item[];
};

static size_t allocator_at(size_t item_bytes)
{
	const size_t align = _Alignof(struct weft_allocator);

	return sizeof(struct weft_oneshot) +
	       (item_bytes + align - 1) / align * align;
}

/* A oneshot may outlive the runtime of the task that made it.  So it has a copy
 * of that runtime's allocator, behind the value. */
static struct weft_allocator *allocator_of(struct weft_oneshot *o)
{
	return (void *)((char *)o + allocator_at(o->item_bytes));
}

static size_t oneshot_bytes(size_t item_bytes, bool has_allocator)
{
	return has_allocator ? allocator_at(item_bytes) +
				       sizeof(struct weft_allocator) :
			       sizeof(struct weft_oneshot) + item_bytes;
}

static void oneshot_free(struct weft_oneshot *o)
{
	size_t bytes = oneshot_bytes(o->item_bytes, o->has_allocator);
	struct weft_allocator allocator;

	if (!o->has_allocator) {
		weft__memory_free(NULL, o, bytes);
		return;
	}
	allocator = *allocator_of(o);
	weft__memory_free(&allocator, o, bytes);
}

int weft_oneshot_new(size_t item_bytes, struct weft_oneshot **ret_oneshot)
{
	struct weft__worker *worker = weft__worker_self();
	const struct weft_allocator *memory =
		worker ? worker->runtime->memory : NULL;
	struct weft_oneshot *o;

	if (item_bytes == 0 || item_bytes > WEFT__ITEM_BYTES_MAX)
		return -EINVAL;
	o = weft__memory_new(memory, oneshot_bytes(item_bytes, memory));
	if (!o)
		return -ENOMEM;
	/* relaxed: no other task knows it. */
	weft__store(&o->word, (uintptr_t)EMPTY, relaxed);
	o->item_bytes = (uint32_t)item_bytes;
	o->has_allocator = memory;
	if (memory)
		*allocator_of(o) = *memory;
	*ret_oneshot = o;
	return 0;
}

/* The sender's last access. */
static int sender_leave(struct weft_oneshot *o, uintptr_t how)
{
	/* pairs: [oneshot.pass] */
	uintptr_t old = weft__swap(&o->word, how, acq_rel);

	if (old == GONE) {
		oneshot_free(o); /* mutate: wake */
		return -EPIPE;
	}
	weft__assert(old != FULL && old != DROPPED,
		     "weft_oneshot_send, weft_oneshot_drop: a second time");
	if (old != EMPTY)
		/* mutate: wake */
		weft__waiter_grant(weft__sync_worker(),
				   (struct weft__waiter *)old, 0);
	return 0;
}

int weft_oneshot_send(struct weft_oneshot *oneshot, const void *item)
{
	memcpy(oneshot->item, item, oneshot->item_bytes);
	return sender_leave(oneshot, FULL);
}

void weft_oneshot_drop(struct weft_oneshot *oneshot)
{
	(void)sender_leave(oneshot, DROPPED);
}

/* Called after the sender has left. */
static int receiver_leave(struct weft_oneshot *o, uintptr_t word,
			  void *ret_item)
{
	if (word == FULL)
		memcpy(ret_item, o->item, o->item_bytes);
	oneshot_free(o); /* mutate: wake */
	return word == FULL ? 0 : -EPIPE;
}

/* Waits until the sender has left.  Returns the error of an interrupted
 * wait. */
static int oneshot_wait(struct weft_oneshot *o, struct weft__worker *worker)
{
	struct weft__wait wait;
	struct weft__waiter w;
	uintptr_t expected = EMPTY;
	int r;

	weft__waiter_init(&w, &wait, worker, NULL, 0);
	weft__wait_on(&wait, WEFT__ON_ONESHOT, o);
	/* pairs: [oneshot.pass]; after a failure the caller loads again. */
	if (!weft__cas(&o->word, &expected, (uintptr_t)&w, release))
		return 0;
	r = weft__wait(&wait, true);
	if (weft__likely(r == 0))
		return 0;
	expected = (uintptr_t)&w;
	/* relaxed: the sender has not seen the waiter; mutate: recheck=true */
	if (weft__cas(&o->word, &expected, (uintptr_t)EMPTY, relaxed))
		return r;
	/* The sender has found the waiter and will grant it. */
	return weft__wait(&wait, false);
}

int weft_oneshot_recv(struct weft_oneshot *oneshot, void *ret_item)
{
	struct weft__worker *worker;
	uintptr_t word;
	int r = weft__sync_enter(&worker);

	if (weft__unlikely(r < 0))
		return r;
	/* pairs: [oneshot.pass] */
	word = weft__load(&oneshot->word, acquire);
	weft__assert(word <= DROPPED,
		     "two receivers of a oneshot, or one that had left");
	if (word == EMPTY) {
		r = oneshot_wait(oneshot, worker);
		if (weft__unlikely(r < 0))
			return r;
		/* pairs: [oneshot.pass] */
		word = weft__load(&oneshot->word, acquire);
	}
	return receiver_leave(oneshot, word, ret_item);
}

int weft_oneshot_try_recv(struct weft_oneshot *oneshot, void *ret_item)
{
	/* pairs: [oneshot.pass] */
	uintptr_t word = weft__load(&oneshot->word, acquire);

	return word == EMPTY ? -EAGAIN :
			       receiver_leave(oneshot, word, ret_item);
}

void weft_oneshot_abandon(struct weft_oneshot *oneshot)
{
	/* pairs: [oneshot.pass] */
	if (weft__swap(&oneshot->word, (uintptr_t)GONE, acq_rel) != EMPTY)
		oneshot_free(oneshot); /* mutate: wake */
}
