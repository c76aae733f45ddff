/* SPDX-License-Identifier: MIT */
/*
 * Collection - workers first, then all records; see the header.  Tasks that
 * wait are held and copied, others are read optimistically (optimistic_read.h).
 */
#include "runtime/dump/collect.h"

#include <errno.h>

#include "runtime/base/memory.h"
#include "runtime/sched/task_hold.h"
#include "runtime/sched/task_pool.h"

/* The states of the tasks of a group.  For WAITS, what_of() adds what they
 * wait for. */
enum { RUNS, READY, UNBEGUN, JOINS, WAITS };

/* How often the copy of a ready task is tried. */
enum { TRIES = 16 };

static uint64_t what_of(const struct weft__task_info *info)
{
	return WAITS | (uint64_t)weft__reason_kind(info->reason) << 8 |
	       (uint64_t)info->on << 16;
}

static void format_begin(struct weft__format *format,
			 const struct weft__collection *s,
			 const struct weft__task_info *info)
{
	format->used = 0;
	weft__format_task(format, &s->speaker, info);
	if (info->has_begun) {
		weft__format_add(format, ", ");
		weft__format_from_to(format, info->since_ns,
				    s->speaker.now_ns);
		weft__format_add(format, " old");
	}
	if (info->state & WEFT__CANCELLED)
		weft__format_add(format, ", cancelled");
	weft__format_add(format, ": ");
}

/* Adds the task to its group.  Returns the group, with the first words of the
 * task's own line in `format`, or NULL if the group has no room for that
 * line. */
static struct weft__group *group_of(struct weft__collection *s, uint64_t what,
				    const struct weft__task_info *info,
				    const struct weft__trace *trace,
				    struct weft__format *format)
{
	struct weft__group *group = weft__groups_add(
		&s->groups, what, (uint64_t)(uintptr_t)info->fn, trace);

	if (!group)
		s->incomplete = true;
	if (!group || group->lines_count >= WEFT__GROUP_LINES)
		return NULL;
	format_begin(format, s, info);
	return group;
}

/* ---- Workers ------------------------------------------------------------- */

static void worker_meet(struct weft__collection *s, struct weft__worker *worker,
			struct weft__worker_info *met)
{
	weft__snapshot_worker(worker, &met->seen, s->snapshot);
	/* relaxed: a look. */
	met->since_ns = weft__load(&worker->seen_ns, relaxed);
	if (met->seen.task.id && s->snapshot->at.pc)
		weft__trace_take(s->speaker.unwinder, s->snapshot,
				 (uint64_t)(uintptr_t)met->seen.task.fn,
				 &met->trace);
}

static void workers_meet(struct weft__collection *s, uint32_t first,
			 uint32_t end)
{
	struct weft_runtime *runtime = s->speaker.runtime;

	weft__snapshot_begin();
	for (uint32_t i = first; i < end; i++)
		worker_meet(s, runtime->workers[i], &s->workers[i]);
	weft__snapshot_end();
}

/* The worker that ran the task when it was looked at, or NULL. */
static struct weft__worker_info *met_with(struct weft__collection *s,
					  uint64_t id)
{
	for (uint32_t i = 0; i < s->speaker.runtime->workers_count; i++)
		if (s->workers[i].seen.task.id == id)
			return &s->workers[i];
	return NULL;
}

/* ---- Tasks that wait ----------------------------------------------------- */

static void edge_add(struct weft__collection *s, struct weft__edge edge)
{
	if (s->edges_count == s->edges_room) {
		size_t room = s->edges_room ? 2 * s->edges_room : 256;
		void *edges = weft__memory_resize(
			s->memory, s->edges, s->edges_room * sizeof(edge),
			room * sizeof(edge));

		if (!edges) {
			s->incomplete = true;
			return;
		}
		s->edges = edges;
		s->edges_room = room;
	}
	s->edges[s->edges_count++] = edge;
}

static void edges_add(struct weft__collection *s,
		      const struct weft__task_info *info)
{
	uint64_t scope = (uint64_t)(uintptr_t)info->scope;
	uint64_t object = (uint64_t)(uintptr_t)info->object;

	if (info->owner)
		edge_add(s, (struct weft__edge){ info->owner, info->id,
						 scope });
	if (info->other)
		edge_add(s, (struct weft__edge){ info->id, info->other,
						 0 });
	else if (weft__reason_kind(info->reason) == WEFT__REASON_SCOPE)
		edge_add(s, (struct weft__edge){ info->id, 0, object });
}

/* Whether the task waits for something other than a task, as far as is
 * known. */
