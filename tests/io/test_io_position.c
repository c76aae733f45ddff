/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes at the position of a file that several use: they are atomic
 * to each other.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "io/os/syscall.h"
#include "tests/support/io_kit.h"
#include "tests/support/refuse_threads.h"

enum { TASKS = 8, RECORDS = 200, BYTES = 64, ALL = TASKS * RECORDS };

/* Directories, of file systems that differ. */
static const char *const places[] = { "/var/tmp", "/dev/shm", "/tmp" };

enum { PLACES = sizeof(places) / sizeof(places[0]) };

static char path[64];

/* A new file; -1: there is no such directory here. */
static int file_in(const char *place, int flags)
{
	int fd;

	snprintf(path, sizeof(path), "%s/weft-position-XXXXXX", place);
	fd = mkostemp(path, flags | O_CLOEXEC);
	if (fd < 0)
		fprintf(stderr, "%s: skipped, %s\n", place, strerror(errno));
	return fd;
}

static void file_end(int fd)
{
	unlink(path);
	ck_assert_int_eq(weft_close(fd), 0);
}

/* ---- Records ------------------------------------------------------------- */

static weft__atomic(unsigned) seen[ALL];

static void record(char text[BYTES], int number)
{
	memset(text, '.', BYTES);
	text[snprintf(text, BYTES, "%d", number)] = ' ';
	text[BYTES - 1] = '\n';
}

static void record_seen(const char text[BYTES])
{
	char expected_text[BYTES];
	int number = atoi(text);

	ck_assert_int_ge(number, 0);
	ck_assert_int_lt(number, ALL);
	record(expected_text, number);
	ck_assert_mem_eq(text, expected_text, BYTES);
	weft__add(&seen[number], 1u, relaxed);
}

static void each_was_seen_once(const char *what)
{
	for (int i = 0; i < ALL; i++) {
		unsigned times = weft__load(&seen[i], relaxed);

		ck_assert_msg(times == 1, "%s, %s: record %d %u times", path,
			      what, i, times);
		weft__store(&seen[i], 0u, relaxed);
	}
}

static void file_has_each_once(const char *what)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[BYTES];
	ssize_t n;

	while ((n = read(fd, text, BYTES)) == BYTES)
		record_seen(text);
	ck_assert_int_eq(n, 0);
	close(fd);
	each_was_seen_once(what);
}

static void file_fill(int fd)
{
	char text[BYTES];

	for (int i = 0; i < ALL; i++) {
		record(text, i);
		ck_assert_int_eq(pwrite(fd, text, BYTES, (off_t)i * BYTES),
				 BYTES);
	}
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
}

/* The next reads come from the disk, where there is one. */
static void file_rewind(int fd)
{
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
}

/* The part of one task or thread. */
struct part {
	int fd;
	int first; /* record */
	bool vectored;
};

static int64_t part_write(void *arg)
{
	const struct part *part = arg;
	char text[BYTES];
	struct iovec iov[2] = { { text, 10 }, { text + 10, BYTES - 10 } };

	for (int i = 0; i < RECORDS; i++) {
		record(text, part->first + i);
		ck_assert_int_eq(part->vectored ?
					 weft_writev(part->fd, iov, 2) :
					 weft_write(part->fd, text, BYTES),
				 BYTES);
	}
	return 0;
}

static int64_t part_read(void *arg)
{
	const struct part *part = arg;
	char text[BYTES];
	struct iovec iov[2] = { { text, 10 }, { text + 10, BYTES - 10 } };
	ssize_t n;

	do {
		n = part->vectored ? weft_readv(part->fd, iov, 2) :
				     weft_read(part->fd, text, BYTES);
		ck_assert(n == 0 || n == BYTES);
		if (n > 0)
			record_seen(text);
	} while (n > 0);
	return 0;
}

