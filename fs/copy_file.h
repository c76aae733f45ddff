/* SPDX-License-Identifier: MIT */
/*
 * Copy file - what the calls of <weft/copy.h> have in common: options, paths,
 * and jobs on the pool.
 */
#ifndef WEFT_FS_COPY_FILE_H
#define WEFT_FS_COPY_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/copy.h>
#include <weft/task.h>

#include "runtime/sched/worker.h"

struct weft_lane;

/* How long a job runs before its task looks for cancellation. */
#define WEFT__COPY_TURN_NS 4000000u

/* 0, or the error of a call with those arguments.  Copies the options, or the
 * defaults. */
int weft__copy_begin(const char *from, const char *to,
		     const struct weft_copy_opts *opts,
		     struct weft_copy_opts *ret_opts,
		     struct weft__worker **ret_worker);

/* The directory that a path is in, opened with O_PATH; and its last name, in
 * place, without slashes behind it: *ret_bytes long.  A descriptor or an
 * error. */
int weft__copy_parent_open(const char *path, const char **ret_name,
			   size_t *ret_bytes);

/* Runs fn(arg) on the pool even if the task is cancelled, or there is no
 * thread. */
void weft__copy_clean_up(struct weft_lane *lane, weft_fn fn, void *arg);

uint64_t weft__copy_now_ns(void);

/* The call without its checks. */
int weft__copy_file(struct weft__worker *worker, const char *from,
		    const char *to, const struct weft_copy_opts *opts,
		    struct weft_copy_counts *counts);

#endif
