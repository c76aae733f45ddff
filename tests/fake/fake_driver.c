/* SPDX-License-Identifier: MIT */
#include "tests/fake/fake_driver.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/sched/sched.h"
#include "runtime/sched/wait.h"
#include "runtime/task/go.h"
#include "runtime/task/scope.h"
#include "tests/fake/fake_accounts.h"
#include "tests/fake/fake_processors.h"
#include "tests/fake/fake_rings.h"
#include "timer/timer_shard.h"

enum { EVENTS_MAX = 64 };
#define STEPS_MAX 50000000u
#define STEP_NS 2000u

struct fake_worker {
	bool begun;   /* between park_begin and its end */
	bool parked;  /* its park has returned PENDING */
	bool watches; /* it has been told so */
	bool woken;
	uint64_t parks, steps, until_ns;
	bool busy;    /* computes, further down on the stacks; or is held */
};

struct event {
	uint64_t at_ns;
	void (*fn)(void *arg);
	void *arg;
};

struct fake {
	struct fake_config config;
	struct weft_runtime *runtime;
	struct fake_worker worker[FAKE_WORKERS_MAX];
	uint64_t clock_ns;
	struct fake_processors processors;
	uint64_t random;
	uint64_t trace;
	uint64_t steps;
	uint64_t wakes;
	uint32_t turn;
	struct event events[EVENTS_MAX];
	unsigned events_count;
	struct fake_rings rings;
	const char *trouble;
	struct weft__fiber_thread own; /* of the thread that steps */
};

/* One run at a time. */
static struct fake *fake;

static uint64_t random_next(void)
{
	/* splitmix64 (Steele, Lea, Flood 2014). */
	uint64_t x = fake->random += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t fake_random(uint64_t limit)
{
	return random_next() % limit;
}

void fake_note(uint64_t value)
{
	/* FNV-1a, a word at a time. */
	fake->trace = (fake->trace ^ value) * 0x100000001b3u;
	fake->trace ^= fake->trace >> 29;
}

static void clock_set(uint64_t at_ns)
{
	fake_processors_pass(&fake->processors, at_ns - fake->clock_ns);
	fake->clock_ns = at_ns;
}

void fake_pass(uint64_t length_ns)
{
	uint64_t max = UINT64_MAX - 1 - fake->clock_ns;

	length_ns = length_ns < max ? length_ns : max;
	clock_set(fake->clock_ns + length_ns);
	fake_processors_wait(&fake->processors, fake->runtime, length_ns);
}

struct weft_runtime *fake_runtime(void)
{
	return fake->runtime;
}

uint64_t fake_polls(void)
{
	struct weft_runtime *runtime = fake->runtime;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < runtime->workers_count; i++)
		sum += weft__load(&runtime->workers[i]->counts[WEFT__N_POLLS],
				  relaxed);
	return sum;
}

uint64_t fake_wakes(void)
{
	return fake->wakes;
}

void fake_processors(unsigned processors, unsigned idle_thousandths)
{
	fake->config.processors = processors;
	fake->processors.idle_part = idle_thousandths;
}

static void trouble(const char *what)
{
	if (!fake->trouble)
		fake->trouble = what;
}

/*
 * The driver.
 */

static int fake_open(struct weft_runtime *runtime, const struct weft_opts *opts)
{
	(void)opts;
	fake->runtime = runtime;
	runtime->driver = fake;
	return weft__timer_shards_open(runtime, fake->clock_ns);
}

static void fake_close(struct weft_runtime *runtime)
{
	weft__timer_shards_close(runtime);
}

static uint64_t fake_now(struct weft_runtime *runtime)
{
	(void)runtime;
	if (!fake)
		return 0;
	if (fake->config.look_ns)
		fake_pass(fake_random(fake->config.look_ns + 1));
	if (fake->config.on_look)
		fake->config.on_look(fake->config.look_arg);
	return fake->clock_ns;
}

static void fake_poll(struct weft__worker *worker, uint64_t now_ns)
{
	fake_rings_take(&fake->rings, worker, worker->index, now_ns);
	if (worker->index == 0)
		(void)weft__timer_shards_turn(worker->runtime, worker, now_ns);
	else
		(void)weft__timer_shards_turn_own(worker, now_ns);
}

static bool fake_pending(struct weft__worker *worker)
{
	return weft__timer_shards_due(worker, worker->tick.ended_ns) ||
	       fake_rings_next(&fake->rings, worker->index) <= fake->clock_ns;
}

