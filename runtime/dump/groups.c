/* SPDX-License-Identifier: MIT */
/* Groups - an array in order of arrival, with a hash table; see the header. */
#include "runtime/dump/groups.h"

#include <string.h>

#include "runtime/base/memory.h"

enum { ROOM_FIRST = 64 };

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t hash_of(uint64_t what, uint64_t fn, const uint64_t *pcs,
			uint32_t count)
{
	uint64_t hash = mix(mix(count, what), fn);

	for (uint32_t i = 0; i < count; i++)
		hash = mix(hash, pcs[i]);
	return hash;
}

static bool is_same(const struct weft__group *group, uint64_t what,
		    uint64_t fn, const struct weft__trace *trace)
{
	return group->what == what && group->fn == fn &&
	       group->pcs_count == trace->count &&
	       memcmp(group->pcs, trace->pc,
		      trace->count * sizeof(trace->pc[0])) == 0;
}

/* False: no memory. */
static bool groups_grow(struct weft__groups *g)
{
	size_t room = g->room ? 2 * g->room : ROOM_FIRST;
	struct weft__group **all = weft__memory_resize(
		g->memory, g->all, g->all_room * sizeof(*all),
		room * sizeof(*all));
	uint32_t *slots;

	if (!all)
		return false;
	g->all = all;
	g->all_room = room;
	slots = weft__memory_zeroed(g->memory, 2 * room * sizeof(*slots));
	if (!slots)
		return false;
	for (uint32_t n = 0; n < g->count; n++) {
		struct weft__group *group = all[n];
		size_t i = (size_t)hash_of(group->what, group->fn, group->pcs,
					   group->pcs_count);

		while (slots[i &= 2 * room - 1])
			i++;
		slots[i] = n + 1;
	}
	weft__memory_free(g->memory, g->slots, 2 * g->room * sizeof(*slots));
	g->slots = slots;
	g->room = room;
	return true;
}

static struct weft__group *group_new(const struct weft_allocator *memory,
				     uint64_t what, uint64_t fn,
				     const struct weft__trace *trace)
{
	size_t bytes = trace->count * sizeof(trace->pc[0]);
	struct weft__group *group =
		weft__memory_zeroed(memory, sizeof(*group) + bytes);

	if (!group)
		return NULL;
	group->what = what;
	group->fn = fn;
	group->cut = trace->cut;
	group->pcs_count = trace->count;
	memcpy(group->pcs, trace->pc, bytes);
	return group;
}

struct weft__group *weft__groups_add(struct weft__groups *g, uint64_t what,
				     uint64_t fn,
				     const struct weft__trace *trace)
{
	static const struct weft__trace none;
	size_t i;

	if (g->count >= WEFT__GROUPS_MAX && trace->count)
		trace = &none;
	if (g->count == g->room && !groups_grow(g))
		return NULL;
	i = (size_t)hash_of(what, fn, trace->pc, trace->count);
	while (g->slots[i &= 2 * g->room - 1]) {
		struct weft__group *group = g->all[g->slots[i] - 1];

		if (is_same(group, what, fn, trace)) {
			group->tasks++;
			return group;
		}
		i++;
	}
	g->all[g->count] = group_new(g->memory, what, fn, trace);
	if (!g->all[g->count])
		return NULL;
	g->all[g->count]->tasks = 1;
	g->slots[i] = (uint32_t)++g->count;
	return g->all[g->count - 1];
}

void weft__group_report(struct weft__groups *g, struct weft__group *group,
			const char *line)
{
	char *copy = NULL;

	if (group->lines_count < WEFT__GROUP_LINES)
		copy = weft__memory_text(g->memory, line);
	if (copy)
		group->lines[group->lines_count++] = copy;
}

static void group_free(const struct weft_allocator *memory,
		       struct weft__group *group)
{
	for (unsigned i = 0; i < group->lines_count; i++)
		weft__memory_text_free(memory, group->lines[i]);
	weft__memory_free(memory, group,
			  sizeof(*group) +
				  group->pcs_count * sizeof(group->pcs[0]));
}

void weft__groups_fini(struct weft__groups *g)
{
	for (size_t n = 0; n < g->count; n++)
		group_free(g->memory, g->all[n]);
	weft__memory_free(g->memory, g->all, g->all_room * sizeof(*g->all));
	weft__memory_free(g->memory, g->slots,
			  2 * g->room * sizeof(*g->slots));
}
