/* SPDX-License-Identifier: MIT */
/*
 * Task - one record for each, in slabs that are never unmapped while the
 * runtime lives.  So a stale pointer or handle may always be read, and the
 * generation in the state word shows that it is stale.
 *
 * The state word
 *
 *	63          32 31                     8 7       0
 *	[ generation ] [ 0 ]                    [ flags ]
 *
 *	              .--------- yield, wake, pick ----------.
 *	              v                                      |
 *	  go --> RUNNABLE (no PARKED, no DONE) --- suspend ---> PARKED
 *	              |  ^                                   |
 *	              |  '-------- wake, cancel, expire -----'
 *	              '--- return ---> DONE ---> FREE (generation + 1)
 *
 *	PARKED	  no worker runs it, no queue links it; the waker that clears
 *		  the flag queues it
 *	NOTIFIED  a wake met it RUNNABLE; the next suspend only clears the flag
 *	DONE	  it has returned; its result is set
 *	JOINED	  the scope's owner waits for it, or for a root task a thread;
 *		  but see JOIN2 in switch.h
 *	DROPPED	  no caller will ask for the result; with DONE the record is
 *		  free
 *	CANCELLED, EXPIRED	its waits are interrupted: for good / while a
 *			  deadline of a block has passed
 *	SHIELDED  its waits are not interrupted now
 *	GIVEN_UP  the runtime ended before the task: no thread waits for it
 *		  any more
 *	FUTURE	  it has a poll function instead of a stack; see future.h
 *
 *   TASK1  A task is queued, or runs, if and only if it is neither PARKED nor
 *       DONE nor FREE; however many wakers race, the one that clears PARKED
 *       queues it.
 *   TASK2  PARKED is set after leaving the task's stack, by the worker that
 *       left it; so no other can resume a stack still in use.
 *   TASK3  Every wake is a read-modify-write, even one that finds the task
 *       RUNNABLE: it leaves NOTIFIED.  If a waker merely looked, the suspend
 *       that follows could miss the waker's earlier writes.
 *   TASK4  Wakes name the generation.  A late wake meets another generation and
 *       is dropped, or meets the same task in a later wait, and the task checks
 *       again what it waits for: a wake is a hint, and every wait is a loop.
 *
 * Orderings
 *   [task.wake]  wake RMW release -> suspend RMW acquire, or -> the run that
 *       follows, through the queue: the task sees what the waker wrote.
 *   [task.done]  completion RMW release -> join RMW acquire: the result.  (An
 *       owner in `joining` gets it through the hand-off slot, or the queue.)
 *   [task.free]  new generation, store release -> acquire of a join that meets
 *       it: what the old task wrote.
 *   [task.chunk]  `used` store release -> load acquire: the chunk of an index,
 *       and that its records are blank.
 */
#ifndef WEFT_RUNTIME_SCHED_TASK_H
#define WEFT_RUNTIME_SCHED_TASK_H

#include <weft/task.h>

#include "runtime/base/ahead.h"
#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"
#include "runtime/sched/driver.h"

struct weft__future_room;
struct weft__stack;
struct weft__worker;
struct weft_runtime;
struct weft_within;

#define WEFT__PARKED ((uint64_t)1 << 0)
#define WEFT__NOTIFIED ((uint64_t)1 << 1)
#define WEFT__DONE ((uint64_t)1 << 2)
#define WEFT__JOINED ((uint64_t)1 << 3)
#define WEFT__DROPPED ((uint64_t)1 << 4)
#define WEFT__CANCELLED ((uint64_t)1 << 5)
#define WEFT__EXPIRED ((uint64_t)1 << 6)
#define WEFT__SHIELDED ((uint64_t)1 << 7)
#define WEFT__FUTURE ((uint64_t)1 << 8)
#define WEFT__FREE ((uint64_t)1 << 9)
#define WEFT__GIVEN_UP ((uint64_t)1 << 10)
#define WEFT__GENERATION ((uint64_t)1 << 32)

/* Arguments up to the first size, and states of futures up to the second, are
 * kept in the record. */
#define WEFT__ARG_INLINE_BYTES 32
#define WEFT__STATE_INLINE_BYTES 24

/* Owner: the worker that runs the task or last queued it, unless a line says
 * otherwise. */
