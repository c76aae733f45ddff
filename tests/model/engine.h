/* SPDX-License-Identifier: MIT */
/*
 * Engine - what the parts of the model checker share.
 *
 *	engine.c	executions, the tree of choices, violations
 *	schedule.c	which thread runs next; sleeping and spinning
 *	memory.c	locations, their histories, what threads may see
 *	order.c		the total order of seq_cst operations
 *	operation.c	loads, stores and read-modify-writes
 *	data.c		races on plain data, freed memory
 *	kernel.c	futex, eventfd, mutex, membarrier
 *	fail.c		assertions of the code under test
 *	trace.c		names, and the printed schedule
 *	fiber.c		stacks and the switch between them
 *
 * Concurrency   none: one real thread runs it all, and one model at a time.
 */
#ifndef WEFT_TESTS_MODEL_ENGINE_H
#define WEFT_TESTS_MODEL_ENGINE_H

#include "tests/model/fiber.h"
#include "tests/model/model.h"

#define LANES 8
#define LOCATIONS_MAX 128
#define TABLE_SHIFT 9
#define DATA_MAX 1024
#define DATA_SHIFT 11
#define STORES_MAX 64
#define READS_MAX 16
#define DEAD_MAX 32
#define NAMES_MAX 128
#define DEPTH_MAX 4000
#define ORDER_MAX 128

/* The fiber that runs setup and check_end has the index after the threads. */
#define HOST MODEL_THREADS

/*
 * A vector clock: lane i counts the steps of thread i.  Sixteen bytes, so that
 * a join is one instruction; the step bound keeps the lanes from overflow.
 */
typedef int16_t clock16 __attribute__((vector_size(16)));

#define NEVER INT16_MAX

/* A bit each for the seq_cst operations. */
__extension__ typedef unsigned __int128 order_set;

struct store {
	/* When each thread first met this store, or NEVER. */
	clock16 met;
	/* The clock that an acquire load of it joins. */
	clock16 message;
	uint64_t value;
	/* The seq_cst loads that returned it; numbers as of order.c. */
	order_set loads;
	/* Place in the order of execution; the initial store has 0. */
	uint32_t serial;
	/* An RMW, which reads the store before it in the history. */
	bool rmw;
	bool seq_cst;
	/* Its number, if it is seq_cst. */
	uint8_t order;
};

struct location {
	uintptr_t address;
	/* Where a kernel lock orders a futex wait after a futex wake. */
	clock16 woken;
	/* Stores in modification order; none: not used since its renewal. */
	struct store stores[STORES_MAX];
	uint8_t stores_n;
	uint8_t size;
	/* The seq_cst operations on stores that are forgotten. */
	order_set order_past;
	/* Each thread's last operation here. */
	clock16 used;
};

/* A seq_cst operation, and the set of those that come before it. */
struct ordered {
	order_set before;
	int16_t time;
	uint8_t thread;
};

/* Eight bytes of plain data: for each byte, its last readers and writer. */
struct datum {
	clock16 reads[8];
	uintptr_t word;
	int16_t write_time[8];
	/* The thread's index and one; 0: no thread. */
	uint8_t writer[8];
};

/* Hash table entry; one of another generation (of executions) is empty. */
struct entry {
	uint32_t generation;
	uint16_t index;
};

enum state {
	READY,
	SPINNING,
	PARKED,
	WAITING,
	LOCKING,
	DONE,
};

/* The effect of an operation on its location; everything: on all of them. */
enum effect {
	READS,
	WRITES,
	EVERYTHING,
};

/* A value that a thread knew; when it changes, a spinning thread goes on. */
struct read {
	struct location *location;
	uint64_t value;
};

struct thread {
	clock16 now;
	/* Joined by a later fence: messages that relaxed loads met. */
	clock16 acquire;
	/* Clock at the last fence, which relaxed stores carry. */
	clock16 release;
	int16_t time;
	enum state state;
	bool daemon;
	/*
	 * Preempted before an operation on pending: not worth running until
	 * another thread does something there that conflicts (schedule.c).
	 */
	bool asleep;
	enum effect effect;
	const volatile void *pending;
	/* Preempted before its operation, when this store was the last. */
	bool preempted;
	uint32_t preempted_at;
	/* For PARKED a word, WAITING an event, LOCKING a mutex. */
	const volatile void *sleeps_on;
	uint64_t slept_at;
	struct read reads[READS_MAX];
	unsigned reads_n;
	/* It read more locations than fit: the next spin goes on without
	 * waiting. */
	bool reads_many;
	/* The number of stores, by all threads, at the time of the spin
	 * hint. */
	uint32_t spun_at;
	const char *where;
	struct fiber fiber;
};

