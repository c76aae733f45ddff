/* SPDX-License-Identifier: MIT */
/*
 * Names - the table of what was asked, and the waits for it.
 *
 * A name and a family are a question.  A task that finds none in the table adds
 * one, and sees to it that the task over c-ares asks (names_ask.c); tasks that
 * find one wait for its answer, or copy the answer that is there.
 *
 *	ASKED --> answered, kept --> expired, forgotten, or one of too many
 *	      \-> answered, not kept
 *
 *   NM1  A question is in the table from its begin to its answer, so at most
 *       one of a name is under way to c-ares, and one to getaddrinfo(); after
 *       that while its answer is kept.
 *   NM2  While `serving`, the task takes what is asked.  It ends only when,
 *       under the lock, nothing is asked.
 *   NM3  `waiters` counts the tasks that wait for an answer of c-ares.  The
 *       task that makes it 0 wakes the one that asks, which then gives up: so
 *       no look-up that is never answered outlives those that wait for it.
 *   NM4  A question holds one of `places` until it is answered.  So an ID of 16
 *       bits is found for each query: c-ares tries until one is free.
 *
 * Concurrency: any task looks up.  The lock is held for a walk along one
 * bucket; memory is allocated and freed outside of it.
 */
#include "net/names.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/memory.h"

enum { SERVE_STACK_BYTES = 128 << 10 };

#define LEAF __attribute__((noinline))

/* ---- Table --------------------------------------------------------------- */

static uint32_t hash_of(const char *name, int family)
{
	uint32_t hash = 2166136261u ^ (uint32_t)family;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash;
}

static struct weft__question **bucket(struct weft__names *names, uint32_t hash)
{
	return &names->buckets[hash % WEFT__NAMES_BUCKETS];
}

static struct weft__question *question_new(struct weft__names *names,
					   const char *name, int family)
{
	size_t name_bytes = strlen(name) + 1;
	struct weft__question *question = weft__memory_zeroed(
		names->runtime->memory, sizeof(*question) + name_bytes);

	if (!question)
		return NULL;
	question->names = names;
	question->hash = hash_of(name, family);
	question->family = family;
	memcpy(question->name, name, name_bytes);
	return question;
}

static void question_free(struct weft__question *question)
{
	const struct weft_allocator *memory = question->names->runtime->memory;

	weft__memory_free(memory, question->addrs,
			  question->count * sizeof(*question->addrs));
	weft__memory_free(memory, question,
			  sizeof(*question) + strlen(question->name) + 1);
}

void weft__questions_free(struct weft__question *dead)
{
	while (dead) {
		struct weft__question *next = dead->next;

		question_free(dead);
		dead = next;
	}
}

/* Under the lock: drops a reference.  A question that is dead goes to *dead. */
static void unref(struct weft__question *question, struct weft__question **dead)
{
	if (--question->refs)
		return;
	question->next = *dead;
	*dead = question;
}

static void age_link(struct weft__names *names, struct weft__question *question)
{
	question->newer = NULL;
	question->older = names->newest;
	*(names->newest ? &names->newest->newer : &names->oldest) = question;
	names->newest = question;
}

static void age_unlink(struct weft__names *names,
		       struct weft__question *question)
{
	*(question->newer ? &question->newer->older : &names->newest) =
		question->older;
	*(question->older ? &question->older->newer : &names->oldest) =
		question->newer;
}

/* Under the lock. */
static void table_remove(struct weft__names *names,
			 struct weft__question *question,
			 struct weft__question **dead)
{
	struct weft__question **link = bucket(names, question->hash);

	while (*link != question)
		link = &(*link)->next;
	*link = question->next;
	question->in_table = false;
	if (question->answered) {
		age_unlink(names, question);
		names->answers--;
	}
	unref(question, dead);
}

/* Under the lock: the question, if it is under way or its answer is good. */
static struct weft__question *table_find(struct weft__names *names,
					 const char *name, int family,
					 struct weft__question **dead)
{
	uint32_t hash = hash_of(name, family);
	struct weft__question *question = *bucket(names, hash);

