/* SPDX-License-Identifier: MIT */
/*
 * All output goes to a stream in memory, and from there to the terminal when
 * the task is about to wait.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/weft.h>

#include "editor.h"
#include "line.h"
#include "plain.h"

static FILE *out;
static char *text;
static size_t text_bytes;
static bool has_terminal;
static int signals_fd = -1, size_fd = -1;

static int flush(void)
{
	int r;

	(void)fflush(out);
	r = weft_write_all(STDOUT_FILENO, text, text_bytes, NULL);
	rewind(out);
	text_bytes = 0; /* musl sets it only when something is written */
	return r;
}

int editor_begin(const sigset_t *signals)
{
	has_terminal = signals;
	out = open_memstream(&text, &text_bytes);
	if (!out)
		return -ENOMEM;
	if (!has_terminal)
		return 0;
	signals_fd = weft_signal_open(signals);
	if (signals_fd < 0)
		return signals_fd;
	size_fd = weft_terminal_resize_open();
	if (size_fd < 0)
		return size_fd;
	line_begin(out, signals_fd, flush);
	return 0;
}

void editor_end(void)
{
	if (!out)
		return;
	line_end();
	/* The user may have stopped the output with ^S. */
	WEFT_SHIELD
		WEFT_WITHIN(WEFT_SEC(1))
			(void)flush();
	fclose(out);
	free(text);
	if (size_fd >= 0)
		weft_terminal_resize_close(size_fd);
	if (signals_fd >= 0)
		weft_close(signals_fd);
}

int editor_show(bool with_line)
{
	if (has_terminal && with_line)
		line_show();
	return flush();
}

void editor_print(const char *format, ...)
{
	va_list arguments;

	line_leave();
	va_start(arguments, format);
	vfprintf(out, format, arguments);
	va_end(arguments);
	fputc('\n', out);
	line_return();
}

bool editor_may_read(void)
{
	return !has_terminal || !line_is_away();
}

int editor_read(char **ret_line)
{
	int r = has_terminal ? line_read(ret_line) : plain_read(ret_line);

	if (r != -EMSGSIZE)
		return r;
	editor_print("the line is too long");
	return 0;
}

int editor_next(char **ret_line)
{
	return has_terminal ? line_next(ret_line) : 0;
}

int editor_signals_fd(void)
{
	return signals_fd;
}

int editor_size_fd(void)
{
	return size_fd;
}

int editor_signal(void)
{
	int number, r = weft_signal_wait(signals_fd, &number);

	if (r == 0 && number == SIGINT)
		line_drop();
	if (r == 0 && number == SIGCONT)
		line_continue();
	if (r < 0 || number != SIGTSTP)
		return r;
	line_pause();
	r = flush();
	line_stop();
	return r;
}

int editor_resize(void)
{
	int r = weft_terminal_resize_wait(size_fd);

	if (r == 0)
		line_resize();
	return r;
}
