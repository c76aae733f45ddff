/* SPDX-License-Identifier: MIT */
/*
 * Engine - executions, and the tree of choices that they are the paths of.
 *
 * Everything that an execution does follows from the choices it makes, so a
 * path (which branch was taken, of how many) is an execution.  Each execution
 * repeats the path of the last one up to the deepest choice that has a branch
 * left, takes that branch, and beyond it always the first.  No state is saved:
 * only the path, which is also what MODEL_REPLAY holds.
 *
 * A model whose choices depend on anything else (time, addresses, what an
 * earlier execution left behind) is reported, not explored wrongly: the number
 * of branches of a repeated choice must not change.
 */
#include "tests/model/engine.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One letter per choice in a replay string. */
static const char digits[] =
	"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

#define BRANCHES_MAX (sizeof(digits) - 1)

struct engine engine;

unsigned engine_choose(unsigned n)
{
	struct choice *choice = &engine.path[engine.depth];

	if (n <= 1)
		return 0;
	if (n > BRANCHES_MAX)
		engine_violation(NULL, "a choice of %u branches", n);
	if (engine.depth == DEPTH_MAX)
		engine_violation(NULL, "more than %d choices", DEPTH_MAX);
	if (engine.depth >= engine.prefix)
		*choice = (struct choice){ 0, (uint8_t)n };
	else if (choice->count == 0 && choice->taken < n)
		choice->count = (uint8_t)n;
	else if (choice->count != n)
		engine_violation(NULL, "the model is not deterministic: "
				 "choice %u has %u branches, and had %u",
				 engine.depth, n, (unsigned)choice->count);
	engine.depth++;
	return choice->taken;
}

unsigned model_choose(unsigned n)
{
	unsigned taken = engine_choose(n);

	if (engine.tracing)
		trace_line("choose    %u of %u", taken, n);
	return taken;
}

_Noreturn void engine_end(enum outcome outcome)
{
	engine.live = false;
	engine.outcome = outcome;
	fiber_switch(&thread_current()->fiber, &engine.main);
	abort();
}

_Noreturn void engine_violation(const char *where, const char *format, ...)
{
	struct model_result *result = engine.result;
	va_list args;
	size_t n;

	va_start(args, format);
	vsnprintf(result->text, sizeof(result->text), format, args);
	va_end(args);
	n = strlen(result->text);
	if (where)
		snprintf(result->text + n, sizeof(result->text) - n, " (%s)",
			 where);
	result->violated = true;
	engine_end(VIOLATED);
}

void model_fail(const char *sentence, const char *where)
{
	engine_violation(where, "%s", sentence);
}

/* The code under test crashed, or one of its own assertions failed. */
static void engine_crashed(int signal_number)
{
	/*
	 * Leaves the handler for the main stack and never returns to it: the
	 * signal was raised by the code under test, which is abandoned.
	 */
	engine_violation(thread_current()->where, "crashed: %s, after",
			 strsignal(signal_number));
}

static const int signals_caught[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE,
				      SIGILL };

#define SIGNALS_N (sizeof(signals_caught) / sizeof(signals_caught[0]))

static struct sigaction signals_before[SIGNALS_N];

static void signals_catch(void)
{
	static char stack[64 << 10];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = engine_crashed,
				    .sa_flags = SA_ONSTACK | SA_NODEFER };

	sigaltstack(&alternate, NULL);
	for (size_t i = 0; i < SIGNALS_N; i++)
		sigaction(signals_caught[i], &action, &signals_before[i]);
}

static void signals_restore(void)
{
	for (size_t i = 0; i < SIGNALS_N; i++)
		sigaction(signals_caught[i], &signals_before[i], NULL);
}

/* Never returns: the last thread to run switches to the main stack. */
static void host_begin(void)
{
	if (engine.setup)
		engine.setup(engine.opts->arg);
	engine.live = true;
	schedule_begin();
}

static void host_check_end(void)
{
	engine.check_end(engine.opts->arg);
	fiber_switch(&thread_current()->fiber, &engine.main);
}

/* Runs on a stack of its own, so that a violation can abandon it. */
static void host_run(void (*entry)(void), const char *where)
{
	engine.threads[HOST].where = where;
	engine.current = HOST;
	fiber_reset(&engine.threads[HOST].fiber, entry);
	fiber_switch(&engine.main, &engine.threads[HOST].fiber);
}

static void execute(void)
{
	engine.outcome = RUNNING;
	engine.depth = 0;
	engine.generation++;
	engine.locations_n = 0;
	engine.data_n = 0;
	engine.order_n = 0;
	engine.dead_n = 0;
	engine.names_n = 0;
	engine.stores = 0;
	engine.preemptions = engine.preemptions_max;
	engine.weak = engine.weak_max;
	engine.steps = engine.steps_max;
	engine.fences = (clock16){ 0 };
	host_run(host_begin, "setup");
	if (engine.outcome == FINISHED && engine.check_end)
		host_run(host_check_end, "check_end");
}

