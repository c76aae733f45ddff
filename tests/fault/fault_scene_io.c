/* SPDX-License-Identifier: MIT */
/*
 * Scenes of pipes, files and copies.
 *
 * Each scene runs its program in one runtime.  Any call that the sweep makes
 * fail may return its documented errors (MAY); the tasks then give up, and the
 * runtime must end all the same.
 */
#include <linux/openat2.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "tests/fault/fault_scene.h"
#include "tests/support/errno_now.h"

/* ---- Pipes --------------------------------------------------------------- */

static int64_t fill(void *arg)
{
	int fd = *(int *)arg;
	char buf[4096] = { 0 };

	for (int i = 0; i < 40; i++)
		if (MAY(weft_write_all(fd, buf, sizeof(buf), NULL),
			MOVE_ERRORS) < 0)
			break;
	EXPECT(weft_close(fd) == 0);
	return 0;
}

struct looker {
	WEFT_FUTURE_STATE;
	int fd;
};

static int64_t look(void *arg)
{
	struct looker *l = arg;
	char buf[4096];
	int r;

	WEFT_FUTURE_BEGIN(l);
	do
		WEFT_AWAIT_AS(l, r, weft_await_ready(l->fd, POLLIN));
	while (MAY(r, ENOMEM) >= 0 && read(l->fd, buf, sizeof(buf)) > 0);
	WEFT_AWAIT_AS(l, r, weft_await_close(l->fd));
	EXPECT(r == 0);
	WEFT_FUTURE_END(l);
	return 0;
}

static int64_t pipes(void *arg)
{
	int fds[2];

	(void)arg;
	if (MAY(pipe2(fds, O_CLOEXEC) < 0 ? -errno_now() : 0, FD_ERRORS) < 0)
		return 0;
	WEFT_SUPERVISE (scope) {
		struct looker looker = { .fd = fds[0] };

		if (MAY(WEFT_GO_FUTURE(scope, look, looker), ENOMEM) < 0)
			EXPECT(weft_close(fds[0]) == 0);
		if (MAY(WEFT_GO(scope, fill, fds[1]), ENOMEM) < 0)
			EXPECT(weft_close(fds[1]) == 0);
	}
	return 0;
}

void scene_pipes(unsigned workers)
{
	scene_run(pipes, NULL, workers);
}

/* ---- Files --------------------------------------------------------------- */

static void use_file(int fd)
{
	char text[100] = "text", back[100];
	struct stat st;

	MAY(weft_write_all(fd, text, sizeof(text), NULL), MOVE_ERRORS);
	MAY(weft_pwrite_all(fd, text, sizeof(text), 0, NULL), MOVE_ERRORS);
	MAY(weft_pread_all(fd, back, sizeof(back), 0, NULL), MOVE_ERRORS);
	MAY(weft_fstat(fd, &st), ENOMEM);
	MAY(weft_fdatasync(fd), ENOMEM);
	EXPECT(weft_close(fd) == 0);
}

/* A file in memory, opened once more by its name. */
static int64_t files(void *arg)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK };
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", *(int *)arg);
	fd = (int)MAY(weft_open(path, O_RDWR | O_TRUNC, 0), FD_ERRORS);
	if (fd >= 0)
		use_file(fd);
	fd = (int)MAY(weft_openat2(AT_FDCWD, "/proc/self/maps", &how,
				   sizeof(how)),
		      FD_ERRORS);
	if (fd >= 0)
		EXPECT(weft_close(fd) == 0);
	MAY(weft_stat(path, &st), ENOMEM);
	return 0;
}

void scene_files(unsigned workers)
{
	scene_run_file(files, workers);
}

static int64_t drain(void *arg)
{
	int fd = *(int *)arg;
	char buf[8192];

	while (MAY(weft_read(fd, buf, sizeof(buf)), MOVE_ERRORS) > 0)
		;
	EXPECT(weft_close(fd) == 0);
	return 0;
}

