/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "folder.h"

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static unsigned char type_of(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN ||
	    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return entry->d_type;
	return (unsigned char)IFTODT(st.st_mode);
}

static int folder_list(struct folder *folder)
{
	DIR *dir = opendir(folder->path);
	FILE *out = dir ? open_memstream(&folder->names, &folder->bytes) : NULL;
	const struct dirent *entry;
	int r = out ? 0 : -errno;

	while (r == 0 && (entry = readdir(dir))) {
		unsigned char type = type_of(dirfd(dir), entry);

		if (type == DT_REG ||
		    (type == DT_DIR && !is_dots(entry->d_name)))
			fprintf(out, "%c%s%c", type, entry->d_name, '\0');
	}
	if (out && fclose(out) != 0)
		r = -errno;
	if (dir)
		closedir(dir);
	return r;
}

void folder_leave(struct tree *tree)
{
	struct folder *folder = tree->top;

	tree->top = folder->above;
	free(folder->path);
	free(folder->names);
	free(folder);
}

int folder_enter(struct tree *tree, char *path)
{
	struct folder *folder = calloc(1, sizeof(*folder));
	int r;

	if (!folder)
		return -ENOMEM;
	folder->path = path;
	r = folder_list(folder);
	if (r < 0) {
		free(folder->names);
		free(folder);
		return r;
	}
	folder->at = folder->names;
	folder->above = tree->top;
	tree->top = folder;
	return 0;
}

char *folder_next(struct folder *folder, bool *ret_is_folder)
{
	size_t bytes = strlen(folder->path);
	bool slash = folder->path[bytes - 1] == '/';
	char *path = NULL;

	*ret_is_folder = *folder->at == DT_DIR;
	if (asprintf(&path, "%s%s%s", folder->path, slash ? "" : "/",
		     folder->at + 1) < 0)
		return NULL;
	folder->at += strlen(folder->at) + 1;
	return path;
}