struct weft__task {
	/* Touched by a dispatch. */
	weft__atomic(uint64_t) state;
	union {
		struct weft__task *next; /* the queue or list that links it; for
					    a task in `joining`: what it
					    joins */
		uint64_t reason; /* while it is PARKED: see wait_reason.h */
	};
	struct weft__task *ahead; /* see base/ahead.h */
	union {
		void *sp; /* saved stack pointer while it does not run */
		void *state_at; /* of a future that has begun */
		struct weft__task
			*older; /* before its first; see spawn_queue.h */
	};
	struct weft__stack *stack; /* NULL until its first run; always NULL for
				      a future */
	weft_fn fn;
	struct weft_scope *scope; /* the scope it belongs to */
	uint32_t index;		  /* immutable: its place in the slabs */
	uint16_t pin;		  /* worker + 1 it is pinned to, or 0 */
	union {
		uint8_t stack_class; /* log2 of its stack's size */
		uint8_t awaits;	     /* of a future: enum weft__awaits */
	};
	weft__atomic(uint8_t) flags; /* WEFT__TASK_* */

	/* Touched by starting and ending. */
	struct weft__task *handle_next; /* scope's list of handles */
	struct weft__task **handle_link;
	const char *name;
	union {
		uint64_t deadline_ns; /* inherited from where it was started */
		uint64_t since_ns; /* for a future, whose deadlines are in its
				      room: when it began */
	};
	union {
		unsigned char arg[WEFT__ARG_INLINE_BYTES];
		struct {
			void *arg_heap;
			size_t arg_heap_bytes;
		};
		struct {
			unsigned char state_inline[WEFT__STATE_INLINE_BYTES];
			struct weft__future_room *room; /* for a future; NULL:
							   not needed so far */
		};
		int64_t result; /* after its end */
	};

	/* Touched by waiting, not by a task that merely runs. */
	weft__atomic(uint64_t) op; /* in flight: see io/request/op.h */
	union {
		/* The words of io/, which knows what they are: see
		 * io/request/op_record.h.  A task has the first three. */
		uint64_t io_words[5];
		struct {
			uint64_t io_words_of_task[3];
			struct weft_within *within; /* innermost deadline
						       block; see WITHIN */
			struct weft_scope *scopes;  /* innermost scope it has
						       open; see LINKED */
		};
		/* Of a future: what it awaits, where that is not io's. */
		struct {
			uint64_t await_words[3];
			uint64_t await_call;   /* blank between two calls */
			uint64_t await_reason; /* see wait_reason.h */
		};
		/* For a future that sleeps: an alarm without its last word. */
		uint64_t sleep[WEFT__ALARM_FUTURE_BYTES / sizeof(uint64_t)];
	};
	struct weft__task *sibling_next; /* under the scope's lock */
	struct weft__task **sibling_link;
};

_Static_assert(sizeof(struct weft__task) == 192, "a record is three lines");

/* The kinds of what a future waits for; all are less than the class of any
 * stack. */
enum weft__awaits {
	WEFT__AWAITS_BEGIN, /* it never ran */
	WEFT__AWAITS_NOTHING,
	WEFT__AWAITS_LATER, /* it has yet to begin; see future/await.c */
	WEFT__AWAITS_TURN,
	WEFT__AWAITS_TIME,
	WEFT__AWAITS_OP,
	WEFT__AWAITS_ACCEPT,
	WEFT__AWAITS_CONNECT,
	WEFT__AWAITS_GRANT, /* in the queue of a channel or the like */
	/* A future that closes a descriptor, in this order: */
	WEFT__AWAITS_OTHERS, /* the end of what others wait for on it; */
	WEFT__AWAITS_NUMBER, /* the kernel's turn; */
	WEFT__AWAITS_CLOSE,
	WEFT__AWAITS_LATE, /* the end of what came meanwhile */
	WEFT__AWAITS_END,  /* nothing any more: its function has returned */
	WEFT__AWAITS_MANY,
};

/* The task's name, for messages. */
static inline const char *weft__task_label(const struct weft__task *task)
{
	return task->name ? task->name : "unnamed";
}

static inline bool weft__task_is_future(struct weft__task *task)
{
	/* relaxed: the flag does not change while the task lives. */
	return weft__load(&task->state, relaxed) & WEFT__FUTURE;
}

/* Has the task never run? */
static inline bool weft__task_never_ran(const struct weft__task *task)
{
	return !task->stack &&
	       (uint8_t)(task->awaits - 1) >= WEFT__AWAITS_MANY - 1;
}

