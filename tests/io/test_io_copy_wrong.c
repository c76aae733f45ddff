/* SPDX-License-Identifier: MIT */
/*
 * weft_copy(): descriptors that it refuses, and errors of either end.
 *
 * After an error the counts are 0, and the bytes are in the source still: the
 * tests read them there.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tests/support/blocking_scene.h"

#define NONE_YET INT64_MIN

static char got[1000];

/* Each of its first bytes differs. */
static int file_new(size_t bytes)
{
	int fd = memfd_create("copy", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	for (size_t i = 0; i < bytes; i++)
		got[i] = (char)i;
	ck_assert_int_eq(write(fd, got, bytes), (ssize_t)bytes);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* ---- Refusals ------------------------------------------------------------ */

IO_TEST(what_is_no_stream_of_bytes_is_einval)
{
	int event = eventfd(0, EFD_CLOEXEC), file = file_new(100), fds[2];
	int dir = weft_open("/", O_RDONLY | O_DIRECTORY, 0);
	uint64_t done = 99, taken = 99;

	ck_assert_int_eq(weft_copy(event, file, 9, &done, &taken), -EINVAL);
	ck_assert_uint_eq(done + taken, 0);
	ck_assert_int_eq(weft_copy(file, event, 9, NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_copy(file, dir, 9, NULL, NULL), -EISDIR);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0,
				    fds),
			 0);
	ck_assert_int_eq(weft_copy(fds[0], file, 9, NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_copy(file, fds[0], 9, NULL, NULL), -EINVAL);
	close_both(fds);
	close_both((int[]){ event, file });
	return weft_close(dir);
}

IO_TEST(wrong_direction_is_ebadf)
{
	int file = file_new(100), fds[2];
	int path = open("/", O_PATH | O_CLOEXEC);

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(weft_copy(fds[0], file, 9, NULL, NULL), -EBADF);
	ck_assert_int_eq(weft_copy(file, fds[1], 9, NULL, NULL), -EBADF);
	ck_assert_int_eq(weft_copy(file, path, 9, NULL, NULL), -EBADF);
	ck_assert_int_eq(weft_copy(-1, file, 9, NULL, NULL), -EBADF);
	ck_assert_int_eq(weft_copy(file, -1, 9, NULL, NULL), -EBADF);
	ck_assert_int_eq(weft_copy(1000000, file, 9, NULL, NULL), -EBADF);
	close_both(fds);
	close_both((int[]){ file, path });
	return 0;
}

/* Parts of a file that do not overlap are copied. */
IO_TEST(what_would_meet_itself_is_einval)
{
	int file = file_new(1000), fds[2];
	char path[64];
	int other;
	uint64_t done;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	other = weft_open(path, O_RDWR, 0);
	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(lseek(other, 100, SEEK_SET), 100);
	ck_assert_int_eq(weft_copy(other, file, 101, NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_copy(file, other, 101, NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_copy(other, file, 100, &done, NULL), 0);
	ck_assert_uint_eq(done, 100);
	ck_assert_int_eq(pread(file, got, 200, 0), 200);
	ck_assert_mem_eq(got, got + 100, 100);
	/* Up to the end that the file had. */
	ck_assert_int_eq(fcntl(other, F_SETFL, O_APPEND), 0);
	ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
	ck_assert_int_eq(weft_copy(other, file, UINT64_MAX, &done, NULL), 0);
	ck_assert_uint_eq(done, 1000);
	ck_assert_int_eq(lseek(file, 0, SEEK_END), 2000);
	ck_assert_int_eq(weft_copy(other, file, UINT64_MAX, &done, NULL), 0);
	ck_assert_uint_eq(done, 0);
	close_both((int[]){ file, other });
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(weft_copy(fds[1], fds[0], 9, NULL, NULL), -EINVAL);
	close_both(fds);
	return 0;
}

START_TEST(outside_a_task_it_is_eperm)
{
	uint64_t done = 99, taken = 99;

	ck_assert_int_eq(weft_copy(1, 0, 9, &done, &taken), -EPERM);
	ck_assert_uint_eq(done + taken, 0);
}
END_TEST

/* A pipe of the call's own takes two. */
IO_TEST(without_descriptors_it_is_emfile)
{
	struct rlimit old;
	int pipe[2], file = file_new(100);
	uint64_t done = 99;

	ck_assert_int_eq(pipe2(pipe, O_CLOEXEC), 0);
	ck_assert_int_eq(write(pipe[1], "abc", 3), 3);
	old = limit_set(RLIMIT_NOFILE, 0);
	ck_assert_int_eq(weft_copy(file, pipe[0], 3, &done, NULL), -EMFILE);
	ck_assert_uint_eq(done, 0);
	limit_reset(RLIMIT_NOFILE, old);
	ck_assert_int_eq(weft_copy(file, pipe[0], 3, &done, NULL), 0);
	ck_assert_uint_eq(done, 3);
	close_both(pipe);
	return weft_close(file);
}

/* A full disk: the rest stays in the source. */
IO_TEST(no_room_on_the_device_is_enospc_and_loses_nothing)
{
	int full = weft_open("/dev/full", O_WRONLY, 0), fds[2], other[2];
	uint64_t done = 99, taken = 99;

	socket_pair(fds);
	ck_assert_int_eq(pipe2(other, O_CLOEXEC), 0);
	ck_assert_int_eq(write(fds[1], "abc", 3), 3);
	ck_assert_int_eq(write(other[1], "abc", 3), 3);
	ck_assert_int_eq(weft_copy(full, fds[0], 3, &done, &taken), -ENOSPC);
	ck_assert_uint_eq(done + taken, 0);
	ck_assert_int_eq(weft_copy(full, other[0], 3, &done, &taken),
			 -ENOSPC);
	ck_assert_uint_eq(done + taken, 0);
	ck_assert_int_eq(weft_read(fds[0], got, 9), 3);
	ck_assert_int_eq(weft_read(other[0], got, 9), 3);
	close_both(fds);
	close_both(other);
	return weft_close(full);
}

static bool has_waiter(int fd)
{
	struct weft__fd *entry = weft__fd_find(
		&weft__reactor(weft_runtime_self())->fds, fd);
	bool waits;

	if (!entry)
		return false;
	weft__lock_take(&entry->lock);
	waits = entry->waiting != NULL;
	weft__lock_drop(&entry->lock);
	return waits;
}

struct stolen {
	int to, from;
	int result;
};

static int64_t copy_stolen(void *arg)
{
	struct stolen *it = *(struct stolen **)arg;

	it->result = weft_copy(it->to, it->from, 3, NULL, NULL);
	return 0;
}

/* The destination is full, so the bytes that were looked at wait to be written
 * when another task takes them. */
static void steal(int from, int feeder)
{
	struct stolen stolen = { .from = from }, *it = &stolen;
	char junk[4096] = { 0 };
	ssize_t n, left = 3;
	int fds[2];

	socket_pair(fds);
	it->to = fds[0];
	while ((n = send(fds[0], junk, sizeof(junk), MSG_DONTWAIT)) > 0)
		left += n;
	ck_assert_int_eq(write(feeder, "abc", 3), 3);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, copy_stolen, it), 0);
		wait_until(has_waiter(fds[0]));
		ck_assert_int_eq(weft_read(from, got, 9), 3);
		for (; left > 0; left -= n) {
			n = weft_read(fds[1], junk, sizeof(junk));
			ck_assert_int_gt(n, 0);
		}
	}
	ck_assert_int_eq(it->result, -EIO);
	close_both(fds);
}

IO_TEST(bytes_that_another_task_took_are_eio)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	steal(fds[0], fds[1]);
	close_both(fds);
	socket_pair(fds);
	steal(fds[0], fds[1]);
	close_both(fds);
	return 0;
}

