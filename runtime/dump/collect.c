/* SPDX-License-Identifier: MIT */
#include "runtime/dump/collect.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/sched/task_hold.h"
#include "runtime/sched/task_pool.h"

/* What the tasks of a group do; of those that wait, behind the last, the kind
 * of what they wait for. */
enum { RUNS, READY, UNBEGUN, JOINS, WAITS };

/* How often one that runs again and again is copied. */
enum { TRIES = 16 };

static uint64_t what_of(const struct weft__glance *glance)
{
	return WAITS | (uint64_t)weft__reason_kind(glance->reason) << 8 |
	       (uint64_t)glance->on << 16;
}

static void words_begin(struct weft__words *words,
			const struct weft__survey *s,
			const struct weft__glance *glance)
{
	words->used = 0;
	weft__words_task(words, &s->speaker, glance);
	if (glance->has_begun) {
		weft__words_add(words, ", ");
		weft__words_from_to(words, glance->since_ns,
				    s->speaker.now_ns);
		weft__words_add(words, " old");
	}
	if (glance->state & WEFT__CANCELLED)
		weft__words_add(words, ", cancelled");
	weft__words_add(words, ": ");
}

/* Its group, if it is one of those that are told of one by one: what is told
 * of it has begun. */
static struct weft__group *group_of(struct weft__survey *s, uint64_t what,
				    const struct weft__glance *glance,
				    const struct weft__trace *trace,
				    struct weft__words *words)
{
	struct weft__group *group = weft__groups_add(
		&s->groups, what, (uint64_t)(uintptr_t)glance->fn, trace);

	if (!group)
		s->incomplete = true;
	if (!group || group->lines_count >= WEFT__GROUP_LINES)
		return NULL;
	words_begin(words, s, glance);
	return group;
}

/* ---- Workers ------------------------------------------------------------ */

static void worker_meet(struct weft__survey *s, struct weft__worker *worker,
			struct weft__met *met)
{
	struct weft__glance glance;
	struct weft__task *task;

	met->doing = weft__snapshot_worker(worker, &met->id, s->snapshot);
	/* relaxed: a look. */
	met->since_ns = weft__load(&worker->seen_ns, relaxed);
	if (met->doing != WEFT__DOING_RUNS)
		return;
	task = weft__task_at(s->speaker.runtime, met->id);
	if (!task || !weft__glance(task, &glance))
		glance.fn = NULL;
	weft__trace_take(s->speaker.unwinder, s->snapshot,
			 (uint64_t)(uintptr_t)glance.fn, &met->trace);
}

static void workers_meet(struct weft__survey *s, uint32_t first, uint32_t end)
{
	struct weft_runtime *runtime = s->speaker.runtime;

	weft__snapshot_begin();
	for (uint32_t i = first; i < end; i++)
		worker_meet(s, runtime->workers[i], &s->workers[i]);
	weft__snapshot_end();
}

/* Which of them ran the task, or is NULL. */
static struct weft__met *met_with(struct weft__survey *s, uint64_t id)
{
	for (uint32_t i = 0; i < s->speaker.runtime->workers_count; i++)
		if (s->workers[i].doing == WEFT__DOING_RUNS &&
		    s->workers[i].id == id)
			return &s->workers[i];
	return NULL;
}

/* ---- Tasks that wait ---------------------------------------------------- */

static void edge_add(struct weft__survey *s, struct weft__edge edge)
{
	if (s->edges_count == s->edges_room) {
		size_t room = s->edges_room ? 2 * s->edges_room : 256;
		void *edges = realloc(s->edges, room * sizeof(edge));

		if (!edges) {
			s->incomplete = true;
			return;
		}
		s->edges = edges;
		s->edges_room = room;
	}
	s->edges[s->edges_count++] = edge;
}

static void edges_add(struct weft__survey *s,
		      const struct weft__glance *glance)
{
	uint64_t scope = (uint64_t)(uintptr_t)glance->scope;
	uint64_t object = (uint64_t)(uintptr_t)glance->object;

	if (glance->owner)
		edge_add(s, (struct weft__edge){ glance->owner, glance->id,
						 scope });
	if (glance->other)
		edge_add(s, (struct weft__edge){ glance->id, glance->other,
						 0 });
	else if (weft__reason_kind(glance->reason) == WEFT__REASON_SCOPE)
		edge_add(s, (struct weft__edge){ glance->id, 0, object });
}

