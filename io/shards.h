/* SPDX-License-Identifier: MIT */
/*
 * Shards - the rings of a runtime, opened and closed together.
 */
#ifndef WEFT_IO_SHARDS_H
#define WEFT_IO_SHARDS_H

struct weft_runtime;

/* Gives each worker a shard, with rings of `entries` or fewer.  0, or an error
 * of weft__shard_open(); the reason of some is printed. */
struct weft__engine;

int weft__shards_open(struct weft_runtime *runtime, unsigned entries,
		      struct weft__engine *engine);
void weft__shards_close(struct weft_runtime *runtime);

#endif