/* The bits of `flags`; written before the task is queued, then by the task
 * alone. */
#define WEFT__TASK_HANDLE (1u << 0)   /* a handle exists */
#define WEFT__TASK_ARG_HEAP (1u << 1) /* the argument is in arg_heap */
#define WEFT__TASK_PIN (1u << 2)      /* stays on the worker that runs it */
#define WEFT__TASK_RAW_ARG (1u << 3)  /* arg_heap is the argument itself */
#define WEFT__TASK_LINKED (1u << 4)   /* the scope can find it; a task that
					 opens a scope is */
#define WEFT__TASK_WITHIN (1u << 5)   /* `within` is not NULL */
#define WEFT__TASK_REPORTED (1u << 6) /* its scope is informed of its end */
#define WEFT__TASK_LOCALS (1u << 7)   /* see task_local.c */

static inline unsigned weft__task_flags(struct weft__task *task,
					unsigned flags)
{
	/* relaxed: one writer at a time; others look at HANDLE, which stays. */
	return weft__load(&task->flags, relaxed) & flags;
}

static inline bool weft__task_is(struct weft__task *task, unsigned flags)
{
	return weft__task_flags(task, flags) != 0;
}

static inline void weft__task_flags_set(struct weft__task *task,
					unsigned flags)
{
	/* relaxed: as above. */
	weft__store(&task->flags, (uint8_t)flags, relaxed);
}

static inline void weft__task_mark(struct weft__task *task, unsigned flags)
{
	weft__task_flags_set(task, weft__task_flags(task, ~0u) | flags);
}

/* Fetches what a dispatch and a start touch; nothing for NULL. */
static inline void weft__task_prefetch(struct weft__task *task)
{
	uintptr_t at = (uintptr_t)task;

	__builtin_prefetch((void *)at, 1);
	__builtin_prefetch((void *)(at + WEFT__LINE_BYTES), 1);
}

/* Fetches what the switch to the task and its first returns read of its
 * stack. */
static inline void weft__task_prefetch_stack(struct weft__task *task)
{
	char *sp = task->sp;

	__builtin_prefetch(sp, 1);
	__builtin_prefetch(sp + WEFT__LINE_BYTES, 1);
	__builtin_prefetch(sp + 2 * WEFT__LINE_BYTES, 1);
}

/* The handle: generation above, index below; never 0. */
static inline uint64_t weft__task_id(const struct weft__task *task,
				     uint64_t state)
{
	return (state & ~(WEFT__GENERATION - 1)) | task->index;
}

static inline bool weft__state_is(uint64_t state, uint64_t id)
{
	return (state >> 32) == (id >> 32);
}

/* The state of the record's next life, before that begins.  Never generation 0,
 * with which an id could be 0. */
static inline uint64_t weft__state_next(uint64_t state)
{
	uint64_t next = (state & ~(WEFT__GENERATION - 1)) + WEFT__GENERATION;

	return (next ? next : WEFT__GENERATION) | WEFT__FREE;
}

/* Are the task's waits to be given up? */
static inline bool weft__state_interrupted(uint64_t state)
{
	return (state & (WEFT__CANCELLED | WEFT__EXPIRED)) &&
	       !(state & WEFT__SHIELDED);
}

/*
 * The protocol of the state word; the caller decides which worker gets the
 * task.
 */

/* Wakes, and sets flags (CANCELLED, EXPIRED) that stay.  True: the caller
 * cleared PARKED, and queues the task. */
static inline bool weft__task_interrupt(struct weft__task *task, uint64_t id,
					uint64_t flags)
{
	/* relaxed: decided by the CAS. */
	uint64_t old = weft__load(&task->state, relaxed);
	uint64_t new;

	do {
		if (!weft__state_is(old, id) ||
		    (old & (WEFT__DONE | WEFT__FREE)))
			return false;
		new = (old & WEFT__PARKED ? old & ~WEFT__PARKED :
					    old | WEFT__NOTIFIED) |
		      flags;
		/* pairs: [task.wake] */
	} while (!weft__cas(&task->state, &old, new,
			    acq_rel)); /* mutate: retry */
	return old & WEFT__PARKED;
}

/* Wakes, and no more. */
static inline bool weft__task_notify(struct weft__task *task, uint64_t id)
{
	return weft__task_interrupt(task, id, 0);
}