/* Does it wait for what is no other task, as far as can be told? */
static bool has_hope(const struct weft__glance *glance)
{
	if (glance->deadline_ns != WEFT_NEVER ||
	    glance->reason == WEFT__REASON_UNTOLD)
		return true;
	switch (weft__reason_kind(glance->reason)) {
	case WEFT__REASON_TIME:
		return glance->until_ns != WEFT_NEVER;
	case WEFT__REASON_WAIT:
		return glance->on == WEFT__ON_UNTOLD || glance->cases_hope ||
		       glance->on == WEFT__ON_JOB ||
		       glance->on == WEFT__ON_DUMP;
	case WEFT__REASON_DRIVER:
		return true;
	default:
		return false;
	}
}

static void waiting_add(struct weft__survey *s,
			const struct weft__glance *glance)
{
	struct weft__group *group;
	struct weft__words words;

	s->waits++;
	s->hopeful += has_hope(glance);
	edges_add(s, glance);
	group = group_of(s, what_of(glance), glance, &s->trace, &words);
	if (!group)
		return;
	weft__words_wait(&words, &s->speaker, glance);
	weft__group_tell(group, words.text);
}

/* False: it does not wait.  The snapshot may be NULL; it is only written to of
 * one that has a stack. */
static bool glance_waiting(struct weft_runtime *runtime,
			   struct weft__task *task,
			   struct weft__glance *ret_glance,
			   struct weft__snapshot *ret_snapshot)
{
	uint64_t state;

	if (!weft__task_hold(task, &state))
		return false;
	weft__glance_held(runtime, task, state, ret_glance);
	if (ret_snapshot && ret_glance->has_stack)
		weft__snapshot_held(task, ret_snapshot);
	weft__task_release(runtime, NULL, task);
	return true;
}

/* False: it does not wait. */
static bool look_at_waiting(struct weft__survey *s, struct weft__task *task)
{
	struct weft__unwinder *unwinder = s->speaker.unwinder;
	struct weft__glance glance;

	if (!glance_waiting(s->speaker.runtime, task, &glance,
			    unwinder ? s->snapshot : NULL))
		return false;
	s->trace.count = 0;
	s->trace.cut = false;
	if (glance.has_stack)
		weft__trace_take(unwinder, s->snapshot,
				 (uint64_t)(uintptr_t)glance.fn, &s->trace);
	waiting_add(s, &glance);
	return true;
}

bool weft__survey_waits(struct weft_runtime *runtime, uint64_t id,
			struct weft__glance *ret_glance)
{
	struct weft__task *task = weft__task_at(runtime, id);

	return task && glance_waiting(runtime, task, ret_glance, NULL) &&
	       ret_glance->id == id;
}

/* ---- Other tasks -------------------------------------------------------- */

static void running_add(struct weft__survey *s,
			const struct weft__glance *glance,
			const struct weft__met *met)
{
	unsigned worker = (unsigned)(met - s->workers);
	struct weft__group *group;
	struct weft__words words;

	s->runs++;
	group = group_of(s, RUNS | (uint64_t)worker << 8, glance, &met->trace,
			 &words);
	if (!group)
		return;
	weft__words_add(&words, "runs on worker %u", worker);
	weft__group_tell(group, words.text);
}

static void joining_add(struct weft__survey *s,
			const struct weft__glance *glance, uint64_t joins)
{
	struct weft__group *group;
	struct weft__words words;

	s->waits++;
	s->hopeful++;
	group = group_of(s, JOINS, glance, &s->trace, &words);
	if (!group)
		return;
	weft__words_add(&words, "joins ");
	weft__words_id(&words, &s->speaker, joins);
	weft__words_add(&words, ", which runs");
	weft__group_tell(group, words.text);
}

