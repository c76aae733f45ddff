/* SPDX-License-Identifier: MIT */
/*
 * A program that was started without stdin, stdout and stderr.  The numbers 0
 * to 2 are the program's: it gets them from open, as POSIX says, and may put
 * other files there while weft works.
 *
 * Each test runs in a child, which has closed the three.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "io/os/mask.h"
#include "tests/support/errno_now.h"
#include "tests/support/io_kit.h"
#include "tests/support/need.h"

enum { LOW = 3, HANGS_S = 50 };

static bool is_free(int fd)
{
	return fcntl(fd, F_GETFD) < 0 && errno_now() == EBADF;
}

/* ---- The program --------------------------------------------------------- */

static int64_t echo(void *arg)
{
	int fd = *(int *)arg;
	char byte;

	while (weft_read(fd, &byte, 1) == 1)
		NEED(weft_write(fd, &byte, 1) == 1);
	return 0;
}

/* Reads, writes, sleeps, starts tasks: all that a ring, its timers and its
 * wake-ups are used for. */
static void work(void)
{
	int low[2], fds[2];
	char byte = 'x';

	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low) == 0);
	for (int i = 0; i < 2; i++) {
		fds[i] = fcntl(low[i], F_DUPFD_CLOEXEC, LOW);
		NEED(fds[i] >= LOW);
		close(low[i]);
	}
	WEFT_SUPERVISE(scope) {
		NEED(WEFT_GO(scope, echo, fds[0]) == 0);
		for (int i = 0; i < 200; i++) {
			NEED(weft_write(fds[1], &byte, 1) == 1);
			NEED(weft_read(fds[1], &byte, 1) == 1);
		}
		NEED(weft_sleep(WEFT_MS(30)) == 0);
		NEED(weft_shutdown(fds[1], SHUT_RDWR) == 0);
	}
	NEED(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
}

/* A worker that starts needs a descriptor for a moment. */
static void expect_free(void)
{
	wait_for_all_workers();
	for (int fd = 0; fd < LOW; fd++)
		NEED(is_free(fd));
}

static void put_others_there(void)
{
	int other = weft_open("/", O_RDONLY | O_DIRECTORY, 0);
	int high = fcntl(other, F_DUPFD_CLOEXEC, LOW);

	NEED(high >= LOW);
	NEED(weft_close(other) == 0);
	for (int fd = 0; fd < LOW; fd++)
		NEED(dup2(high, fd) == fd);
	NEED(weft_close(high) == 0);
}

static int64_t use_low_numbers(void *arg)
{
	(void)arg;
	expect_free();
	work();
	expect_free();
	for (int fd = 0; fd < LOW; fd++)
		NEED(weft_open("/dev/null", O_RDWR, 0) == fd);
	work();
	put_others_there();
	work();
	for (int fd = 0; fd < LOW; fd++)
		NEED(weft_close(fd) == 0);
	work();
	expect_free();
	return 0;
}

/* Returns how many bytes the dump has. */
static size_t ask_for_a_dump(const struct weft_addr *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t bytes = 0;
	char text[64];
	ssize_t n;

	NEED(fd >= LOW && weft_connect(fd, addr) == 0);
	while ((n = weft_read(fd, text, sizeof(text))) > 0)
		bytes += (size_t)n;
	NEED(n == 0 && weft_close(fd) == 0);
	return bytes;
}

/* The thread that writes dumps has descriptors, too. */
static int64_t use_low_numbers_beside_dumps(void *arg)
{
	const struct weft_addr *addr = arg;

	expect_free();
	put_others_there();
	for (int i = 0; i < 2; i++) {
		NEED(ask_for_a_dump(addr) > 0);
		work();
	}
	return 0;
}

/* ---- Files --------------------------------------------------------------- */

/* Of the copy. */
static int synced_fd;
static bool kept_free;

static bool are_free(void)
{
	return is_free(0) && is_free(1) && is_free(2);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		synced_fd = fd;
		kept_free = are_free();
	}
	return __real_fsync(fd);
}

static int64_t sleep_by_the_wall(void *arg)
{
	(void)arg;
	(void)!weft_sleep_until_wall(weft_wall_now() + 1000000000000);
	return 0;
}

static void files_are_written_above(const char *dir)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	struct weft_replace new_file;
	struct weft_temp temp;

	NEED(weft_temp_open(&temp, AT_FDCWD, dir, 0600) == 0);
	NEED(temp.fd >= LOW && are_free() && weft_temp_close(&temp) == 0);
	NEED(weft_replace_begin(&new_file, AT_FDCWD, "file", NULL) == 0);
	NEED(new_file.fd >= LOW && are_free());
	NEED(weft_replace_commit(&new_file) == 0);
	opts.flags = WEFT_COPY_FSYNC;
	NEED(weft_copy_file("file", "copy", &opts, NULL) == 0);
	NEED(synced_fd >= LOW && kept_free);
}

static void look_whether_free(const char *path, void *arg)
{
	(void)path;
	kept_free &= are_free();
	++*(int *)arg;
}

/* The directories are open while a file below is reported. */
static void tree_is_copied_above(const char *to)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	int copied = 0;

	opts.jobs_max = 1;
	opts.on_copied = look_whether_free;
	opts.arg = &copied;
	kept_free = true;
	NEED(weft_copy_tree("from", to, &opts, NULL) == 0);
	NEED(copied > 0 && kept_free);
}

