/* SPDX-License-Identifier: MIT */
#ifndef RUNNER_RULES_H
#define RUNNER_RULES_H

#include <stdbool.h>
#include <weft/weft.h>

enum { RULES_MAX = 256, DEPS_MAX = 16, LINES_MAX = 16 };

/* A target, and the command lines that make it. */
struct rule {
	char *target;
	char *dep_names[DEPS_MAX];
	char *lines[LINES_MAX];
	unsigned deps_count, lines_count;
	struct rule *deps[DEPS_MAX];
	enum { UNSEEN, ENTERED, NEEDED } state;
	bool failed; /* set before `done` */
	struct weft_event done;
};

struct rules {
	struct rule rule[RULES_MAX];
	unsigned count;
};

/* Takes the text apart, to which the rules then point.  Returns 0, or the
 * number of a line that is wrong. */
int rules_read(struct rules *rules, char *text);

/* Marks what the target needs, and itself.  NULL: the first rule's.  Returns 0,
 * -ENOENT or -ELOOP; *ret_where is the target concerned. */
int rules_need(struct rules *rules, char *target, const char **ret_where);

#endif