static unsigned fake_help(struct weft__worker *worker,
			  struct weft__worker *late, uint64_t now_ns)
{
	unsigned made_ready = fake_rings_take(&fake->rings, worker,
					      late->index, fake->clock_ns);

	if (late->index == 0)
		made_ready += weft__timer_shards_turn(worker->runtime, worker,
						      now_ns);
	return made_ready;
}

static void fake_park_begin(struct weft__worker *worker)
{
	struct fake_worker *f = &fake->worker[worker->index];

	if (f->begun || f->parked)
		trouble("a worker parks that is parked");
	f->begun = true;
}

static void fake_park_abort(struct weft__worker *worker)
{
	struct fake_worker *f = &fake->worker[worker->index];

	if (!f->begun)
		trouble("a park was given up that was not begun");
	f->begun = false;
}

static enum weft__park_result fake_park(struct weft__worker *worker,
					uint64_t wait_ns)
{
	struct fake_worker *f = &fake->worker[worker->index];
	uint64_t until_ns = wait_ns > UINT64_MAX - fake->clock_ns ?
				    UINT64_MAX :
				    fake->clock_ns + wait_ns;
	uint64_t next_ns = fake_rings_next(&fake->rings, worker->index);

	if (!f->begun)
		trouble("a park was not begun");
	until_ns = next_ns < until_ns ? next_ns : until_ns;
	if (worker->index == 0) {
		next_ns = weft__timer_shards_sleep(worker->runtime);
		until_ns = next_ns < until_ns ? next_ns : until_ns;
	}
	f->begun = false;
	f->parked = true;
	f->parks++;
	f->woken = false;
	f->until_ns = until_ns;
	return WEFT__PARK_PENDING;
}

static void fake_wake(struct weft__worker *from, struct weft__worker *to)
{
	struct fake_worker *f = &fake->worker[to->index];

	(void)from;
	if (!f->parked)
		trouble("a worker was woken that does not sleep");
	fake->wakes++;
	f->woken = true;
}

static void fake_watch(struct weft__worker *worker, bool watches)
{
	fake->worker[worker->index].watches = watches;
}

static uint64_t fake_waited(struct weft__worker *worker)
{
	return (void)worker, fake->processors.waited_ns;
}

static uint64_t fake_cpu_idle(struct weft_runtime *runtime)
{
	return (void)runtime, fake->config.all_busy + fake->processors.idle_ns;
}

static uint64_t fake_seed(struct weft_runtime *runtime)
{
	return (void)runtime, random_next();
}

const struct weft__driver_ops fake_ops = {
	.open = fake_open,
	.close = fake_close,
	.now = fake_now,
	.arm = weft__timer_shards_arm,
	.disarm = weft__timer_shards_disarm,
	.poll = fake_poll,
	.pending = fake_pending,
	.help = fake_help,
	.park_begin = fake_park_begin,
	.park_abort = fake_park_abort,
	.park = fake_park,
	.wake = fake_wake,
	.watch = fake_watch,
	.waited = fake_waited, .cpu_idle = fake_cpu_idle,
	.random = fake_seed,
};

/* For tests that are linked without io/; its own replaces this one. */
__attribute__((weak)) const struct weft__driver_ops *weft__driver_default(void)
{
	return &fake_ops;
}

static void check_accounts(void)
{
	const char *wrong = fake_accounts(fake->runtime);

	for (uint32_t i = 0; i < fake->runtime->workers_count; i++)
		if (fake->runtime->workers[i]->wake.watches !=
		    fake->worker[i].watches)
			wrong = "the driver was not told who is the monitor";
	if (wrong)
		trouble(wrong);
}

/*
 * Stepping.
 */

/* A step runs on the stack of whoever steps: the thread, or a task that
 * computes. */
static void set_stack(struct weft__worker *worker, struct weft__worker *outer)
{
#ifdef WEFT__TSAN
	weft__fiber_thread_init(&worker->own);
#endif
	worker->own.low = fake->own.low;
	worker->own.bytes = fake->own.bytes;
	if (outer && outer->current) {
		struct weft__stack *stack = outer->current->stack;

		worker->own.low = stack->low;
		worker->own.bytes = (size_t)((char *)stack - stack->low);
	}
}

