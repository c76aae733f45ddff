/* SPDX-License-Identifier: MIT */
/*
 * Format - words for objects, times, tasks and waits; see the header.
 *
 * Each function adds its words to the end of a text of fixed size, which is cut
 * off when it is full.  Names of functions and variables come from the
 * unwinder's symbols; without a symbol the address stands instead.  A wait is
 * described by its reason: an object (with its state and its owner), a time,
 * the tasks of a scope, a task to join, or the driver's own words.
 */
#include "runtime/dump/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/nsec.h"
#include "runtime/sched/task_pool.h"

/* Words before the object's address; kinds without words are handled below. */
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

void weft__format_add(struct weft__format *format, const char *words, ...)
{
	size_t room = sizeof(format->text) - format->used;
	va_list arguments;
	int n;

	va_start(arguments, words);
	n = vsnprintf(format->text + format->used, room, words, arguments);
	va_end(arguments);
	if (n > 0)
		format->used += (size_t)n < room ? (size_t)n : room - 1;
}

void weft__format_span(struct weft__format *format, uint64_t length_ns)
{
	weft__format_add(format, "%llu.%02llu s",
			(unsigned long long)(length_ns / 1000000000u),
			(unsigned long long)(length_ns / 10000000u % 100));
}

void weft__format_from_to(struct weft__format *format, uint64_t from_ns,
			 uint64_t to_ns)
{
	weft__format_span(format, to_ns > from_ns ? to_ns - from_ns : 0);
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

static void format_function(struct weft__format *format,
			    const struct weft__format_context *speaker,
			    weft_fn fn)
{
	const struct weft__symbol *symbol = weft__unwinder_symbol(
		speaker->unwinder, (uint64_t)(uintptr_t)fn);

	if (symbol && symbol->name)
		weft__format_add(format, "%.*s",
				weft__name_shown_bytes(symbol->name),
				symbol->name);
	else if (symbol && symbol->module)
		weft__format_add(format, "%s+%#llx",
				weft__module_shown(symbol->module),
				(unsigned long long)(uintptr_t)fn -
					symbol->begins);
	else
		weft__format_add(format, "%p", (void *)(uintptr_t)fn);
}

void weft__format_task(struct weft__format *format,
		      const struct weft__format_context *speaker,
		      const struct weft__task_info *info)
{
	weft__format_add(format, "task %llx %s%s(",
			(unsigned long long)info->id, info->name,
			info->name[0] ? " " : "");
	format_function(format, speaker, info->fn);
	weft__format_add(format, ")");
}

void weft__format_id(struct weft__format *format,
		    const struct weft__format_context *speaker, uint64_t id)
{
	struct weft__task *task = weft__task_at(speaker->runtime, id);
	struct weft__task_info info;

	if (task && weft__task_info(task, &info) && info.id == id)
		weft__format_task(format, speaker, &info);
	else
		weft__format_add(format, "task %llx", (unsigned long long)id);
}

/* The owner of a lock, or of a once. */
static void format_owner(struct weft__format *format,
			 const struct weft__format_context *speaker,
			 const struct weft__task_info *info)
{
	const char *has = info->on == WEFT__ON_ONCE ? "run" : "held";

	if (info->other) {
		weft__format_add(format, " %s by ", has);
		weft__format_id(format, speaker, info->other);
	} else if (info->taken) {
		weft__format_add(format, " %s by one outside of the runtime",
				has);
	}
}

/* The object's state, if it says more than that a task waits. */
static void format_state(struct weft__format *format, enum weft__on on,
			 uint64_t have, uint64_t max)
{
	unsigned long long n = have, of = max;

	if (on == WEFT__ON_SEMAPHORE)
		weft__format_add(format, " (%llu free)", n);
	else if (on == WEFT__ON_COUNT)
		weft__format_add(format, " (%llu left)", n);
	else if (on == WEFT__ON_BARRIER)
		weft__format_add(format, " (%llu of %llu came)", n, of);
	else if ((on == WEFT__ON_READ_LOCK || on == WEFT__ON_WRITE_LOCK) && n)
		weft__format_add(format, " held by %llu %s", n,
				n == 1 ? "reader" : "readers");
	else if (on != WEFT__ON_SEND && on != WEFT__ON_RECEIVE)
		return;
	else if (max == 0)
		weft__format_add(format, " (without room)");
	else
		weft__format_add(format, " (%llu of %llu values)", n, of);
}

/* The static variable that the object is, or is part of, if there is one. */
static void format_variable(struct weft__format *format,
			    const struct weft__format_context *speaker,
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
		weft__format_add(format, " <%.*s>", bytes, symbol->name);
	else if (offset < symbol->bytes) /* in it, not merely near it */
		weft__format_add(format, " <%.*s+%llu>", bytes, symbol->name,
				(unsigned long long)offset);
}

static void format_object(struct weft__format *format,
			  const struct weft__format_context *speaker,
			  enum weft__on on, const void *object, uint64_t have,
			  uint64_t max)
{
	weft__format_add(format, "%s %p", objects[on] ? objects[on] : "for",
			object);
	format_variable(format, speaker, object);
	format_state(format, on, have, max);
}

static void format_time(struct weft__format *format, uint64_t until_ns,
			uint64_t now_ns)
{
	if (until_ns == WEFT_NEVER) {
		weft__format_add(format, "for ever");
		return;
	}
	weft__format_add(format, "for ");
	weft__format_from_to(format, now_ns, until_ns);
	weft__format_add(format, " more");
}

static void format_ready(struct weft__format *format,
			 const struct weft__task_info_case *which)
{
	short events = which->events & (POLLIN | POLLOUT);
	const char *what = events == POLLIN  ? "to read from" :
			   events == POLLOUT ? "to write to" :
					       "to poll";

	weft__format_add(format, "%s descriptor %d", what, (int)which->number);
}

static void format_case(struct weft__format *format,
			const struct weft__format_context *speaker,
			const struct weft__task_info_case *which)
{
	switch (which->kind) {
	case WEFT_CASE_SEND:
		format_object(format, speaker, WEFT__ON_SEND, which->chan,
			      which->have, which->max);
		break;
	case WEFT_CASE_RECV:
		format_object(format, speaker, WEFT__ON_RECEIVE, which->chan,
			      which->have, which->max);
		break;
	case WEFT_CASE_JOINED:
		weft__format_add(format, "for the end of ");
		weft__format_id(format, speaker, which->number);
		break;
	case WEFT_CASE_READY:
		format_ready(format, which);
		break;
	case WEFT_CASE_AT:
		format_time(format, weft__nsec_point(which->number),
			    speaker->now_ns);
		break;
	default:
		break;
	}
}

static void format_cases(struct weft__format *format,
			 const struct weft__format_context *speaker,
			 const struct weft__task_info *info)
{
	uint32_t count = info->cases_count;

	weft__format_add(format, "for one of %u %s", count,
			count == 1 ? "case" : "cases");
	for (uint32_t i = 0; i < count && i < WEFT__CASES_SHOWN; i++) {
		weft__format_add(format, i ? "; " : ": ");
		format_case(format, speaker, &info->cases[i]);
	}
	if (count > WEFT__CASES_SHOWN)
		weft__format_add(format, "; and %u more",
				 count - WEFT__CASES_SHOWN);
}

static void format_wait(struct weft__format *format,
			const struct weft__format_context *speaker,
			const struct weft__task_info *info)
{
	if (info->on == WEFT__ON_JOB) {
		weft__format_add(format, "for blocking work ");
		format_function(format, speaker, info->job);
		if (info->lane[0])
			weft__format_add(format, " in lane %s", info->lane);
	} else if (info->on == WEFT__ON_SELECT) {
		format_cases(format, speaker, info);
	} else if (info->on == WEFT__ON_DUMP) {
		weft__format_add(format, "for this dump");
	} else {
		format_object(format, speaker, info->on, info->object,
			      info->have, info->max);
		format_owner(format, speaker, info);
	}
}

static void format_driver(struct weft__format *format,
			  const struct weft__format_context *speaker,
			  uint64_t number)
{
	char text[128] = "";

	if (speaker->runtime->ops->describe)
		(void)speaker->runtime->ops->describe(number, text,
						      sizeof(text));
	weft__format_add(format, "%s", text);
}

static void format_reason(struct weft__format *format,
			  const struct weft__format_context *speaker,
			  const struct weft__task_info *info)
{
	switch (weft__reason_kind(info->reason)) {
	case WEFT__REASON_WAIT:
		format_wait(format, speaker, info);
		break;
	case WEFT__REASON_TIME:
		format_time(format, info->until_ns, speaker->now_ns);
		break;
	case WEFT__REASON_SCOPE:
		weft__format_add(format, "for %llu %s of its scope to end",
				(unsigned long long)info->count,
				info->count == 1 ? "task" : "tasks");
		break;
	case WEFT__REASON_DRIVER:
		format_driver(format, speaker, weft__reason_of(info->reason));
		break;
	default:
		if (!info->other) {
			weft__format_add(format, "to be woken");
			break;
		}
		weft__format_add(format, "to join ");
		weft__format_id(format, speaker, info->other);
	}
}

void weft__format_wait(struct weft__format *format,
		      const struct weft__format_context *speaker,
		      const struct weft__task_info *info)
{
	weft__format_add(format, "waits ");
	format_reason(format, speaker, info);
	if (info->deadline_ns == WEFT_NEVER)
		return;
	if (info->deadline_ns <= speaker->now_ns) {
		weft__format_add(format, " (deadline has passed)");
		return;
	}
	weft__format_add(format, " (deadline in ");
	weft__format_span(format, info->deadline_ns - speaker->now_ns);
	weft__format_add(format, ")");
}
