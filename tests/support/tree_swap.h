/* SPDX-License-Identifier: MIT */
/*
 * Threads that change a tree while weft is in it.
 *
 * The swapper exchanges a directory, "swap", with a symbolic link to another
 * one outside of the tree, which has the same names in it and a file of its
 * own, "secret", at each level.
 */
#ifndef WEFT_TESTS_SUPPORT_TREE_SWAP_H
#define WEFT_TESTS_SUPPORT_TREE_SWAP_H

#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/atomic.h"
#include "tests/support/expect.h"
#include "tests/support/tree_kit.h"

/* More of them in a long run. */
static inline int race_repeats(int few)
{
	return getenv("WEFT_TEST_LONG") ? 20 * few : few;
}

/* In any thread. */
static inline unsigned race_random(void)
{
	static weft__atomic(unsigned) calls;

	/* relaxed: a number, and nothing else. */
	unsigned state = weft__add(&calls, 1u, relaxed) * 2654435761u;

	return state >> 13 & 0x7fff;
}

struct tree_changer {
	const struct tree *tree;
	pthread_t thread;
	weft__atomic(bool) stop;
	weft__atomic(unsigned) turns;
};

enum { SWAP_LEVELS = 3 };

/* Makes "swap" and what is in it, or the same below another name. */
static inline void swap_make(const struct tree *tree, const char *name,
			     const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/a/b/c", name);
	tree_dir(tree, path);
	for (int level = 0, bytes = (int)strlen(path); level <= SWAP_LEVELS;
	     level++, bytes -= 2) {
		char below[256];

		snprintf(below, sizeof(below), "%.*s/%s", bytes, path, file);
		tree_file(tree, below);
	}
}

static inline bool swap_once(const struct tree *tree)
{
	return syscall(SYS_renameat2, tree->fd, "swap", tree->fd, "link",
		       RENAME_EXCHANGE) == 0;
}

static inline bool changer_goes_on(struct tree_changer *changer)
{
	/* relaxed: counts and a flag, which publish nothing. */
	weft__add(&changer->turns, 1u, relaxed);
	return !weft__load(&changer->stop, relaxed);
}

static inline void *swapper_main(void *arg)
{
	struct tree_changer *changer = arg;

	/* In vain, once one of the two is removed. */
	while (changer_goes_on(changer))
		(void)swap_once(changer->tree);
	return NULL;
}

static inline void changer_start(struct tree_changer *changer,
				 const struct tree *tree, void *(*main)(void *))
{
	changer->tree = tree;
	weft__store(&changer->stop, false, relaxed);
	weft__store(&changer->turns, 0u, relaxed);
	EXPECT(pthread_create(&changer->thread, NULL, main, changer) == 0);
}

static inline void changer_end(struct tree_changer *changer)
{
	weft__store(&changer->stop, true, relaxed);
	EXPECT(pthread_join(changer->thread, NULL) == 0);
}

/* Can the kernel and the file system exchange names? */
static inline bool swap_works(void)
{
	struct tree tree;
	bool works;

	tree_open(&tree);
	tree_dir(&tree, "swap");
	EXPECT(symlinkat("/", tree.fd, "link") == 0);
	works = swap_once(&tree);
	tree_close(&tree);
	return works;
}

#endif