static void send_twice(int fd, int file_fd)
{
	enum { BYTES = 150000 };

	/* By a copy, and by sendfile(2). */
	MAY(weft_sendfile(fd, file_fd, 0, BYTES, NULL), MOVE_ERRORS);
	EXPECT(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	MAY(weft_sendfile(fd, file_fd, 0, BYTES, NULL), MOVE_ERRORS);
}

static int64_t sendfiles(void *arg)
{
	int file_fd = *(int *)arg, fds[2];

	scene_socket_pair(fds);
	WEFT_SUPERVISE (scope) {
		if (MAY(WEFT_GO(scope, drain, fds[1]), ENOMEM) == 0)
			send_twice(fds[0], file_fd);
		else
			EXPECT(weft_close(fds[1]) == 0);
		EXPECT(weft_close(fds[0]) == 0);
	}
	return 0;
}

void scene_sendfile(unsigned workers)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		EXPECT(fault_fired());
		return;
	}
	scene_run(sendfiles, &fd, workers);
	close(fd);
}

/* ---- Copies -------------------------------------------------------------- */

/* All of it has room between the first and the last. */
enum { COPY_BYTES = 70000 };

#define COPY_ERRORS FD_ERRORS, MOVE_ERRORS

struct link {
	int from, to;
};

static void link_close(const struct link *link)
{
	EXPECT(weft_close(link->from) == 0);
	EXPECT(weft_close(link->to) == 0);
}

static int64_t copy_on(void *arg)
{
	const struct link *link = arg;

	MAY(weft_copy(link->to, link->from, UINT64_MAX, NULL, NULL),
	    COPY_ERRORS);
	link_close(link);
	return 0;
}

/* A file, a socket, another, a pipe, another, a file. */
static void copy_along(int file_fd, const int first[2], const int pipe[2],
		       int nonblock)
{
	int second[2], last = memfd_create("last", MFD_CLOEXEC);
	struct link links[] = { { first[1], pipe[1] }, { pipe[0], -1 } };

	if (last < 0) {
		EXPECT(fault_fired());
		last = dup(file_fd);
	}
	scene_socket_pair(second);
	links[1].to = second[0];
	EXPECT(fcntl(first[1], F_SETFL, O_RDWR | nonblock) == 0);
	EXPECT(fcntl(second[0], F_SETFL, O_RDWR | nonblock) == 0);
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 2; i++)
			if (MAY(WEFT_GO(scope, copy_on, links[i]), ENOMEM) < 0)
				link_close(&links[i]);
		MAY(weft_copy(first[0], file_fd, COPY_BYTES, NULL, NULL),
		    COPY_ERRORS);
		EXPECT(weft_close(first[0]) == 0);
		MAY(weft_copy(last, second[1], UINT64_MAX, NULL, NULL),
		    COPY_ERRORS, EBADF);
		EXPECT(weft_close(second[1]) == 0);
	}
	EXPECT(weft_close(last) == 0);
}

static int64_t copies(void *arg)
{
	int file_fd = *(int *)arg;

	for (int i = 0; i < 2; i++) {
		int first[2], fds[2];

		scene_socket_pair(first);
		if (MAY(pipe2(fds, O_CLOEXEC) < 0 ? -errno_now() : 0,
			FD_ERRORS) < 0) {
			EXPECT(weft_close(first[0]) == 0);
			EXPECT(weft_close(first[1]) == 0);
			continue;
		}
		copy_along(file_fd, first, fds, i ? O_NONBLOCK : 0);
	}
	return 0;
}

void scene_copy(unsigned workers)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		EXPECT(fault_fired());
		return;
	}
	scene_run(copies, &fd, workers);
	close(fd);
}

/* ---- Names --------------------------------------------------------------- */

static void read_names(int dir_fd)
{
	struct weft_dir_entry entry;
	struct weft_dir dir;
	int r = (int)MAY(weft_dir_open(&dir, dir_fd, "."), FD_ERRORS);

	while (r >= 0) {
		r = (int)MAY(weft_dir_next(&dir, &entry), ENOMEM);
		if (r == 0)
			break;
	}
	EXPECT(weft_dir_close(&dir) == 0);
}