	while (question &&
	       (question->hash != hash || question->family != family ||
		question->by_system != names->files.by_system ||
		strcmp(question->name, name) != 0))
		question = question->next;
	if (!question || !question->answered)
		return question;
	if (question->expires_ns > weft_now()) {
		age_unlink(names, question);
		age_link(names, question);
		return question;
	}
	table_remove(names, question, dead);
	return NULL;
}

void weft__names_forget(struct weft__names *names, struct weft__question **dead)
{
	names->version++;
	while (names->oldest)
		table_remove(names, names->oldest, dead);
}

/* ---- The task that asks -------------------------------------------------- */

LEAF void weft__names_wake(struct weft__names *names)
{
	uint64_t one = 1;

	/* It fails only if the count is near its limit: then it is set. */
	(void)!write(names->wake_fd, &one, sizeof(one));
}

bool weft__names_wakes(struct weft__names *names)
{
	bool asleep = names->asleep;

	names->asleep = false;
	return asleep;
}

struct weft__question *weft__names_take(struct weft__names *names)
{
	struct weft__question *asked;

	weft__lock_take(&names->lock);
	asked = names->asked;
	names->asked = NULL;
	names->asked_last = &names->asked;
	weft__lock_drop(&names->lock);
	return asked;
}

static void asked_add(struct weft__names *names,
		      struct weft__question *question)
{
	question->next_asked = NULL;
	*names->asked_last = question;
	names->asked_last = &question->next_asked;
}

/* There is no task that would take what is asked. */
static void serve_fail(struct weft__names *names, int error)
{
	struct weft__question *asked;

	weft__lock_take(&names->lock);
	names->serving = false;
	asked = names->asked;
	names->asked = NULL;
	names->asked_last = &names->asked;
	weft__lock_drop(&names->lock);
	while (asked) {
		struct weft__question *next = asked->next_asked;

		weft__names_answer(asked, error, NULL, 0, 0, false);
		asked = next;
	}
}

static void serve_begin(struct weft__names *names)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int r;

	opts.name = "names";
	opts.stack_bytes = SERVE_STACK_BYTES;
	r = weft_submit(names->runtime, weft__names_serve, &names,
			sizeof(names), &opts);
	if (r < 0)
		serve_fail(names, r);
}

/* ---- Questions ----------------------------------------------------------- */

/* Under the lock. */
static int answer_copy(const struct weft__question *question,
		       struct weft_addr *ret_addrs, int addrs_max)
{
	unsigned count = question->count;

	if (question->error < 0)
		return question->error;
	if (count > (unsigned)addrs_max)
		count = (unsigned)addrs_max;
	memcpy(ret_addrs, question->addrs, count * sizeof(*ret_addrs));
	return (int)count;
}

/* Under the lock: the oldest answers make room. */
static void answer_keep(struct weft__names *names,
			struct weft__question *question,
			struct weft__question **dead)
{
	age_link(names, question);
	names->answers++;
	while (names->answers > names->answers_max)
		table_remove(names, names->oldest, dead);
}

void weft__names_answer(struct weft__question *question, int error,
			const struct weft_addr *addrs, unsigned count,
			uint64_t ttl_ns, bool again_if_awaited)
{
	struct weft__names *names = question->names;
	size_t bytes = count * sizeof(*addrs);
	struct weft__question *dead = NULL;
	struct weft_addr *copy = NULL;

	if (count > 0) {
		copy = weft__memory_new(names->runtime->memory, bytes);
		if (!copy) {
			error = -ENOMEM;
			count = 0;
			ttl_ns = 0;
		} else {
			memcpy(copy, addrs, bytes);
		}
	}
	weft__lock_take(&names->lock);
	if (again_if_awaited && question->waiters > 0) {
		asked_add(names, question);
		weft__lock_drop(&names->lock);
		weft__memory_free(names->runtime->memory, copy, bytes);
		return;
	}
	question->error = error;
	question->addrs = copy;
	question->count = count;
	question->expires_ns = weft_now() + ttl_ns;
	if (!question->by_system)
		names->waiters -= question->waiters;
	question->waiters = 0;
	if (ttl_ns == 0 || question->version != names->version)
		table_remove(names, question, &dead);
	question->answered = true;
	if (question->in_table)
		answer_keep(names, question, &dead);
	weft__lock_drop(&names->lock);
	weft_event_set(&question->done);
	weft_sem_release(&names->places, 1);
	weft__lock_take(&names->lock);
	unref(question, &dead);
	weft__lock_drop(&names->lock);
	weft__questions_free(dead);
}

