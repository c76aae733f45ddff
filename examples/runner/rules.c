/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "rules.h"

/* "target: dep dep" */
static bool head_read(struct rules *rules, char *line)
{
	char *deps = strchr(line, ':'), *rest;
	struct rule *rule = &rules->rule[rules->count];

	if (!deps || deps == line || rules->count == RULES_MAX)
		return false;
	*deps++ = '\0';
	*rule = (struct rule){ .target = line, .done = WEFT_EVENT_INIT };
	for (char *dep = strtok_r(deps, " \t", &rest); dep;
	     dep = strtok_r(NULL, " \t", &rest)) {
		if (rule->deps_count == DEPS_MAX)
			return false;
		rule->dep_names[rule->deps_count++] = dep;
	}
	rules->count++;
	return true;
}

/* A command line begins with a tab. */
static bool line_read(struct rules *rules, char *line)
{
	struct rule *last;

	if (*line == '\0' || *line == '#')
		return true;
	if (*line != '\t')
		return head_read(rules, line);
	if (!rules->count)
		return false;
	last = &rules->rule[rules->count - 1];
	if (last->lines_count == LINES_MAX)
		return false;
	last->lines[last->lines_count++] = line + 1;
	return true;
}

int rules_read(struct rules *rules, char *text)
{
	int number = 1;

	for (char *line; (line = strsep(&text, "\n")); number++)
		if (!line_read(rules, line))
			return number;
	return 0;
}

static struct rule *rule_find(struct rules *rules, const char *target)
{
	for (unsigned i = 0; i < rules->count; i++)
		if (strcmp(rules->rule[i].target, target) == 0)
			return &rules->rule[i];
	return NULL;
}

int rules_need(struct rules *rules, char *target, const char **ret_where)
{
	struct rule *rule = target ? rule_find(rules, target) :
			    rules->count ? &rules->rule[0] : NULL;
	int r = 0;

	*ret_where = target ? target : "no target";
	if (!rule)
		return -ENOENT;
	if (rule->state == ENTERED)
		return -ELOOP;
	if (rule->state == NEEDED)
		return 0;
	rule->state = ENTERED;
	for (unsigned i = 0; i < rule->deps_count && r == 0; i++) {
		r = rules_need(rules, rule->dep_names[i], ret_where);
		rule->deps[i] = rule_find(rules, rule->dep_names[i]);
	}
	if (r == 0)
		rule->state = NEEDED;
	return r;
}