/* With O_TMPFILE or without; a descriptor less is no reason for a mixture. */
static void replace_it(int dir_fd)
{
	struct weft_replace new_file;
	struct weft_temp temp;
	int r = (int)MAY(weft_temp_open(&temp, dir_fd, ".", 0600), FD_ERRORS);

	if (r == 0)
		MAY(weft_temp_link(&temp, dir_fd, "temp"), ENOMEM);
	EXPECT(weft_temp_close(&temp) == 0);
	MAY(weft_replace_file(dir_fd, "it", "one", 3, NULL), FD_ERRORS);
	r = (int)MAY(weft_replace_begin(&new_file, dir_fd, "it", NULL),
		     FD_ERRORS);
	if (r < 0)
		return;
	r = (int)MAY(weft_write_all(new_file.fd, "two", 3, NULL), MOVE_ERRORS);
	if (r == 0)
		MAY(weft_replace_commit(&new_file), ENOMEM);
	EXPECT(weft_replace_abort(&new_file) == 0);
}

static void use_names(int dir_fd)
{
	struct weft_direct direct;
	const char *name;
	int fd;

	MAY(weft_mkdir_all(dir_fd, "a/b", 0700, 0), FD_ERRORS);
	fd = (int)MAY(weft_open_parent(dir_fd, "a/b", 0, &name), FD_ERRORS,
		      ENOENT);
	if (fd >= 0) {
		MAY(weft_unlinkat(fd, name, AT_REMOVEDIR), ENOMEM, ENOENT);
		EXPECT(weft_close(fd) == 0);
	}
	MAY(weft_unlinkat(dir_fd, "a", AT_REMOVEDIR), ENOMEM, ENOENT,
	    ENOTEMPTY);
	MAY(weft_flock(dir_fd, LOCK_EX), ENOMEM);
	if (MAY(weft_direct_alloc(&direct, dir_fd, 5000), ENOMEM) == 0)
		weft_direct_free(&direct);
	replace_it(dir_fd);
	read_names(dir_fd);
}

static int64_t paths(void *arg)
{
	use_names(*(int *)arg);
	return 0;
}

/* Nothing is left but these names. */
void scene_paths(unsigned workers)
{
	static const char *const names[] = { "it", "temp" };
	char path[] = "/tmp/weft-fault-XXXXXX";
	int fd;

	EXPECT(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		EXPECT(fault_fired());
	else
		scene_run(paths, &fd, workers);
	for (size_t i = 0; fd >= 0 && i < 2; i++)
		(void)unlinkat(fd, names[i], 0);
	(void)unlinkat(fd, "a/b", AT_REMOVEDIR);
	(void)unlinkat(fd, "a", AT_REMOVEDIR);
	if (fd >= 0)
		close(fd);
	EXPECT(rmdir(path) == 0);
}

/* ---- Pipelines ----------------------------------------------------------- */

enum { BLOCKS = 4, BLOCK_BYTES = 1000 };

static int block_work(void *arg, struct weft_block *block)
{
	(void)arg;
	memset(block->out, 'x', block->bytes);
	block->out_bytes = block->bytes;
	return 0;
}

/* The file in memory, once on tasks alone and once with work in the pool, to a
 * file that is whole if the call says so. */
static int64_t pipelines(void *arg)
{
	struct weft_file_pipeline pipeline = WEFT_FILE_PIPELINE_INIT;
	char to[64];

	snprintf(to, sizeof(to), "/tmp/weft-fault-%d", (int)getpid());
	pipeline.from_fd = *(int *)arg;
	pipeline.to = to;
	pipeline.work = block_work;
	pipeline.block_bytes = BLOCK_BYTES;
	pipeline.out_bytes_max = BLOCK_BYTES;
	for (int i = 0; i < 2; i++) {
		struct stat st;

		pipeline.flags = i ? WEFT_PIPELINE_BLOCKING : 0;
		if (MAY(weft_pipeline_file(&pipeline), FD_ERRORS, EAGAIN,
			MOVE_ERRORS) == 0)
			EXPECT(stat(to, &st) == 0 &&
			       st.st_size == BLOCKS * BLOCK_BYTES);
		else
			EXPECT(stat(to, &st) < 0);
		(void)unlink(to);
	}
	return 0;
}

void scene_pipeline(unsigned workers)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (fd < 0) {
		EXPECT(fault_fired());
		return;
	}
	EXPECT(ftruncate(fd, BLOCKS * BLOCK_BYTES) == 0);
	scene_run(pipelines, &fd, workers);
	close(fd);
}
