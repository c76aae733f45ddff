/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

#define OUTPUT_BYTES ((size_t)1 << 20)

struct job {
	struct build *build;
	struct rule *rule;
};

/* Both kinds of output come in their order. */
static int command_run(const char *line, struct weft_command *command,
		       struct weft_exit *ret_exit)
{
	const char *argv[] = { "sh", "-c", "exec 2>&1; eval \"$0\"", line,
			       NULL };
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;

	opts.argv = argv;
	opts.flags = WEFT_SPAWN_GROUP;
	return weft_run_command(&opts, command, ret_exit);
}

static void output_print(struct job *job, const char *line,
			 const struct weft_command *command, int r,
			 const struct weft_exit *exit)
{
	WEFT_SHIELD
		(void)!weft_mutex_lock(&job->build->print);
	printf("[%s] %s\n", job->rule->target, line);
	fwrite(command->output, 1, command->output_bytes, stdout);
	if (command->output_cut)
		printf("... and more\n");
	if (r < 0)
		printf("[%s] %s\n", job->rule->target, strerror(-r));
	else if (exit->status != 0)
		printf("[%s] failed: status %d, signal %d\n", job->rule->target,
		       exit->status, exit->signal);
	fflush(stdout);
	weft_mutex_unlock(&job->build->print);
}

static bool line_run(struct job *job, const char *line)
{
	struct weft_command command = WEFT_COMMAND_INIT;
	struct weft_exit exit = { .status = -1 };
	int r = weft_sem_acquire(&job->build->jobs, 1);

	if (r < 0)
		return false;
	command.output = malloc(OUTPUT_BYTES);
	command.output_bytes_max = command.output ? OUTPUT_BYTES : 0;
	command.flags = WEFT_COMMAND_CUT;
	r = command_run(line, &command, &exit);
	weft_sem_release(&job->build->jobs, 1);
	output_print(job, line, &command, r, &exit);
	free(command.output);
	return r == 0 && exit.status == 0;
}

static int64_t target_make(void *arg)
{
	struct job *job = arg;
	struct rule *rule = job->rule;

	for (unsigned i = 0; i < rule->deps_count; i++) {
		if (weft_event_wait(&rule->deps[i]->done) < 0)
			return -ECANCELED;
		rule->failed |= rule->deps[i]->failed;
	}
	for (unsigned i = 0; i < rule->lines_count && !rule->failed; i++)
		rule->failed = !line_run(job, rule->lines[i]);
	weft_event_set(&rule->done);
	return rule->failed && !job->build->keeps_going ? -EIO : 0;
}

int64_t build_all(void *arg)
{
	struct job job = { *(struct build **)arg, NULL };
	struct rules *rules = job.build->rules;
	int64_t missing = 0;
	int r = 0;

	WEFT_SCOPE (all, NULL)
		for (unsigned i = 0; i < rules->count && r == 0; i++) {
			job.rule = &rules->rule[i];
			if (job.rule->state == NEEDED)
				r = WEFT_GO(all, target_make, job);
		}
	for (unsigned i = 0; i < rules->count; i++)
		missing += rules->rule[i].state == NEEDED &&
			   (rules->rule[i].failed ||
			    !weft_event_is_set(&rules->rule[i].done));
	return r < 0 && r != -ECANCELED ? r : missing;
}
