/* SPDX-License-Identifier: MIT */
/*
 * Runtime - makes a runtime with its workers, but without threads, and frees
 * it.
 *
 * The options are checked first, and defaults stand for those that are 0.  Then
 * come the root scope, the stacks, the tasks and the workers, and at last the
 * driver is opened.  The memory is zero at first, so weft__runtime_free() also
 * frees a runtime of which only a part was made.
 */
#include "runtime/sched/runtime.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/blocking/blocking.h"
#include "runtime/sched/wait.h"
#include "runtime/sched/worker_limit.h"
#include "runtime/stack/overflow.h"
#include "runtime/task/scope.h"

enum { TASKS_DEFAULT = 1 << 24, AVERAGE_FIRST_NS = 50000 };
#define STACK_DEFAULT_BYTES ((size_t)256 << 10)

static unsigned cpus(void)
{
	cpu_set_t set;
	int count;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	count = CPU_COUNT(&set);
	return count > 0 ? (unsigned)count : 1;
}

static int opts_check(const struct weft_opts *opts)
{
	if (opts->size != sizeof(*opts) ||
	    opts->workers > WEFT__WORKERS_MAX ||
	    opts->tasks_max > (1u << 31) ||
	    (opts->stack_bytes && !weft__stack_class(opts->stack_bytes)) ||
	    opts->ring_entries > 32768)
		return -EINVAL;
	if (opts->allocator &&
	    (!opts->allocator->alloc || !opts->allocator->dealloc))
		return -EINVAL;
	return opts->engine > WEFT_ENGINE_EPOLL ? -EINVAL : 0;
}

/* ---- Making and freeing -------------------------------------------------- */

_Static_assert(_Alignof(struct weft__worker) <= WEFT__MEMORY_APART &&
		       _Alignof(struct weft_runtime) <= WEFT__MEMORY_APART,
	       "a line apart is enough");

static struct weft__worker *worker_new(struct weft_runtime *runtime,
				       uint32_t index, bool alone)
{
	struct weft__worker *worker =
		weft__memory_apart(runtime->memory, sizeof(*worker));
	uint32_t ring_slots = alone ? WEFT__RUNQ_SLOTS : WEFT__RUNQ_SHORT;

	if (!worker)
		return NULL;
	worker->runtime = runtime;
	worker->ops = runtime->ops;
	worker->index = index;
	worker->next_help = index + 1;
	worker->random = runtime->ops->random(runtime) | 1;
	worker->tick.budget_max = WEFT__TICK_BUDGET;
	worker->tick.average_ns = AVERAGE_FIRST_NS;
	worker->tick.inject_interval = 20;
	worker->caches.keep_no_tasks = runtime->tasks.small;
	worker->tick.until_inject = runtime->turn_off ? INT32_MAX : 20;
	worker->tick.clock_every = 1;
	worker->alone = alone;
	worker->fenced = !alone && !weft__heavy_barrier_prepare();
	weft__runq_init(&worker->runq, 0, ring_slots, alone);
	weft__runq_init(&worker->outbound, 0, ring_slots, alone);
	return worker;
}

static int workers_new(struct weft_runtime *runtime, unsigned count)
{
	runtime->workers = weft__memory_zeroed(
		runtime->memory, count * sizeof(*runtime->workers));
	if (!runtime->workers)
		return -ENOMEM;
	runtime->workers_room = count;
	for (unsigned i = 0; i < count; i++) {
		runtime->workers[i] = worker_new(runtime, i, count == 1);
		if (!runtime->workers[i])
			return -ENOMEM;
		runtime->workers_count++;
	}
	weft__idle_init(&runtime->idle, count);
	weft__worker_limit_init(runtime);
	return 0;
}

/* Its functions lie in the memory that they give back. */
static void runtime_give_back(struct weft_runtime *runtime)
{
	struct weft_allocator allocator = runtime->allocator;

	weft__memory_apart_free(runtime->memory ? &allocator : NULL, runtime,
				sizeof(*runtime));
}

void weft__runtime_free(struct weft_runtime *runtime)
{
	const struct weft_allocator *memory = runtime->memory;

	weft__stacks_fini(&runtime->stacks);
	weft__tasks_fini(runtime);
	for (unsigned i = 0; i < runtime->workers_count; i++)
		weft__memory_apart_free(memory, runtime->workers[i],
					sizeof(*runtime->workers[i]));
	weft__memory_free(memory, runtime->workers,
			  runtime->workers_room * sizeof(*runtime->workers));
	weft__memory_free(memory, runtime->threads,
			  runtime->workers_count * sizeof(*runtime->threads));
	runtime_give_back(runtime);
	weft__overflow_report_fini();
}