/* Called when the task's stack has been left.  False: a wake came first; the
 * caller queues the task again. */
static inline bool weft__task_park(struct weft__task *task)
{
	/* relaxed: decided by the CAS. */
	uint64_t old = weft__load(&task->state, relaxed);
	uint64_t new;

	do {
		new = old & WEFT__NOTIFIED ? old & ~WEFT__NOTIFIED :
					     old | WEFT__PARKED;
		/* pairs: [task.wake], [task.hold] */
	} while (!weft__cas(&task->state, &old, new,
			    acq_rel)); /* mutate: retry */
	return !(old & WEFT__NOTIFIED);
}

/* The task has returned, its result is stored.  The old word shows whether its
 * end is waited for (JOINED), or the record is to be freed (DROPPED).  An add
 * sets the flag, which was clear: on x86-64 it costs half as much as an or
 * whose old value is used. */
static inline uint64_t weft__task_finish(struct weft__task *task)
{
	/* pairs: [task.done] */
	return weft__add(&task->state, WEFT__DONE, release);
}

/* The scope's owner waits for the task from here on, and counts its end.  The
 * old word shows whether the task is DONE already; then it has counted its end
 * itself. */
static inline uint64_t weft__task_join(struct weft__task *task)
{
	/* pairs: [task.done] */
	return weft__add(&task->state, WEFT__JOINED, acquire);
}

/* The same for an owner that waits already: an owner that switches to the task
 * that it joins has marked nothing before.  False: the task ended before it was
 * marked, and has counted its end itself. */
static inline bool weft__task_join_late(struct weft__task *task)
{
	if (!(weft__task_join(task) & WEFT__DONE))
		return true;
	/* relaxed: from here on it is the owner's alone. */
	weft__sub(&task->state, WEFT__JOINED, relaxed);
	return false;
}

/* The task has returned, and its worker holds the owner that waits for it: no
 * other thread asks for the flags, and a flag that is set meanwhile may be
 * lost.
 */
static inline void weft__task_finish_joined(struct weft__task *task)
{
	/* relaxed: the generation is the task's own; the owner goes on where
	 * this was written, or is queued. */
	uint64_t state = weft__load(&task->state, relaxed);

	weft__store(&task->state,
		    (state & ~(WEFT__GENERATION - 1)) | WEFT__DONE |
			    WEFT__JOINED,
		    relaxed);
}

/* The owner gives the wait up.  The old word shows whether the task is DONE;
 * then the owner counts its end all the same. */
static inline uint64_t weft__task_unjoin(struct weft__task *task)
{
	/* pairs: [task.done] */
	return weft__sub(&task->state, WEFT__JOINED, acquire);
}

/* Wakes threads that wait for DONE on the half of the state word that has the
 * flags; it is never unmapped. */
void weft__task_wake_threads(struct weft__task *task);

void weft__task_arg_free(struct weft_runtime *runtime,
			 struct weft__task *task);

/* The records of a runtime. */
struct weft__task_slabs;

int weft__tasks_init(struct weft_runtime *runtime, unsigned tasks_max);
void weft__tasks_fini(struct weft_runtime *runtime);

/* The record of a handle, whatever its generation; NULL for an index that was
 * never used. */
struct weft__task *weft__task_at(struct weft_runtime *runtime, uint64_t id);

/* The task of that id if it has not ended, and its state then; or NULL. */
static inline struct weft__task *weft__task_living(struct weft_runtime *runtime,
						   uint64_t id,
						   uint64_t *ret_state)
{
	struct weft__task *task = weft__task_at(runtime, id);

	if (!task)
		return NULL;
	/* relaxed: a look; a caller that changes the state decides by a CAS. */
	*ret_state = weft__load(&task->state, relaxed);
	if (!weft__state_is(*ret_state, id) ||
	    (*ret_state & (WEFT__DONE | WEFT__FREE)))
		return NULL;
	return task;
}

/* The cases that a worker's own list (runtime/sched/task_pool.h) does not
 * cover: a new record, or -errno; one record given back; half of a full list
 * given back. */
struct weft__task *weft__task_fetch(struct weft_runtime *runtime,
				    struct weft__worker *worker);
void weft__task_give_back(struct weft_runtime *runtime,
			  struct weft__task *task);
void weft__tasks_give_back(struct weft__worker *worker);

#endif