/* ---- O_NONBLOCK is cleared ----------------------------------------------- */

struct ahead {
	int to, from;
	uint64_t done, taken;
};

static int64_t copy_ahead(void *arg)
{
	struct ahead *it = *(struct ahead **)arg;

	return weft_copy(it->to, it->from, UINT64_MAX, &it->done, &it->taken);
}

static void nonblock_set(int fd, bool nonblock)
{
	ck_assert_int_eq(fcntl(fd, F_SETFL, O_RDWR |
						    (nonblock ? O_NONBLOCK :
								0)),
			 0);
}

/* While the call waits for input.  From then on calls on that socket may wait
 * in the kernel, and the destination is full. */
static void copy_blocks(bool destination)
{
	static char junk[4096];
	int from[2], to[2];
	struct ahead ahead = { 0 }, *it = &ahead;
	size_t filler = 0;
	ssize_t n;

	socket_pair(from);
	socket_pair(to);
	ahead.from = from[0], ahead.to = to[0];
	nonblock_set(from[0], true);
	nonblock_set(to[0], true);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, copy_ahead, it), 0);
		wait_until(has_waiter(from[0]));
		while ((n = write(to[0], junk, sizeof(junk))) > 0)
			filler += (size_t)n;
		nonblock_set(destination ? to[0] : from[0], false);
		ck_assert_int_eq(write(from[1], "abc", 3), 3);
		wait_until(has_waiter(to[0]));
		for (; filler > 0; filler -= (size_t)n) {
			n = weft_read(to[1], junk,
				      filler < sizeof(junk) ? filler :
							      sizeof(junk));
			ck_assert_int_gt(n, 0);
		}
		ck_assert_int_eq(weft_read_all(to[1], got, 3, NULL), 0);
		ck_assert_mem_eq(got, "abc", 3);
		ck_assert_int_eq(weft_shutdown(from[1], SHUT_WR), 0);
	}
	ck_assert_uint_eq(ahead.done, 3);
	ck_assert_uint_eq(ahead.taken, 3);
	close_both(from);
	close_both(to);
}

