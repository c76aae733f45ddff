/* SPDX-License-Identifier: MIT */
/*
 * The threads of this process, by their names.
 */
#ifndef WEFT_TESTS_SUPPORT_THREADS_H
#define WEFT_TESTS_SUPPORT_THREADS_H

#include <check.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls fn for each: its number in the kernel, and its name with a line feed.
 * One that ends meanwhile may be left out. */
static inline void threads_each(void (*fn)(int thread, const char *name,
					   void *arg),
				void *arg)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file))
			fn(atoi(entry->d_name), name, arg);
		fclose(file);
	}
	closedir(dir);
}

struct threads_count {
	const char *prefix;
	bool with;
	int count;
};

static inline void threads_count_one(int thread, const char *name, void *arg)
{
	struct threads_count *counting = arg;
	size_t length = strlen(counting->prefix);

	(void)thread;
	counting->count += counting->with ==
			   !strncmp(name, counting->prefix, length);
}

/* How many there are whose names begin so, or all others. */
static inline int threads_count(const char *prefix, bool with)
{
	struct threads_count counting = { .prefix = prefix, .with = with };

	threads_each(threads_count_one, &counting);
	return counting.count;
}

#endif
