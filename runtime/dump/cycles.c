/* SPDX-License-Identifier: MIT */
/* Cycles - a depth-first search over the sorted edges; see the header. */
#include "runtime/dump/cycles.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/base/memory.h"

struct node {
	uint64_t id;
	size_t next; /* the edge to follow next */
	size_t end;
	bool begun, on_path;
	bool reported; /* it was in a reported cycle */
};

struct search {
	const struct weft__edge *edges;
	struct node *nodes; /* by id */
	size_t nodes_count;
	struct node **path; /* the path to the current node */
	size_t length;
	uint64_t *ids; /* of the reported cycle */
};

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int edges_compare(const void *a, const void *b)
{
	const struct weft__edge *x = a, *y = b;

	if (x->from != y->from)
		return compare(x->from, y->from);
	if (x->to != y->to)
		return compare(x->to, y->to);
	return compare(x->through, y->through);
}

static int nodes_compare(const void *id, const void *node)
{
	return compare(*(const uint64_t *)id, ((const struct node *)node)->id);
}

/* Drops edges whose owner does not wait for the scope; returns how many are
 * left. */
static size_t edges_settle(struct weft__edge *edges, size_t count)
{
	uint64_t from = 0, ends = 0;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct weft__edge *edge = &edges[i];

		if (edge->from != from)
			ends = 0;
		from = edge->from;
		if (edge->to == 0) /* before the others of its task */
			ends = edge->through;
		else if (edge->through == 0 || edge->through == ends)
			edges[kept++] = *edge;
	}
	return kept;
}

static void nodes_make(struct search *s, size_t edges_count)
{
	for (size_t i = 0; i < edges_count; i++) {
		struct node *last = s->nodes_count ?
					    &s->nodes[s->nodes_count - 1] :
					    NULL;

		if (last && last->id == s->edges[i].from) {
			last->end = i + 1;
			continue;
		}
		s->nodes[s->nodes_count++] = (struct node){
			.id = s->edges[i].from,
			.next = i,
			.end = i + 1,
		};
	}
}

static void path_add(struct search *s, struct node *node)
{
	node->begun = true;
	node->on_path = true;
	s->path[s->length++] = node;
}

/* Reports the cycle that ends the path, unless a node of it was reported. */
static void cycle_close(struct search *s, const struct node *first,
			weft__cycle_fn *tell, void *arg)
{
	size_t begin = s->length, count = 0;

	do
		if (s->path[--begin]->reported)
			return;
	while (s->path[begin] != first);
	for (size_t i = begin; i < s->length; i++) {
		s->path[i]->reported = true;
		s->ids[count++] = s->path[i]->id;
	}
	tell(arg, s->ids, count);
}

static void search_from(struct search *s, struct node *start,
			weft__cycle_fn *tell, void *arg)
{
	path_add(s, start);
	while (s->length) {
		struct node *node = s->path[s->length - 1], *to;

		if (node->next == node->end) {
			node->on_path = false;
			s->length--;
			continue;
		}
		to = bsearch(&s->edges[node->next++].to, s->nodes,
			     s->nodes_count, sizeof(*s->nodes), nodes_compare);
		if (to && !to->begun)
			path_add(s, to);
		else if (to && to->on_path)
			cycle_close(s, to, tell, arg);
	}
}

int weft__cycles_find(struct weft__edge *edges, size_t count,
		      const struct weft_allocator *memory,
		      weft__cycle_fn *tell, void *arg)
{
	struct search s = { .edges = edges };
	int error = -ENOMEM;
	size_t room;

	if (count == 0)
		return 0;
	qsort(edges, count, sizeof(*edges), edges_compare);
	count = edges_settle(edges, count);
	room = count + 1;
	s.nodes = weft__memory_zeroed(memory, room * sizeof(*s.nodes));
	s.path = weft__memory_zeroed(memory, room * sizeof(*s.path));
	s.ids = weft__memory_zeroed(memory, room * sizeof(*s.ids));
	if (s.nodes && s.path && s.ids) {
		nodes_make(&s, count);
		for (size_t i = 0; i < s.nodes_count; i++)
			if (!s.nodes[i].begun)
				search_from(&s, &s.nodes[i], tell, arg);
		error = 0;
	}
	weft__memory_free(memory, s.nodes, room * sizeof(*s.nodes));
	weft__memory_free(memory, s.path, room * sizeof(*s.path));
	weft__memory_free(memory, s.ids, room * sizeof(*s.ids));
	return error;
}