/*
 * Safeguards that a test switches off, to show that they are needed:
 *
 *	WEFT_TEST_HELP=off	no worker helps one that computes
 *	WEFT_TEST_MONITOR=off	no idle worker looks up unless it is woken
 *	WEFT_TEST_TIMER_SHARDS=off	only worker 0 turns shards, in its tick:
 *				not their owners, nor a helper, and arming
 *				does not shorten its sleep
 *	WEFT_TEST_TURN=off	the injection queue and overflowed tasks have no
 *				turn while there is other work
 */
static bool test_switch_off(const char *name)
{
	const char *value = getenv(name);

	return value && strcmp(value, "off") == 0;
}

static void test_switches(struct weft_runtime *runtime)
{
	runtime->help_off = test_switch_off("WEFT_TEST_HELP");
	runtime->monitor_off = runtime->help_off ||
				test_switch_off("WEFT_TEST_MONITOR");
	runtime->timer_shards_off = test_switch_off("WEFT_TEST_TIMER_SHARDS");
	runtime->turn_off = test_switch_off("WEFT_TEST_TURN");
}

/* Called by the handler of a stack overflow. */
static struct weft__overflow_name overflow_name(struct weft__task *task)
{
	return (struct weft__overflow_name){ weft__task_label(task),
					     weft__running_id(task) };
}

static int runtime_init(struct weft_runtime *runtime,
			const struct weft_opts *opts)
{
	unsigned tasks_max = opts->tasks_max ? opts->tasks_max : TASKS_DEFAULT;
	unsigned workers = opts->workers ? opts->workers : cpus();
	int error;

	runtime->spins = cpus() > 1;
	runtime->stack_class = weft__stack_class(
		opts->stack_bytes ? opts->stack_bytes : STACK_DEFAULT_BYTES);
	runtime->control = weft__context_control();
	runtime->shutdown_ns = opts->shutdown_ns;
	runtime->blocking_threads_max = opts->blocking_threads_max;
	runtime->blocking_idle_ns = opts->blocking_idle_ns;
	test_switches(runtime);
	weft__scope_init(&runtime->root, WEFT__SCOPE_SUPERVISOR, runtime, NULL);
	weft__overflow_report_init(overflow_name);
	runtime->stacks.memory = runtime->tasks.memory = runtime->memory;
	error = weft__stacks_init(&runtime->stacks, runtime->stack_class);
	if (error < 0)
		return error;
	error = weft__tasks_init(runtime, tasks_max);
	if (error < 0)
		return error;
	runtime->tasks.small = tasks_max / WEFT__TASKS_SMALL < workers;
	error = workers_new(runtime, workers);
	if (error < 0)
		return error;
	return runtime->ops->open(runtime, opts);
}

static void limit_name(int error, const struct rlimit *limit, unsigned shift,
		       const char *name, const char *what)
{
	if (limit->rlim_cur != RLIM_INFINITY)
		dprintf(STDERR_FILENO,
			"weft: the runtime does not start: %s; %s allows "
			"%llu %s\n",
			strerror(-error), name,
			(unsigned long long)limit->rlim_cur >> shift, what);
}

int weft__not_started(int error)
{
	struct rlimit limit;

	if ((error == -ENOMEM || error == -EAGAIN) &&
	    getrlimit(RLIMIT_AS, &limit) == 0)
		limit_name(error, &limit, 10, "RLIMIT_AS (ulimit -v)",
			   "KiB of address space to the process");
	if (error == -EAGAIN && getrlimit(RLIMIT_NPROC, &limit) == 0)
		limit_name(error, &limit, 0, "RLIMIT_NPROC (ulimit -u)",
			   "threads to the user");
	return error;
}

int weft__runtime_new(const struct weft_opts *opts,
		      const struct weft__driver_ops *ops, bool caller_works,
		      struct weft_runtime **ret_runtime)
{
	static const struct weft_opts defaults = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	int error;

	if (!opts)
		opts = &defaults;
	error = opts_check(opts);
	if (error < 0)
		return error;
	runtime = weft__memory_apart(opts->allocator, sizeof(*runtime));
	if (!runtime)
		return -ENOMEM;
	if (opts->allocator) {
		runtime->allocator = *opts->allocator;
		runtime->memory = &runtime->allocator;
	}
	runtime->ops = ops;
	runtime->caller_works = caller_works;
	pthread_sigmask(SIG_BLOCK, NULL, &runtime->signals);
	error = runtime_init(runtime, opts);
	if (error < 0) {
		weft__runtime_free(runtime);
		return error;
	}
	*ret_runtime = runtime;
	return 0;
}
