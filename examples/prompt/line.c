/* SPDX-License-Identifier: MIT */
/*
 * Readline's callbacks.  It sets no handlers of signals here and no variables
 * of the environment, which other tasks pass to their commands, and it never
 * waits for a key itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "hooks.h"
#include "line.h"

static bool shown, ended, away;

/* Those that were taken; a macro may have several. */
static struct {
	char **line;
	size_t count, next;
	bool no_memory; /* for one */
} lines;

static void line_add(char *text)
{
	char **more =
		realloc(lines.line, (lines.count + 1) * sizeof(*lines.line));

	if (!more) {
		free(text);
		lines.no_memory = true;
		return;
	}
	lines.line = more;
	lines.line[lines.count++] = text;
}

/* Readline goes on with the next line: what is left of a macro comes before the
 * commands are run. */
static void line_take(char *text)
{
	if (text) {
		if (*text)
			add_history(text);
		line_add(text);
		return;
	}
	ended = true;
	shown = false;
	rl_callback_handler_remove();
	fputc('\n', rl_outstream);
}

static void unbind(rl_command_func_t *function, const char *map_name)
{
	Keymap map = rl_get_keymap_by_name(map_name);
	char **keys = rl_invoking_keyseqs_in_map(function, map);

	for (char **key = keys; key && *key; key++) {
		rl_bind_keyseq_in_map(*key, NULL, map);
		free(*key);
	}
	free(keys);
}

/* After the user's settings: what would wait for a key, or for files, and what
 * would write to stderr. */
static void waits_remove(void)
{
	static const char *const maps[] = { "emacs", "vi-insert", "vi-move" };

	rl_set_keyboard_input_timeout(0);
	rl_variable_bind("keyseq-timeout", "0");
	rl_variable_bind("blink-matching-paren", "off");
	rl_variable_bind("bell-style", "none");
	for (int i = 0; i < 3; i++) {
		unbind(rl_re_read_init_file, maps[i]);
		unbind(rl_tilde_expand, maps[i]); /* asks for a user */
	}
}

void line_begin(FILE *out, int signals_fd, int (*flush)(void))
{
	rl_readline_name = "prompt";
	rl_catch_signals = 0;
	rl_catch_sigwinch = 0;
	rl_change_environment = 0;
	rl_outstream = out;
	hooks_set(signals_fd, flush);
	rl_initialize();
	waits_remove();
	using_history();
}

/* A shell may have changed the modes. */
static void line_come_back(void)
{
	rl_deprep_term_function();
	rl_reset_after_signal();
	line_return();
}

void line_show(void)
{
	bool was_away = away;

	away = !hooks_in_foreground();
	if (away)
		return;
	if (!shown)
		rl_callback_handler_install("> ", line_take);
	else if (was_away)
		line_come_back();
	shown = true;
}

bool line_is_away(void)
{
	return away;
}

int line_read(char **ret_line)
{
	int r = hooks_key_take();

	if (r <= 0)
		return r;
	rl_callback_read_char();
	return hooks_error() ? hooks_error() : line_next(ret_line);
}

int line_next(char **ret_line)
{
	if (lines.no_memory)
		return -ENOMEM;
	if (lines.next < lines.count) {
		*ret_line = lines.line[lines.next++];
		return 1;
	}
	lines.next = lines.count = 0;
	return ended ? -ENODATA : 0;
}

void line_leave(void)
{
	if (shown && !away)
		rl_clear_visible_line();
}

void line_return(void)
{
	if (!shown || away)
		return;
	rl_on_new_line();
	rl_redisplay();
}

static void end_show(void)
{
	rl_point = rl_end;
	rl_redisplay();
}

void line_drop(void)
{
	if (away)
		return;
	end_show();
	rl_free_line_state();
	rl_callback_sigcleanup();
	rl_callback_handler_remove();
	fputc('\n', rl_outstream);
	shown = false;
}

/* Nothing of an empty line is left on the screen. */
static void line_hide(void)
{
	if (away)
		return;
	rl_clear_visible_line();
	rl_callback_handler_remove();
	shown = false;
}

void line_end(void)
{
	char *line;

	if (shown && rl_end > 0)
		line_drop();
	else if (shown)
		line_hide();
	while (line_next(&line) > 0)
		free(line);
	free(lines.line);
}

void line_pause(void)
{
	if (away)
		return;
	rl_cleanup_after_signal();
	fputc('\n', rl_outstream);
}

/* weft's handlers are gone with its modes, so the action is the default one,
 * which the kernel drops in an orphaned group. */
void line_stop(void)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
	pthread_sigmask(SIG_BLOCK, &stop, NULL);
	away = true;
}

void line_continue(void)
{
	if (hooks_in_foreground())
		line_leave();
	away = true;
}

void line_resize(void)
{
	if (away)
		rl_reset_screen_size();
	else
		rl_resize_terminal();
}
