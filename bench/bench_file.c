/* SPDX-License-Identifier: MIT */
/*
 * How fast are file reads and copies by many tasks?
 *
 *	bench_file rand_cached|rand_direct|copy --path F [--dst G] [--secs S]
 *		   [--workers N] [--label L]
 *	bench_file write|checksum --dst D [--secs S] [--workers N] [--label L]
 *
 * Method.  rand_: 32 tasks, each with an aligned buffer of 4 KiB, read random
 * blocks of the file until the time is over; from the page cache, or past it
 * with O_DIRECT.  copy: 8 tasks take offsets of chunks of 256 KiB from one
 * counter, read each chunk and write it at the same offset; then fdatasync.
 * write: one task writes 4 KiB at a time at the offsets of the first MiB of the
 * file D, and nothing else runs; write_calls is the same with pwrite(2).
 * checksum: 64 tasks open, read, add up and close 20,000 files of 4 KiB in 200
 * directories below D, which the program makes if they are not there; again and
 * again until the time is over.  checksum is the mean of a round, and
 * checksum_calls the same with open(2), read(2), close(2) in the same tasks.
 *
 * What would fool it: a sleeping task ends the reads, so that no read includes
 * a look at the clock; the time runs until the last reader has stopped.
 * rand_cached and copy need the file in the page cache: run.py reads it before.
 */
#include "bench/bench.h"
#include "bench/bench_body.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
	RAND_DEPTH = 32,
	COPY_DEPTH = 8,
	CHUNK = 256 << 10,
	BLOCK = 4096,
	WRITE_BLOCKS = 256,
	SUM_DEPTH = 64,
	SUM_FILES = 20000,
};

static struct {
	const char *path, *dst, *secs;
} opt = { .secs = "2" };

static void *aligned_buffer(size_t bytes)
{
	void *p;

	if (posix_memalign(&p, 4096, bytes) != 0)
		bench_die("posix_memalign", -ENOMEM);
	memset(p, 1, bytes);
	return p;
}

static uint64_t file_bytes(int fd)
{
	struct stat st;

	bench_must("weft_fstat", weft_fstat(fd, &st));
	if (st.st_size < CHUNK)
		bench_die("file too small", -EINVAL);
	return (uint64_t)st.st_size;
}

static void rand_readers(struct body_reader *readers)
{
	weft__atomic(bool) stop = false;
	int64_t failures = 0;

	for (int i = 0; i < RAND_DEPTH; i++)
		readers[i].stop = &stop;
	WEFT_SCOPE(scope, &failures) {
		for (int i = 0; i < RAND_DEPTH; i++)
			bench_must("weft_go", WEFT_GO(scope, body_reader,
						      &readers[i]));
		bench_must("weft_sleep",
			   weft_sleep((weft_nsec)(atof(opt.secs) * 1e9)));
		/* relaxed: a flag that publishes nothing. */
		weft__store(&stop, true, relaxed);
	}
	bench_must("a read", failures);
}

static void rand_reads(const char *bench, int flags)
{
	struct body_reader readers[RAND_DEPTH];
	int fd = (int)bench_must(opt.path,
				 weft_open(opt.path, O_RDONLY | flags, 0));
	uint64_t blocks = file_bytes(fd) / BLOCK, done = 0, t0;

	for (int i = 0; i < RAND_DEPTH; i++)
		readers[i] = (struct body_reader){
			.buffer = aligned_buffer(BLOCK),
			.seed = 0x9e3779b97f4a7c15u ^ (uint64_t)(i + 1),
			.blocks = blocks,
			.block_bytes = BLOCK,
			.fd = fd,
		};
	t0 = now_ns();
	rand_readers(readers);
	t0 = now_ns() - t0;
	for (int i = 0; i < RAND_DEPTH; i++) {
		done += readers[i].done;
		free(readers[i].buffer);
	}
	emit(bench, (double)done * 1e9 / (double)t0, "iops");
	bench_must("weft_close", weft_close(fd));
}

static int64_t rand_cached(void *arg)
{
	(void)arg;
	rand_reads("rand_cached", 0);
	return 0;
}

static int64_t rand_direct(void *arg)
{
	(void)arg;
	rand_reads("rand_direct", O_DIRECT);
	return 0;
}

static int64_t copy(void *arg)
{
	weft__atomic(uint64_t) next = 0;
	struct body_copier copier = { .next = &next, .chunk_bytes = CHUNK };
	void *buffers[COPY_DEPTH];
	int64_t failure = 0;
	uint64_t t0;

	(void)arg;
	for (int i = 0; i < COPY_DEPTH; i++)
		buffers[i] = aligned_buffer(CHUNK);
	t0 = now_ns();
	copier.src = (int)bench_must(opt.path,
				     weft_open(opt.path, O_RDONLY, 0));
	copier.dst = (int)bench_must(
		opt.dst,
		weft_open(opt.dst, O_WRONLY | O_CREAT | O_TRUNC, 0644));
	copier.size = file_bytes(copier.src);
	WEFT_SCOPE(scope, &failure)
		for (int i = 0; i < COPY_DEPTH; i++) {
			copier.buffer = buffers[i];
			bench_go(scope, body_copier, &copier, sizeof(copier));
		}
	bench_must("copy", failure);
	emit("copy", (double)copier.size * 1e3 / (double)(now_ns() - t0),
	     "MB/s");
	bench_must("weft_fdatasync", weft_fdatasync(copier.dst));
	emit("copy_synced", (double)copier.size * 1e3 / (double)(now_ns() - t0),
	     "MB/s");
	for (int i = 0; i < COPY_DEPTH; i++)
		free(buffers[i]);
	bench_must("weft_close", weft_close(copier.src));
	return bench_must("weft_close", weft_close(copier.dst));
}