IO_TEST(socket_that_blocks_from_now_on_holds_no_worker)
{
	copy_blocks(true);
	copy_blocks(false);
	return 0;
}

/* While it waits for input, the number of the destination has been that of so
 * many other files that a count of 8 bits has come round. */
IO_TEST(number_that_is_used_again_gets_nothing)
{
	struct ahead ahead = { 0 }, *it = &ahead;
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int file = file_new(0), fds[2];
	struct weft_task task;
	int64_t r = 1;

	socket_pair(fds);
	ahead.from = fds[0];
	ahead.to = fd_far(dup(file));
	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, copy_ahead, &it,
					      sizeof(it), &opts),
				 0);
		wait_until(has_waiter(fds[0]));
		for (int i = 0; i < 128; i++) {
			ck_assert_int_eq(weft_close(ahead.to), 0);
			ck_assert_int_eq(dup2(file, ahead.to), ahead.to);
		}
		ck_assert_int_eq(write(fds[1], "abc", 3), 3);
		ck_assert_int_eq(weft_shutdown(fds[1], SHUT_WR), 0);
		ck_assert_int_eq(weft_join(task, &r), 0);
	}
	ck_assert_int_eq(r, -ECANCELED);
	ck_assert_uint_eq(ahead.done, 0);
	ck_assert_int_eq(lseek(file, 0, SEEK_END), 0);
	close_both(fds);
	close_both((int[]){ ahead.to, file });
	return 0;
}

static int64_t drain(void *arg)
{
	static char junk[65536];
	int fd = *(int *)arg;

	while (weft_read(fd, junk, sizeof(junk)) > 0)
		;
	return 0;
}

