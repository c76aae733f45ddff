/* SPDX-License-Identifier: MIT */

/* Timer shards - see the header for the model and the invariants TS1 to TS4. */

#include "timer/timer_shard.h"

#include <assert.h>
#include <errno.h>

#include "runtime/base/memory.h"
#include "runtime/future/future.h"
#include "runtime/sched/task_pool.h"

static_assert(sizeof(struct weft__timer) <=
		      sizeof(((struct weft__alarm *)NULL)->node),
	      "an alarm has room for a timer");
static_assert(_Alignof(struct weft__timer) <= _Alignof(struct weft__alarm),
	      "and it is aligned");
static_assert(offsetof(struct weft__alarm, node) == 0,
	      "a timer's address is its alarm's");

/* Alarms fired in one hold of a lock: a task that arms waits no longer than
 * that. */
enum { BATCH = 16 };

static inline struct weft__timer *timer_of(struct weft__alarm *alarm)
{
	return (struct weft__timer *)(void *)alarm->node;
}

static inline struct weft__timer_shard *shard_of(struct weft_runtime *runtime,
					 uint32_t index)
{
	return runtime->workers[index]->timer_shard;
}

static inline struct weft__timer_shards *shards_of(struct weft_runtime *runtime)
{
	return shard_of(runtime, 0)->all;
}

/* ---- Life cycle ---------------------------------------------------------- */

static size_t all_bytes(const struct weft_runtime *runtime)
{
	return sizeof(struct weft__timer_shards) +
	       runtime->workers_count *
		       sizeof(((struct weft__timer_shards *)NULL)->next[0]);
}

static void shards_free(struct weft_runtime *runtime,
			struct weft__timer_shards *all,
			struct weft__timer_shard *shards)
{
	weft__memory_apart_free(runtime->memory, all, all_bytes(runtime));
	weft__memory_apart_free(runtime->memory, shards,
				runtime->workers_count * sizeof(*shards));
}

int weft__timer_shards_open(struct weft_runtime *runtime, uint64_t now_ns)
{
	uint32_t count = runtime->workers_count;
	struct weft__timer_shards *all =
		weft__memory_apart(runtime->memory, all_bytes(runtime));
	struct weft__timer_shard *shard = weft__memory_apart(
		runtime->memory, count * sizeof(*shard));

	if (!all || !shard) {
		shards_free(runtime, all, shard);
		return -ENOMEM;
	}
	all->count = count;
	all->shards = shard;
	for (uint32_t i = 0; i < count; i++) {
		shard[i].all = all;
		shard[i].index = i;
		shard[i].next_ns = UINT64_MAX;
		/* relaxed: not shared yet. */
		weft__store(&all->next[i], UINT64_MAX, relaxed);
		weft__wheel_init(&shard[i].wheel, now_ns);
		runtime->workers[i]->timer_shard = &shard[i];
	}
	return 0;
}

void weft__timer_shards_close(struct weft_runtime *runtime)
{
	struct weft__timer_shards *all = shards_of(runtime);

	for (uint32_t i = 0; i < all->count; i++)
		runtime->workers[i]->timer_shard = NULL;
	shards_free(runtime, all, all->shards);
}

/* ---- Arming and disarming ------------------------------------------------ */

void weft__timer_shards_arm(struct weft__worker *worker,
			    struct weft__alarm *alarm, uint64_t deadline_ns)
{
	struct weft__timer_shard *shard = worker->timer_shard;
	struct weft__timer_shards *all = shard->all;
	struct weft__timer *timer = timer_of(alarm);
	uint64_t due;
	bool first;

	timer->link = NULL;
	/* relaxed: the lock publishes it. */
	weft__store(&alarm->fired, (uint8_t)0, relaxed);
	alarm->shard = shard->index;
	alarm->armed = true;
	weft__lock_take(&shard->lock);
	due = weft__wheel_arm(&shard->wheel, timer, deadline_ns);
	first = due < shard->next_ns;
	if (weft__unlikely(first)) {
		shard->next_ns = due;
		/* pairs: [timer_shard.sleep] */
		weft__store(&all->next[shard->index], due, seq_cst);
	}
	weft__lock_drop(&shard->lock);
	/* pairs: [timer_shard.sleep] */
	if (weft__unlikely(first) &&
	    due < weft__load(&all->sleep_until, seq_cst) &&
	    !worker->runtime->timer_shards_off)
		/* mutate: wake */
		weft__unpark(worker, worker->runtime->workers[0]);
}

