/* SPDX-License-Identifier: MIT */
/*
 * Fake run: the clock, the choice of the worker that runs next, and its fiber;
 * the model is in fake_run.h.
 *
 * A worker's thread is a fiber (fake_fiber.h).  It pauses when it sleeps in its
 * ring, and after each turn of its loop that did not end with a sleep.
 */
#include "tests/fake/fake_run.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/sched/sched.h"
#include "runtime/task/go.h"
#include "runtime/task/scope.h"
#include "io/request/op.h"
#include "tests/fake/fake_accounts.h"
#include "tests/fake/fake_fiber.h"
#include "tests/fake/fake_inside.h"
#include "tests/fake/fake_processors.h"
#include "tests/fake/fake_ring.h"

enum { EVENTS_MAX = 64 };
#define STEPS_MAX 50000000u
#define STEP_NS 2000u

struct fake_worker {
	struct fake_fiber fiber;
	bool sleeps;   /* in its ring, until: */
	uint64_t until_ns;
	bool slept;    /* in this turn of its loop */
	bool watches;  /* it has been told so */
	bool busy;     /* computes, further down on the stacks; or is held */
	uint64_t parks, steps;
};

struct event {
	uint64_t at_ns;
	void (*fn)(void *arg);
	void *arg;
};

struct fake {
	struct fake *outer; /* the run in which this one is */
	struct fake_config config;
	struct weft_runtime *runtime; /* NULL: it is not there yet */
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
	struct weft__stack *base; /* of fake_run(); NULL: a thread's */
};

/* One run at a time. */
static struct fake *fake;