/* The same for the number of a file that is sent to a socket that is full. */
IO_TEST(number_that_is_used_again_gives_nothing)
{
	struct ahead ahead = { 0 }, *it = &ahead;
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int file = file_new(0), small = 16384, fds[2];
	struct weft_task task;
	int64_t r = 1;

	ck_assert_int_eq(ftruncate(file, 8 << 20), 0);
	socket_pair(fds);
	ck_assert_int_eq(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small,
				    sizeof(small)),
			 0);
	ahead.to = fds[0];
	ahead.from = fd_far(dup(file));
	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, copy_ahead, &it,
					      sizeof(it), &opts),
				 0);
		wait_until(has_waiter(fds[0]));
		for (int i = 0; i < 128; i++) {
			ck_assert_int_eq(weft_close(ahead.from), 0);
			ck_assert_int_eq(dup2(file, ahead.from), ahead.from);
		}
		ck_assert_int_eq(WEFT_GO(scope, drain, fds[1]), 0);
		ck_assert_int_eq(weft_join(task, &r), 0);
		ck_assert_int_eq(weft_shutdown(fds[0], SHUT_WR), 0);
	}
	ck_assert_int_eq(r, -ECANCELED);
	close_both(fds);
	close_both((int[]){ ahead.from, file });
	return 0;
}

/* ---- Both directions ----------------------------------------------------- */

struct direction {
	int to, from;
	weft__atomic(int64_t) result; /* or NONE_YET */
};

/* As in the manual. */
static int64_t relay(void *arg)
{
	struct direction *it = *(struct direction **)arg;
	uint64_t done, taken;
	int r = weft_copy(it->to, it->from, UINT64_MAX, &done, &taken);

	(void)!weft_shutdown(it->to, r == 0 ? SHUT_WR : SHUT_RDWR);
	if (r < 0)
		(void)!weft_shutdown(it->from, SHUT_RDWR);
	weft__store(&it->result, r, release);
	return 0;
}

/* One waits for input, and is cancelled; the other waits for room. */
IO_TEST(direction_that_fails_ends_the_other)
{
	static char junk[4096];
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int client[2], server[2];
	struct direction there, back, *t = &there, *b = &back;
	struct weft_task task;

	socket_pair(client);
	socket_pair(server);
	there.to = back.from = server[0];
	there.from = back.to = client[0];
	weft__store(&there.result, NONE_YET, relaxed);
	weft__store(&back.result, NONE_YET, relaxed);
	while (send(client[0], junk, sizeof(junk), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(write(server[1], "abc", 3), 3);
	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, relay, b), 0);
		wait_until(has_waiter(client[0]));
		ck_assert_int_eq(weft_go_opts(scope, relay, &t, sizeof(t),
					      &opts),
				 0);
		ck_assert_int_eq(weft_yield(), 0);
		weft_cancel(task);
		wait_until(weft__load(&b->result, acquire) != NONE_YET);
	}
	ck_assert_int_eq(weft__load(&t->result, acquire), -ECANCELED);
	ck_assert_int_eq(weft__load(&b->result, acquire), -EPIPE);
	close_both(client);
	close_both(server);
	return 0;
}

/* ---- Packets ------------------------------------------------------------- */

/* Each write to such a pipe is a packet of its own, and each read gets one. */
static void copy_packets(int to, int reader)
{
	uint64_t done = 99, taken = 99;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_DIRECT), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(write(fds[1], &"abcdefghi"[3 * i], 3), 3);
	/* The limit may be in the middle of one. */
	ck_assert_int_eq(weft_copy(to, fds[0], 5, &done, NULL), 0);
	ck_assert_uint_eq(done, 5);
	ck_assert_int_eq(close(fds[1]), 0);
	ck_assert_int_eq(weft_copy(to, fds[0], UINT64_MAX, &done, &taken), 0);
	ck_assert_uint_eq(done, 4);
	ck_assert_uint_eq(taken, 4);
	ck_assert_int_eq(weft_read_all(reader, got, 9, NULL), 0);
	ck_assert_mem_eq(got, "abcdefghi", 9);
	ck_assert_int_eq(weft_close(fds[0]), 0);
}

