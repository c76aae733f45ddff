/* SPDX-License-Identifier: MIT */
/*
 * The state of a child when its program begins: descriptors, place, signals;
 * and the errors of children that do not begin.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "tests/support/process_kit.h"

/* Above those of the runtime and the test. */
enum { FIRST = 60, FILES = 4 };

/* ---- Descriptors --------------------------------------------------------- */

/* Each is another file, and is not close-on-exec. */
static void files_open(int first, ino_t *ret_inodes)
{
	for (int i = 0; i < FILES; i++) {
		int fd = memfd_create("file", 0);
		struct stat st;

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(dup2(fd, first + i), first + i);
		ck_assert_int_eq(close(fd), 0);
		ck_assert_int_eq(fstat(first + i, &st), 0);
		ret_inodes[i] = st.st_ino;
	}
}

static void files_close(int first)
{
	for (int i = 0; i < FILES; i++)
		ck_assert_int_eq(close(first + i), 0);
}

/* Appends; returns the new end. */
static char *text_add(char *end, int number, ino_t inode)
{
	return end + snprintf(end, 40, "%d=%llu ", number,
			      (unsigned long long)inode);
}

/* The child's 0, 1 and 2, if the list does not name them. */
static char *standard_text(char *text)
{
	for (int i = 0; i < 3; i++) {
		struct stat st;

		if (fstat(i, &st) == 0)
			text = text_add(text, i, st.st_ino);
	}
	return text;
}

static void permute(int turn, int *ret_order)
{
	int numbers[FILES] = { 0, 1, 2, 3 };

	for (int i = 0; i < FILES; i++) {
		int left = FILES - i, at = turn % left;

		turn /= left;
		ret_order[i] = numbers[at];
		memmove(&numbers[at], &numbers[at + 1],
			(size_t)(left - at - 1) * sizeof(int));
	}
}

static void give(const int *order, int first, int to, const ino_t *inodes)
{
	struct weft_child_fd fds[FILES];
	char text[512], *end = standard_text(text);
	struct role role;

	for (int i = 0; i < FILES; i++) {
		fds[i] = (struct weft_child_fd){ to + i, first + order[i],
						 NULL };
		end = text_add(end, to + i, inodes[order[i]]);
	}
	role_init(&role, "fds", text);
	role.opts.fds = fds;
	role.opts.fds_count = FILES;
	role_run(&role);
}

/* In any order, also with sources that are numbers of the list: swapped, in a
 * ring, moved by one. */
PROCESS_TEST(child_has_the_list_and_no_more)
{
	ino_t inodes[FILES];
	int order[FILES];

	files_open(FIRST, inodes);
	for (int turn = 0; turn < 24; turn++) {
		permute(turn, order);
		give(order, FIRST, FIRST, inodes);
		if (turn % 8 != 1)
			continue;
		give(order, FIRST, FIRST + 1, inodes);
		give(order, FIRST, FIRST - 2, inodes);
		give(order, FIRST, 3, inodes);
	}
	files_close(FIRST);
	return 0;
}

/* Sources may be given twice, and be the standard ones. */
PROCESS_TEST(one_source_has_several_numbers)
{
	int to_child = -1, from_child = -1, null_fd = open("/dev/null", O_RDWR);
	struct weft_child_fd fds[] = {
		{ 0, WEFT_PIPE_READ, &to_child },
		{ 7, 2, NULL },
		{ 2, 1, NULL },
		{ 1, WEFT_PIPE_WRITTEN, &from_child },
		{ 9, WEFT_NULL_FD, NULL },
		{ 8, 2, NULL },
	};
	struct stat out, err, null;
	char text[512], *end;
	struct role role;

	ck_assert_int_eq(fstat(null_fd, &null), 0);
	ck_assert_int_eq(fstat(1, &out), 0);
	ck_assert_int_eq(fstat(2, &err), 0);
	end = stpcpy(text, "0=p 1=p ");
	end = text_add(end, 2, out.st_ino);
	end = text_add(end, 7, err.st_ino);
	end = text_add(end, 8, err.st_ino);
	(void)text_add(end, 9, null.st_ino);
	role_init(&role, "fds", text);
	role.opts.fds = fds;
	role.opts.fds_count = 6;
	role_run(&role);
	for (int i = 0; i < 2; i++) {
		int fd = i ? from_child : to_child;

		ck_assert_int_gt(fd, 2);
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		ck_assert_int_eq(weft_close(fd), 0);
	}
	close(null_fd);
	return 0;
}

