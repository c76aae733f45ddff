/* SPDX-License-Identifier: MIT */
#include "runtime/dump/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/sched/task_pool.h"

/* Words before the object's address; what has none is told elsewhere. */
static const char *const objects[WEFT__ON_KINDS] = {
	[WEFT__ON_MUTEX] = "to lock mutex",
	[WEFT__ON_READ_LOCK] = "to read-lock",
	[WEFT__ON_WRITE_LOCK] = "to write-lock",
	[WEFT__ON_SEMAPHORE] = "for permits of semaphore",
	[WEFT__ON_CONDITION] = "for condition",
	[WEFT__ON_EVENT] = "for event",
	[WEFT__ON_NOTIFICATION] = "for notification",
	[WEFT__ON_COUNT] = "for the end of count",
	[WEFT__ON_BARRIER] = "at barrier",
	[WEFT__ON_ONCE] = "for the result of once",
	[WEFT__ON_SEND] = "to send to channel",
	[WEFT__ON_RECEIVE] = "to receive from channel",
	[WEFT__ON_ONESHOT] = "for oneshot",
	[WEFT__ON_BROADCAST] = "to receive from broadcast",
	[WEFT__ON_WATCH] = "for a change of watch",
	[WEFT__ON_LIMIT] = "for a place in scope",
};

void weft__words_add(struct weft__words *words, const char *format, ...)
{
	size_t room = sizeof(words->text) - words->used;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(words->text + words->used, room, format, arguments);
	va_end(arguments);
	if (n > 0)
		words->used += (size_t)n < room ? (size_t)n : room - 1;
}

void weft__words_span(struct weft__words *words, uint64_t length_ns)
{
	weft__words_add(words, "%llu.%02llu s",
			(unsigned long long)(length_ns / 1000000000u),
			(unsigned long long)(length_ns / 10000000u % 100));
}

void weft__words_from_to(struct weft__words *words, uint64_t from_ns,
			 uint64_t to_ns)
{
	weft__words_span(words, to_ns > from_ns ? to_ns - from_ns : 0);
}

const char *weft__module_shown(const char *module)
{
	const char *slash = strrchr(module, '/');

	return slash ? slash + 1 : module;
}

int weft__name_shown_bytes(const char *name)
{
	return (int)strcspn(name, ".");
}

static void words_function(struct weft__words *words,
			   const struct weft__speaker *speaker, weft_fn fn)
{
	const struct weft__symbol *symbol = weft__unwinder_symbol(
		speaker->unwinder, (uint64_t)(uintptr_t)fn);

	if (symbol && symbol->name)
		weft__words_add(words, "%.*s",
				weft__name_shown_bytes(symbol->name),
				symbol->name);
	else if (symbol && symbol->module)
		weft__words_add(words, "%s+%#llx",
				weft__module_shown(symbol->module),
				(unsigned long long)(uintptr_t)fn -
					symbol->begins);
	else
		weft__words_add(words, "%p", (void *)(uintptr_t)fn);
}

void weft__words_task(struct weft__words *words,
		      const struct weft__speaker *speaker,
		      const struct weft__glance *glance)
{
	weft__words_add(words, "task %llx %s%s(",
			(unsigned long long)glance->id, glance->name,
			glance->name[0] ? " " : "");
	words_function(words, speaker, glance->fn);
	weft__words_add(words, ")");
}

void weft__words_id(struct weft__words *words,
		    const struct weft__speaker *speaker, uint64_t id)
{
	struct weft__task *task = weft__task_at(speaker->runtime, id);
	struct weft__glance glance;

	if (task && weft__glance(task, &glance) && glance.id == id)
		weft__words_task(words, speaker, &glance);
	else
		weft__words_add(words, "task %llx", (unsigned long long)id);
}

/* Of a lock, or what is done once. */
static void words_owner(struct weft__words *words,
			const struct weft__speaker *speaker,
			const struct weft__glance *glance)
{
	const char *has = glance->on == WEFT__ON_ONCE ? "run" : "held";

	if (glance->other) {
		weft__words_add(words, " %s by ", has);
		weft__words_id(words, speaker, glance->other);
	} else if (glance->taken) {
		weft__words_add(words, " %s by one outside of the runtime",
				has);
	}
}

/* How full it is, as far as that tells more than that somebody waits. */
static void words_state(struct weft__words *words, enum weft__on on,
			uint64_t have, uint64_t most)
{
	unsigned long long n = have, of = most;

	if (on == WEFT__ON_SEMAPHORE)
		weft__words_add(words, " (%llu free)", n);
	else if (on == WEFT__ON_COUNT)
		weft__words_add(words, " (%llu left)", n);
	else if (on == WEFT__ON_BARRIER)
		weft__words_add(words, " (%llu of %llu came)", n, of);
	else if ((on == WEFT__ON_READ_LOCK || on == WEFT__ON_WRITE_LOCK) && n)
		weft__words_add(words, " held by %llu %s", n,
				n == 1 ? "reader" : "readers");
	else if (on != WEFT__ON_SEND && on != WEFT__ON_RECEIVE)
		return;
	else if (most == 0)
		weft__words_add(words, " (without room)");
	else
		weft__words_add(words, " (%llu of %llu values)", n, of);
}

