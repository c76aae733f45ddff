/* SPDX-License-Identifier: MIT */
/*
 * Dump - prints a collection: workers, groups of tasks, cycles.  It gathers the
 * text first and writes it afterwards (text_buffer.h).
 */
#include <weft/dump.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "runtime/dump/collect.h"
#include "runtime/dump/dump.h"
#include "runtime/dump/text_buffer.h"
#include "runtime/sched/runtime_ref.h"
#include "runtime/stack/thread.h"

enum about { ABOUT_ALL, ABOUT_A_WORKER, ABOUT_STANDSTILL };

struct dump {
	enum about about;
	uint32_t worker;     /* the stalled worker */
	uint64_t stalled_ns; /* time since it was last between two tasks */
	uint64_t polls;	     /* that it had counted then */
	struct weft__collection collection;
	struct weft__text_buffer out;
};

/* ---- Printing ------------------------------------------------------------ */

static void print_why(struct dump *d, const char *why)
{
	if (why)
		weft__text_buffer_print(&d->out, "weft: no backtraces: %s\n",
					why);
}

static void print_engine(struct dump *d)
{
	const struct weft_runtime *runtime = d->collection.speaker.runtime;
	const char *engine, *why;

	if (!runtime->ops->engine)
		return;
	engine = runtime->ops->engine(runtime, &why);
	weft__text_buffer_print(&d->out, "weft: %s: %s\n", engine, why);
}

static void print_head(struct dump *d)
{
	struct weft__collection *s = &d->collection;
	uint64_t tasks = s->runs + s->waits + s->ready + s->unbegun;

	weft__text_buffer_print(
		&d->out,
		"weft: %llu %s (%llu run, %llu wait, %llu ready, "
		"%llu not begun), %u %s\n",
		(unsigned long long)tasks, tasks == 1 ? "task" : "tasks",
		(unsigned long long)s->runs, (unsigned long long)s->waits,
		(unsigned long long)s->ready, (unsigned long long)s->unbegun,
		s->speaker.runtime->workers_count,
		s->speaker.runtime->workers_count == 1 ? "worker" : "workers");
	print_engine(d);
	if (s->incomplete)
		weft__text_buffer_print(&d->out,
				"weft: no memory: the dump is incomplete\n");
}

static void print_worker(struct dump *d, uint32_t number)
{
	const struct weft__collection *s = &d->collection;
	const struct weft__worker_info *met = &s->workers[number];
	struct weft__format format = { .used = 0 };

	switch (met->seen.doing) {
	case WEFT__DOING_PARKS:
		weft__format_add(&format, "parked");
		break;
	case WEFT__DOING_BETWEEN:
		weft__format_add(&format, "between tasks");
		break;
	case WEFT__DOING_SILENT:
		weft__format_add(&format, "does not answer");
		break;
	case WEFT__DOING_RUNS:
		weft__format_add(&format, "runs task %llx",
				(unsigned long long)met->seen.task.id);
		break;
	}
	if (met->since_ns && (met->seen.doing == WEFT__DOING_RUNS ||
			      met->seen.doing == WEFT__DOING_SILENT)) {
		weft__format_add(&format, ", for ");
		weft__format_from_to(&format, met->since_ns, s->speaker.now_ns);
		weft__format_add(&format, " at most");
	}
	weft__text_buffer_print(&d->out, "worker %u: %s\n", number,
				format.text);
}

/* As given to the compiler, without the way out of its directory. */
static const char *file_shown(const char *file)
{
	while (strncmp(file, "../", 3) == 0)
		file += 3;
	return file;
}

static void print_frame(struct dump *d, uint64_t pc)
{
	const struct weft__symbol *symbol =
		weft__unwinder_symbol(d->collection.speaker.unwinder, pc);
	const char *name = "";
	int bytes;

	if (!symbol || !symbol->module) {
		weft__text_buffer_print(&d->out, "    %#llx\n",
					(unsigned long long)pc);
		return;
	}
	if (symbol->name)
		name = symbol->name;
	bytes = weft__name_shown_bytes(name);
	if (symbol->name && symbol->file)
		weft__text_buffer_print(&d->out, "    %.*s  %s:%d\n", bytes,
					name, file_shown(symbol->file),
					symbol->line);
	else
		weft__text_buffer_print(
			&d->out, "    %.*s+%#llx  %s\n", bytes, name,
			(unsigned long long)(pc - symbol->begins),
			weft__module_shown(symbol->module));
}