/* Also if what comes there has to be moved or opened first. */
PROCESS_TEST(list_may_have_the_highest_number)
{
	enum { HIGHEST = FIRST + FILES };
	struct weft_child_fd fds[] = {
		{ HIGHEST, FIRST, NULL },
		{ FIRST, FIRST + 1, NULL },
		{ FIRST + 1, WEFT_NULL_FD, NULL },
	};
	struct rlimit before, lower;
	ino_t inodes[FILES];
	struct role role;
	char text[512], *end = standard_text(text);

	if (!test_needs(TEST_HAS_VFORK, __func__, "a kernel of its own"))
		return 0;
	files_open(FIRST, inodes);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	lower = (struct rlimit){ HIGHEST + 1, before.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lower), 0);
	end = text_add(end, FIRST, inodes[1]);
	(void)snprintf(end, 40, "%d=* %d=%llu ", FIRST + 1, HIGHEST,
		       (unsigned long long)inodes[0]);
	role_init(&role, "fds", text);
	role.opts.fds = fds;
	role.opts.fds_count = 3;
	role_run(&role);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	files_close(FIRST);
	return 0;
}

static int64_t without_standard(void *arg)
{
	struct role role;
	char text[512];
	int fd = -1;
	struct weft_child_fd fds[] = {
		{ 1, WEFT_PIPE_WRITTEN, &fd },
		{ 5, WEFT_PIPE_READ, arg },
	};

	role_init(&role, "fds", "1=p 5=p");
	role.opts.fds = fds;
	role.opts.fds_count = 2;
	role_run(&role);
	ck_assert_int_gt(fd, 2);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(weft_close(*(int *)arg), 0);
	*standard_text(text) = '\0';
	role_init(&role, "fds", text);
	role_run(&role);
	return 0;
}

/* Descriptors that are opened meanwhile do not take their place. */
START_TEST(standard_descriptors_may_be_closed)
{
	int fd = -1, saved[3];

	process_test_begin(_i);
	for (int i = 0; i < 3; i++) {
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
		close(i);
	}
	io_run(without_standard, &fd, 1);
	for (int i = 0; i < 3; i++)
		ck_assert(saved[i] < 0 || dup2(saved[i], i) == i);
}
END_TEST

/* ---- The place of the child ---------------------------------------------- */

PROCESS_TEST(child_is_in_its_directory)
{
	struct role role;

	role_init(&role, "directory", "/proc");
	role.opts.directory = "/proc";
	role_run(&role);
	return 0;
}

PROCESS_TEST(child_leads_a_group_or_a_session)
{
	static const struct {
		const char *kind;
		unsigned flags;
	} kinds[] = {
		{ "none", 0 },
		{ "group", WEFT_SPAWN_GROUP },
		{ "session", WEFT_SPAWN_SESSION },
		{ "session", WEFT_SPAWN_SESSION | WEFT_SPAWN_GROUP },
	};

	for (int i = 0; i < 4; i++) {
		struct role role;

		role_init(&role, "place", kinds[i].kind);
		role.opts.flags = kinds[i].flags;
		role_run(&role);
	}
	return 0;
}

PROCESS_TEST(child_has_its_limits)
{
	const struct weft_child_limit limits[] = {
		{ RLIMIT_NOFILE, 0, 17, 19 },
		{ RLIMIT_CORE, 0, 0, 0 },
	};
	struct role role;

	role_init(&role, "limit", "17 19");
	role.opts.limits = limits;
	role.opts.limits_count = 2;
	role_run(&role);
	return 0;
}

