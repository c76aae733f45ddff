/* SPDX-License-Identifier: MIT */
/*
 * Pipelines over the blocks of a file: what is delivered and written, of files
 * that change meanwhile too, and that the file it is written to is whole or as
 * it was before, whatever ends the pipeline.
 *
 * Each test has a folder, in which nothing but its files may be left.
 */
#include <signal.h>
#include <sys/stat.h>

#include "io/os/mask.h"
#include "tests/support/child_kit.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

enum { BLOCK = 1000, BLOCKS = 12, BYTES_MAX = (BLOCKS + 4) * BLOCK };

static char folder[] = "/tmp/weft-pipeline-XXXXXX";
static char from[64], to[64];
static char expected[BYTES_MAX], got[2 * BYTES_MAX + 1];
static struct weft_file_pipeline pipeline;

static int work_flip(void *arg, struct weft_block *block);

/* A file system with files that have no name, or without. */
static void tmpfile_set(bool has)
{
	setenv("WEFT_MASK", has ? "" : "tmpfile", 1);
	ck_assert_int_eq(weft__mask_read(), 0);
}

/* ---- Files --------------------------------------------------------------- */

static void file_write(const char *path, const char *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	EXPECT(fd >= 0);
	EXPECT(write(fd, data, bytes) == (ssize_t)bytes);
	EXPECT(close(fd) == 0);
}

static ssize_t file_read_into(const char *path, char *data, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, data, bytes);
	EXPECT(close(fd) == 0);
	return n;
}

/* The bytes that are in `got` then, or -1: there is no file. */
static ssize_t file_read(const char *path)
{
	return file_read_into(path, got, sizeof(got));
}

static void from_write(size_t bytes)
{
	for (size_t i = 0; i < sizeof(expected); i++)
		expected[i] = (char)(i * 7 + i / BLOCK);
	file_write(from, expected, bytes);
	/* The result of work_flip(). */
	for (size_t i = 0; i < sizeof(expected); i++)
		expected[i] = (char)~expected[i];
}

static bool to_is_whole(size_t bytes)
{
	return file_read(to) == (ssize_t)bytes &&
	       memcmp(got, expected, bytes) == 0;
}

static void to_write_old(void)
{
	file_write(to, "old", 3);
}

/* By several tasks at a time. */
static bool to_is_old(void)
{
	char data[4];

	return file_read_into(to, data, sizeof(data)) == 3 &&
	       memcmp(data, "old", 3) == 0;
}

static void folder_new(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(from, sizeof(from), "%s/from", folder);
	snprintf(to, sizeof(to), "%s/to", folder);
	pipeline = (struct weft_file_pipeline)WEFT_FILE_PIPELINE_INIT;
	pipeline.from = from;
	pipeline.to = to;
	pipeline.work = work_flip;
	pipeline.block_bytes = BLOCK;
}

