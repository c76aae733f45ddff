/* SPDX-License-Identifier: MIT */
/*
 * Streams: a look at those that have gone quiet.
 *
 * The kernel wakes a multishot receive once for data and a reset that come
 * together: the request receives the data, finds no more, and stays armed, and
 * nothing wakes it again.  A task that only reads would wait for ever.  (Linux
 * 6.18; the end of a connection, by FIN, is not lost.)
 *
 * So a shard lists its streams that have received.  Once in a while its owner
 * goes through them: a stream that has received since the last look stays; any
 * other has gone quiet, is asked for an error by poll(2), and leaves the list.
 * Where there is one, the request is cancelled, and the next one reports it.
 * A reset alone is not lost, so a stream is asked once each time that it goes
 * quiet, and an idle runtime sleeps.
 */
#include <poll.h>

#include "io/stream/stream.h"

/* For a connection that is lost already, a moment. */
uint64_t weft__stream_look_every_ns = 1000000000;

enum {
	VISITS_MAX = 256, /* streams in a tick, */
	ASKED_MAX = 64,	  /* and of those, quiet ones */
};

/* ---- The list ------------------------------------------------------------ */

static void append(struct weft__shard *shard, struct weft__stream *stream)
{
	stream->recent = true;
	stream->recent_next = NULL;
	stream->recent_previous = shard->recent_last;
	if (shard->recent_last)
		shard->recent_last->recent_next = stream;
	else
		shard->recent = stream;
	shard->recent_last = stream;
	shard->recent_count++;
}

static void take_out(struct weft__shard *shard, struct weft__stream *stream)
{
	struct weft__stream *next = stream->recent_next;
	struct weft__stream *previous = stream->recent_previous;

	if (next)
		next->recent_previous = previous;
	else
		shard->recent_last = previous;
	if (previous)
		previous->recent_next = next;
	else
		shard->recent = next;
	stream->recent = false;
	shard->recent_count--;
}

void weft__stream_list(struct weft__stream *stream)
{
	struct weft__shard *shard = weft__shard(stream->home);

	append(shard, stream);
	/* relaxed: written under the lock; else read as a hint. */
	if (weft__load(&shard->look_ns, relaxed) == WEFT__LOOK_AT_NONE)
		weft__store(&shard->look_ns, (uint64_t)WEFT__LOOK_BEGINS,
			    relaxed);
}

void weft__stream_unlist(struct weft__stream *stream)
{
	take_out(weft__shard(stream->home), stream);
}

/* ---- The look ------------------------------------------------------------ */

/* Takes quiet streams out, and shows them; the others go to the end. */
static unsigned take_quiet(struct weft__shard *shard,
			   struct weft__stream **ret_quiet)
{
	unsigned visits = 0, count = 0;

	while (shard->recent && shard->look_left && visits < VISITS_MAX &&
	       count < ASKED_MAX) {
		struct weft__stream *stream = shard->recent;

		take_out(shard, stream);
		if (stream->looked == stream->came)
			ret_quiet[count++] = stream;
		else
			append(shard, stream);
		stream->looked = stream->came;
		shard->look_left--;
		visits++;
	}
	return count;
}

/* The connection has failed.  If the request cannot be cancelled, it is about
 * to complete, or else is asked again. */
static void wake_up(struct weft__shard *shard, struct weft__stream *stream)
{
	if (!stream->stops)
		stream->stops =
			weft__ring_cancel(&shard->ring,
					  weft__stream_user_data(stream)) == 0;
	if (!stream->stops)
		append(shard, stream);
}

static void ask(struct weft__shard *shard, struct weft__stream **quiet,
		unsigned count)
{
	struct pollfd asked[ASKED_MAX];

	int r;

	/* Errors and the end of both directions are always told. */
	for (unsigned i = 0; i < count; i++)
		asked[i] = (struct pollfd){ .fd = quiet[i]->fd };
	r = poll(asked, count, 0);
	for (unsigned i = 0; i < count; i++)
		if (r < 0)
			append(shard, quiet[i]); /* the next look asks */
		else if (asked[i].revents & (POLLERR | POLLHUP))
			wake_up(shard, quiet[i]);
}

static void look_at_some(struct weft__shard *shard)
{
	struct weft__stream *quiet[ASKED_MAX];
	unsigned count;

	/* relaxed: under the lock. */
	if (weft__load(&shard->look_ns, relaxed) != WEFT__LOOK_GOES_ON)
		shard->look_left = shard->recent_count;
	count = take_quiet(shard, quiet);
	if (count)
		ask(shard, quiet, count);
}

static uint64_t look_next(const struct weft__shard *shard, uint64_t now_ns)
{
	if (!shard->recent)
		return WEFT__LOOK_AT_NONE;
	return shard->look_left ? WEFT__LOOK_GOES_ON :
				  now_ns + weft__stream_look_every_ns;
}

void weft__streams_look(struct weft__shard *shard, uint64_t now_ns)
{
	if (!weft__trylock_try(&shard->lock))
		return;
	/* relaxed: under the lock. */
	if (weft__load(&shard->look_ns, relaxed) == WEFT__LOOK_BEGINS)
		shard->look_left = 0;
	else
		look_at_some(shard);
	weft__store(&shard->look_ns, look_next(shard, now_ns), relaxed);
	/* A worker that was refused the lock tries again if this one is
	 * late. */
	weft__trylock_drop(&shard->lock);
}

uint64_t weft__streams_look_wait(const struct weft__shard *shard,
				 uint64_t now_ns, uint64_t wait_ns)
{
	/* relaxed: by the owner, with the lock. */
	uint64_t look_ns = weft__load(&shard->look_ns, relaxed);
	uint64_t until_ns = 0;

	if (look_ns == WEFT__LOOK_BEGINS)
		until_ns = weft__stream_look_every_ns;
	else if (look_ns > now_ns)
		until_ns = look_ns - now_ns;
	return wait_ns < until_ns ? wait_ns : until_ns;
}