/* Goes to the next path, depth first; false when there is none. */
static bool path_advance(void)
{
	while (engine.depth > 0) {
		struct choice *last = &engine.path[engine.depth - 1];

		if (last->taken + 1 < last->count) {
			last->taken++;
			engine.prefix = engine.depth;
			engine.result->states++;
			return true;
		}
		engine.depth--;
	}
	return false;
}

static void path_print(char *text, size_t size)
{
	size_t n = engine.depth < size ? engine.depth : size - 1;

	for (size_t i = 0; i < n; i++)
		text[i] = digits[engine.path[i].taken];
	/* The choices behind the last given one are zeroes anyway. */
	while (n > 0 && text[n - 1] == '0')
		n--;
	text[n] = '\0';
}

/* Takes the path of MODEL_REPLAY=name:choices, if it is of this model. */
static bool path_parse(const char *name)
{
	const char *replay = getenv("MODEL_REPLAY");
	size_t n = strlen(name);

	if (!replay || strncmp(replay, name, n) != 0 || replay[n] != ':')
		return false;
	replay += n + 1;
	engine.prefix = 0;
	while (*replay && engine.prefix < DEPTH_MAX) {
		const char *digit = strchr(digits, *replay++);

		if (!digit)
			return false;
		engine.path[engine.prefix++] =
			(struct choice){ (uint8_t)(digit - digits), 0 };
	}
	return true;
}

/* The same path once more, printing what each thread does. */
static void execute_traced(const char *name)
{
	if (engine.opts->quiet) {
		execute();
		return;
	}
	fprintf(stderr, "schedule of %s:\n", name);
	trace_begin();
	execute();
	trace_end();
}

static void explore(const struct model_opts *opts, const char *name)
{
	struct model_result *result = engine.result;

	if (path_parse(name)) {
		execute_traced(name);
		path_print(result->replay, sizeof(result->replay));
		result->executions = 1;
		return;
	}
	engine.prefix = 0;
	do {
		execute();
		if (engine.outcome != REDUNDANT)
			result->executions++;
		if (engine.outcome == PRUNED)
			result->pruned++;
		if (engine.outcome == VIOLATED) {
			path_print(result->replay, sizeof(result->replay));
			engine.prefix = engine.depth;
			execute_traced(name);
			return;
		}
		if (opts->executions && result->executions == opts->executions)
			return;
	} while (path_advance());
	result->complete = true;
}

/* The value forced from outside, else the given one, else the default. */
static int bound(const char *forced, int given, int otherwise)
{
	if (forced)
		return atoi(forced);
	if (given == 0)
		return otherwise;
	return given < 0 ? 0 : given;
}

static void bounds_set(const struct model_opts *opts)
{
	engine.preemptions_max =
		bound(getenv("MODEL_BOUND"), opts->preemptions, 3);
	engine.weak_max =
		bound(getenv("MODEL_WEAK"), opts->weak, MODEL_UNBOUNDED);
	engine.steps_max = bound(NULL, opts->steps, 2000);
}

static void result_print(const struct model_result *result, const char *name)
{
	char preemptions[16] = "none";

	if (engine.preemptions_max < MODEL_UNBOUNDED)
		snprintf(preemptions, sizeof(preemptions), "%d",
			 engine.preemptions_max);
	printf("model %s: %llu executions, %llu states, bound %s, %.2f s", name,
	       (unsigned long long)result->executions,
	       (unsigned long long)result->states, preemptions,
	       result->seconds);
	if (result->pruned)
		printf(", %llu pruned", (unsigned long long)result->pruned);
	printf("%s\n", result->violated ? "" :
				result->complete ? ": ok" : ": incomplete");
	if (result->violated)
		printf("violation: %s: %s\n\tMODEL_REPLAY='%s:%s'\n", name,
		       result->text, name, result->replay);
	fflush(stdout);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct model_result model_run(const struct model_opts *opts, model_fn *setup,
			      model_fn *const threads[], size_t n,
			      model_fn *check_end)
{
	static const struct model_opts defaults;
	struct model_result result = { 0 };
	double start = seconds_now();
	const char *name;

	if (!opts)
		opts = &defaults;
	name = opts->name ? opts->name : "model";
	if (n == 0 || n > MODEL_THREADS) {
		fprintf(stderr, "%s: %zu threads\n", name, n);
		abort();
	}
	bounds_set(opts);
	engine.opts = opts;
	engine.result = &result;
	engine.setup = setup;
	engine.check_end = check_end;
	engine.threads_n = (unsigned)n;
	for (size_t i = 0; i < n; i++) {
		engine.functions[i] = threads[i];
		fiber_open(&engine.threads[i].fiber);
	}
	fiber_open(&engine.threads[HOST].fiber);
	engine.threads[HOST].state = DONE;
	signals_catch();
	explore(opts, name);
	signals_restore();
	result.seconds = seconds_now() - start;
	if (!opts->quiet)
		result_print(&result, name);
	return result;
}
