/* SPDX-License-Identifier: MIT */
/*
 * Task info - what a task is and what it waits for, copied from its record.
 *
 * If the task is held, everything is copied (task_hold.h).  Other tasks may run
 * and end meanwhile: only what lies in memory that lives as long as the runtime
 * is copied, and it counts if the generation is the same afterwards.
 */
#ifndef WEFT_RUNTIME_DUMP_TASK_INFO_H
#define WEFT_RUNTIME_DUMP_TASK_INFO_H

#include <weft/select.h>

#include "runtime/sched/waiter.h"

/* At most this number of a select's cases is copied. */
enum { WEFT__NAME_BYTES = 40, WEFT__CASES_SHOWN = 8 };

struct weft__task_info_case {
	enum weft_case_kind kind;
	const void *chan;
	uint64_t have, max; /* the channel's values, and its capacity */
	uint64_t number;     /* as in weft/select.h */
	short events;
};

struct weft__task_info {
	uint64_t id;
	uint64_t state;
	weft_fn fn;
	bool has_begun;
	bool has_stack;
	uint64_t since_ns;    /* when it began */
	char name[WEFT__NAME_BYTES];

	/* Of a task that waits. */
	uint64_t reason;      /* see wait_reason.h */
	enum weft__on on;
	const void *object;   /* or a scope that it waits for */
	uint64_t have, max;  /* of the object: values, permits, readers ... */
	uint64_t until_ns;    /* the time that it waits for */
	uint64_t deadline_ns; /* when the wait is given up, or WEFT_NEVER */
	uint64_t count;	      /* tasks that a scope waits for */
	uint64_t other;	      /* the task that has the object, or is joined */
	bool taken;	      /* it has an owner, maybe not one of ours */
	weft_fn job;	      /* of blocking work */
	char lane[WEFT__NAME_BYTES];

	/* Of a select. */
	uint32_t cases_count; /* without those that are left out */
	struct weft__task_info_case cases[WEFT__CASES_SHOWN]; /* the first */
	bool cases_hope; /* one of them needs no task to happen */

	/* The scope that the task is in, if a task owns it. */
	const void *scope;
	uint64_t owner; /* that task */
};

/* False: the record is no task now. */
bool weft__task_info(struct weft__task *task, struct weft__task_info *ret_info);

/* For a task that is held since it had that state. */
void weft__task_info_held(struct weft_runtime *runtime, struct weft__task *task,
		       uint64_t state, struct weft__task_info *ret_info);

#endif