/* ---- Writes by one task -------------------------------------------------- */

static ssize_t write_one(bool plain, int fd, const void *bytes, uint64_t number)
{
	off_t offset = (off_t)(number % WRITE_BLOCKS * BLOCK);

	return plain ? pwrite(fd, bytes, BLOCK, offset) :
		       weft_pwrite(fd, bytes, BLOCK, offset);
}

static void write_many(const char *bench, bool plain, int fd)
{
	uint64_t limit_ns = (uint64_t)(atof(opt.secs) * 1e9), done = 0, t0;
	void *bytes = aligned_buffer(BLOCK);

	for (; done < WRITE_BLOCKS; done++)
		if (write_one(plain, fd, bytes, done) != BLOCK)
			bench_die(opt.dst, -EIO);
	t0 = now_ns();
	do
		for (unsigned i = 0; i < WRITE_BLOCKS; i++, done++)
			if (write_one(plain, fd, bytes, done) != BLOCK)
				bench_die(opt.dst, -EIO);
	while (now_ns() - t0 < limit_ns);
	emit(bench, (double)(now_ns() - t0) / 1e3 /
			    (double)(done - WRITE_BLOCKS), "us");
	free(bytes);
}

static int64_t write_file(void *arg)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC;
	int fd = (int)bench_must(opt.dst, weft_open(opt.dst, flags, 0644));

	(void)arg;
	write_many("write", false, fd);
	write_many("write_calls", true, fd);
	return bench_must("weft_close", weft_close(fd));
}

/* ---- Checksums of files ------------------------------------------------ */

static void file_make(uint64_t number, const void *bytes)
{
	char name[BODY_NAME_BYTES];
	int fd;

	if (number % BODY_FILES_A_DIR == 0) {
		(void)snprintf(name, sizeof(name), "%s/%u", opt.dst,
			       (unsigned)(number / BODY_FILES_A_DIR));
		if (mkdir(name, 0777) < 0 && errno != EEXIST)
			bench_die(name, -errno);
	}
	body_file_name(name, opt.dst, number);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, bytes, BLOCK) != BLOCK || close(fd) < 0)
		bench_die(name, -errno);
}

static void files_make(void)
{
	char name[BODY_NAME_BYTES];
	void *bytes = aligned_buffer(BLOCK);
	struct stat st;

	body_file_name(name, opt.dst, SUM_FILES - 1);
	if (stat(name, &st) == 0 && st.st_size == BLOCK)
		return;
	if (mkdir(opt.dst, 0777) < 0 && errno != EEXIST)
		bench_die(opt.dst, -errno);
	for (uint64_t i = 0; i < SUM_FILES; i++)
		file_make(i, bytes);
	free(bytes);
}

static void sum_round(bool plain)
{
	weft__atomic(uint64_t) next = 0, sum = 0;
	struct body_summer summer = {
		.next = &next,
		.sum = &sum,
		.dir = opt.dst,
		.files = SUM_FILES,
		.plain = plain,
	};
	int64_t failure = 0;

	WEFT_SCOPE(scope, &failure)
		for (int i = 0; i < SUM_DEPTH; i++)
			bench_go(scope, body_summer, &summer, sizeof(summer));
	bench_must("a checksum", failure);
	/* relaxed: the tasks have ended. */
	if (weft__load(&sum, relaxed) != (uint64_t)SUM_FILES * BLOCK)
		bench_die("the checksum", -EIO);
}

static void sum_rounds(const char *bench, bool plain)
{
	uint64_t limit_ns = (uint64_t)(atof(opt.secs) * 1e9), rounds = 0, t0;

	sum_round(plain); /* the page cache, and the cache of names */
	t0 = now_ns();
	do {
		sum_round(plain);
		rounds++;
	} while (now_ns() - t0 < limit_ns);
	emit(bench, (double)(now_ns() - t0) / 1e6 / (double)rounds, "ms");
}

static int64_t checksum(void *arg)
{
	(void)arg;
	files_make();
	sum_rounds("checksum", false);
	sum_rounds("checksum_calls", true);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct bench_option options[] = {
		{ "--path", &opt.path, false },
		{ "--dst", &opt.dst, false },
		{ "--secs", &opt.secs, false },
		{ NULL, NULL, false },
	};
	const char *what = bench_parse(argc, argv, options);

	if (opt.path && strcmp(what, "rand_cached") == 0)
		bench_run(rand_cached, NULL);
	else if (opt.path && strcmp(what, "rand_direct") == 0)
		bench_run(rand_direct, NULL);
	else if (opt.path && opt.dst && strcmp(what, "copy") == 0)
		bench_run(copy, NULL);
	else if (opt.dst && strcmp(what, "write") == 0)
		bench_run(write_file, NULL);
	else if (opt.dst && strcmp(what, "checksum") == 0)
		bench_run(checksum, NULL);
	else
		return 2;
	return 0;
}