IO_TEST(packets_of_a_pipe_are_copied)
{
	int flags[] = { 0, O_NONBLOCK, 0, O_NONBLOCK };
	int file = file_new(0), reader, fds[2];
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	reader = weft_open(path, O_RDONLY, 0);
	ck_assert_int_ge(reader, 0);
	copy_packets(file, reader);
	close_both((int[]){ file, reader });
	for (int i = 0; i < 4; i++) {
		if (i < 2)
			socket_pair(fds);
		else
			ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
		ck_assert_int_eq(fcntl(fds[1], F_SETFL, O_RDWR | flags[i]), 0);
		copy_packets(fds[1], fds[0]);
		close_both(fds);
	}
	return 0;
}

/* ---- A thread of the pool copies ----------------------------------------- */

struct pooled {
	int to, from;
	uint64_t done;
	weft__atomic(int64_t) copied, closed; /* or NONE_YET */
};

static int64_t copy_pooled(void *arg)
{
	struct pooled *it = *(struct pooled **)arg;
	int r = weft_copy(it->to, it->from, UINT64_MAX, &it->done, NULL);

	weft__store(&it->copied, r, release);
	return 0;
}

static int64_t close_pooled(void *arg)
{
	struct pooled *it = *(struct pooled **)arg;

	weft__store(&it->closed, weft_close(it->to), release);
	return 0;
}

static bool is_closing(int fd)
{
	struct weft__fd *entry = weft__fd_find(
		&weft__reactor(weft_runtime_self())->fds, fd);
	bool closing;

	weft__lock_take(&entry->lock);
	closing = entry->closing;
	weft__lock_drop(&entry->lock);
	return closing;
}

/* The number may not belong to another file before the job has ended. */
POOL_TEST(close_waits_for_a_copy_in_the_pool, 1, 0)
{
	struct pooled pooled = { .copied = NONE_YET, .closed = NONE_YET };
	struct pooled *it = &pooled;
	struct gate gate = { 0 };
	int64_t r;

	it->to = file_new(0);
	it->from = file_new(0);
	ck_assert_int_eq(ftruncate(it->from, 1 << 20), 0);
	WEFT_SCOPE(s, &r) {
		pass_start(s, &gate, NULL, NULL);
		wait_until(weft__load(&gate.came, acquire) == 1);
		ck_assert_int_eq(WEFT_GO(s, copy_pooled, it), 0);
		wait_until(pool_stats().queued == 1);
		ck_assert_int_eq(WEFT_GO(s, close_pooled, it), 0);
		wait_until(is_closing(it->to) ||
			   weft__load(&it->closed, acquire) != NONE_YET);
		ck_assert_int_eq(weft_yield(), 0);
		ck_assert(weft__load(&it->closed, acquire) == NONE_YET);
		ck_assert(weft__load(&it->copied, acquire) == NONE_YET);
		ck_assert_int_ge(fcntl(it->to, F_GETFD), 0);
		gate_open(&gate);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(weft__load(&it->copied, acquire), -ECANCELED);
	ck_assert_uint_eq(it->done, 0);
	ck_assert_int_eq(weft__load(&it->closed, acquire), 0);
	return weft_close(it->from);
}

int main(void)
{
	Suite *suite = suite_create("io/copy/wrong");
	TCase *refusing = tcase_create("refusing");

	io_add_test(refusing, what_is_no_stream_of_bytes_is_einval);
	io_add_test(refusing, wrong_direction_is_ebadf);
	io_add_test(refusing, what_would_meet_itself_is_einval);
	tcase_add_test(refusing, outside_a_task_it_is_eperm);
	io_add_test(refusing, without_descriptors_it_is_emfile);
	io_add_test(refusing,
		    no_room_on_the_device_is_enospc_and_loses_nothing);
	io_add_test(refusing, bytes_that_another_task_took_are_eio);
	io_add_test(refusing, socket_that_blocks_from_now_on_holds_no_worker);
	io_add_test(refusing, direction_that_fails_ends_the_other);
	io_add_test(refusing, number_that_is_used_again_gets_nothing);
	io_add_test(refusing, number_that_is_used_again_gives_nothing);
	io_add_test(refusing, packets_of_a_pipe_are_copied);
	io_add_test(refusing, close_waits_for_a_copy_in_the_pool);
	suite_add_tcase(suite, refusing);
	return io_tests_run(suite);
}
