/* SPDX-License-Identifier: MIT */
/* The commands that can be typed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "editor.h"
#include "prompt.h"

static const double SECONDS_MAX = 1e6;

static void started(int number)
{
	if (number == -EMSGSIZE)
		editor_print("not started: the text is too long");
	else if (number < 0)
		editor_print("not started: %s", strerror(-number));
	else
		editor_print("[%d] started", number);
}

static void timer_start(struct prompt *prompt, enum job_kind kind, char *words)
{
	char *text;
	double seconds = strtod(words, &text);

	text += strspn(text, " ");
	if (text == words || !(seconds > 0 && seconds <= SECONDS_MAX)) {
		editor_print("how many seconds?");
		return;
	}
	started(job_start(&prompt->jobs, kind, (weft_nsec)(seconds * 1e9),
			  text));
}

static void after(struct prompt *prompt, char *words)
{
	timer_start(prompt, JOB_AFTER, words);
}

static void every(struct prompt *prompt, char *words)
{
	timer_start(prompt, JOB_EVERY, words);
}

static void run(struct prompt *prompt, char *words)
{
	started(job_start(&prompt->jobs, JOB_COMMAND, 0, words));
}

static void list(struct prompt *prompt, char *words)
{
	static const char *const kinds[] = { "after", "every", "run" };
	struct job *jobs[JOBS_MAX];
	unsigned count = jobs_all(&prompt->jobs, jobs);

	(void)words;
	for (unsigned i = 0; i < count; i++)
		editor_print("[%u] %s %s", jobs[i]->number,
			     kinds[jobs[i]->kind], jobs[i]->text);
}

static void cancel(struct prompt *prompt, char *words)
{
	if (job_cancel(&prompt->jobs, (unsigned)strtoul(words, NULL, 10)) < 0)
		editor_print("no such job");
}

static void help(struct prompt *prompt, char *words);

static void quit(struct prompt *prompt, char *words)
{
	(void)words;
	prompt->ended = true;
}

static const struct {
	const char *name, *words, *does;
	void (*run)(struct prompt *prompt, char *words);
} commands[] = {
	{ "after", "SECONDS TEXT", "prints the text later", after },
	{ "cancel", "NUMBER", "ends a job", cancel },
	{ "every", "SECONDS TEXT", "prints it again and again", every },
	{ "help", "", "prints this", help },
	{ "list", "", "prints the jobs", list },
	{ "quit", "", "ends all jobs, and the program; as ^D", quit },
	{ "run", "COMMAND", "runs it in a shell, without input", run },
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void help(struct prompt *prompt, char *words)
{
	(void)prompt;
	(void)words;
	for (unsigned i = 0; i < COMMANDS; i++)
		editor_print("%-7s%-14s%s", commands[i].name, commands[i].words,
			     commands[i].does);
}

const char *command_name(unsigned i)
{
	return i < COMMANDS ? commands[i].name : NULL;
}

void command_run(struct prompt *prompt, char *line)
{
	char *name = line + strspn(line, " \t");
	size_t bytes = strcspn(name, " \t");
	char *words = name + bytes + strspn(name + bytes, " \t");

	for (unsigned i = 0; i < COMMANDS; i++)
		if (strlen(commands[i].name) == bytes &&
		    strncmp(name, commands[i].name, bytes) == 0) {
			commands[i].run(prompt, words);
			return;
		}
	if (bytes > 0)
		editor_print("no command '%.*s': try 'help'", (int)bytes, name);
}