static void print_group(struct dump *d, const struct weft__group *group)
{
	for (unsigned i = 0; i < group->lines_count; i++)
		weft__text_buffer_print(&d->out, "%s\n", group->lines[i]);
	if (group->tasks > group->lines_count)
		weft__text_buffer_print(&d->out, "... and %llu more like %s\n",
				(unsigned long long)(group->tasks -
						     group->lines_count),
				group->lines_count == 1 ? "this" : "these");
	for (uint32_t i = 0; i < group->pcs_count; i++)
		print_frame(d, group->pcs[i]);
	if (group->cut)
		weft__text_buffer_print(&d->out, "    ...\n");
}

/* ---- Tasks that wait for each other -------------------------------------- */

/* Whether the task still waits for the other one, as in the collection. */
static bool waits_for(const struct weft__task_info *task,
		      const struct weft__task_info *other)
{
	if (weft__reason_kind(task->reason) == WEFT__REASON_SCOPE)
		return other->scope == task->object &&
		       other->owner == task->id;
	return task->other == other->id;
}

/* The tasks were looked at one after another: a cycle counts if it still
 * exists. */
static bool cycle_holds(struct weft_runtime *runtime, const uint64_t *ids,
			size_t count)
{
	struct weft__task_info task, other;

	for (size_t i = 0; i < count; i++)
		if (!weft__collect_waits(runtime, ids[i], &task) ||
		    !weft__collect_waits(runtime, ids[(i + 1) % count],
					&other) ||
		    !waits_for(&task, &other))
			return false;
	return true;
}

static void print_link(struct dump *d, uint64_t id, uint64_t next)
{
	const struct weft__format_context *speaker = &d->collection.speaker;
	struct weft__format format = { .used = 0 };
	struct weft__task_info info;

	if (!weft__collect_waits(speaker->runtime, id, &info))
		return;
	weft__format_task(&format, speaker, &info);
	weft__format_add(&format, " ");
	weft__format_wait(&format, speaker, &info);
	if (weft__reason_kind(info.reason) == WEFT__REASON_SCOPE) {
		weft__format_add(&format, ", of them ");
		weft__format_id(&format, speaker, next);
	}
	weft__text_buffer_print(&d->out, "    %s\n", format.text);
}

static void print_cycle(void *arg, const uint64_t *ids, size_t count)
{
	struct dump *d = arg;

	if (!cycle_holds(d->collection.speaker.runtime, ids, count))
		return;
	weft__text_buffer_print(&d->out, "deadlock: %zu %s for each other\n",
				count,
				count == 1 ? "task waits" : "tasks wait");
	for (size_t i = 0; i < count; i++)
		print_link(d, ids[i], ids[(i + 1) % count]);
}

/* ---- The call ------------------------------------------------------------ */

static void print_groups(struct dump *d)
{
	for (size_t i = 0; i < d->collection.groups.count; i++)
		print_group(d, d->collection.groups.all[i]);
}

static void print_stall(struct dump *d, const char *why)
{
	const struct weft__sample *seen =
		&d->collection.workers[d->worker].seen;
	struct weft__format format = { .used = 0 };

	weft__format_span(&format, d->stalled_ns);
	weft__text_buffer_print(&d->out,
			"weft: worker %u has been in one task for %s\n",
			d->worker, format.text);
	print_why(d, why);
	if (seen->polls != d->polls)
		weft__text_buffer_print(&d->out,
				"worker %u: has left that task since\n",
				d->worker);
	else if (seen->doing != WEFT__DOING_RUNS)
		print_worker(d, d->worker);
	print_groups(d);
}

static void print(struct dump *d, const char *why)
{
	struct weft__collection *s = &d->collection;

	if (d->about == ABOUT_A_WORKER) {
		print_stall(d, why);
		return;
	}
	if (d->about == ABOUT_STANDSTILL) {
		/* A task that was seen waiting may have been woken since, by a
		 * task that was seen later. */
		if (s->runs || s->ready || s->unbegun || s->hopeful ||
		    !s->waits ||
		    s->runs_before != weft__collect_runs(s->speaker.runtime))
			return;
		weft__text_buffer_print(&d->out,
					"weft: no task can go on, unless a "
					"thread beside the runtime helps\n");
	}
	print_why(d, why);
	print_head(d);
	for (uint32_t i = 0; i < s->speaker.runtime->workers_count; i++)
		print_worker(d, i);
	print_groups(d);
	if (weft__cycles_find(s->edges, s->edges_count, s->memory, print_cycle,
			      d) < 0)
		weft__text_buffer_print(&d->out,
					"weft: no memory to find cycles\n");
}