bool weft__timer_shards_disarm(struct weft_runtime *runtime,
			       struct weft__alarm *alarm)
{
	struct weft__timer_shard *shard;
	bool was_armed;

	if (!alarm->armed)
		return false;
	alarm->armed = false;
	/* pairs: [timer_shard.fired] */
	if (weft__load(&alarm->fired, acquire)) /* mutate: recheck=true */
		return false;
	shard = shard_of(runtime, alarm->shard);
	weft__lock_take(&shard->lock);
	was_armed = weft__wheel_cancel(&shard->wheel, timer_of(alarm));
	/* relaxed: a hint. */
	weft__store(&shard->stale, 1u, relaxed);
	weft__lock_drop(&shard->lock);
	return was_armed;
}

/* ---- Turning ------------------------------------------------------------- */

/* The task that a fired alarm was for; the alarm itself may be gone. */
struct fired {
	uint64_t task;
	uint8_t kind;
};

/* Publishes when the shard's wheel must turn; under the shard's lock. */
static void shard_publish(struct weft__timer_shard *shard)
{
	uint64_t next_ns = weft__wheel_next_ns(&shard->wheel);

	/* relaxed: a disarm after this makes it stale again. */
	weft__store(&shard->stale, 0u, relaxed);
	if (next_ns == shard->next_ns)
		return;
	shard->next_ns = next_ns;
	/* relaxed: see [timer_shard.sleep]. */
	weft__store(&shard->all->next[shard->index], next_ns, relaxed);
}

static struct fired fired_of(struct weft__alarm *alarm)
{
	if (alarm->kind == WEFT__ALARM_FUTURE)
		return (struct fired){ weft__future_id(alarm),
				       WEFT__ALARM_WAKE };
	return (struct fired){ alarm->task, alarm->kind };
}

/* Unlinks a few alarms that are due.  True: no more are due now. */
static bool shard_collect(struct weft__timer_shard *shard, uint64_t now_ns,
			 unsigned max, struct fired *fired,
			 unsigned *ret_count)
{
	struct weft__timer *timer;
	unsigned count = 0;
	bool done;

	weft__lock_take(&shard->lock);
	(void)weft__wheel_advance(&shard->wheel, now_ns, max, &timer);
	while (timer) {
		struct weft__timer *next = timer->next;
		struct weft__alarm *alarm = (struct weft__alarm *)(void *)timer;

		fired[count++] = fired_of(alarm);
		/* pairs: [timer_shard.fired] */
		weft__store(&alarm->fired, (uint8_t)1, release);
		timer = next;
	}
	shard_publish(shard);
	done = shard->next_ns > now_ns;
	weft__lock_drop(&shard->lock);
	*ret_count = count;
	return done;
}

static void fire(struct weft__worker *here, const struct fired *fired)
{
	struct weft__task *task = weft__record_at(here->runtime, fired->task);

	if (fired->kind == WEFT__ALARM_WAKE)
		(void)weft__wake(here, task, fired->task);
	else if (weft__task_interrupt(task, fired->task, WEFT__EXPIRED))
		weft__push(here, task);
}

/* Fires at most about `max` alarms of one shard; a cascade counts as well. */
static unsigned shard_turn(struct weft__timer_shard *shard,
			   struct weft__worker *here, uint64_t now_ns,
			   unsigned max)
{
	struct fired fired[BATCH];
	unsigned total = 0, count;
	bool done;

	for (unsigned spent = 0; spent < max; spent += BATCH) {
		unsigned room = max - spent < BATCH ? max - spent : BATCH;

		done = shard_collect(shard, now_ns, room, fired, &count);
		for (unsigned i = 0; i < count; i++)
			__builtin_prefetch(weft__record_at(here->runtime,
							   fired[i].task),
					   1);
		for (unsigned i = 0; i < count; i++)
			fire(here, &fired[i]);
		total += count;
		if (done)
			break;
	}
	return total;
}

static unsigned shards_turn(struct weft__timer_shards *all,
			    struct weft__worker *here, uint64_t now_ns)
{
	/* relaxed: only spreads. */
	uint32_t start = weft__add(&all->turn, 1u, relaxed);
	unsigned room = weft__harvest_room(here);
	unsigned total = 0;