struct dead {
	uintptr_t start, end;
};

struct name {
	uintptr_t address;
	const char *text;
};

struct choice {
	uint8_t taken, count;
};

enum outcome {
	RUNNING,
	FINISHED,
	PRUNED,
	/* Equivalent to an execution that is explored elsewhere. */
	REDUNDANT,
	VIOLATED,
};

struct engine {
	/* The current execution. */
	bool live;
	bool tracing;
	/* A thread was just chosen: its next operation needs no choice. */
	bool chosen;
	enum outcome outcome;
	unsigned current;
	unsigned threads_n;
	int preemptions, weak, steps;
	/* The number of stores so far. */
	uint32_t stores;
	clock16 fences;
	struct ordered order[ORDER_MAX];
	unsigned order_n;
	struct thread threads[LANES];
	struct fiber main;

	/* Locations and data, by address. */
	uint32_t generation;
	unsigned locations_n;
	unsigned data_n;
	unsigned names_n;
	struct entry table[1u << TABLE_SHIFT];
	struct entry data_table[1u << DATA_SHIFT];
	struct location locations[LOCATIONS_MAX];
	/* The plain data among them: every write of plain data searches
	 * these. */
	uintptr_t addresses[LOCATIONS_MAX];
	struct datum data[DATA_MAX];
	struct name names[NAMES_MAX];
	struct dead dead[DEAD_MAX];
	unsigned dead_n;

	/* The path through the tree: the first prefix choices are given. */
	struct choice path[DEPTH_MAX];
	unsigned depth, prefix;

	/* The model. */
	int preemptions_max, weak_max, steps_max;
	model_fn *functions[MODEL_THREADS];
	model_fn *setup, *check_end;
	const struct model_opts *opts;
	struct model_result *result;
};

extern struct engine engine;

static inline clock16 clock_join(clock16 a, clock16 b)
{
	clock16 more = a > b;

	return (a & more) | (b & ~more);
}

static inline bool clock_any(clock16 shards)
{
	union {
		clock16 shards;
		uint64_t words[2];
	} set = { shards };

	return (set.words[0] | set.words[1]) != 0;
}

/* Whether some lane of met is not after the same lane of now. */
static inline bool clock_reaches(clock16 now, clock16 met)
{
	return clock_any(met <= now);
}

/* Whether some lane of time is after the same lane of now. */
static inline bool clock_misses(clock16 now, clock16 time)
{
	return clock_any(time > now);
}

static inline struct thread *thread_current(void)
{
	return &engine.threads[engine.current];
}

/* engine.c: one of n branches; and the ends of an execution. */
unsigned engine_choose(unsigned n);
_Noreturn void engine_end(enum outcome outcome);
_Noreturn void engine_violation(const char *where, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* schedule.c */
void schedule_begin(void);
void schedule_point(const char *where, const volatile void *p,
		    enum effect effect);
void schedule_touch(const volatile void *p, enum effect effect);
void schedule_next(void);
void schedule_sleep(enum state state, const volatile void *on);
bool schedule_wake(enum state state, const volatile void *on);
void schedule_tick(struct thread *thread);

/* memory.c */
uint64_t memory_read(const volatile void *p, size_t size);
void memory_write(volatile void *p, size_t size, uint64_t value);
struct location *memory_find(const volatile void *p);
struct location *memory_touch(const volatile void *p, size_t size);
void location_renew(struct location *location);
struct store *location_newest(struct location *location);
unsigned location_floor(const struct location *location,
			const struct thread *thread, bool seq_cst);
bool location_open_after(const struct location *location, unsigned i);
void location_reserve(struct location *location);
struct store *location_insert(struct location *location, unsigned i,
			      const struct store *value);
void thread_meet(const struct thread *thread, struct store *store);
void thread_note(struct thread *thread, struct location *location,
		 uint64_t value);
bool thread_has_news(const struct thread *thread);
void thread_meet_news(struct thread *thread);

/* order.c */
bool order_allows(const struct location *location, unsigned place,
		  clock16 message, bool stores);
uint8_t order_enter(const struct location *location, unsigned place,
		    bool stores);
void order_forget(struct location *location, unsigned i);

/* operation.c */
uint8_t operation_choose(const uint8_t candidates[STORES_MAX], unsigned n);
void operation_load(struct location *location, struct store *store, int order);

/* data.c */
void data_check_alive(uintptr_t address);
void data_check_atomic(uintptr_t address);

/* trace.c */
void trace_begin(void);
void trace_end(void);
void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void trace_operation(const char *what, const struct location *location,
		     const struct store *store, int order);
const char *trace_name(uintptr_t address);

#endif
