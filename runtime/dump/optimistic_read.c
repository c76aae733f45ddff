/* SPDX-License-Identifier: MIT */
/*
 * Optimistic read - see the header for the model and OPT1 to OPT3.
 */
#include "runtime/dump/optimistic_read.h"

#include <errno.h>

#include "runtime/base/memory.h"
#include "runtime/sched/runtime.h"
#include "runtime/sched/wait.h"

/* Whether the processor keeps writes, and reads, in program order. */
#if defined(__x86_64__)
enum { IN_ORDER = 1 };
#else
enum { IN_ORDER = 0 };
#endif

/* The compiler moves no read across this; on x86-64 the processor reads in
 * program order anyway. */
static inline void reads_part(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Reads first the task that the worker runs, and then the one it leaves
 * (OPT2). */
static __attribute__((noinline, no_sanitize("thread"))) bool
has_or_leaves(const struct weft__worker *worker, const struct weft__task *task)
{
	const volatile struct weft__worker *w = worker;

	return w->current == task ||
	       (w->left == task && w->left_how != WEFT__LEFT_NOTHING);
}

static bool is_anybodys(const struct weft__optimistic_read *s,
			const struct weft__task *task)
{
	for (uint32_t i = 0; i < s->runtime->workers_count; i++)
		if (has_or_leaves(s->runtime->workers[i], task))
			return true;
	return false;
}

static uint64_t runs_of(const struct weft__optimistic_read *s, uint32_t worker)
{
	/* relaxed: see reads_part(). */
	return weft__load(&s->runtime->workers[worker]->counts[WEFT__N_POLLS],
			  relaxed);
}

static size_t runs_bytes(const struct weft__optimistic_read *s)
{
	return s->runtime->workers_count * sizeof(*s->runs);
}

int weft__optimistic_read_init(struct weft__optimistic_read *s,
			       struct weft_runtime *runtime)
{
	s->runtime = runtime;
	s->runs = weft__memory_zeroed(runtime->memory, runs_bytes(s));
	return s->runs ? 0 : -ENOMEM;
}

void weft__optimistic_read_fini(struct weft__optimistic_read *s)
{
	if (s->runs)
		weft__memory_free(s->runtime->memory, s->runs, runs_bytes(s));
}

bool weft__optimistic_read_begin(struct weft__optimistic_read *s,
				 const struct weft__task *task)
{
	for (uint32_t i = 0; i < s->runtime->workers_count; i++)
		s->runs[i] = runs_of(s, i);
	reads_part();
	if (is_anybodys(s, task))
		return false;
	reads_part();
	return IN_ORDER;
}

static __attribute__((noinline, no_sanitize("thread"))) struct weft__task *
current_of(const struct weft__worker *worker)
{
	return ((const volatile struct weft__worker *)worker)->current;
}

/* The task that a worker runs while its `joining` is `task` (JOIN1), or NULL.
 * */
static struct weft__task *joined_on(struct weft__worker *worker,
				    const struct weft__task *task)
{
	struct weft__task *joined;

	/* Read twice, so that both reads belong together. */
	if (weft__handoff_slot_look(&worker->joining) != task)
		return NULL;
	reads_part();
	joined = current_of(worker);
	reads_part();
	return weft__handoff_slot_look(&worker->joining) == task ? joined :
								   NULL;
}

uint64_t weft__optimistic_read_joins(const struct weft__optimistic_read *s,
			   const struct weft__task *task)
{
	for (uint32_t i = 0; i < s->runtime->workers_count; i++) {
		struct weft__task *joined =
			joined_on(s->runtime->workers[i], task);

		if (joined)
			return weft__running_id(joined);
	}
	return 0;
}

bool weft__optimistic_read_end(const struct weft__optimistic_read *s,
			       const struct weft__task *task)
{
	reads_part();
	if (is_anybodys(s, task))
		return false;
	reads_part();
	for (uint32_t i = 0; i < s->runtime->workers_count; i++)
		if (runs_of(s, i) != s->runs[i])
			return false;
	return true;
}
