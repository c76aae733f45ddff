/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "service.h"

/* 1: it has a service; 0: it is empty or a comment. */
static int line_take(char *line, const char *folder, struct service *service)
{
	char *command = strstr(line, ": "), path[4096];

	if (*line == '\0' || *line == '#')
		return 0;
	if (!command)
		return -EINVAL;
	*command = '\0';
	*service = (struct service){ .name = line, .command = command + 2 };
	if (!folder)
		return 1;
	snprintf(path, sizeof(path), "%s/%s.log", folder, line);
	service->log = fopen(path, "ae");
	return service->log ? 1 : -errno;
}

int services_read(const char *path, const char *folder,
		  struct service *services, int count_max)
{
	FILE *file = fopen(path, "re");
	char *text = NULL, *line;
	size_t room = 0;
	int count = 0, r = file ? 0 : -errno;

	/* The services point to the text. */
	if (file && getdelim(&text, &room, '\0', file) >= 0)
		while (r >= 0 && (line = strsep(&text, "\n"))) {
			if (count == count_max)
				r = -E2BIG;
			else
				r = line_take(line, folder, &services[count]);
			count += r > 0;
		}
	if (file)
		fclose(file);
	return r < 0 ? r : count;
}