PROCESS_TEST(child_has_its_environment)
{
	const char *environment[] = { "ONLY=this", NULL };
	struct role role;

	role_init(&role, "environment", "ONLY=this");
	role.opts.environment = environment;
	role_run(&role);
	return 0;
}

/* ---- Signals ------------------------------------------------------------- */

static void handle(int number)
{
	(void)number;
}

static void signals_are(unsigned flags, uint64_t ignored, uint64_t blocked)
{
	struct role role;
	char text[64];

	snprintf(text, sizeof(text), "%llx %llx", (unsigned long long)blocked,
		(unsigned long long)ignored);
	role_init(&role, "signals", text);
	role.opts.flags = flags;
	role.opts.ignored = ignored;
	role_run(&role);
}

static int64_t signals_look(void *arg)
{
	uint64_t blocked = WEFT_SIGNAL_BIT(SIGUSR2) | WEFT_SIGNAL_BIT(SIGTERM);

	(void)arg;
	signals_are(0, 0, 0);
	signals_are(0, WEFT_SIGNAL_BIT(SIGHUP) | WEFT_SIGNAL_BIT(64), 0);
	signals_are(WEFT_SPAWN_KEEP_MASK, 0, blocked);
	return 0;
}

/* Whatever the program ignores, handles and blocks. */
START_TEST(signals_of_the_child_are_always_set)
{
	sigset_t blocked, before;

	process_test_begin(_i);
	ck_assert(signal(SIGINT, SIG_IGN) != SIG_ERR);
	ck_assert(signal(SIGQUIT, SIG_IGN) != SIG_ERR);
	ck_assert(signal(SIGUSR1, handle) != SIG_ERR);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigaddset(&blocked, SIGTERM);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	io_run(signals_look, NULL, _i & 1 ? 2 : 1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
END_TEST

/* ---- Errors -------------------------------------------------------------- */

static int refused(const struct weft_spawn_opts *opts)
{
	struct weft_process *process = NULL;
	int fds = fds_open(), r = weft_spawn(opts, &process);

	ck_assert_ptr_null(process);
	expect_no_children();
	expect_fds(fds);
	return r;
}

static int refused_path(const char *path)
{
	struct role role;

	role_init(&role, "exit", "0");
	role.opts.path = path;
	return refused(&role.opts);
}

static void file_make(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "x\n", 2), 2);
	ck_assert_int_eq(close(fd), 0);
}

struct folder {
	char path[64], plain[96], garbage[96], inside[96];
};

static void path_join(char path[96], const char *folder, const char *name)
{
	snprintf(path, 96, "%s/%s", folder, name);
}

static void folder_make(struct folder *folder)
{
	*folder = (struct folder){ .path = "/tmp/weft-spawn-XXXXXX" };
	ck_assert_ptr_nonnull(mkdtemp(folder->path));
	path_join(folder->plain, folder->path, "plain");
	path_join(folder->garbage, folder->path, "garbage");
	path_join(folder->inside, folder->path, "plain/inside");
	file_make(folder->plain, 0644);
	file_make(folder->garbage, 0755);
}

static void folder_remove(const struct folder *folder)
{
	ck_assert_int_eq(unlink(folder->plain), 0);
	ck_assert_int_eq(unlink(folder->garbage), 0);
	ck_assert_int_eq(rmdir(folder->path), 0);
}