/* libdw and the signal are for one thread at a time. */
static pthread_mutex_t dumping = PTHREAD_MUTEX_INITIALIZER;

static int gather(struct dump *d, struct weft_runtime *runtime)
{
	struct weft__unwinder *unwinder;
	const char *why = NULL;
	int error;

	pthread_mutex_lock(&dumping);
	unwinder = weft__unwinder_new(runtime->memory, &why);
	error = d->about == ABOUT_A_WORKER ?
			weft__collect_take_worker(&d->collection, runtime,
						  d->worker, d->polls,
						  unwinder) :
			weft__collect_take(&d->collection, runtime, unwinder);
	if (error == 0)
		print(d, why);
	weft__collect_fini(&d->collection);
	weft__unwinder_free(unwinder);
	pthread_mutex_unlock(&dumping);
	return error;
}

/* Called on a thread with the stack that libdw needs. */
static int dump_run(struct dump *d, struct weft_runtime *runtime, int fd,
		    int max_ms)
{
	int error;

	weft__runtime_ref(runtime);
	d->out.allocator = runtime->allocator;
	error = gather(d, runtime);
	weft__runtime_unref(runtime);
	if (error == 0)
		error = weft__text_buffer_write(&d->out, fd, max_ms);
	weft__text_buffer_fini(&d->out);
	return error;
}

int weft__dump_all(struct weft_runtime *runtime, int fd, int max_ms)
{
	struct dump d = { .about = ABOUT_ALL };

	return dump_run(&d, runtime, fd, max_ms);
}

int weft__dump_stall(struct weft_runtime *runtime, uint32_t worker,
		     uint64_t polls, uint64_t stalled_ns, int fd)
{
	struct dump d = { .about = ABOUT_A_WORKER,
			  .worker = worker,
			  .polls = polls,
			  .stalled_ns = stalled_ns };

	return dump_run(&d, runtime, fd, WEFT__TEXT_BUFFER_PATIENT);
}

int weft__dump_standstill(struct weft_runtime *runtime, int fd)
{
	struct dump d = { .about = ABOUT_STANDSTILL };

	return dump_run(&d, runtime, fd, WEFT__TEXT_BUFFER_PATIENT);
}

/* The call of a task, on its stack. */
struct call {
	struct weft__waiter waiter;
	struct weft__wait wait;
	struct weft_runtime *runtime;
	int fd;
	int result;
};

static void *call_run(void *arg)
{
	struct call *call = arg;

	(void)pthread_detach(pthread_self());
	(void)pthread_setname_np(pthread_self(), "weft-dump");
	call->result = weft__dump_all(call->runtime, call->fd,
				      WEFT__TEXT_BUFFER_PATIENT);
	weft__waiter_grant(NULL, &call->waiter, 0);
	return NULL;
}

/* Uses a thread of its own, since all threads of the pool may hang. */
static int dump_from_task(struct weft__worker *worker,
			  struct weft_runtime *runtime, int fd)
{
	struct call call = { .runtime = runtime, .fd = fd };
	pthread_t thread;
	int error;

	weft__waiter_init(&call.waiter, &call.wait, worker, NULL, 0);
	weft__wait_on(&call.wait, WEFT__ON_DUMP, NULL);
	error = weft__thread_make(&thread, WEFT__DUMP_BYTES, call_run, &call);
	if (error < 0)
		return error;
	(void)weft__wait(&call.wait, false);
	return call.result;
}

/* Not inlined: a compiler may keep the address of errno, and a task that has
 * waited for its dump may be on another thread. */
__attribute__((noinline)) static int fd_error(int fd)
{
	return fcntl(fd, F_GETFL) < 0 ? -errno : 0;
}

int weft_dump(struct weft_runtime *runtime, int fd)
{
	struct weft__worker *worker = weft__sync_worker();
	int error;

	if ((!runtime && !worker) || (worker && !weft__running(worker)))
		return -EPERM;
	error = fd_error(fd);
	if (error < 0)
		return error;
	if (!worker)
		return weft__dump_all(runtime, fd, WEFT__TEXT_BUFFER_PATIENT);
	return dump_from_task(worker, runtime ? runtime : worker->runtime, fd);
}
