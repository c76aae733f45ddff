/* SPDX-License-Identifier: MIT */
/*
 * Pipelines on threads: thousands of items, the memory that a large file takes,
 * and options that are wrong.
 */
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

enum { ITEMS = 5000 };

/* Fields that only one step touches at a time need no lock. */
struct line {
	unsigned made, delivered, dropped_sum;
	weft__atomic(unsigned) dropped;
	unsigned flags;
};

static int line_next(void *arg, void *item, size_t *ret_bytes)
{
	struct line *line = arg;

	*(unsigned *)item = line->made;
	*ret_bytes = 100 + line->made % 7;
	return line->made < ITEMS && ++line->made;
}
static int line_work(void *arg, void *item)
{
	struct line *line = arg;
	unsigned *number = item;

	if (line->flags & WEFT_PIPELINE_BLOCKING)
		EXPECT(weft_yield() == -EPERM);
	else if (*number % 13 == 0)
		EXPECT(weft_yield() == 0);
	*number *= 3;
	return 0;
}
static int line_deliver(void *arg, void *item)
{
	struct line *line = arg;

	EXPECT(*(unsigned *)item % 3 == 0);
	if (!(line->flags & WEFT_PIPELINE_UNORDERED))
		EXPECT(*(unsigned *)item == 3 * line->delivered);
	line->delivered++;
	return 0;
}
static void line_drop(void *arg, void *item)
{
	struct line *line = arg;

	(void)item;
	/* relaxed: it is read when all tasks have ended. */
	weft__add(&line->dropped, 1u, relaxed);
}

IO_TEST(items_go_through_on_threads)
{
	static const unsigned flags[] = { 0, WEFT_PIPELINE_UNORDERED,
					  WEFT_PIPELINE_BLOCKING };
	struct weft_pipeline p = WEFT_PIPELINE_INIT(unsigned);

	for (size_t i = 0; i < 3; i++) {
		struct line line = { .flags = flags[i] };

		p.next = line_next;
		p.work = line_work;
		p.deliver = line_deliver;
		p.drop = line_drop;
		p.arg = &line;
		p.flags = flags[i];
		p.bytes_max = 1000;
		EXPECT(weft_pipeline_run(&p) == 0);
		EXPECT(line.delivered == ITEMS);
		/* relaxed: all tasks have ended. */
		EXPECT(weft__load(&line.dropped, relaxed) == ITEMS);
	}
	return 0;
}

#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN) && !defined(WEFT_VALGRIND)
enum { BIG_MIB = 512, GROWTH_MIB = 24 };

static long peak_kib(void)
{
	struct rusage usage;

	EXPECT(getrusage(RUSAGE_SELF, &usage) == 0);
	return usage.ru_maxrss;
}

/* A file of holes: no disk is needed, and all else is as of another. */
static void note_progress(void *arg, uint64_t blocks, uint64_t bytes)
{
	uint64_t *last = arg;

	EXPECT(bytes >= *last && bytes == blocks << 18);
	*last = bytes;
}

/* 16 blocks of 256 KiB for each worker, and no more. */
IO_TEST(large_file_takes_little_memory)
{
	struct weft_file_pipeline pipeline = WEFT_FILE_PIPELINE_INIT;
	char path[] = "/tmp/weft-pipeline-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	uint64_t last = 0;
	long before;

	EXPECT(fd >= 0 && unlink(path) == 0);
	EXPECT(ftruncate(fd, (off_t)BIG_MIB << 20) == 0);
	pipeline.from_fd = fd;
	pipeline.progress = note_progress;
	pipeline.arg = &last;
	before = peak_kib();
	EXPECT(weft_pipeline_file(&pipeline) == 0);
	EXPECT(peak_kib() - before < GROWTH_MIB << 10);
	EXPECT(last == (uint64_t)BIG_MIB << 20);
	EXPECT(weft_close(fd) == 0);
	return 0;
}
#endif

/* ---- Mistakes ------------------------------------------------------------ */

static struct weft_pipeline wrong;

static int never(void *arg, void *item, size_t *ret_bytes)
{
	(void)arg;
	(void)item;
	(void)ret_bytes;
	ck_abort_msg("next() was called");
}

static int refused(void)
{
	int r = weft_pipeline_run(&wrong);

	wrong = (struct weft_pipeline)WEFT_PIPELINE_INIT(char);
	wrong.next = never;
	return r;
}

IO_TEST(wrong_options_are_refused)
{
	wrong = (struct weft_pipeline){ 0 };
	EXPECT(weft_pipeline_run(NULL) == -EINVAL);
	EXPECT(refused() == -EINVAL);
	wrong.size--;
	EXPECT(refused() == -EINVAL);
	wrong.next = NULL;
	EXPECT(refused() == -EINVAL);
	wrong.item_bytes = 0;
	EXPECT(refused() == -EINVAL);
	wrong.item_bytes = (64 << 10) + 1;
	EXPECT(refused() == -EINVAL);
	wrong.items_max = 1000001;
	EXPECT(refused() == -EINVAL);
	wrong.tasks = 1000001;
	EXPECT(refused() == -EINVAL);
	wrong.flags = 4;
	EXPECT(refused() == -EINVAL);
	wrong.reserved = 1;
	EXPECT(refused() == -EINVAL);
	return 0;
}

START_TEST(calls_need_a_task)
{
	(void)refused();
	ck_assert_int_eq(weft_pipeline_run(&wrong), -EPERM);
}
END_TEST

static Suite *pipeline_suite(void)
{
	Suite *suite = suite_create("fs/pipeline/threads");
	TCase *tc = tcase_create("threads");

	io_add_test(tc, items_go_through_on_threads);
#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN) && !defined(WEFT_VALGRIND)
	io_add_test(tc, large_file_takes_little_memory);
#endif
	io_add_test(tc, wrong_options_are_refused);
	tcase_add_test(tc, calls_need_a_task);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return io_tests_run(pipeline_suite());
}
