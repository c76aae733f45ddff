/* SPDX-License-Identifier: MIT */
/*
 * Streams: a busy stream's place in its ring's table of files.
 */
#include "io/stream/stream.h"
#include "runtime/sched/runtime.h"

/* The reader runs on this ring's worker now, and will probably do so again. */
void weft__stream_enter_file(struct weft__stream *stream)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__shard *shard = weft__shard(worker);
	int place;

	if (worker != stream->home)
		return;
	stream->filed = true;
	place = weft__fixed_files_enter(&shard->files, &shard->ring,
					stream->fd);
	/* relaxed: a sender that misses it uses the descriptor. */
	if (place >= 0)
		weft__store(&stream->file,
			    weft__stream_file(worker, (uint32_t)place),
			    relaxed);
}

void weft__stream_leave_file(struct weft__stream *stream)
{
	/* relaxed: only the reader writes it. */
	uint32_t file = weft__load(&stream->file, relaxed);
	struct weft__shard *shard;

	if (!file)
		return;
	shard = weft__shard(weft__worker_self()->runtime->workers[file >> 16]);
	weft__fixed_files_leave(&shard->files, &shard->ring,
				(int)(file & 0xffff) - 1);
}
