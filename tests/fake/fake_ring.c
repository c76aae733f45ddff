/* SPDX-License-Identifier: MIT */
/*
 * Fake ring: its entries, its completions, and the wait, which is a pause of
 * the worker (fake_inside.h).  The words and arrays are those of any ring; only
 * one thread uses them.
 */
#include "tests/fake/fake_ring.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "io/request/shard.h"
#include "io/ring/carrier.h"
#include "tests/fake/fake_inside.h"

enum { ENTRIES = 256, COMPLETIONS = 1024 };

/* Above all real descriptors: names of rings in messages, and of fake files,
 * one for each ring that a completion can come through. */
enum { RING_FD = 1 << 28, FILE_FD = 1 << 29 };

struct fake_entry {
	struct weft__request request;
	uint64_t user_data;
};

struct fake_ring {
	struct fake_rings *all;
	struct weft__ring *ring;
	uint32_t index;
	/* The poll of the worker's eventfd, and its descriptor; or -1. */
	int wake_fd;
	uint64_t wake_data;
	weft__atomic(uint32_t) head;
	weft__atomic(uint32_t) published;
	weft__atomic(uint32_t) flags;
	weft__atomic(uint32_t) reaped;
	weft__atomic(uint32_t) posted;
	struct fake_entry entries[ENTRIES];
	struct weft__completion completions[COMPLETIONS];
};

static struct fake_ring *own(struct weft__ring *ring)
{
	return ring->own;
}

struct weft__request fake_ring_request(uint32_t ring, uint64_t at_ns)
{
	struct weft__request request =
		weft__request_poll(FILE_FD + (int)ring, POLLIN);

	request.offset = (int64_t)at_ns;
	return request;
}

/* ---- Completions -------------------------------------------------------- */

static void post(struct fake_ring *to, uint64_t user_data, int32_t result,
		 uint32_t flags)
{
	/* relaxed, here and below: one thread. */
	uint32_t at = weft__load(&to->posted, relaxed);

	weft__assert(at - weft__load(&to->reaped, relaxed) < COMPLETIONS,
		     "too many fake completions");
	to->completions[at % COMPLETIONS] =
		(struct weft__completion){ user_data, result, flags };
	weft__store(&to->posted, at + 1, relaxed);
}

bool fake_ring_completed(const struct fake_rings *rings, uint32_t index)
{
	return weft__ring_completed(rings->ring[index]->ring);
}

uint64_t fake_rings_next(const struct fake_rings *rings)
{
	uint64_t min = UINT64_MAX;

	for (unsigned i = 0; i < rings->coming_count; i++)
		if (rings->coming[i].at_ns < min)
			min = rings->coming[i].at_ns;
	return min;
}

void fake_rings_post(struct fake_rings *rings, uint64_t now_ns)
{
	for (unsigned i = 0; i < rings->coming_count;) {
		struct fake_coming one = rings->coming[i];

		if (one.at_ns > now_ns) {
			i++;
			continue;
		}
		rings->coming[i] = rings->coming[--rings->coming_count];
		post(rings->ring[one.ring], one.user_data, POLLIN, 0);
	}
}

bool fake_rings_written(struct fake_rings *rings, int fd)
{
	bool completes = false;

	for (uint32_t i = 0; i < rings->count; i++) {
		struct fake_ring *to = rings->ring[i];

		if (to->wake_fd != fd)
			continue;
		post(to, to->wake_data, POLLIN, WEFT__COMPLETION_MORE);
		fake_woken(i);
		completes = true;
	}
	return completes;
}

/* ---- Entries ------------------------------------------------------------ */

static void fake_prepare(struct weft__ring *ring,
			 const struct weft__request *request,
			 uint64_t user_data)
{
	own(ring)->entries[ring->tail % ENTRIES] =
		(struct fake_entry){ *request, user_data };
}

static void message_send(struct fake_rings *rings,
			 const struct weft__request *request)
{
	uint32_t to = (uint32_t)(request->fd - RING_FD);

	weft__assert(to < rings->count, "a message goes to no ring");
	post(rings->ring[to], request->message, 0, 0);
	fake_woken(to);
}

static void eventfd_poll(struct fake_ring *ring, const struct fake_entry *entry)
{
	struct pollfd now = { entry->request.fd, POLLIN, 0 };

	ring->wake_fd = entry->request.fd;
	ring->wake_data = entry->user_data;
	/* Written to before it was polled. */
	if (poll(&now, 1, 0) > 0)
		post(ring, ring->wake_data, POLLIN, WEFT__COMPLETION_MORE);
}

static void file_poll(struct fake_rings *rings, const struct fake_entry *entry)
{
	struct fake_coming coming = {
		.at_ns = (uint64_t)entry->request.offset,
		.user_data = entry->user_data,
		.ring = (uint32_t)(entry->request.fd - FILE_FD),
	};

	weft__assert(rings->coming_count < FAKE_COMING_MAX,
		     "too many fake requests");
	rings->coming[rings->coming_count++] = coming;
	fake_rings_post(rings, fake_clock());
}