/* Fails if anything else is there. */
static void folder_remove(void)
{
	unlink(from);
	unlink(to);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* ---- The work ------------------------------------------------------------ */

static weft_nsec pause_ns;

static int work_flip(void *arg, struct weft_block *block)
{
	char *data = block->data;

	(void)arg;
	EXPECT(block->bytes > 0 && block->bytes <= pipeline.block_bytes);
	EXPECT(block->offset == block->index * pipeline.block_bytes);
	for (size_t i = 0; i < block->bytes; i++)
		data[i] = (char)~data[i];
	return pause_ns ? weft_sleep(block->index * 7919 % pause_ns) : 0;
}

/* ---- The result ---------------------------------------------------------- */

IO_TEST(blocks_are_written_in_order)
{
	static const size_t sizes[] = {
		0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 11 * BLOCK + 7
	};

	pause_ns = WEFT_US(50);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (unsigned tasks = 0; tasks < 4; tasks++) {
			from_write(sizes[i]);
			pipeline.tasks = tasks;
			pipeline.blocks_max = tasks * (i % 2 ? 2 : 1);
			tmpfile_set(tasks != 3);
			EXPECT(weft_pipeline_file(&pipeline) == 0);
			EXPECT(to_is_whole(sizes[i]));
		}
	/* Onto itself, twice. */
	pipeline.to = from;
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	pipeline.to = to;
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	EXPECT(to_is_whole(11 * BLOCK + 7));
	/* A plain copy. */
	pipeline.work = NULL;
	pipeline.from = to;
	pipeline.to = from;
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	EXPECT(file_read(from) == 11 * BLOCK + 7);
	EXPECT(memcmp(got, expected, 11 * BLOCK + 7) == 0);
	return 0;
}

static int work_double(void *arg, struct weft_block *block)
{
	char *data = block->data, *out = block->out;

	(void)arg;
	EXPECT(block->out_bytes == 0);
	for (size_t i = 0; i < block->bytes; i++)
		out[2 * i] = out[2 * i + 1] = data[i];
	block->out_bytes = 2 * block->bytes;
	return 0;
}

/* deliver() sees what is written, and may change it. */
static int deliver_cut(void *arg, struct weft_block *block)
{
	uint64_t *index = arg;

	EXPECT(block->index == (*index)++);
	if (block->index == 1)
		block->out_bytes = 0;
	return 0;
}

IO_TEST(output_may_have_another_size)
{
	uint64_t index = 0;

	from_write(5 * BLOCK + 1);
	pipeline.work = work_double;
	pipeline.deliver = deliver_cut;
	pipeline.arg = &index;
	pipeline.out_bytes_max = 2 * BLOCK;
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	EXPECT(index == 6 && file_read(to) == 8 * BLOCK + 2);
	for (size_t i = 0; i < 8 * BLOCK + 2; i++) {
		size_t at = i / 2 < BLOCK ? i / 2 : i / 2 + BLOCK;

		EXPECT(got[i] == (char)~expected[at]);
	}
	return 0;
}

static int64_t write_slowly(void *arg)
{
	int fd = *(int *)arg;

	for (size_t at = 0; at < 5 * BLOCK; at += BLOCK / 2) {
		char data[BLOCK / 2];

		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (char)~expected[at + i];
		EXPECT(weft_write_all(fd, data, sizeof(data), NULL) == 0);
		EXPECT(weft_yield() == 0);
	}
	return weft_close(fd);
}

/* Nor has every file a size: those of /proc. */
IO_TEST(pipe_is_read_in_order)
{
	int fds[2];

	from_write(0);
	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	pipeline.from = NULL;
	pipeline.from_fd = fds[0];
	WEFT_SUPERVISE (tasks) {
		EXPECT(WEFT_GO(tasks, write_slowly, fds[1]) == 0);
		EXPECT(weft_pipeline_file(&pipeline) == 0);
	}
	EXPECT(to_is_whole(5 * BLOCK));
	EXPECT(weft_close(fds[0]) == 0);
	pipeline.from = "/proc/version";
	pipeline.block_bytes = 16;
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	pipeline.from = to;
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	EXPECT(file_read(to) > 0 && memcmp(got, "Linux", 5) == 0);
	return 0;
}

/* ---- Files that change --------------------------------------------------- */

/* With the first block, when no other was read; and with the block that has
 * become the last, the file grows again. */
static int deliver_truncate(void *arg, struct weft_block *block)
{
	off_t end = *(off_t *)arg;

	if (block->index == 0)
		EXPECT(truncate(from, end) == 0);
	else if (block->index == (uint64_t)end / BLOCK)
		EXPECT(truncate(from, BLOCKS * BLOCK + 1) == 0);
	return 0;
}

IO_TEST(file_that_shrinks_ends_where_it_ends)
{
	static const off_t ends[] = { 3 * BLOCK, 3 * BLOCK + 100,
				      5 * BLOCK - 1 };

	pipeline.deliver = deliver_truncate;
	pipeline.blocks_max = 1;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		off_t end = ends[i];

		from_write(BLOCKS * BLOCK + 1);
		pipeline.arg = &end;
		EXPECT(weft_pipeline_file(&pipeline) == 0);
		EXPECT(to_is_whole((size_t)end));
	}
	return 0;
}

static int deliver_grow(void *arg, struct weft_block *block)
{
	int fd;

	(void)arg;
	if (block->index != 0)
		return 0;
	fd = open(from, O_WRONLY | O_APPEND | O_CLOEXEC);
	EXPECT(fd >= 0 && write(fd, "12345", 5) == 5 && close(fd) == 0);
	return 0;
}