PROCESS_TEST(errors_of_the_execution_are_those_of_the_call)
{
	struct folder folder;
	struct role role;
	char *large;

	if (!test_needs(TEST_HAS_VFORK, __func__, "a kernel of its own"))
		return 0;
	folder_make(&folder);
	ck_assert_int_eq(refused_path("/nowhere/at all"), -ENOENT);
	ck_assert_int_eq(refused_path(""), -ENOENT);
	ck_assert_int_eq(refused_path(folder.plain), -EACCES);
	ck_assert_int_eq(refused_path(folder.garbage), -ENOEXEC);
	ck_assert_int_eq(refused_path(folder.inside), -ENOTDIR);
	ck_assert_int_eq(refused_path(folder.path), -EACCES);
	role_init(&role, "exit", "0");
	role.opts.directory = folder.inside;
	ck_assert_int_eq(refused(&role.opts), -ENOTDIR);
	large = malloc(1 << 20);
	memset(large, 'x', (1 << 20) - 1);
	large[(1 << 20) - 1] = '\0';
	role_init(&role, "exit", large);
	ck_assert_int_eq(refused(&role.opts), -E2BIG);
	free(large);
	folder_remove(&folder);
	return 0;
}

/* As execvp(3): a file that may not be executed hides none that may. */
PROCESS_TEST(program_is_searched_for_in_the_path)
{
	char *before = strdup(getenv("PATH") ? getenv("PATH") : "/bin");
	struct weft_process *process;
	struct folder folder;
	struct weft_exit exit;
	char path[256], sh[96];
	struct role role;

	if (!test_needs(TEST_HAS_VFORK, __func__, "a kernel of its own"))
		return 0;
	folder_make(&folder);
	path_join(sh, folder.path, "sh");
	file_make(sh, 0644);
	snprintf(path, sizeof(path), "/nowhere:%s:%s:/bin:/usr/bin",
		 folder.plain, folder.path);
	ck_assert_int_eq(setenv("PATH", path, 1), 0);
	role_init(&role, "-c", "exit 5");
	/* A shell may be one of several programs in a file. */
	role.argv[0] = "sh";
	role.opts.path = "sh";
	process = role_start(&role);
	ck_assert_int_eq(weft_process_wait(process, &exit), 0);
	ck_assert_int_eq(exit.status, 5);
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
	ck_assert_int_eq(refused_path("plain"), -EACCES);
	ck_assert_int_eq(refused_path("no-program-of-this-name"), -ENOENT);
	ck_assert_int_eq(setenv("PATH", before, 1), 0);
	ck_assert_int_eq(unlink(sh), 0);
	folder_remove(&folder);
	free(before);
	return 0;
}

static int refused_fds(struct weft_child_fd one, struct weft_child_fd two)
{
	struct weft_child_fd fds[] = { one, two };
	struct role role;

	role_init(&role, "exit", "0");
	role.opts.fds = fds;
	role.opts.fds_count = 2;
	return refused(&role.opts);
}

PROCESS_TEST(wrong_options_are_refused)
{
	const char *none[] = { NULL };
	struct weft_child_fd fine = { 3, 0, NULL };
	struct weft_process *process = NULL;
	struct role role;
	int fd = -1;

	role_init(&role, "exit", "0");
	ck_assert_int_eq(weft_spawn(&role.opts, NULL), -EINVAL);
	ck_assert_int_eq(weft_spawn(NULL, &process), -EINVAL);
	role.opts.size = 0;
	ck_assert_int_eq(refused(&role.opts), -EINVAL);
	role_init(&role, "exit", "0");
	role.opts.argv = none;
	ck_assert_int_eq(refused(&role.opts), -EINVAL);
	role_init(&role, "exit", "0");
	role.opts.flags = 1u << 20;
	ck_assert_int_eq(refused(&role.opts), -EINVAL);
	role_init(&role, "exit", "0");
	role.opts.fds_count = 1;
	ck_assert_int_eq(refused(&role.opts), -EINVAL);
	ck_assert_int_eq(refused_fds(fine, fine), -EINVAL);
	ck_assert_int_eq(refused_fds(fine, (struct weft_child_fd){ -1, 0, 0 }),
			 -EINVAL);
	ck_assert_int_eq(refused_fds(fine, (struct weft_child_fd){ 4, -9, 0 }),
			 -EINVAL);
	ck_assert_int_eq(refused_fds(fine, (struct weft_child_fd){ 4, 0, &fd }),
			 -EINVAL);
	ck_assert_int_eq(refused_fds(fine, (struct weft_child_fd){
						   4, WEFT_PIPE_READ, NULL }),
			 -EINVAL);
	return 0;
}

