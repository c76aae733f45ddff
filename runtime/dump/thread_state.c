/* SPDX-License-Identifier: MIT */
#include "runtime/dump/thread_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 512 };

static bool text_read(uint32_t thread, const char *name, char *ret_text)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%u/%s", thread,
		       name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, ret_text, TEXT_BYTES - 1);
	close(fd);
	if (n <= 0)
		return false;
	ret_text[n] = '\0';
	return true;
}

bool weft__thread_sleeps(uint32_t thread)
{
	char text[TEXT_BYTES];
	const char *name_end;

	if (!text_read(thread, "stat", text))
		return false;
	/* The thread's name may contain anything. */
	name_end = strrchr(text, ')');
	return name_end && (strncmp(name_end, ") S", 3) == 0 ||
			    strncmp(name_end, ") D", 3) == 0);
}

int weft__thread_call(uint32_t thread)
{
	char text[TEXT_BYTES], *end;
	long number;

	if (!text_read(thread, "syscall", text))
		return -1;
	number = strtol(text, &end, 10);
	return end == text ? -1 : (int)number;
}
