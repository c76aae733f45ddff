/* SPDX-License-Identifier: MIT */
/* One task waits for all that concerns the terminal: keys, signals, its size,
 * lines of jobs, and the ends of jobs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "editor.h"
#include "prompt.h"

enum { KEYS, SIGNALS, SIZE, OUTPUT, ENDS };

static const weft_nsec BACKGROUND_NS = WEFT_MS(300);

static void ends_print(struct prompt *prompt, struct job *job)
{
	char how[80];

	/* It has sent all its lines before. */
	for (struct output said; weft_chan_try_recv(&job_output, &said) == 0;)
		editor_print("[%u] %s", said.number, said.text);
	job_join(&prompt->jobs, job, how, sizeof(how));
	editor_print("[%u] %s", job->number, how);
	job->number = 0;
}

static int keys_take(struct prompt *prompt)
{
	char *line;
	int r = editor_read(&line);

	while (r == 1) {
		command_run(prompt, line);
		free(line);
		r = prompt->ended ? 0 : editor_next(&line);
	}
	return r;
}

static int event_await(struct weft_case *cases, unsigned count)
{
	int r = -ETIMEDOUT;

	if (editor_may_read())
		return weft_select(cases, count);
	cases[KEYS].kind = WEFT_CASE_NONE;
	WEFT_WITHIN(BACKGROUND_NS)
		r = weft_select(cases, count);
	return r;
}

/* Waits for one thing, and does it. */
static int step(struct prompt *prompt)
{
	struct output said;
	struct weft_case cases[ENDS + JOBS_MAX] = {
		WEFT_READY(STDIN_FILENO, POLLIN),
		WEFT_READY(editor_signals_fd(), POLLIN),
		WEFT_READY(editor_size_fd(), POLLIN),
		WEFT_RECV(&job_output, &said),
	};
	struct job *jobs[JOBS_MAX];
	unsigned count = jobs_all(&prompt->jobs, jobs);
	int r = editor_show(!prompt->ended);

	for (unsigned i = 0; i < count; i++)
		cases[ENDS + i] = (struct weft_case)WEFT_JOINED(jobs[i]->task);
	if (prompt->ended)
		cases[KEYS].kind = WEFT_CASE_NONE;
	if (editor_signals_fd() < 0)
		cases[SIGNALS].kind = cases[SIZE].kind = WEFT_CASE_NONE;
	if (r == 0)
		r = event_await(cases, ENDS + count);
	switch (r) {
	case KEYS:
		return keys_take(prompt);
	case SIGNALS:
		return editor_signal();
	case SIZE:
		return editor_resize();
	case -ETIMEDOUT:
		return 0;
	case OUTPUT:
		editor_print("[%u] %s", said.number, said.text);
		return 0;
	default:
		if (r >= ENDS)
			ends_print(prompt, jobs[r - ENDS]);
		return r < 0 ? r : 0;
	}
}

int64_t prompt_run(const sigset_t *signals)
{
	struct prompt prompt = { .ended = false };
	int r = editor_begin(signals);

	WEFT_SUPERVISE(jobs) {
		prompt.jobs.scope = jobs;
		while (r == 0 && !prompt.ended)
			r = step(&prompt);
		/* The jobs of a script are waited for; a user who leaves does
		 * not wait. */
		prompt.ended = true;
		while (r == -ENODATA && !signals && prompt.jobs.count > 0)
			if ((r = step(&prompt)) == 0)
				r = -ENODATA;
		weft_scope_cancel(jobs);
		editor_end();
	}
	if (r < 0 && r != -ENODATA && r != -ECANCELED)
		fprintf(stderr, "prompt: %s\n", strerror(-r));
	return r < 0 && r != -ENODATA;
}