static int free_number(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(close(fd), 0);
	return fd;
}

/* A pipe that the call makes would get the number. */
PROCESS_TEST(source_that_is_not_open_is_refused)
{
	struct role role;
	int fd = -1;

	role_init(&role, "exit", "0");
	role_run(&role);
	ck_assert_int_eq(refused_fds((struct weft_child_fd){ 5, WEFT_PIPE_READ,
							     &fd },
				     (struct weft_child_fd){ 4, free_number(),
							     NULL }),
			 -EBADF);
	ck_assert_int_eq(fd, -1);
	return 0;
}

PROCESS_TEST(wrong_descriptors_and_limits_are_refused)
{
	struct weft_child_fd last = { INT32_MAX, 0, NULL };
	struct weft_child_fd fine = { 3, 0, NULL };
	struct weft_child_limit limit = { RLIMIT_NOFILE, 0, 20, 10 };
	struct role role;
	int fd = -1;

	if (!test_needs(TEST_HAS_VFORK, __func__, "a kernel of its own"))
		return 0;
	ck_assert_int_eq(refused_fds(fine, (struct weft_child_fd){
						   4, FIRST + 9, NULL }),
			 -EBADF);
	ck_assert_int_eq(refused_fds((struct weft_child_fd){ 5, WEFT_PIPE_READ,
							     &fd },
				     (struct weft_child_fd){ INT32_MAX - 1, 0,
							     NULL }),
			 -EMFILE);
	ck_assert_int_eq(refused_fds(fine, last), -EMFILE);
	/* Its own number is a source, too: all are moved first. */
	ck_assert_int_eq(refused_fds((struct weft_child_fd){ 0, 1, NULL },
				     last),
			 -EMFILE);
	ck_assert_int_eq(fd, -1);
	role_init(&role, "exit", "0");
	role.opts.limits = &limit;
	role.opts.limits_count = 1;
	ck_assert_int_eq(refused(&role.opts), -EINVAL);
	return 0;
}

START_TEST(calls_outside_of_tasks_are_refused)
{
	struct weft_process *process = NULL;
	struct role role;

	role_init(&role, "exit", "0");
	ck_assert_int_eq(weft_spawn(&role.opts, &process), -EPERM);
	ck_assert_int_eq(weft_run_command(&role.opts, NULL, NULL), -EPERM);
	ck_assert_int_eq(weft_process_close(NULL, NULL), 0);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("process/spawn");
	TCase *fds = tcase_create("fds");
	TCase *place = tcase_create("place");
	TCase *errors = tcase_create("errors");

	if (argc > 1)
		return child_play(argc, argv);
	process_add_test(fds, child_has_the_list_and_no_more);
	process_add_test(fds, one_source_has_several_numbers);
	process_add_test(fds, list_may_have_the_highest_number);
	process_add_test(fds, standard_descriptors_may_be_closed);
	process_add_test(place, child_is_in_its_directory);
	process_add_test(place, child_leads_a_group_or_a_session);
	process_add_test(place, child_has_its_limits);
	process_add_test(place, child_has_its_environment);
	process_add_test(place, signals_of_the_child_are_always_set);
	process_add_test(errors, errors_of_the_execution_are_those_of_the_call);
	process_add_test(errors, program_is_searched_for_in_the_path);
	process_add_test(errors, wrong_options_are_refused);
	process_add_test(errors, wrong_descriptors_and_limits_are_refused);
	process_add_test(errors, source_that_is_not_open_is_refused);
	tcase_add_test(errors, calls_outside_of_tasks_are_refused);
	suite_add_tcase(suite, fds);
	suite_add_tcase(suite, place);
	suite_add_tcase(suite, errors);
	return io_tests_run(suite);
}
