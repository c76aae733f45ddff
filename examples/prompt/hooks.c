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

static int signals, error;

/* weft keeps the modes from before, and restores those whatever happens; on top
 * of its own come readline's, which would take them for a terminal that does
 * not echo. */
static void modes_set(int meta)
{
	if (weft_terminal_hide(STDIN_FILENO) < 0)
		return;
	rl_prep_terminal(meta);
	rl_tty_set_echoing(1);
}

static void modes_restore(void)
{
	rl_deprep_terminal();
	(void)weft_terminal_restore(STDIN_FILENO);
}

bool hooks_has_key(void)
{
	struct weft_case key = WEFT_READY(STDIN_FILENO, POLLIN);

	return weft_try_select(&key, 1) != -EAGAIN;
}

/* There is input, as a rule.  But readline reads on to the end of a paste, or
 * when it asks a question. */
static int key_read(FILE *stream)
{
	struct weft_case cases[] = {
		WEFT_READY(STDIN_FILENO, POLLIN),
		WEFT_READY(signals, POLLIN),
	};
	int r = hooks_has_key() ? 0 : weft_select(cases, 2);
	unsigned char key;
	ssize_t n;

	(void)stream;
	if (r == 1)
		return EOF;
	n = r < 0 ? r : weft_read(STDIN_FILENO, &key, 1);
	if (n > 0)
		return key;
	error = n < 0 ? (int)n : -ENODATA;
	return EOF;
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

void hooks_set(int signals_fd)
{
	signals = signals_fd;
	rl_getc_function = key_read;
	rl_prep_term_function = modes_set;
	rl_deprep_term_function = modes_restore;
	rl_attempted_completion_function = names_complete;
}

int hooks_error(void)
{
	return error;
}