static void step(struct weft__worker *worker)
{
	struct fake_worker *f = &fake->worker[worker->index];
	struct weft__worker *outer = weft__worker_self();
	uint64_t max = fake->config.step_ns ? fake->config.step_ns : STEP_NS;

	if (f->parked && worker->index == 0)
		weft__timer_shards_wake(worker->runtime);
	f->steps++;
	f->busy = true;
	set_stack(worker, outer);
	weft__worker_set(worker);
	if (f->parked && fake->config.reaps_asleep)
		(void)fake_rings_take(&fake->rings, worker, worker->index,
				      fake->clock_ns);
	f->parked = false;
	if (!weft__worker_step(worker))
		trouble("a worker left its loop");
	weft__worker_set(outer);
	f->busy = false;
	fake_pass(1 + fake_random(max));
	fake->steps++;
	fake_note(worker->index);
	fake_note(fake->clock_ns);
	fake_note(weft__load(&worker->counts[WEFT__N_POLLS], relaxed));
	fake_note(weft__load(&worker->counts[WEFT__N_STOLEN], relaxed));
	fake_note(weft__load(&worker->counts[WEFT__N_INJECTED], relaxed));
	if (!outer)
		check_accounts();
	if (fake->config.after_step)
		fake->config.after_step(fake->runtime, fake->config.after_arg);
}

static bool may_run(uint32_t index)
{
	struct fake_worker *f = &fake->worker[index];

	return !f->busy && (!f->parked || f->woken ||
			    f->until_ns <= fake->clock_ns);
}

/* The worker that is stepped next; NULL: no worker can run now. */
static struct weft__worker *choose(void)
{
	uint32_t count = fake->runtime->workers_count;
	uint32_t start = fake->config.in_turn ? fake->turn + 1 :
						(uint32_t)fake_random(count);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = (start + i) % count;

		if (!may_run(index))
			continue;
		fake->turn = index;
		return fake->runtime->workers[index];
	}
	return NULL;
}

/* When a worker can run again; UINT64_MAX: never. */
static uint64_t next_ns(void)
{
	uint64_t min = UINT64_MAX;

	for (uint32_t i = 0; i < fake->runtime->workers_count; i++)
		if (!fake->worker[i].busy && fake->worker[i].until_ns < min)
			min = fake->worker[i].until_ns;
	for (unsigned i = 0; i < fake->events_count; i++)
		if (fake->events[i].at_ns < min)
			min = fake->events[i].at_ns;
	return min;
}

static void foreign_run(void)
{
	struct weft__worker *outer = weft__worker_self();

	for (unsigned i = 0; i < fake->events_count;) {
		struct event event = fake->events[i];

		if (event.at_ns > fake->clock_ns) {
			i++;
			continue;
		}
		fake->events[i] = fake->events[--fake->events_count];
		weft__worker_set(NULL);
		event.fn(event.arg);
		weft__worker_set(outer);
	}
}

/* One step of somebody, or a jump of the clock, but not past limit_ns.  False:
 * nothing will ever happen again. */
static bool go_on(uint64_t limit_ns)
{
	struct weft__worker *worker;
	uint64_t at_ns;

	foreign_run();
	worker = choose();
	if (worker) {
		step(worker);
		return true;
	}
	at_ns = next_ns();
	if (at_ns == UINT64_MAX && limit_ns == UINT64_MAX)
		return false;
	at_ns = at_ns < limit_ns ? at_ns : limit_ns;
	if (at_ns > fake->clock_ns)
		clock_set(at_ns);
	return true;
}

void fake_compute(uint64_t length_ns)
{
	struct fake_processors *p = &fake->processors;
	uint64_t end_ns = p->share_ns + length_ns;

	fake_processors_wait(p, fake->runtime, length_ns);
	p->computing++;
	while (p->share_ns < end_ns && fake->steps < fake->config.steps_max)
		(void)go_on(fake->clock_ns + end_ns - p->share_ns);
	p->computing--;
}

void fake_foreign(uint64_t after_ns, void (*fn)(void *arg), void *arg)
{
	weft__assert(fake->events_count < EVENTS_MAX, "too many fake events");
	fake->events[fake->events_count++] =
		(struct event){ fake->clock_ns + after_ns, fn, arg };
}

void fake_hold(unsigned worker, bool held)
{
	fake->worker[worker].busy = held;
}