	if (here->runtime->timer_shards_off && here->index != 0)
		return 0;
	for (uint32_t i = 0; i < all->count && total < room; i++) {
		uint32_t index = (start + i) % all->count;

		/* relaxed: see weft__timer_shards_turn. */
		if (weft__load(&all->next[index], relaxed) <= now_ns)
			total += shard_turn(&all->shards[index], here, now_ns,
					   room - total);
	}
	weft__count(here, WEFT__N_TIMERS_FIRED, total);
	return total;
}

static inline bool any_due(struct weft__timer_shards *all, uint64_t now_ns)
{
	/* relaxed: an alarm missed now is found at the next tick, or by the
	 * look of [timer_shard.sleep] if there is no next tick. */
	for (uint32_t i = 0; i < all->count; i++)
		if (weft__unlikely(weft__load(&all->next[i], relaxed) <=
				   now_ns))
			return true;
	return false;
}

unsigned weft__timer_shards_turn(struct weft_runtime *runtime,
			  struct weft__worker *here, uint64_t now_ns)
{
	struct weft__timer_shards *all = shards_of(runtime);

	return any_due(all, now_ns) ? shards_turn(all, here, now_ns) : 0;
}

static inline bool own_due(struct weft__worker *here, uint64_t now_ns)
{
	struct weft__timer_shard *shard = here->timer_shard;

	/* relaxed: as in any_due. */
	return weft__unlikely(weft__load(&shard->all->next[shard->index],
					 relaxed) <= now_ns) &&
	       !here->runtime->timer_shards_off;
}

bool weft__timer_shards_due(struct weft__worker *here, uint64_t now_ns)
{
	return here->index == 0 ? any_due(shards_of(here->runtime), now_ns) :
				  own_due(here, now_ns);
}

unsigned weft__timer_shards_turn_own(struct weft__worker *here, uint64_t now_ns)
{
	unsigned total;

	if (!own_due(here, now_ns))
		return 0;
	total = shard_turn(here->timer_shard, here, now_ns,
			   weft__harvest_room(here));
	weft__count(here, WEFT__N_TIMERS_FIRED, total);
	return total;
}

/* ---- Worker 0's sleep ---------------------------------------------------- */

/* The shard that is due first, NULL if none has an alarm. */
static struct weft__timer_shard *shards_first(struct weft__timer_shards *all,
				      uint64_t *ret_next_ns)
{
	struct weft__timer_shard *first = NULL;

	*ret_next_ns = UINT64_MAX;
	for (uint32_t i = 0; i < all->count; i++) {
		/* pairs: [timer_shard.sleep] */
		uint64_t next_ns = weft__load(&all->next[i], seq_cst);

		if (next_ns < *ret_next_ns) {
			*ret_next_ns = next_ns;
			first = &all->shards[i];
		}
	}
	return first;
}

uint64_t weft__timer_shards_next(struct weft_runtime *runtime)
{
	struct weft__timer_shards *all = shards_of(runtime);
	uint64_t next_ns;

	/* Only the first shard matters.  The loop is bounded by the number of
	 * shards, since alarms may be disarmed all the time; a time that is too
	 * early does no harm. */
	for (uint32_t i = 0; i <= all->count; i++) {
		struct weft__timer_shard *first = shards_first(all, &next_ns);

		/* relaxed: a missed hint costs one useless turn. */
		if (!first || !weft__load(&first->stale, relaxed))
			break;
		weft__lock_take(&first->lock);
		shard_publish(first);
		weft__lock_drop(&first->lock);
	}
	return next_ns;
}

uint64_t weft__timer_shards_sleep(struct weft_runtime *runtime)
{
	uint64_t until_ns = weft__timer_shards_next(runtime), next_ns;

	/* pairs: [timer_shard.sleep] */
	weft__store(&shards_of(runtime)->sleep_until, until_ns, seq_cst);
	next_ns = weft__timer_shards_next(runtime);
	return next_ns < until_ns ? next_ns : until_ns;
}

void weft__timer_shards_wake(struct weft_runtime *runtime)
{
	/* relaxed: a task that reads the old value wakes worker 0
	 * needlessly. */
	weft__store(&shards_of(runtime)->sleep_until, (uint64_t)0, relaxed);
}