/* A thread that is no worker. */
static void *part_write_plain(void *arg)
{
	const struct part *part = arg;
	char text[BYTES];

	for (int i = 0; i < RECORDS; i++) {
		record(text, part->first + i);
		ck_assert_int_eq(write(part->fd, text, BYTES), BYTES);
	}
	return NULL;
}

/* Tasks for all parts but the first `left_out`. */
static void parts_run(weft_fn fn, int fd, int other, int left_out)
{
	int64_t r;

	WEFT_SCOPE(s, &r)
		for (int i = left_out; i < TASKS; i++) {
			struct part part = { i % 2 ? other : fd, i * RECORDS,
					     i % 4 >= 2 };

			ck_assert_int_eq(WEFT_GO(s, fn, part), 0);
		}
	ck_assert_int_eq(r, 0);
}

IO_TEST(each_write_of_many_tasks_is_in_the_file)
{
	for (int i = 0; i < PLACES; i++) {
		int fd = file_in(places[i], 0);

		if (fd < 0)
			continue;
		parts_run(part_write, fd, fd, 0);
		file_has_each_once("written");
		file_end(fd);
	}
	return 0;
}

IO_TEST(each_record_is_read_by_one_task)
{
	for (int i = 0; i < PLACES; i++) {
		int fd = file_in(places[i], 0);

		if (fd < 0)
			continue;
		file_fill(fd);
		parts_run(part_read, fd, fd, 0);
		each_was_seen_once("cached");
		file_rewind(fd);
		parts_run(part_read, fd, fd, 0);
		each_was_seen_once("from the disk");
		file_end(fd);
	}
	return 0;
}

/* Beside write(2) by a thread that shares the descriptor. */
IO_TEST(each_write_beside_a_thread_is_in_the_file)
{
	for (int i = 0; i < PLACES; i++) {
		int fd = file_in(places[i], 0);
		struct part part = { .fd = fd };
		pthread_t thread;

		if (fd < 0)
			continue;
		ck_assert_int_eq(pthread_create(&thread, NULL,
						part_write_plain, &part),
				 0);
		parts_run(part_write, fd, fd, 1);
		pthread_join(thread, NULL);
		file_has_each_once("written beside a thread");
		file_end(fd);
	}
	return 0;
}

static void kind_set(int fd, int kind)
{
	struct weft__fd *entry;

	ck_assert_int_eq(
		weft__fd_get(&weft__reactor(weft_runtime_self())->fds, fd,
			     &entry),
		0);
	weft__fd_set_kind(entry, kind);
}

/* The number was that of a file without a position, or the like. */
IO_TEST(calls_on_a_number_used_again_are_atomic)
{
	static const int kinds[] = { WEFT__FD_STREAM, WEFT__FD_OTHER,
				     WEFT__FD_SOCKET, WEFT__FD_DIRECT };

	for (int i = 0; i < PLACES * 4; i++) {
		int fd = file_in(places[i / 4], 0);

		if (fd < 0)
			continue;
		kind_set(fd, kinds[i % 4]);
		parts_run(part_write, fd, fd, 0);
		file_has_each_once("written as another kind");
		file_rewind(fd);
		kind_set(fd, kinds[i % 4]);
		parts_run(part_read, fd, fd, 0);
		each_was_seen_once("read as another kind");
		file_end(fd);
	}
	return 0;
}

/* Two open files, each with its own position. */
IO_TEST(each_write_to_the_end_is_in_the_file)
{
	for (int i = 0; i < PLACES; i++) {
		int fd = file_in(places[i], O_APPEND), other;

		if (fd < 0)
			continue;
		other = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		ck_assert_int_ge(other, 0);
		parts_run(part_write, fd, other, 0);
		file_has_each_once("appended");
		ck_assert_int_eq(weft_close(other), 0);
		file_end(fd);
	}
	return 0;
}

/* From here on the kernel says that a file ends where it would have to read. */
static void end_files(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv2, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[5])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, RWF_NOWAIT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter_threads(code, 6);
}

