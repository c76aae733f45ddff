/* SPDX-License-Identifier: MIT */
/*
 * Pipelines: items are produced one after the other, worked on in parallel, and
 * delivered in order.
 *
 *	next		one call at a time	produces the next item
 *	work		many at a time		on all workers
 *	deliver		one call at a time	in the order of the items
 *	drop		once for each item	frees what is in it
 *
 * A pipeline over any items: files to be looked through, pages to be fetched.
 *
 *	struct weft_pipeline p = WEFT_PIPELINE_INIT(struct page);
 *
 *	p.next = next_page;
 *	p.work = fetch_page;
 *	p.deliver = print_page;
 *	r = weft_pipeline_run(&p);
 *
 * A pipeline over the blocks of one file, whose result appears whole or not at
 * all:
 *
 *	struct weft_file_pipeline p = WEFT_FILE_PIPELINE_INIT;
 *
 *	p.from = "log";
 *	p.to = "log.z";
 *	p.work = compress_block;
 *	p.out_bytes_max = compressBound(p.block_bytes);
 *	r = weft_pipeline_file(&p);
 *
 * Both run tasks that each take an item through all its steps, so that it stays
 * in the caches of one processor.  A finished item whose turn has not come is
 * left behind; the task that finishes the oldest item delivers those as well.
 * So the oldest item never waits for a younger one, and a slow next() or
 * deliver() delays only its own step, until items_max is reached.
 *
 * Work that computes for long keeps its worker; others take over that worker's
 * descriptors and timers, as for any task.  If all workers compute, so that
 * other tasks of the program wait too long, WEFT_PIPELINE_BLOCKING moves the
 * work to the threads of weft_blocking().  A pipeline yields between items.
 */
#ifndef WEFT_PIPELINE_H
#define WEFT_PIPELINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Items are delivered as soon as they are done. */
#define WEFT_PIPELINE_UNORDERED (1u << 0)
/* work() runs on a thread of weft_blocking(), where calls that need a task
 * return -EPERM. */
#define WEFT_PIPELINE_BLOCKING (1u << 1)

/* A step for one item.  A negative result, by convention a negative errno, ends
 * the pipeline; any other is success. */
typedef int (*weft_pipeline_fn)(void *arg, void *item);

/* Start from WEFT_PIPELINE_INIT(type of an item). */
struct weft_pipeline {
	size_t size;
	/* Fills in the item, which is zeroed.  *ret_bytes, which is 0, receives
	 * the memory that the item has or will take.  Returns 1, 0 at the end,
	 * or an error; without an item it leaves nothing to be freed. */
	int (*next)(void *arg, void *item, size_t *ret_bytes);
	weft_pipeline_fn work;	  /* NULL: nothing to do */
	weft_pipeline_fn deliver; /* NULL: nothing to do */
	/* Frees what the item has, exactly once for each item that next()
	 * returned, delivered or not.  Runs in a WEFT_SHIELD.  May be NULL. */
	void (*drop)(void *arg, void *item);
	/* After a delivery, at most every 0.1 s, and at the end if there was no
	 * error: what has been delivered so far.  May be NULL. */
	void (*progress)(void *arg, uint64_t items, uint64_t bytes);
	void *arg;
	size_t item_bytes;  /* 1 to 64 KiB; aligned as malloc()'s memory */
	unsigned items_max; /* from next() to drop(), up to 1 million; 0: four
			       for each task */
	unsigned tasks;     /* that work, at most items_max; 0: four for each
			       worker */
	size_t bytes_max;   /* of the items together; 0: no limit */
	unsigned flags;	    /* WEFT_PIPELINE_UNORDERED, _BLOCKING */
	unsigned reserved;
};

#define WEFT_PIPELINE_INIT(type)                                              \
	{ sizeof(struct weft_pipeline), NULL, NULL, NULL, NULL, NULL, NULL,   \
	  sizeof(type), 0, 0, 0, 0, 0 }

