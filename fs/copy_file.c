/* SPDX-License-Identifier: MIT */
/*
 * weft_copy_file(): one job on the pool opens both sides and copies, for a few
 * milliseconds.  The rest are further jobs, and between two jobs the task
 * looks whether it is to end.  A small file is one job.
 */
#include "fs/copy_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/blocking.h>
#include <weft/time.h>

#include "fs/copy_one.h"
#include "io/request/call.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"

struct copying {
	struct weft__copy_one one;
	const char *from, *to;
	char name[NAME_MAX + 1]; /* of the copy */
	uint64_t number;
	bool begun; /* its first job has begun */
	bool clean; /* the clean-up has been done */
};

/* ---- Options, paths, clean-up     --------------------------------------- */

uint64_t weft__copy_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int weft__copy_begin(const char *from, const char *to,
		     const struct weft_copy_opts *opts,
		     struct weft_copy_opts *ret_opts,
		     struct weft__worker **ret_worker)
{
	static const struct weft_copy_opts defaults = WEFT_COPY_OPTS_INIT;
	uint32_t known = WEFT_COPY_ARCHIVE | WEFT_COPY_OVERWRITE |
			 WEFT_COPY_FOLLOW | WEFT_COPY_FSYNC |
			 WEFT_COPY_ONE_DEVICE;
	int r = weft__call_begin(ret_worker);

	if (r < 0)
		return r;
	if (!opts)
		opts = &defaults;
	if (!from || !to || opts->size != sizeof(*opts) ||
	    (opts->flags & ~known))
		return -EINVAL;
	*ret_opts = *opts;
	if (ret_opts->bytes_max == 0)
		ret_opts->bytes_max = UINT64_MAX;
	return 0;
}

int weft__copy_parent_open(const char *path, const char **ret_name,
			   size_t *ret_bytes)
{
	char parent[PATH_MAX];
	size_t end = strlen(path), begin;
	int fd;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/';)
		begin--;
	if (end == 0)
		return -ENOENT;
	if (begin >= PATH_MAX || end - begin > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(parent, path, begin);
	parent[begin] = '\0';
	fd = weft__fd_above_stdio(open(begin ? parent : ".",
				       O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (fd < 0)
		return fd;
	*ret_name = path + begin;
	*ret_bytes = end - begin;
	return fd;
}

struct clean_up {
	weft_fn fn;
	void *arg;
	bool begun;
};

static int64_t clean_up_run(void *arg)
{
	struct clean_up *clean_up = arg;

	clean_up->begun = true;
	return clean_up->fn(clean_up->arg);
}

void weft__copy_clean_up(struct weft_lane *lane, weft_fn fn, void *arg)
{
	struct clean_up clean_up = { fn, arg, false };
	int64_t r;

	WEFT_SHIELD {
		r = weft_blocking_lane(lane, clean_up_run, &clean_up);
	}
	(void)r;
	if (!clean_up.begun)
		(void)fn(arg);
}

/* ---- One file ------------------------------------------------------------ */

static int64_t turn_run(struct copying *copying)
{
	uint64_t by_ns = weft__copy_now_ns() + WEFT__COPY_TURN_NS;
	int r;

	do
		r = weft__copy_one_step(&copying->one);
	while (r > 0 && weft__copy_now_ns() < by_ns);
	return r;
}

static int copying_open(struct copying *copying)
{
	struct weft__copy_one *one = &copying->one;
	const char *name;
	size_t bytes;
	int r = weft__copy_one_open(one, DT_UNKNOWN);

	if (r < 0)
		return r;
	r = weft__copy_parent_open(copying->to, &name, &bytes);
	if (r < 0)
		return r;
	one->to_dir = r;
	/* "/", which has no name. */
	if (bytes == 0)
		return -EISDIR;
	/* "a/" is a directory. */
	if (name[bytes] == '/')
		return -ENOTDIR;
	memcpy(copying->name, name, bytes);
	copying->name[bytes] = '\0';
	copying->number = weft__copy_temp_number();
	return weft__copy_one_make(one);
}

static int64_t copying_clean_up(void *arg)
{
	struct copying *copying = arg;

	weft__copy_one_drop(&copying->one);
	if (copying->one.to_dir >= 0)
		close(copying->one.to_dir);
	copying->one.to_dir = -1;
	copying->clean = true;
	return 0;
}

static int64_t copying_run(void *arg)
{
	struct copying *copying = arg;
	int64_t r = 1;

	if (!copying->begun)
		r = copying_open(copying);
	copying->begun = true;
	if (r > 0)
		r = turn_run(copying);
	if (r <= 0)
		(void)copying_clean_up(copying);
	return r;
}

static int64_t copying_go(struct copying *copying,
			  const struct weft_copy_opts *opts,
			  struct weft_lane *lane,
			  struct weft_copy_counts *counts)
{
	int64_t r;

	do {
		r = weft_blocking_lane(lane, copying_run, copying);
		if (copying->begun)
			counts->bytes = copying->one.bytes.done;
		counts->files = r == 0;
		if (r >= 0 && opts->on_progress)
			opts->on_progress(counts, opts->arg);
	} while (r > 0);
	if (copying->begun && !copying->clean)
		weft__copy_clean_up(lane, copying_clean_up, copying);
	return r;
}

int weft__copy_file(struct weft__worker *worker, const char *from,
		    const char *to, const struct weft_copy_opts *opts,
		    struct weft_copy_counts *counts)
{
	const struct weft_allocator *memory = worker->runtime->memory;
	struct weft_lane *lane = &weft__reactor(worker->runtime)->files;
	struct copying *copying =
		weft__memory_zeroed(memory, sizeof(struct copying));
	char *buffer = weft__memory_new(memory, WEFT__COPY_BUFFER_BYTES);
	int64_t r = -ENOMEM;

	if (copying && buffer) {
		copying->from = from;
		copying->to = to;
		copying->one = (struct weft__copy_one){
			.from_dir = AT_FDCWD,
			.from_name = from,
			.to_dir = -1,
			.to_name = copying->name,
			.flags = opts->flags,
			.clones = true,
			.bytes_max = opts->bytes_max,
			.number = &copying->number,
			.buffer = buffer,
			.from = -1,
			.to = -1,
		};
		r = copying_go(copying, opts, lane, counts);
	}
	weft__memory_free(memory, buffer, WEFT__COPY_BUFFER_BYTES);
	weft__memory_free(memory, copying, sizeof(*copying));
	return (int)r;
}

int weft_copy_file(const char *from, const char *to,
		   const struct weft_copy_opts *opts, uint64_t *ret_bytes)
{
	struct weft_copy_counts counts = { 0 };
	struct weft_copy_opts known;
	struct weft__worker *worker;
	int r = weft__copy_begin(from, to, opts, &known, &worker);

	if (r == 0)
		r = weft__copy_file(worker, from, to, &known, &counts);
	if (r == 0 && ret_bytes)
		*ret_bytes = counts.bytes;
	return r;
}