static void ready_add(struct weft__survey *s,
		      const struct weft__glance *glance)
{
	struct weft__group *group;
	struct weft__words words;

	if (glance->has_begun)
		s->ready++;
	else
		s->unbegun++;
	group = group_of(s, glance->has_begun ? READY : UNBEGUN, glance,
			 &s->trace, &words);
	if (!group)
		return;
	weft__words_add(&words, "%s", glance->has_begun ? "is ready to run" :
							  "has not begun");
	weft__group_tell(group, words.text);
}

/* False: it may have run meanwhile.  And what it joins, or 0. */
static bool copy_loose(struct weft__survey *s, struct weft__task *task,
		       uint64_t id, uint64_t *ret_joins)
{
	bool still = weft__still_begin(&s->still, task);
	bool copied = weft__snapshot_loose(task, s->snapshot);

	*ret_joins = weft__still_joins(&s->still, task);
	return still && copied && weft__running_id(task) == id &&
	       weft__still_end(&s->still, task);
}

/* Its calls, if it can be had standing still.  Returns what it joins, or 0. */
static uint64_t trace_loose(struct weft__survey *s, struct weft__task *task,
			    const struct weft__glance *glance)
{
	bool traced = glance->has_stack && s->speaker.unwinder;
	uint64_t joins;
	int tries = traced ? TRIES : 1;

	s->trace.count = 0;
	s->trace.cut = false;
	while (tries-- > 0)
		if (copy_loose(s, task, glance->id, &joins) && traced) {
			weft__trace_take(s->speaker.unwinder, s->snapshot,
					 (uint64_t)(uintptr_t)glance->fn,
					 &s->trace);
			break;
		}
	return joins;
}

static void look_at(struct weft__survey *s, struct weft__task *task)
{
	const struct weft__met *met;
	struct weft__glance glance;
	uint64_t joins;

	/* It may have begun to wait between the two. */
	if (look_at_waiting(s, task) || !weft__glance(task, &glance) ||
	    look_at_waiting(s, task))
		return;
	met = met_with(s, glance.id);
	if (met) {
		running_add(s, &glance, met);
		return;
	}
	joins = trace_loose(s, task, &glance);
	if (joins)
		joining_add(s, &glance, joins);
	else
		ready_add(s, &glance);
}

/* ------------------------------------------------------------------------- */

uint64_t weft__survey_runs(struct weft_runtime *runtime)
{
	uint64_t runs = 0;

	for (uint32_t i = 0; i < runtime->workers_count; i++)
		/* relaxed: it stands still if no task runs. */
		runs += weft__load(&runtime->workers[i]->counts[WEFT__N_POLLS],
				   relaxed);
	return runs;
}

static int survey_begin(struct weft__survey *s, struct weft_runtime *runtime,
			struct weft__unwinder *unwinder)
{
	s->speaker.runtime = runtime;
	s->speaker.unwinder = unwinder;
	s->speaker.now_ns = runtime->ops->now(runtime);
	s->runs_before = weft__survey_runs(runtime);
	s->workers = calloc(runtime->workers_count, sizeof(*s->workers));
	s->snapshot = malloc(sizeof(*s->snapshot));
	if (!s->workers || !s->snapshot)
		return -ENOMEM;
	return weft__still_init(&s->still, runtime);
}

int weft__survey_take(struct weft__survey *s, struct weft_runtime *runtime,
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

int weft__survey_take_worker(struct weft__survey *s,
			     struct weft_runtime *runtime, uint32_t worker,
			     struct weft__unwinder *unwinder)
{
	int error = survey_begin(s, runtime, unwinder);
	struct weft__task *task = NULL;

	if (error < 0)
		return error;
	workers_meet(s, worker, worker + 1);
	if (s->workers[worker].doing == WEFT__DOING_RUNS)
		task = weft__task_at(runtime, s->workers[worker].id);
	if (task)
		look_at(s, task);
	return 0;
}

void weft__survey_fini(struct weft__survey *s)
{
	weft__groups_fini(&s->groups);
	weft__still_fini(&s->still);
	free(s->edges);
	free(s->snapshot);
	free(s->workers);
}
