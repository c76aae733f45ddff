/* SPDX-License-Identifier: MIT */
/*
 * The functions that readline calls: for the modes of the terminal, for a key,
 * for names that are completed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <readline/readline.h>

#include "hooks.h"
#include "prompt.h"

static int signals, error, next_key = -1;
static int (*flush)(void);

bool hooks_in_foreground(void)
{
	pid_t group = tcgetpgrp(STDIN_FILENO);

	return group < 0 || group == getpgrp();
}

/* weft keeps the modes from before, and restores those whatever happens; on top
 * of its own come readline's, which would take them for a terminal that does
 * not echo. */
static void modes_set(int meta)
{
	if (!hooks_in_foreground() || weft_terminal_hide(STDIN_FILENO) < 0)
		return;
	rl_prep_terminal(meta);
	rl_tty_set_echoing(1);
}

static void modes_restore(void)
{
	if (!hooks_in_foreground())
		return;
	rl_deprep_terminal();
	(void)weft_terminal_restore(STDIN_FILENO);
}

static bool has_key(void)
{
	struct weft_case key = WEFT_READY(STDIN_FILENO, POLLIN);

	return weft_try_select(&key, 1) != -EAGAIN;
}

static int key_take(void)
{
	unsigned char key;
	ssize_t n = weft_read(STDIN_FILENO, &key, 1);

	if (n > 0)
		next_key = key;
	return n > 0 ? 1 : n < 0 ? (int)n : -ENODATA;
}

/* A key; 0: a signal came before. */
static int key_await(void)
{
	struct weft_case cases[] = {
		WEFT_READY(STDIN_FILENO, POLLIN),
		WEFT_READY(signals, POLLIN),
	};
	int r = flush();

	if (r == 0)
		r = weft_select(cases, 2);
	if (r == 0)
		return key_take();
	return r < 0 ? r : 0;
}

int hooks_key_take(void)
{
	if (next_key >= 0)
		return 1;
	/* Another process may have taken it. */
	return has_key() ? key_take() : 0;
}

/* Readline 8.2 shows more than there is of a paste that ends without its mark,
 * so the mark comes first. */
static int no_key(void)
{
	static const char mark[] = "\033[201~";
	static unsigned at;

	if (!RL_ISSTATE(RL_STATE_MOREINPUT)) {
		at = 0;
		return EOF;
	}
	return mark[at++ % (sizeof(mark) - 1)];
}

/* The first key of a call was taken before.  But readline reads on to the end
 * of a paste, for one. */
static int key_read(FILE *stream)
{
	int r = hooks_key_take(), key = next_key;

	(void)stream;
	if (r == 0) {
		r = key_await();
		key = next_key;
	}
	next_key = -1;
	if (r < 0)
		error = r;
	return r > 0 ? key : no_key();
}

static char *name_next(const char *text, int again)
{
	static unsigned i;
	const char *name;

	if (!again)
		i = 0;
	while ((name = command_name(i++)))
		if (strncmp(name, text, strlen(text)) == 0)
			return strdup(name);
	return NULL;
}

static char **names_complete(const char *text, int start, int end)
{
	(void)end;
	rl_attempted_completion_over = 1; /* no names of files */
	return start == 0 ? rl_completion_matches(text, name_next) : NULL;
}

void hooks_set(int signals_fd, int (*output_flush)(void))
{
	signals = signals_fd;
	flush = output_flush;
	rl_getc_function = key_read;
	rl_prep_term_function = modes_set;
	rl_deprep_term_function = modes_restore;
	rl_attempted_completion_function = names_complete;
}

int hooks_error(void)
{
	return error;
}