IO_TEST(file_that_grows_is_read_to_its_end)
{
	size_t sizes[] = { 3 * BLOCK, 4 * BLOCK - 2, 5 * BLOCK - 5 };

	pipeline.deliver = deliver_grow;
	pipeline.blocks_max = 2;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		from_write(sizes[i]);
		for (int j = 0; j < 5; j++)
			expected[sizes[i] + (size_t)j] = (char)~('1' + j);
		EXPECT(weft_pipeline_file(&pipeline) == 0);
		EXPECT(to_is_whole(sizes[i] + 5));
	}
	return 0;
}

/* ---- Whole or not at all ------------------------------------------------- */

static int fail_at(void *arg, struct weft_block *block)
{
	/* Until now there is none. */
	EXPECT(to_is_old());
	return block->index == *(uint64_t *)arg ? -EXDEV : 0;
}

IO_TEST(after_an_error_the_file_is_as_before)
{
	from_write(BLOCKS * BLOCK);
	to_write_old();
	for (uint64_t at = 0; at < 2 * BLOCKS; at++) {
		uint64_t index = at / 2;

		pipeline.work = at % 2 ? fail_at : NULL;
		pipeline.deliver = at % 2 ? NULL : fail_at;
		pipeline.arg = &index;
		pipeline.blocks_max = 4;
		tmpfile_set(at % 3 != 0);
		EXPECT(weft_pipeline_file(&pipeline) == -EXDEV);
		EXPECT(to_is_old());
	}
	/* Reading and the last step fail, too. */
	pipeline.work = pipeline.deliver = NULL;
	pipeline.from = folder;
	EXPECT(weft_pipeline_file(&pipeline) == -EISDIR);
	EXPECT(to_is_old());
	pipeline.from = from;
	pipeline.to = folder;
	EXPECT(weft_pipeline_file(&pipeline) == -EISDIR);
	return 0;
}

static int work_long(void *arg, struct weft_block *block)
{
	(void)arg;
	(void)block;
	return weft_sleep(WEFT_SEC(1000));
}

static int64_t run_pipeline(void *arg)
{
	(void)arg;
	return weft_pipeline_file(&pipeline);
}

static int64_t cancel_after(weft_nsec after_ns)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t r = 0;

	opts.ret_task = &task;
	WEFT_SUPERVISE (tasks) {
		EXPECT(weft_go_opts(tasks, run_pipeline, NULL, 0, &opts) == 0);
		EXPECT(weft_sleep(after_ns) == 0);
		(void)weft_cancel(task);
		EXPECT(weft_join(task, &r) == 0);
	}
	return r;
}

IO_TEST(after_a_cancellation_the_file_is_as_before)
{
	from_write(BLOCKS * BLOCK);
	pause_ns = WEFT_US(200);
	for (unsigned i = 0; i < 60; i++) {
		int64_t r;

		to_write_old();
		tmpfile_set(i % 2 == 0);
		r = cancel_after(WEFT_US(37) * i);
		EXPECT(r == 0 || r == -ECANCELED);
		EXPECT(r == 0 ? to_is_whole(BLOCKS * BLOCK) : to_is_old());
	}
	to_write_old();
	pipeline.work = work_long;
	WEFT_WITHIN (WEFT_MS(2))
		EXPECT(weft_pipeline_file(&pipeline) == -ETIMEDOUT);
	EXPECT(to_is_old());
	return 0;
}

static int64_t run_for_ever(void *arg)
{
	while (weft_pipeline_file(&pipeline) == 0)
		;
	return (int64_t)(intptr_t)arg;
}

static void files_left_remove(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	EXPECT(dir);
	while ((entry = readdir(dir)))
		if (strncmp(entry->d_name, ".weft-", 6) == 0)
			EXPECT(unlinkat(dirfd(dir), entry->d_name, 0) == 0);
	closedir(dir);
}

/* A process that replaces a file over and over is killed. */
START_TEST(after_a_kill_the_file_is_whole)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 2;
	from_write(BLOCKS * BLOCK);
	pause_ns = WEFT_US(100);
	tmpfile_set(_i == 0);
	for (int i = 0; i < 25; i++) {
		child_kill(run_for_ever, &opts, 1000000 + i * 300000);
		EXPECT(file_read(to) == -1 || to_is_whole(BLOCKS * BLOCK));
	}
	files_left_remove();
}
END_TEST