void fake_receive(unsigned worker, uint64_t after_ns)
{
	struct weft__worker *here = weft__worker_self();
	struct fake_worker *f = &fake->worker[worker];
	bool done = false;
	struct fake_completion completion = {
		.at_ns = fake->clock_ns + after_ns,
		.ring = worker,
		.task = here->current,
		.id = weft__running_id(here->current),
		.done = &done,
	};

	fake_rings_add(&fake->rings, completion);
	if (f->parked && completion.at_ns < f->until_ns)
		f->until_ns = completion.at_ns;
	while (!done)
		here = weft__suspend(here, WEFT__REASON_UNREPORTED);
}

/*
 * A run.
 */

struct main_call {
	weft_fn fn;
	void *arg;
	int64_t result;
};

static int64_t main_task(void *arg)
{
	struct main_call *call = *(struct main_call **)arg;

	call->result = call->fn(call->arg);
	return 0;
}

static bool drained(void)
{
	struct weft__scope *root = weft__scope(&fake->runtime->root);

	/* acquire: all that the tasks wrote. */
	return !fake->events_count && weft__load(&root->pending, acquire) == 0;
}

/* Nothing is left to do: everybody parks, for good. */
static void come_to_rest(void)
{
	uint64_t limit = fake->steps + 100000;

	while (go_on(UINT64_MAX) && fake->steps < limit)
		;
	if (weft__load(&fake->runtime->idle.counts, relaxed) !=
	    fake->runtime->workers_count * WEFT__IDLE_PARKED)
		trouble("the workers do not come to rest");
}

static void run_all(struct fake_result *result)
{
	while (!drained() && !fake->trouble) {
		if (!go_on(UINT64_MAX)) {
			trouble("deadlock");
			break;
		}
		if (fake->steps >= fake->config.steps_max)
			trouble("it does not end");
	}
	result->trace = fake->trace;
	result->steps = fake->steps;
	result->end_ns = fake->clock_ns;
	(void)weft_stats_get(fake->runtime, &result->stats);
	for (unsigned i = 0; i < 8 && i < fake->runtime->workers_count; i++) {
		(void)weft_stats_worker(fake->runtime, i, &result->worker[i]);
		result->parks[i] = fake->worker[i].parks;
		result->steps_of[i] = fake->worker[i].steps;
	}
	if (!fake->trouble)
		come_to_rest();
}

static void setup(struct weft_runtime *runtime)
{
	weft__fiber_thread_init(&runtime->workers[0]->own);
	fake->own = runtime->workers[0]->own;
	runtime->monitor_off |= fake->config.monitor_off;
	runtime->help_off |= fake->config.help_off;
	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		int32_t *budget = &runtime->workers[i]->tick.budget_max;

		if (fake->config.tick_budget)
			*budget = fake->config.tick_budget;
		else if (fake->config.budgets_vary)
			*budget = 1 + (int32_t)fake_random(WEFT__TICK_BUDGET);
	}
}

void fake_run(const struct fake_config *config, weft_fn main_fn, void *arg,
	      struct fake_result *ret_result)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_task_opts main_opts = WEFT_TASK_OPTS_INIT;
	struct main_call call = { .fn = main_fn, .arg = arg };
	struct main_call *pointer = &call;
	struct weft_runtime *runtime;
	struct fake *outer = fake;

	memset(ret_result, 0, sizeof(*ret_result));
	fake = calloc(1, sizeof(*fake));
	weft__assert(fake && config->workers <= FAKE_WORKERS_MAX,
		     "a fake run cannot be");
	fake->config = *config;
	fake->processors.config = &fake->config;
	if (!fake->config.steps_max)
		fake->config.steps_max = STEPS_MAX;
	fake->random = config->seed;
	fake->clock_ns = config->start_ns ? config->start_ns : 1000000000u;
	opts.workers = config->workers ? config->workers : 1;
	opts.tasks_max = config->tasks_max;
	opts.stack_bytes = config->stack_bytes;
	main_opts.name = "main";
	if (weft__runtime_new(&opts, &fake_ops, false, &runtime) < 0) {
		ret_result->trouble = "no memory";
	} else {
		setup(runtime);
		if (weft__root_go(runtime, NULL, main_task, &pointer,
				  sizeof(pointer), &main_opts, false) < 0)
			trouble("main could not be started");
		run_all(ret_result);
		ret_result->result = call.result;
		ret_result->trouble = fake->trouble;
		if (fake->trouble)
			(void)weft__runtime_name_survivors(runtime);
		fake_ops.close(runtime);
		weft__runtime_free(runtime);
	}
	free(fake);
	fake = outer;
}
