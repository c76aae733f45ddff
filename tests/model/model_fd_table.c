/* SPDX-License-Identifier: MIT */
/*
 * Model of the table of descriptors (io/request/fd_table.[ch]): two threads
 * that use a number for the first time get the same entry, which is blank.
 */
#include "tests/model/kit.h"

#include "runtime/base/lock.c"

#include "io/request/fd_table.h"

static void *chunk_new(void);
static void chunk_free(void *chunk);
#define weft__memory_zeroed(from, bytes) ((void)(from), chunk_new())
#define weft__memory_free(from, chunk, bytes) ((void)(from), chunk_free(chunk))
#include "io/request/fd_table.c"
#undef weft__memory_zeroed
#undef weft__memory_free

enum { FD = 5 };

static struct weft__fd made[2][WEFT__FD_CHUNK];
static weft__atomic(struct weft__fd *) table[1];
static struct weft__fd_table fds;
static struct weft__task tasks[2];
static uint32_t freed;

int weft__syscall_kind(int fd)
{
	(void)fd;
	return WEFT__FD_OTHER;
}

bool weft__syscall_is_open(int fd)
{
	(void)fd;
	return true;
}

int weft__syscall_close(int fd)
{
	(void)fd;
	return 0;
}

/* The thread's own; the model looks at one entry of it. */
static void *chunk_new(void)
{
	struct weft__fd *chunk = made[model_self()];

	model_data_write(&chunk[FD]);
	memset(&chunk[FD], 0, sizeof(chunk[FD]));
	return chunk;
}

MODEL_UNSEEN static void count_free(void)
{
	freed++;
}

static void chunk_free(void *chunk)
{
	struct weft__fd *entries = chunk;

	model_free(&entries[FD], sizeof(entries[FD]));
	count_free();
}

static void setup(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 2; i++)
		memset(&made[i][FD], 0xff, sizeof(made[i][FD]));
	memset(tasks, 0, sizeof(tasks));
	table[0] = NULL;
	fds.chunks = table;
	fds.chunks_end = 0;
	freed = 0;
	model_name(table, "chunk");
	model_name(&made[0][FD], "entry of T0");
	model_name(&made[1][FD], "entry of T1");
}

static void use(void *arg)
{
	struct weft__fd *entry = NULL;

	(void)arg;
	model_assert(weft__fd_get(&fds, FD, &entry) == 0 && entry,
		     "there is an entry");
	weft__lock_take(&entry->lock);
	model_assert(!entry->closing, "a new entry is blank");
	weft__fd_link(entry, &tasks[model_self()]);
	weft__lock_drop(&entry->lock);
}

static void check_end(void *arg)
{
	struct weft__fd *entry = weft__fd_find(&fds, FD);

	(void)arg;
	model_assert(entry->waiting && weft__op_of(entry->waiting)->fd_next &&
			     !weft__op_of(weft__op_of(entry->waiting)->fd_next)
				      ->fd_next,
		     "both are in one list");
	model_assert(fds.chunks_end == 1 && freed <= 1, "one chunk was made");
}

MODEL(two_make_one, setup, check_end, OPTIONS(), use, use)

int main(void)
{
	const TTest *const tests[] = { two_make_one, NULL };

	return kit_main("fd", tests);
}