/*
 * Runs a pipeline until next() returns 0 and all items are delivered and
 * dropped.  Suspends.
 *
 * There are never more than items_max items.  An item that would exceed
 * bytes_max waits before its work until enough others are dropped; a larger one
 * is worked on alone.  So memory that is allocated in work() stays within
 * bytes_max, and memory that next() allocates exceeds it by one item.
 *
 * The first error of any step ends the pipeline: no step begins any more, those
 * that run are cancelled (their suspending calls return -ECANCELED) and waited
 * for, all items are dropped, and the call returns that error.  Cancellation
 * and deadlines of the caller do the same.
 *
 * The steps run in different tasks, also those that are called one at a time:
 * next() does not keep a WEFT_WITHIN or a pthread mutex from call to call.
 *
 * Returns 0, the first error, -ECANCELED, -ETIMEDOUT, -EINVAL (wrong options),
 * -ENOMEM, -EAGAIN (no task, or with WEFT_PIPELINE_BLOCKING no thread, could be
 * started) or -EPERM (not in a task).
 */
WEFT_API int weft_pipeline_run(const struct weft_pipeline *pipeline)
	WEFT_WARN_UNUSED;

/* A block of a file. */
struct weft_block {
	uint64_t index;	 /* from 0 */
	uint64_t offset; /* in the file */
	void *data;	 /* work() may change it */
	size_t bytes;
	void *out; /* what is written: room for out_bytes_max bytes, or data */
	size_t out_bytes; /* set by work(); without out_bytes_max: bytes */
};

typedef int (*weft_block_fn)(void *arg, struct weft_block *block);

/* Start from WEFT_FILE_PIPELINE_INIT. */
struct weft_file_pipeline {
	size_t size;
	const char *from;      /* a path; NULL: from_fd */
	int from_fd;	       /* a regular file is read from its beginning */
	unsigned to_mode;      /* of a new file; the umask is applied */
	const char *to;	       /* a path; NULL: nothing is written */
	weft_block_fn work;    /* in parallel; NULL: nothing to do */
	weft_block_fn deliver; /* in order, before out is written; NULL */
	void (*progress)(void *arg, uint64_t blocks, uint64_t bytes);
	void *arg;
	size_t block_bytes;    /* up to 1 GiB */
	size_t out_bytes_max;  /* room in addition to data; 0: none */
	unsigned blocks_max;   /* as items_max */
	unsigned tasks;	       /* as in struct weft_pipeline */
	unsigned flags;
	unsigned reserved;
};

#define WEFT_FILE_PIPELINE_INIT                                             \
	{ sizeof(struct weft_file_pipeline), NULL, -1, 0666, NULL, NULL,    \
	  NULL, NULL, NULL, 262144, 0, 0, 0, 0, 0 }

/*
 * Runs a pipeline over the blocks of a file: reads ahead, works in parallel,
 * delivers and writes in order.  Suspends.  All blocks but the last have
 * block_bytes bytes, and no block is empty.  Memory: at most blocks_max times
 * block_bytes + out_bytes_max.
 *
 * A regular file is read in parallel, up to the size that it has at the start,
 * and from there on, like all that is no regular file, in order.  If it becomes
 * shorter meanwhile, it ends at the first byte that is missing; work() may have
 * been called for later blocks, which are not delivered.
 *
 * The file `to` appears whole or not at all: the blocks are written to a file
 * without a name (on file systems that have none, to one named .weft-...),
 * which is written back and renamed over `to` at the end.  After an error, a
 * cancellation or a crash, `to` is what it was before.  A symbolic link is
 * replaced.  from and to may be the same.
 *
 * Returns 0, or an error as weft_pipeline_run(), or of opening, reading,
 * writing, fsync(2) or rename(2).  -EINVAL: also WEFT_PIPELINE_UNORDERED with
 * `to`, or `to` ends in "/", "." or "..".
 */
WEFT_API int weft_pipeline_file(const struct weft_file_pipeline *pipeline)
	WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