static bool has_hope(const struct weft__task_info *info)
{
	if (info->deadline_ns != WEFT_NEVER ||
	    info->reason == WEFT__REASON_UNREPORTED)
		return true;
	switch (weft__reason_kind(info->reason)) {
	case WEFT__REASON_TIME:
		return info->until_ns != WEFT_NEVER;
	case WEFT__REASON_WAIT:
		return info->on == WEFT__ON_UNREPORTED || info->cases_hope ||
		       info->on == WEFT__ON_JOB || info->on == WEFT__ON_DUMP;
	case WEFT__REASON_DRIVER:
		return true;
	default:
		return false;
	}
}

static void waiting_add(struct weft__collection *s,
			const struct weft__task_info *info)
{
	struct weft__group *group;
	struct weft__format format;

	s->waits++;
	s->hopeful += has_hope(info);
	edges_add(s, info);
	group = group_of(s, what_of(info), info, &s->trace, &format);
	if (!group)
		return;
	weft__format_wait(&format, &s->speaker, info);
	weft__group_report(&s->groups, group, format.text);
}

/* False: the task does not wait.  The snapshot may be NULL; it is only written
 * if the task has a stack. */
static bool task_info_waiting(struct weft_runtime *runtime,
			      struct weft__task *task,
			      struct weft__task_info *ret_info,
			      struct weft__snapshot *ret_snapshot)
{
	uint64_t state;

	if (!weft__task_hold(task, &state))
		return false;
	weft__task_info_held(runtime, task, state, ret_info);
	if (ret_snapshot && ret_info->has_stack)
		weft__snapshot_held(task, ret_snapshot);
	weft__task_release(runtime, NULL, task);
	return true;
}

/* False: the task does not wait. */
static bool look_at_waiting(struct weft__collection *s, struct weft__task *task)
{
	struct weft__unwinder *unwinder = s->speaker.unwinder;
	struct weft__task_info info;

	if (!task_info_waiting(s->speaker.runtime, task, &info,
			       unwinder ? s->snapshot : NULL))
		return false;
	s->trace.count = 0;
	s->trace.cut = false;
	if (info.has_stack)
		weft__trace_take(unwinder, s->snapshot,
				 (uint64_t)(uintptr_t)info.fn, &s->trace);
	waiting_add(s, &info);
	return true;
}

bool weft__collect_waits(struct weft_runtime *runtime, uint64_t id,
			struct weft__task_info *ret_info)
{
	struct weft__task *task = weft__task_at(runtime, id);

	return task && task_info_waiting(runtime, task, ret_info, NULL) &&
	       ret_info->id == id;
}

/* ---- Other tasks --------------------------------------------------------- */

static void running_add(struct weft__collection *s,
			const struct weft__task_info *info,
			const struct weft__worker_info *met)
{
	unsigned worker = (unsigned)(met - s->workers);
	struct weft__group *group;
	struct weft__format format;

	s->runs++;
	group = group_of(s, RUNS | (uint64_t)worker << 8, info, &met->trace,
			 &format);
	if (!group)
		return;
	weft__format_add(&format, "runs on worker %u", worker);
	if (met->seen.doing == WEFT__DOING_SILENT)
		weft__format_add(&format, ", which does not answer");
	else if (met->seen.sleeps == WEFT__SLEEPS_HIDDEN)
		weft__format_add(&format, ", asleep: no backtrace, since "
				 "/proc/self/task/*/syscall cannot be read");
	else if (met->seen.sleeps && met->trace.cut)
		weft__format_add(&format, ", asleep: the other calls cannot be "
				 "found without its registers");
	weft__group_report(&s->groups, group, format.text);
}

static void joining_add(struct weft__collection *s,
			const struct weft__task_info *info, uint64_t joins)
{
	struct weft__group *group;
	struct weft__format format;

	s->waits++;
	s->hopeful++;
	group = group_of(s, JOINS, info, &s->trace, &format);
	if (!group)
		return;
	weft__format_add(&format, "joins ");
	weft__format_id(&format, &s->speaker, joins);
	weft__format_add(&format, ", which runs");
	weft__group_report(&s->groups, group, format.text);
}

static void ready_add(struct weft__collection *s,
		      const struct weft__task_info *info)
{
	struct weft__group *group;
	struct weft__format format;

	if (info->has_begun)
		s->ready++;
	else
		s->unbegun++;
	group = group_of(s, info->has_begun ? READY : UNBEGUN, info,
			 &s->trace, &format);
	if (!group)
		return;
	weft__format_add(&format, "%s", info->has_begun ? "is ready to run" :
							  "has not begun");
	weft__group_report(&s->groups, group, format.text);
}