/* Linux 5.9 and 5.10 do that. */
IO_TEST(end_that_is_none_is_not_believed)
{
	int fd = file_in("/tmp", 0);
	char data[8];

	ck_assert_int_eq(pwrite(fd, "0123456789", 10, 0), 10);
	end_files();
	kind_set(fd, WEFT__FD_FILE);
	ck_assert_int_eq(weft_pread(fd, data, 8, 6), 4);
	ck_assert_mem_eq(data, "6789", 4);
	kind_set(fd, WEFT__FD_FILE);
	ck_assert_int_eq(weft_read(fd, data, 8), 8);
	ck_assert_mem_eq(data, "01234567", 8);
	ck_assert_int_eq(weft_read(fd, data, 8), 2);
	ck_assert_int_eq(weft_read(fd, data, 8), 0);
	ck_assert_int_eq(weft_pread(fd, data, 8, 10), 0);
	file_end(fd);
	return 0;
}

/* ---- Descriptors without a position -------------------------------------- */

/* lseek(2) does not tell, and takes any offset. */
static void expect_no_offsets(int fd)
{
	char bytes[8] = { 1 };

	ck_assert_int_ge(fd, 0);
	WEFT_WITHIN(WEFT_SEC(20)) {
		ck_assert_int_eq(weft_pread(fd, bytes, 8, 0), -ESPIPE);
		ck_assert_int_eq(weft_pwrite(fd, bytes, 8, 0), -ESPIPE);
	}
	ck_assert_int_eq(weft_close(fd), 0);
}

IO_TEST(descriptors_of_events_have_no_offsets)
{
	expect_no_offsets(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
	expect_no_offsets(eventfd(0, EFD_CLOEXEC));
	expect_no_offsets(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	expect_no_offsets(epoll_create1(EPOLL_CLOEXEC));
	return 0;
}

/* A path alone can be neither read nor written. */
IO_TEST(path_alone_has_no_bytes)
{
	int file = open("/", O_PATH | O_CLOEXEC);
	char byte = 0;

	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(weft_pread(file, &byte, 1, 0), -EBADF);
	ck_assert_int_eq(weft_pwrite(file, &byte, 1, 0), -EBADF);
	ck_assert_int_eq(weft_read(file, &byte, 1), -EBADF);
	ck_assert_int_eq(weft_write(file, &byte, 1), -EBADF);
	ck_assert_int_eq(weft_close(file), 0);
	return 0;
}

/* As writev(2), where sendmsg(2) would send an empty message. */
IO_TEST(vector_of_nothing_sends_nothing)
{
	struct iovec none = { 0 };
	char byte;
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0,
				    fds),
			 0);
	ck_assert_int_eq(weft_writev(fds[0], &none, 0), 0);
	ck_assert_int_eq(weft_write(fds[0], "x", 1), 1);
	ck_assert_int_eq(weft_read(fds[1], &byte, 1), 1);
	ck_assert_int_eq(weft_close(fds[0]), 0);
	return weft_close(fds[1]);
}

int main(void)
{
	Suite *suite = suite_create("io/position");
	TCase *records = tcase_create("records");
	TCase *none = tcase_create("none");

	tcase_set_timeout(records, 60);
	io_add_test(records, each_write_of_many_tasks_is_in_the_file);
	io_add_test(records, each_record_is_read_by_one_task);
	io_add_test(records, each_write_beside_a_thread_is_in_the_file);
	io_add_test(records, calls_on_a_number_used_again_are_atomic);
	io_add_test(records, each_write_to_the_end_is_in_the_file);
	if (HAS_FILTERS)
		io_add_test(records, end_that_is_none_is_not_believed);
	suite_add_tcase(suite, records);
	io_add_test(none, descriptors_of_events_have_no_offsets);
	io_add_test(none, path_alone_has_no_bytes);
	io_add_test(none, vector_of_nothing_sends_nothing);
	suite_add_tcase(suite, none);
	return io_tests_run(suite);
}