/* ---- Limits, mistakes ---------------------------------------------------- */

IO_TEST(write_error_is_returned)
{
	struct rlimit old;

	from_write(BLOCKS * BLOCK);
	EXPECT(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	old = limit_set(RLIMIT_FSIZE, 5 * BLOCK);
	EXPECT(weft_pipeline_file(&pipeline) == -EFBIG);
	limit_reset(RLIMIT_FSIZE, old);
	EXPECT(file_read(to) == -1);
	return 0;
}

static int refused(void)
{
	int r = weft_pipeline_file(&pipeline);

	pipeline = (struct weft_file_pipeline)WEFT_FILE_PIPELINE_INIT;
	pipeline.from = from;
	pipeline.to = to;
	EXPECT(file_read(to) == -1);
	return r;
}

IO_TEST(wrong_options_are_refused)
{
	from_write(1);
	EXPECT(weft_pipeline_file(NULL) == -EINVAL);
	pipeline.size--;
	EXPECT(refused() == -EINVAL);
	pipeline.block_bytes = 7;
	EXPECT(refused() == -EINVAL);
	pipeline.block_bytes = (1u << 30) + 1;
	EXPECT(refused() == -EINVAL);
	pipeline.out_bytes_max = (1u << 30) + 1;
	EXPECT(refused() == -EINVAL);
	pipeline.flags = WEFT_PIPELINE_UNORDERED;
	EXPECT(refused() == -EINVAL);
	pipeline.flags = 4;
	EXPECT(refused() == -EINVAL);
	pipeline.to_mode = 010000;
	EXPECT(refused() == -EINVAL);
	pipeline.blocks_max = 1000001;
	EXPECT(refused() == -EINVAL);
	pipeline.reserved = 1;
	EXPECT(refused() == -EINVAL);
#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN)
	pipeline.blocks_max = 1000000;
	pipeline.block_bytes = pipeline.out_bytes_max = 1u << 30;
	EXPECT(refused() == -ENOMEM);
#endif
	pipeline.to = "/tmp/";
	EXPECT(refused() == -EINVAL);
	pipeline.to = "..";
	EXPECT(refused() == -EINVAL);
	pipeline.to = "";
	EXPECT(refused() == -ENOENT);
	pipeline.to = "/tmp/weft-no-such/to";
	EXPECT(refused() == -ENOENT);
	pipeline.from = "/tmp/weft-no-such";
	EXPECT(refused() == -ENOENT);
	pipeline.from = NULL;
	EXPECT(refused() == -EBADF);
	return 0;
}

START_TEST(calls_need_a_task)
{
	ck_assert_int_eq(weft_pipeline_file(&pipeline), -EPERM);
}
END_TEST

/* Blocks, too, may be worked on by the pool. */
static int work_outside(void *arg, struct weft_block *block)
{
	(void)arg;
	EXPECT(weft_yield() == -EPERM);
	return work_flip(NULL, block);
}

IO_TEST(work_may_block_its_thread)
{
	from_write(BLOCKS * BLOCK + 1);
	pause_ns = 0;
	pipeline.work = work_outside;
	pipeline.flags = WEFT_PIPELINE_BLOCKING;
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	EXPECT(to_is_whole(BLOCKS * BLOCK + 1));
	return 0;
}

static Suite *pipeline_suite(void)
{
	Suite *suite = suite_create("fs/pipeline/file");
	TCase *tc = tcase_create("file");

	tcase_add_checked_fixture(tc, folder_new, folder_remove);
	io_add_test(tc, blocks_are_written_in_order);
	io_add_test(tc, output_may_have_another_size);
	io_add_test(tc, pipe_is_read_in_order);
	io_add_test(tc, file_that_shrinks_ends_where_it_ends);
	io_add_test(tc, file_that_grows_is_read_to_its_end);
	io_add_test(tc, after_an_error_the_file_is_as_before);
	io_add_test(tc, after_a_cancellation_the_file_is_as_before);
	tcase_add_loop_test(tc, after_a_kill_the_file_is_whole, 0, 2);
	io_add_test(tc, write_error_is_returned);
	io_add_test(tc, wrong_options_are_refused);
	tcase_add_test(tc, calls_need_a_task);
	io_add_test(tc, work_may_block_its_thread);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return io_tests_run(pipeline_suite());
}
