/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"

static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != '\\' || !text[1])
			*to++ = *text;
		else if (*++text == 'n')
			*to++ = '\n';
		else
			*to++ = *text == 'r' ? '\r' : *text;
	*to = '\0';
}

/* "digits  name" or "digits *name", of which the file gets copies. */
static bool line_parse(char *line, struct file *file)
{
	bool escaped = *line == '\\';
	char *name;

	line += escaped;
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < SUM_DIGITS; i++)
		if (!isxdigit((unsigned char)line[i]))
			return false;
	name = line + SUM_DIGITS;
	if (name[0] != ' ' || (name[1] != ' ' && name[1] != '*') || !name[2])
		return false;
	name += 2;
	if (escaped)
		unescape(name);
	file->note = strndup(line, SUM_DIGITS);
	file->path = strdup(name);
	return true;
}

/* The next list.  False: there is none. */
static bool list_open(struct sums *sums)
{
	for (; *sums->names; sums->names++) {
		if (strcmp(*sums->names, "-") == 0)
			sums->list = stdin;
		else
			sums->list = fopen(*sums->names, "re");
		if (sums->list) {
			sums->names++;
			return true;
		}
		sums->unreadable++;
		fprintf(stderr, "checksum: %s: %s\n", *sums->names,
			strerror(errno));
	}
	return false;
}

/* Lists are short, and read without a thought for the worker. */
int sums_next(struct files *files, struct file *file)
{
	struct sums *sums = files->arg;
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (!found && (sums->list || list_open(sums))) {
		if (getline(&line, &room, sums->list) < 0) {
			fclose(sums->list);
			sums->list = NULL;
			continue;
		}
		found = line_parse(line, file);
		sums->misformatted += !found && *line != '#';
	}
	free(line);
	sums->listed += found;
	return found;
}
