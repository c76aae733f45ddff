/* SPDX-License-Identifier: MIT */
/*
 * Pipeline - what the pipeline over a file needs of that over any items.
 */
#ifndef WEFT_FS_PIPELINE_H
#define WEFT_FS_PIPELINE_H

#include <stdint.h>

#include <weft/blocking.h>
#include <weft/pipeline.h>

#include "runtime/sched/runtime.h"

/* Checks the options and sets those that are left to their defaults: 0,
 * -EINVAL. */
int weft__pipeline_complete(const struct weft_runtime *runtime,
			    struct weft_pipeline *pipeline);

/* Calls fn(arg, item) on a thread of weft_blocking(). */
int weft__pipeline_blocking(struct weft_lane *lane, weft_pipeline_fn fn,
			    void *arg, void *item);

#endif