/* The caller is one of the waiters. */
static int answer_wait(struct weft__question *question,
		       struct weft_addr *ret_addrs, int addrs_max)
{
	struct weft__names *names = question->names;
	struct weft__question *dead = NULL;
	bool wakes_up = false;
	int r = weft_event_wait(&question->done);

	weft__lock_take(&names->lock);
	if (question->answered) {
		r = answer_copy(question, ret_addrs, addrs_max);
	} else {
		question->waiters--;
		if (!question->by_system && --names->waiters == 0)
			wakes_up = weft__names_wakes(names);
	}
	unref(question, &dead);
	weft__lock_drop(&names->lock);
	if (wakes_up)
		weft__names_wake(names);
	weft__questions_free(dead);
	return r;
}

/* Under the lock. */
static void question_join(struct weft__names *names,
			  struct weft__question *question)
{
	question->refs++;
	question->waiters++;
	if (!question->by_system)
		names->waiters++;
}

/* Under the lock, which it drops: adds a question, and has it asked. */
static int question_begin(struct weft__names *names,
			  struct weft__question *question,
			  struct weft_addr *ret_addrs, int addrs_max)
{
	struct weft__question **link = bucket(names, question->hash);
	bool begins = false, wakes_up = false;

	question->by_system = names->files.by_system;
	question->next = *link;
	*link = question;
	question->in_table = true;
	question->refs = 2;
	question_join(names, question);
	if (!question->by_system) {
		asked_add(names, question);
		begins = !names->serving;
		names->serving = true;
		wakes_up = weft__names_wakes(names);
	}
	weft__lock_drop(&names->lock);
	if (question->by_system)
		weft__names_ask_system(question);
	else if (begins)
		serve_begin(names);
	else if (wakes_up)
		weft__names_wake(names);
	return answer_wait(question, ret_addrs, addrs_max);
}

/* ---- Calls --------------------------------------------------------------- */

int weft__names_look_up(const char *name, int family,
			struct weft_addr *ret_addrs, int addrs_max)
{
	struct weft__question *question, *fresh = NULL, *dead = NULL;
	struct weft__names *names;
	int r = weft__names_get(weft_runtime_self(), &names);

	if (r == 0)
		r = weft__names_watch(names);
	if (r < 0)
		return r;
	for (;;) {
		weft__lock_take(&names->lock);
		question = table_find(names, name, family, &dead);
		if (question || fresh)
			break;
		weft__lock_drop(&names->lock);
		fresh = question_new(names, name, family);
		if (!fresh)
			r = -ENOMEM;
		else
			r = weft_sem_acquire(&names->places, 1);
		if (r < 0) {
			if (fresh)
				question_free(fresh);
			weft__questions_free(dead);
			return r;
		}
	}
	if (!question) {
		r = question_begin(names, fresh, ret_addrs, addrs_max);
		weft__questions_free(dead);
		return r;
	}
	if (question->answered)
		r = answer_copy(question, ret_addrs, addrs_max);
	else
		question_join(names, question);
	/* Answered, it may be freed when the lock is dropped. */
	if (question->answered)
		question = NULL;
	weft__lock_drop(&names->lock);
	weft__questions_free(dead);
	if (fresh) {
		weft_sem_release(&names->places, 1);
		question_free(fresh);
	}
	return question ? answer_wait(question, ret_addrs, addrs_max) : r;
}
