/* SPDX-License-Identifier: MIT */
/*
 * The reduction of the model checker (schedule.c) loses no outcome: for random
 * small programs, the results of the loads and the memory at the end form the
 * same set with the reduction as without it, at every preemption bound.
 *
 * MODEL_SEED=n MODEL_PROGRAMS=n in the environment try other programs, and
 * more.  With the argument "print" the programs, smaller, and their outcomes
 * are printed instead, for axioms.py, which knows C11 and nothing of this
 * engine.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomic.h"
#include "tests/model/model.h"

#define THREADS 3
#define OPS 4
#define LOCATIONS 3
#define OUTCOMES_MAX (1u << 16)

enum kind {
	LOAD,
	LOAD_ACQUIRE,
	LOAD_SEQ_CST,
	STORE,
	STORE_RELEASE,
	STORE_SEQ_CST,
	ADD,
	ADD_ACQ_REL,
	ADD_SEQ_CST,
	CAS,
	CAS_ACQUIRE,
	CAS_SEQ_CST,
	POST,
	POLL,
	BARRIER,
	KINDS,
};

struct op {
	enum kind kind;
	unsigned location;
	uint32_t value;
};

static struct {
	unsigned threads_n, ops_n;
	struct op ops[THREADS][OPS];
} program;

static struct {
	weft__atomic(uint32_t) memory[LOCATIONS];
	struct model_event event;
	uint32_t results[THREADS][OPS];
} run;

struct outcomes {
	uint64_t hashes[OUTCOMES_MAX];
	unsigned n;
};

static struct outcomes reduced, everything;
static bool printing;
static struct outcomes *collecting;

/* splitmix64 */
static uint64_t random_next(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void program_make(uint64_t seed)
{
	program.threads_n = 2 + (unsigned)(random_next(&seed) % 2);
	program.ops_n = program.threads_n == 2 ? OPS : OPS - 1;
	for (unsigned i = 0; i < program.threads_n; i++)
		for (unsigned j = 0; j < program.ops_n; j++) {
			struct op *op = &program.ops[i][j];

			op->kind = (enum kind)(random_next(&seed) % KINDS);
			op->location = (unsigned)(random_next(&seed) % 3);
			op->value = (uint32_t)(random_next(&seed) % 3);
		}
}

static uint32_t do_access(const struct op *op)
{
	weft__atomic(uint32_t) *p = &run.memory[op->location];

	switch (op->kind) {
	case LOAD:
		return weft__load(p, relaxed);
	case LOAD_ACQUIRE:
		return weft__load(p, acquire);
	case LOAD_SEQ_CST:
		return weft__load(p, seq_cst);
	case STORE:
		weft__store(p, op->value, relaxed);
		return 0;
	case STORE_RELEASE:
		weft__store(p, op->value, release);
		return 0;
	case STORE_SEQ_CST:
		weft__store(p, op->value, seq_cst);
		return 0;
	case ADD:
		return weft__add(p, op->value, relaxed);
	case ADD_ACQ_REL:
		return weft__add(p, op->value, acq_rel);
	default:
		return weft__add(p, op->value, seq_cst);
	}
}

static uint32_t do_op(const struct op *op)
{
	weft__atomic(uint32_t) *p = &run.memory[op->location];
	uint32_t expected = op->value;

	switch (op->kind) {
	case CAS:
		weft__cas(p, &expected, expected + 1, relaxed);
		return expected;
	case CAS_ACQUIRE:
		weft__cas_acquire(p, &expected, expected + 1, acq_rel);
		return expected;
	case CAS_SEQ_CST:
		weft__cas(p, &expected, expected + 1, seq_cst);
		return expected;
	case POST:
		model_post(&run.event);
		return 0;
	case POLL:
		return (uint32_t)model_poll(&run.event);
	case BARRIER:
		model_heavy_barrier();
		return 0;
	default:
		return do_access(op);
	}
}

static void thread(void *arg)
{
	unsigned self = model_self();

	(void)arg;
	for (unsigned i = 0; i < program.ops_n; i++)
		run.results[self][i] = do_op(&program.ops[self][i]);
}

static void setup(void *arg)
{
	(void)arg;
	memset(&run, 0, sizeof(run));
}

/* As ck_assert_msg(), which a program that only prints may not use. */
static void require(bool condition, const char *sentence)
{
	if (condition)
		return;
	fprintf(stderr, "%s\n", sentence);
	abort();
}

static void outcome_print(void)
{
	printf("outcome");
	for (unsigned i = 0; i < LOCATIONS; i++)
		printf(" %u", run.memory[i]);
	for (unsigned i = 0; i < program.threads_n; i++)
		for (unsigned j = 0; j < program.ops_n; j++)
			printf(" %u", run.results[i][j]);
	printf("\n");
}

static void collect(void *arg)
{
	uint64_t hash = run.event.count;
	unsigned slot;

	(void)arg;
	for (unsigned i = 0; i < LOCATIONS; i++)
		hash = (hash ^ run.memory[i]) * 0x100000001b3u;
	for (unsigned i = 0; i < program.threads_n; i++)
		for (unsigned j = 0; j < program.ops_n; j++)
			hash = (hash ^ run.results[i][j]) * 0x100000001b3u;
	/* 0 is an empty slot. */
	hash ^= hash >> 32;
	hash |= 1;
	slot = (unsigned)(hash >> 7) % OUTCOMES_MAX;
	while (collecting->hashes[slot] && collecting->hashes[slot] != hash)
		slot = (slot + 1) % OUTCOMES_MAX;
	if (collecting->hashes[slot])
		return;
	if (printing)
		outcome_print();
	collecting->n++;
	require(collecting->n < OUTCOMES_MAX / 2, "too many outcomes");
	collecting->hashes[slot] = hash;
}

static struct model_result explore(struct outcomes *outcomes, int preemptions,
				   bool unreduced)
{
	const struct model_opts opts = { .preemptions = preemptions,
					 .unreduced = unreduced,
					 .quiet = true };
	model_fn *const threads[] = { thread, thread, thread };
	struct model_result result;

	memset(outcomes, 0, sizeof(*outcomes));
	collecting = outcomes;
	result = model_run(&opts, setup, threads, program.threads_n, collect);
	require(!result.violated, result.text);
	return result;
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

START_TEST(reduction_loses_no_outcome)
{
	uint64_t seed = from_environment("MODEL_SEED", 1);
	uint64_t programs = from_environment("MODEL_PROGRAMS", 150);
	uint64_t few = 0, many = 0;

	for (uint64_t i = 0; i < programs; i++) {
		int preemptions = (int)(i % 4) + 1;

		program_make(seed + i);
		few += explore(&reduced, preemptions, false).executions;
		many += explore(&everything, preemptions, true).executions;
		ck_assert_msg(reduced.n == everything.n,
			      "seed %llu, bound %d: %u of %u outcomes",
			      (unsigned long long)(seed + i), preemptions,
			      reduced.n, everything.n);
	}
	printf("%llu programs, %llu executions stand for %llu\n",
	       (unsigned long long)programs, (unsigned long long)few,
	       (unsigned long long)many);
}
END_TEST

/* A program within the rules that C11 has, half of it seq_cst. */
static void program_make_small(uint64_t seed)
{
	static const enum kind seq_cst[] = { LOAD_SEQ_CST, STORE_SEQ_CST,
					     LOAD_SEQ_CST, STORE_SEQ_CST,
					     ADD_SEQ_CST, CAS_SEQ_CST };

	program_make(seed);
	program.ops_n = program.threads_n == 2 ? 3 : 2;
	for (unsigned i = 0; i < program.threads_n; i++)
		for (unsigned j = 0; j < program.ops_n; j++) {
			struct op *op = &program.ops[i][j];

			op->location %= 2;
			if (op->kind >= POST || random_next(&seed) % 2)
				op->kind = seq_cst[random_next(&seed) % 6];
			if (op->kind < CAS && op->value == 0)
				op->value = 3;
		}
}

static int print_programs(void)
{
	uint64_t seed = from_environment("MODEL_SEED", 1);
	uint64_t programs = from_environment("MODEL_PROGRAMS", 1000);

	printing = true;
	for (uint64_t i = 0; i < programs; i++) {
		program_make_small(seed + i);
		printf("program");
		for (unsigned j = 0; j < program.threads_n; j++)
			for (unsigned k = 0; k < program.ops_n; k++)
				printf(" %u:%u:%u:%u", j,
				       (unsigned)program.ops[j][k].kind,
				       program.ops[j][k].location,
				       program.ops[j][k].value);
		printf("\n");
		explore(&reduced, MODEL_UNBOUNDED, false);
	}
	return EXIT_SUCCESS;
}

static int test(void)
{
	Suite *suite = suite_create("model/reduction");
	SRunner *runner = srunner_create(suite);
	TCase *group = tcase_create("random programs");
	int failed;

	tcase_set_timeout(group, 600);
	tcase_add_test(group, reduction_loses_no_outcome);
	suite_add_tcase(suite, group);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "print") == 0)
		return print_programs();
	return test();
}
