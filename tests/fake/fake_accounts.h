/* SPDX-License-Identifier: MIT */
/*
 * Fake accounts - the conditions of idle.h and of io/request/shard.h that hold
 * between two steps.
 */
#ifndef WEFT_TESTS_FAKE_FAKE_ACCOUNTS_H
#define WEFT_TESTS_FAKE_FAKE_ACCOUNTS_H

#include "runtime/sched/runtime.h"

/* Returns what is wrong, or NULL. */
const char *fake_accounts(struct weft_runtime *runtime);

/* Is the worker's ring locked? */
bool fake_is_locked(struct weft__worker *worker);

#endif
