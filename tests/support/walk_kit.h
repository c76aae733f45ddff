/* SPDX-License-Identifier: MIT */
/*
 * Walks for tests: the visits become lists, as those of
 * tests/support/tree_kit.h, and each entry is looked at.
 */
#ifndef WEFT_TESTS_SUPPORT_WALK_KIT_H
#define WEFT_TESTS_SUPPORT_WALK_KIT_H

#include "io/os/statx.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/tree_kit.h"

struct visits {
	struct tree_list entered, left, errors;
	const struct weft_walk_opts *opts;
	weft__atomic(int) inside; /* visits that run */
	int most_inside;
};

static inline void visits_free(struct visits *visits)
{
	tree_list_free(&visits->entered);
	tree_list_free(&visits->left);
	tree_list_free(&visits->errors);
}

/* dir_fd and name are those of the file. */
static inline void check_fd(const struct weft_walk_entry *entry)
{
	struct stat st;

	EXPECT(fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) ==
	       0);
	EXPECT(IFTODT(st.st_mode) == entry->type);
	EXPECT(!entry->depth || !entry->inode || st.st_ino == entry->inode);
	EXPECT(!entry->status || entry->status->stx_ino == st.st_ino);
}

static inline void check_entry(const struct weft_walk_entry *entry,
			const struct weft_walk_opts *opts)
{
	unsigned slashes = 0;

	for (const char *c = entry->path; *c; c++)
		slashes += *c == '/';
	EXPECT(entry->depth == slashes + (*entry->path != 0));
	EXPECT(entry->path_bytes == strlen(entry->path));
	EXPECT(entry->name_bytes == strlen(entry->name));
	EXPECT(entry->event != WEFT_WALK_ENTRY ||
	       !entry->status == !opts->status_mask);
	if (entry->depth)
		EXPECT(strcmp(entry->name, entry->path + entry->path_bytes -
						   entry->name_bytes) == 0);
	if (opts->flags & WEFT_WALK_DIR_FD)
		check_fd(entry);
	else
		EXPECT(entry->dir_fd == -1);
}

static inline int list(const struct weft_walk_entry *entry, void *arg)
{
	struct visits *visits = arg;
	size_t bytes = entry->path_bytes + 16;
	char *line = malloc(bytes);

	/* relaxed: compared with itself. */
	int inside = weft__add(&visits->inside, 1, relaxed) + 1;

	EXPECT(line);
	tree_line(line, bytes, entry->path, entry->event == WEFT_WALK_ERROR ?
						    -entry->error :
						    entry->type);
	EXPECT(!entry->error == (entry->event != WEFT_WALK_ERROR));
	switch (entry->event) {
	case WEFT_WALK_ENTRY:
		check_entry(entry, visits->opts);
		tree_list_add(&visits->entered, line);
		break;
	case WEFT_WALK_LEAVE:
		check_entry(entry, visits->opts);
		EXPECT(entry->type == DT_DIR);
		tree_list_add(&visits->left, line);
		tree_list_add(&visits->entered, "left");
		break;
	case WEFT_WALK_ERROR:
		tree_list_add(&visits->errors, line);
		break;
	}
	if (visits->opts->tasks == 1 ||
	    (visits->opts->flags & WEFT_WALK_SORTED))
		EXPECT(inside == 1);
	weft__sub(&visits->inside, 1, relaxed);
	free(line);
	return 0;
}

static inline int walk(const struct tree *tree,
		       const struct weft_walk_opts *opts,
		       struct visits *ret_visits)
{
	*ret_visits = (struct visits){ .opts = opts };
	return weft_walk(tree->fd, ".", list, ret_visits, opts);
}

/* After its LEAVE a directory has no more visits; the list of all visits has
 * "left" for each. */
static inline void check_left(struct visits *visits)
{
	struct tree_list dirs = { 0 }, entries = { 0 };

	for (size_t i = 0; i < visits->entered.count; i++) {
		const char *line = visits->entered.texts[i];
		const char *type = strrchr(line, '\t');

		if (!type)
			continue;
		tree_list_add(&entries, line);
		if (atoi(type + 1) == DT_DIR)
			tree_list_add(&dirs, line);
	}
	ck_assert_uint_eq(visits->entered.count,
			  entries.count + visits->left.count);
	tree_list_free(&visits->entered);
	visits->entered = entries;
	if (visits->opts->flags & WEFT_WALK_POST)
		tree_lists_compare(&visits->left, &dirs);
	else
		ck_assert_uint_eq(visits->left.count, 0);
	tree_list_free(&dirs);
}

/* Are the directories below a directory left before it? */
static inline void check_left_order(const struct visits *visits)
{
	const struct tree_list *left = &visits->left;

	for (size_t i = 0; i < left->count; i++) {
		size_t bytes = (size_t)(strrchr(left->texts[i], '\t') -
					left->texts[i]);

		for (size_t j = i + 1; bytes && j < left->count; j++)
			EXPECT(strncmp(left->texts[i], left->texts[j], bytes) !=
				       0 ||
			       left->texts[j][bytes] != '/');
	}
}

/* A walk with these options visits what the tree holds. */
static inline void expect_walk(const struct tree *tree,
			const struct weft_walk_opts *opts)
{
	struct tree_list expected = { 0 };
	struct visits visits;

	tree_list(tree->fd, ".", &expected);
	ck_assert_int_eq(walk(tree, opts, &visits), 0);
	ck_assert_uint_eq(visits.errors.count, 0);
	check_left_order(&visits);
	check_left(&visits);
	if (opts->flags & WEFT_WALK_SORTED)
		tree_lists_compare_order(&visits.entered, &expected);
	else
		tree_lists_compare(&visits.entered, &expected);
	visits_free(&visits);
	tree_list_free(&expected);
}

static inline void expect_walks(const struct tree *tree)
{
	static const unsigned flags[] = {
		0, WEFT_WALK_SORTED, WEFT_WALK_SORTED | WEFT_WALK_POST,
		WEFT_WALK_DIR_FD, WEFT_WALK_POST,
		WEFT_WALK_DIR_FD | WEFT_WALK_POST,
		WEFT_WALK_DIR_FD | WEFT_WALK_POST | WEFT_WALK_SORTED,
		WEFT_WALK_ONE_DEVICE,
	};

	for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		struct weft_walk_opts opts = WEFT_WALK_OPTS_INIT;

		opts.flags = flags[i];
		opts.tasks = i % 3;
		opts.status_mask = i == 1 || i > 3 ? STATX_INO : 0;
		expect_walk(tree, &opts);
	}
}

#endif