static void trees_are_copied_above(void)
{
	NEED(mkdir("from", 0755) == 0 && mkdir("from/below", 0755) == 0);
	NEED(mknod("from/below/file", S_IFREG | 0600, 0) == 0);
	NEED(mkdir("to", 0755) == 0);
	tree_is_copied_above("new");
	tree_is_copied_above("to/");
	NEED(weft_remove_tree(AT_FDCWD, "from", NULL) == 0);
	NEED(weft_remove_tree(AT_FDCWD, "new", NULL) == 0);
	NEED(weft_remove_tree(AT_FDCWD, "to", NULL) == 0);
}

/* A directory that is opened just now has a low number for a moment. */
static int stay_free(void)
{
	for (int i = 0; i < 1000 && !are_free(); i++)
		NEED(weft_sleep(WEFT_MS(1)) == 0);
	return are_free() ? 0 : -EBUSY;
}

static int visit(const struct weft_walk_entry *entry, void *arg)
{
	(void)entry;
	++*(int *)arg;
	return stay_free();
}

static int removed(const char *path, int error, void *arg)
{
	(void)path;
	++*(int *)arg;
	return error < 0 ? error : stay_free();
}

static void trees_are_walked_above(void)
{
	struct weft_walk_opts walk = WEFT_WALK_OPTS_INIT;
	struct weft_remove_opts remove = WEFT_REMOVE_OPTS_INIT;
	int visits = 0;

	NEED(mkdir("tree", 0755) == 0 && mkdir("tree/below", 0755) == 0);
	NEED(mkdir("tree/below/it", 0755) == 0);
	NEED(mknod("tree/below/file", S_IFREG | 0600, 0) == 0);
	walk.flags = WEFT_WALK_DIR_FD;
	NEED(weft_walk(AT_FDCWD, "tree", visit, &visits, &walk) == 0);
	NEED(visits == 4);
	remove.report = removed;
	remove.arg = &visits;
	NEED(weft_remove_tree(AT_FDCWD, "tree", &remove) == 0);
	NEED(visits == 8);
}

/* Each number is looked at, whichever the call has taken. */
static void waits_are_above(void)
{
	struct weft_fs_watch *watch;
	struct weft_follow *follow;

	NEED(weft_fs_watch_open(&watch) == 0);
	expect_free();
	NEED(weft_fs_watch_close(watch) == 0);
	NEED(weft_follow_open("file", 0, &follow) == 0);
	expect_free();
	NEED(weft_follow_close(follow) == 0);
	WEFT_SUPERVISE(scope) {
		NEED(weft_go(scope, sleep_by_the_wall, NULL, 0) == 0);
		NEED(weft_sleep(WEFT_MS(2)) == 0);
		expect_free();
		weft_scope_cancel(scope);
	}
}

static int64_t use_files(void *arg)
{
	char dir[] = "/tmp/weft-stdio-XXXXXX";

	(void)arg;
	NEED(mkdtemp(dir) && chdir(dir) == 0);
	wait_for_all_workers();
	for (int way = 0; way < 2; way++) {
		setenv("WEFT_MASK", way ? "tmpfile" : "", 1);
		NEED(weft__mask_read() == 0);
		files_are_written_above(dir);
		NEED(unlink("copy") == 0);
	}
	trees_are_copied_above();
	trees_are_walked_above();
	waits_are_above();
	NEED(unlink("file") == 0 && rmdir(dir) == 0);
	return 0;
}

/* ---- Tests --------------------------------------------------------------- */

static void in_a_child_without_stdio(void (*fn)(unsigned workers), int i)
{
	int status = -1;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		alarm(HANGS_S);
		for (int fd = 0; fd < LOW; fd++)
			close(fd);
		fn(i ? 2 : 1);
		_exit(EXIT_SUCCESS);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(status == 0, "status %#x", (unsigned)status);
}

static void run(unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	NEED(weft_run(use_low_numbers, NULL, &opts) == 0);
	for (int fd = 0; fd < LOW; fd++)
		NEED(is_free(fd));
}

static void run_with_files(unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	NEED(weft_run(use_files, NULL, &opts) == 0);
}

static void run_with_dumps(unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_addr addr;
	char path[64], text[80];

	snprintf(path, sizeof(path), "@weft-stdio-%d", (int)getpid());
	snprintf(text, sizeof(text), "unix:%s", path);
	NEED(weft_addr_parse(text, &addr) == 0);
	opts.workers = workers;
	opts.dump_path = path;
	opts.dump_signal = SIGUSR1;
	NEED(weft_run(use_low_numbers_beside_dumps, &addr, &opts) == 0);
}

START_TEST(low_numbers_are_the_program_s)
{
	in_a_child_without_stdio(run, _i);
}
END_TEST

START_TEST(files_and_waits_of_weft_have_no_low_number)
{
	in_a_child_without_stdio(run_with_files, _i);
}
END_TEST

START_TEST(low_numbers_are_the_program_s_beside_dumps)
{
	in_a_child_without_stdio(run_with_dumps, _i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/stdio");
	TCase *tc = tcase_create("stdio");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, low_numbers_are_the_program_s);
	io_add_test(tc, low_numbers_are_the_program_s_beside_dumps);
	io_add_test(tc, files_and_waits_of_weft_have_no_low_number);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