static void entry_take(struct fake_ring *ring, const struct fake_entry *entry)
{
	const struct weft__request *request = &entry->request;

	if (request->opcode == WEFT__OPCODE_MESSAGE)
		message_send(ring->all, request);
	else if (request->opcode != WEFT__OPCODE_POLL)
		fake_trouble("a request is unknown to fake rings");
	else if (request->fd >= FILE_FD)
		file_poll(ring->all, entry);
	else
		eventfd_poll(ring, entry);
}

/* RING2. */
static void check_lock(struct weft__ring *ring)
{
	const struct weft__shard *shard =
		(void *)((char *)ring - offsetof(struct weft__shard, ring));

	if (!(weft__load(&shard->lock.word, relaxed) & WEFT__TRYLOCK_HELD))
		fake_trouble("a ring was entered without its lock");
}

static int fake_submit(struct weft__ring *ring)
{
	struct fake_ring *f = own(ring);

	check_lock(ring);
	while (weft__ring_unsubmitted(ring)) {
		uint32_t head = weft__load(&f->head, relaxed);

		entry_take(f, &f->entries[head % ENTRIES]);
		weft__store(&f->head, head + 1, relaxed);
	}
	return 0;
}

static int fake_wait(struct weft__ring *ring, uint64_t wait_ns)
{
	(void)fake_submit(ring);
	fake_sleep(own(ring)->index, wait_ns);
	return 0;
}

static int fake_cancel(struct weft__ring *ring, uint64_t user_data)
{
	struct fake_rings *rings = own(ring)->all;

	for (unsigned i = 0; i < rings->coming_count; i++) {
		struct fake_coming one = rings->coming[i];

		if (one.user_data != user_data)
			continue;
		rings->coming[i] = rings->coming[--rings->coming_count];
		post(rings->ring[one.ring], user_data, -ECANCELED, 0);
		return 0;
	}
	return -ENOENT;
}

static void fake_cancel_all(struct weft__ring *ring)
{
	(void)ring;
}

/* ---- Registered --------------------------------------------------------- */

static int fake_add_buffers(struct weft__ring *ring,
			    struct weft__ring_buffer *buffers, uint32_t count,
			    uint8_t group)
{
	(void)ring, (void)buffers, (void)count, (void)group;
	return -EOPNOTSUPP;
}

static int fake_add_files(struct weft__ring *ring, uint32_t places)
{
	(void)ring, (void)places;
	return -EOPNOTSUPP;
}

static bool fake_set_file(struct weft__ring *ring, uint32_t place, int fd)
{
	(void)ring, (void)place, (void)fd;
	return false;
}

static void fake_drop_files(struct weft__ring *ring)
{
	(void)ring;
}

/* ---- Life --------------------------------------------------------------- */

static void fake_close(struct weft__ring *ring)
{
	free(ring->own);
	ring->own = NULL;
}

static const struct weft__carrier carrier = {
	.name = "fake",
	.close = fake_close,
	.prepare = fake_prepare,
	.submit = fake_submit,
	.turn = fake_submit,
	.wait = fake_wait,
	.cancel = fake_cancel,
	.cancel_all = fake_cancel_all,
	.add_buffers = fake_add_buffers,
	.add_files = fake_add_files,
	.set_file = fake_set_file,
	.drop_files = fake_drop_files,
};

/* Those of io/ring/uring/ and io/ring/soft/: a ring is opened for the next
 * worker of the run. */
int weft__ring_open(struct weft__ring *ring, unsigned entries, bool alone,
		    const struct weft_allocator *memory,
		    const char **ret_reason)
{
	struct fake_ring *f = calloc(1, sizeof(*f));

	(void)entries, (void)memory, (void)ret_reason;
	if (!f)
		return -ENOMEM;
	f->all = fake_rings();
	weft__assert(f->all->count < FAKE_RINGS_MAX, "too many fake rings");
	f->index = f->all->count++;
	f->all->ring[f->index] = f;
	f->ring = ring;
	f->wake_fd = -1;
	*ring = (struct weft__ring){
		.head = &f->head,
		.published = &f->published,
		.flags = &f->flags,
		.reaped = &f->reaped,
		.posted = &f->posted,
		.completions = f->completions,
		.mask = ENTRIES - 1,
		.completions_mask = COMPLETIONS - 1,
		.fd = RING_FD + (int)f->index,
		.alone = alone,
		.reports_ends = true,
		.batches = true,
		.carrier = &carrier,
		.own = f,
	};
	return 0;
}

int weft__ring_open_soft(struct weft__ring *ring, unsigned entries, bool alone,
			 struct weft_runtime *runtime)
{
	const char *reason;

	(void)runtime;
	return weft__ring_open(ring, entries, alone, NULL, &reason);
}

size_t weft__ring_locked_bytes(unsigned entries)
{
	return entries;
}