/* The variable that it is, or is part of, if that is a static one. */
static void words_variable(struct weft__words *words,
			   const struct weft__speaker *speaker,
			   const void *object)
{
	const struct weft__symbol *symbol = weft__unwinder_symbol(
		speaker->unwinder, (uint64_t)(uintptr_t)object);
	uint64_t offset;
	int bytes;

	if (!symbol || !symbol->name)
		return;
	bytes = weft__name_shown_bytes(symbol->name);
	offset = (uint64_t)(uintptr_t)object - symbol->begins;
	if (offset == 0)
		weft__words_add(words, " <%.*s>", bytes, symbol->name);
	else if (offset < symbol->bytes) /* and not just the nearest */
		weft__words_add(words, " <%.*s+%llu>", bytes, symbol->name,
				(unsigned long long)offset);
}

static void words_object(struct weft__words *words,
			 const struct weft__speaker *speaker, enum weft__on on,
			 const void *object, uint64_t have, uint64_t most)
{
	weft__words_add(words, "%s %p", objects[on] ? objects[on] : "for",
			object);
	words_variable(words, speaker, object);
	words_state(words, on, have, most);
}

static void words_time(struct weft__words *words, uint64_t until_ns,
		       uint64_t now_ns)
{
	if (until_ns == WEFT_NEVER) {
		weft__words_add(words, "for ever");
		return;
	}
	weft__words_add(words, "for ");
	weft__words_from_to(words, now_ns, until_ns);
	weft__words_add(words, " more");
}

static void words_ready(struct weft__words *words,
			const struct weft__glance_case *which)
{
	short events = which->events & (POLLIN | POLLOUT);
	const char *what = events == POLLIN  ? "to read from" :
			   events == POLLOUT ? "to write to" :
					       "to poll";

	weft__words_add(words, "%s descriptor %d", what, (int)which->number);
}

static void words_case(struct weft__words *words,
		       const struct weft__speaker *speaker,
		       const struct weft__glance_case *which)
{
	switch (which->kind) {
	case WEFT_CASE_SEND:
		words_object(words, speaker, WEFT__ON_SEND, which->chan,
			     which->have, which->most);
		break;
	case WEFT_CASE_RECV:
		words_object(words, speaker, WEFT__ON_RECEIVE, which->chan,
			     which->have, which->most);
		break;
	case WEFT_CASE_JOINED:
		weft__words_add(words, "for the end of ");
		weft__words_id(words, speaker, which->number);
		break;
	case WEFT_CASE_READY:
		words_ready(words, which);
		break;
	case WEFT_CASE_AT:
		words_time(words, which->number, speaker->now_ns);
		break;
	default:
		break;
	}
}

static void words_cases(struct weft__words *words,
			const struct weft__speaker *speaker,
			const struct weft__glance *glance)
{
	uint32_t count = glance->cases_count;

	weft__words_add(words, "for one of %u %s", count,
			count == 1 ? "case" : "cases");
	for (uint32_t i = 0; i < count && i < WEFT__CASES_TOLD; i++) {
		weft__words_add(words, i ? "; " : ": ");
		words_case(words, speaker, &glance->cases[i]);
	}
	if (count > WEFT__CASES_TOLD)
		weft__words_add(words, "; and %u more",
				count - WEFT__CASES_TOLD);
}

static void words_wait(struct weft__words *words,
		       const struct weft__speaker *speaker,
		       const struct weft__glance *glance)
{
	if (glance->on == WEFT__ON_JOB) {
		weft__words_add(words, "for blocking work ");
		words_function(words, speaker, glance->job);
		if (glance->lane[0])
			weft__words_add(words, " in lane %s", glance->lane);
	} else if (glance->on == WEFT__ON_SELECT) {
		words_cases(words, speaker, glance);
	} else if (glance->on == WEFT__ON_DUMP) {
		weft__words_add(words, "for this dump");
	} else {
		words_object(words, speaker, glance->on, glance->object,
			     glance->have, glance->most);
		words_owner(words, speaker, glance);
	}
}

static void words_driver(struct weft__words *words,
			 const struct weft__speaker *speaker, uint64_t number)
{
	char text[128] = "";

	if (speaker->runtime->ops->describe)
		(void)speaker->runtime->ops->describe(number, text,
						      sizeof(text));
	weft__words_add(words, "%s", text);
}

static void words_reason(struct weft__words *words,
			 const struct weft__speaker *speaker,
			 const struct weft__glance *glance)
{
	switch (weft__reason_kind(glance->reason)) {
	case WEFT__REASON_WAIT:
		words_wait(words, speaker, glance);
		break;
	case WEFT__REASON_TIME:
		words_time(words, glance->until_ns, speaker->now_ns);
		break;
	case WEFT__REASON_SCOPE:
		weft__words_add(words, "for %llu %s of its scope to end",
				(unsigned long long)glance->count,
				glance->count == 1 ? "task" : "tasks");
		break;
	case WEFT__REASON_DRIVER:
		words_driver(words, speaker, weft__reason_of(glance->reason));
		break;
	default:
		if (!glance->other) {
			weft__words_add(words, "to be woken");
			break;
		}
		weft__words_add(words, "to join ");
		weft__words_id(words, speaker, glance->other);
	}
}

void weft__words_wait(struct weft__words *words,
		      const struct weft__speaker *speaker,
		      const struct weft__glance *glance)
{
	weft__words_add(words, "waits ");
	words_reason(words, speaker, glance);
	if (glance->deadline_ns == WEFT_NEVER)
		return;
	if (glance->deadline_ns <= speaker->now_ns) {
		weft__words_add(words, " (deadline has passed)");
		return;
	}
	weft__words_add(words, " (deadline in ");
	weft__words_span(words, glance->deadline_ns - speaker->now_ns);
	weft__words_add(words, ")");
}