/* False: the task may have run meanwhile.  Also returns the id of the task that
 * it joins, or 0. */
static bool copy_loose(struct weft__collection *s, struct weft__task *task,
		       uint64_t id, uint64_t *ret_joins)
{
	bool still = weft__optimistic_read_begin(&s->still, task);
	bool copied = weft__snapshot_loose(task, s->snapshot);

	*ret_joins = weft__optimistic_read_joins(&s->still, task);
	return still && copied && weft__running_id(task) == id &&
	       weft__optimistic_read_end(&s->still, task);
}

/* Takes the task's trace, if it stands still for one copy.  Returns the id of
 * the task that it joins, or 0. */
static uint64_t trace_loose(struct weft__collection *s, struct weft__task *task,
			    const struct weft__task_info *info)
{
	bool traced = info->has_stack && s->speaker.unwinder;
	uint64_t joins;
	int tries = traced ? TRIES : 1;

	s->trace.count = 0;
	s->trace.cut = false;
	while (tries-- > 0)
		if (copy_loose(s, task, info->id, &joins) && traced) {
			weft__trace_take(s->speaker.unwinder, s->snapshot,
					 (uint64_t)(uintptr_t)info->fn,
					 &s->trace);
			break;
		}
	return joins;
}

static void look_at(struct weft__collection *s, struct weft__task *task)
{
	const struct weft__worker_info *met;
	struct weft__task_info info;
	uint64_t joins;

	/* It may have begun to wait between the two looks. */
	if (look_at_waiting(s, task) || !weft__task_info(task, &info) ||
	    look_at_waiting(s, task))
		return;
	met = met_with(s, info.id);
	if (met) {
		running_add(s, &info, met);
		return;
	}
	joins = trace_loose(s, task, &info);
	if (joins)
		joining_add(s, &info, joins);
	else
		ready_add(s, &info);
}

/* ---- Calls --------------------------------------------------------------- */

uint64_t weft__collect_runs(struct weft_runtime *runtime)
{
	uint64_t runs = 0;

	for (uint32_t i = 0; i < runtime->workers_count; i++)
		/* relaxed: it stands still if no task runs. */
		runs += weft__load(&runtime->workers[i]->counts[WEFT__N_POLLS],
				   relaxed);
	return runs;
}

static size_t workers_bytes(const struct weft__collection *s)
{
	return s->speaker.runtime->workers_count * sizeof(*s->workers);
}

static int survey_begin(struct weft__collection *s,
			struct weft_runtime *runtime,
			struct weft__unwinder *unwinder)
{
	s->speaker.runtime = runtime;
	s->speaker.unwinder = unwinder;
	s->speaker.now_ns = runtime->ops->now(runtime);
	s->runs_before = weft__collect_runs(runtime);
	s->memory = s->groups.memory = runtime->memory;
	s->workers = weft__memory_zeroed(s->memory, workers_bytes(s));
	s->snapshot = weft__memory_new(s->memory, sizeof(*s->snapshot));
	if (!s->workers || !s->snapshot)
		return -ENOMEM;
	return weft__optimistic_read_init(&s->still, runtime);
}

int weft__collect_take(struct weft__collection *s, struct weft_runtime *runtime,
		      struct weft__unwinder *unwinder)
{
	int error = survey_begin(s, runtime, unwinder);
	uint32_t used;

	if (error < 0)
		return error;
	workers_meet(s, 0, runtime->workers_count);
	/* pairs: [task.chunk] */
	used = weft__load(&runtime->tasks.used, acquire);
	for (uint32_t i = 0; i < used; i++)
		look_at(s, weft__record_at(runtime, i));
	return 0;
}

int weft__collect_take_worker(struct weft__collection *s,
			     struct weft_runtime *runtime, uint32_t worker,
			     uint64_t polls, struct weft__unwinder *unwinder)
{
	int error = survey_begin(s, runtime, unwinder);
	const struct weft__worker_info *met;

	if (error < 0)
		return error;
	workers_meet(s, worker, worker + 1);
	met = &s->workers[worker];
	if (met->seen.task.id && met->seen.polls == polls)
		running_add(s, &met->seen.task, met);
	return 0;
}

void weft__collect_fini(struct weft__collection *s)
{
	weft__groups_fini(&s->groups);
	weft__optimistic_read_fini(&s->still);
	weft__memory_free(s->memory, s->edges,
			  s->edges_room * sizeof(*s->edges));
	weft__memory_free(s->memory, s->snapshot, sizeof(*s->snapshot));
	weft__memory_free(s->memory, s->workers, workers_bytes(s));
}