uint64_t fake_number(void)
{
	/* splitmix64 (Steele, Lea, Flood 2014). */
	uint64_t x = fake->random += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t fake_random(uint64_t limit)
{
	return fake_number() % limit;
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
	fake_rings_post(&fake->rings, at_ns);
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

void fake_trouble(const char *what)
{
	if (!fake->trouble)
		fake->trouble = what;
}

/*
 * Calls of the other parts (fake_inside.h).
 */

bool fake_runs(void)
{
	return fake;
}

uint64_t fake_clock(void)
{
	return fake->clock_ns;
}

uint64_t fake_look(void)
{
	if (!fake->runtime)
		return fake->clock_ns;
	if (fake->config.look_ns)
		fake_pass(fake_random(fake->config.look_ns + 1));
	if (fake->config.on_look)
		fake->config.on_look(fake->config.look_arg);
	return fake->clock_ns;
}

struct fake_rings *fake_rings(void)
{
	return &fake->rings;
}

void fake_sleep(uint32_t worker, uint64_t wait_ns)
{
	struct fake_worker *f = &fake->worker[worker];

	f->until_ns = wait_ns > UINT64_MAX - fake->clock_ns ?
			      UINT64_MAX :
			      fake->clock_ns + wait_ns;
	f->parks++;
	f->sleeps = true;
	fake_fiber_pause(&f->fiber);
	f->sleeps = false;
	f->slept = true;
}

void fake_woken(uint32_t worker)
{
	if (!fake->runtime->workers[worker]->wake.parked)
		fake_trouble("a worker was woken that does not sleep");
	fake->wakes++;
}

void fake_watches(bool watches)
{
	fake->worker[weft__worker_self()->index].watches = watches;
}

uint64_t fake_waited(void)
{
	return fake->processors.waited_ns;
}

uint64_t fake_idle(void)
{
	return fake->config.all_busy + fake->processors.idle_ns;
}

static void check_accounts(void)
{
	const char *wrong = fake_accounts(fake->runtime);

	for (uint32_t i = 0; i < fake->runtime->workers_count; i++)
		if (fake->runtime->workers[i]->wake.watches !=
		    fake->worker[i].watches)
			wrong = "the driver was not told who is the monitor";
	if (wrong)
		fake_trouble(wrong);
}

/*
 * Stepping.
 */

/* The stack that runs now: the thread's, a task's, or that of a worker which
 * polls a future. */
static struct weft__stack *stack_now(struct weft__worker *running)
{
	if (!running || running->runtime != fake->runtime)
		return fake->base;
	return running->current ? running->current->stack :
				  fake->worker[running->index].fiber.stack;
}

/* The loop of a worker's thread.  The turn after a sleep follows immediately:
 * the worker was woken for it. */
static void worker_loop(void *arg)
{
	struct weft__worker *worker = arg;
	struct fake_worker *f = &fake->worker[worker->index];

	for (;;) {
		f->slept = false;
		if (!weft__worker_step(worker))
			fake_trouble("a worker left its loop");
		if (!f->slept)
			fake_fiber_pause(&f->fiber);
	}
}

static void step(struct weft__worker *worker)
{
	struct fake_worker *f = &fake->worker[worker->index];
	struct weft__worker *outer = weft__worker_self();
	uint64_t max = fake->config.step_ns ? fake->config.step_ns : STEP_NS;

	f->steps++;
	f->busy = true;
	weft__worker_set(worker);
	fake_fiber_run(&f->fiber, stack_now(outer));
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

	return !f->busy &&
	       (!f->sleeps || f->until_ns <= fake->clock_ns ||
		fake_ring_completed(&fake->rings, index));
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
	uint64_t min = fake_rings_next(&fake->rings);

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

int fake_receive(unsigned worker, uint64_t after_ns)
{
	struct weft__request request =
		fake_ring_request(worker, fake->clock_ns + after_ns);

	return weft__op_run(&request, NULL, 0);
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
		fake_trouble("the workers do not come to rest");
}

static void run_all(struct fake_result *result)
{
	while (!drained() && !fake->trouble) {
		if (!go_on(UINT64_MAX)) {
			fake_trouble("deadlock");
			break;
		}
		if (fake->steps >= fake->config.steps_max)
			fake_trouble("it does not end");
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
	fake->runtime = runtime;
	runtime->monitor_off |= fake->config.monitor_off;
	runtime->help_off |= fake->config.help_off;
	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__worker *worker = runtime->workers[i];
		struct fake_fiber *fiber = &fake->worker[i].fiber;
		int32_t *budget = &worker->tick.budget_max;

		fake_fiber_begin(fiber, worker_loop, worker);
		fake_fiber_describe(fiber, &worker->own);
		if (fake->config.tick_budget)
			*budget = fake->config.tick_budget;
		else if (fake->config.budgets_vary)
			*budget = 1 + (int32_t)fake_random(WEFT__TICK_BUDGET);
	}
}

static void open_run(const struct fake_config *config)
{
	struct fake *outer = fake;
	struct weft__stack *base = fake ? stack_now(weft__worker_self()) : NULL;

	fake = calloc(1, sizeof(*fake));
	weft__assert(fake && config->workers <= FAKE_WORKERS_MAX,
		     "a fake run cannot be");
	fake->outer = outer;
	fake->base = base;
	fake->config = *config;
	fake->processors.config = &fake->config;
	if (!fake->config.steps_max)
		fake->config.steps_max = STEPS_MAX;
	fake->random = config->seed;
	fake->clock_ns = config->start_ns ? config->start_ns : 1000000000u;
}

/* After trouble, tasks may still be on other stacks, which are not given
 * back. */
static void close_run(struct weft_runtime *runtime)
{
	struct fake *over = fake;

	if (over->trouble)
		(void)weft__runtime_name_survivors(runtime);
	for (uint32_t i = 0; !over->trouble && i < runtime->workers_count; i++)
		fake_fiber_end(&over->worker[i].fiber, over->base);
	runtime->ops->close(runtime);
	weft__runtime_free(runtime);
}

void fake_run(const struct fake_config *config, weft_fn main_fn, void *arg,
	      struct fake_result *ret_result)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_task_opts main_opts = WEFT_TASK_OPTS_INIT;
	struct main_call call = { .fn = main_fn, .arg = arg };
	struct main_call *pointer = &call;
	struct weft_runtime *runtime;
	struct fake *over;

	memset(ret_result, 0, sizeof(*ret_result));
	open_run(config);
	opts.workers = config->workers ? config->workers : 1;
	opts.tasks_max = config->tasks_max;
	opts.stack_bytes = config->stack_bytes;
	main_opts.name = "main";
	if (weft__runtime_new(&opts, weft__driver_default(), false, &runtime) <
	    0) {
		ret_result->trouble = "no memory";
	} else {
		setup(runtime);
		if (weft__root_go(runtime, NULL, main_task, &pointer,
				  sizeof(pointer), &main_opts, false) < 0)
			fake_trouble("main could not be started");
		run_all(ret_result);
		ret_result->result = call.result;
		ret_result->trouble = fake->trouble;
		close_run(runtime);
	}
	over = fake;
	fake = over->outer;
	free(over);
}
