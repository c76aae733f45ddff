/* SPDX-License-Identifier: MIT */
#include "tests/support/process_kit.h"

#include <limits.h>
#include <sys/syscall.h>

#include "tests/support/errno_now.h"
#include "tests/support/need.h"

/* ---- Roles --------------------------------------------------------------- */

/* "number=inode ...": these are open, and no others.  "p": a pipe. */
static void has_fds(const char *list)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0, expected = 0;
	struct dirent *entry;

	NEED(dir);
	while ((entry = readdir(dir)))
		if (*entry->d_name != '.' && atoi(entry->d_name) != dirfd(dir))
			count++;
	for (; *list; list += strcspn(list, " "), list += *list == ' ') {
		struct stat st;
		char *end;
		int fd = (int)strtol(list, &end, 10);

		expected++;
		NEED(fstat(fd, &st) == 0);
		if (end[1] == 'p')
			NEED(S_ISFIFO(st.st_mode));
		else if (end[1] != '*')
			NEED(st.st_ino == strtoull(end + 1, NULL, 10));
	}
	NEED(count == expected);
	closedir(dir);
}

/* A sanitizer has handlers of its own in the child. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN)
enum { HAS_HANDLERS = 1 };
#else
enum { HAS_HANDLERS = 0 };
#endif

/* "blocked ignored", in hex. */
static void has_signals(const char *text)
{
	uint64_t blocked = 0, ignored = 0;
	char *end;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, 8);
	NEED(blocked == strtoull(text, &end, 16));
	for (int i = 1; i <= 64; i++) {
		/* The C library hides two. */
		struct {
			uintptr_t handler;
			unsigned long more[8];
		} action;

		NEED(syscall(SYS_rt_sigaction, i, NULL, &action, 8) == 0);
		if (action.handler == (uintptr_t)SIG_IGN)
			ignored |= (uint64_t)1 << (i - 1);
		else
			NEED(action.handler == (uintptr_t)SIG_DFL ||
			     HAS_HANDLERS);
	}
	NEED(ignored == strtoull(end, NULL, 16));
}

static void is_in(const char *directory)
{
	char here[PATH_MAX];

	NEED(getcwd(here, sizeof(here)));
	NEED(strcmp(here, directory) == 0);
}

static void has_place(const char *kind)
{
	bool leads = getpgrp() == getpid(), session = getsid(0) == getpid();

	if (strcmp(kind, "session") == 0)
		NEED(leads && session);
	else if (strcmp(kind, "group") == 0)
		NEED(leads && !session);
	else
		NEED(!leads && !session);
}

static void has_limit(const char *soft_hard)
{
	struct rlimit limit;
	char *end;

	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	NEED(limit.rlim_cur == strtoull(soft_hard, &end, 10));
	NEED(limit.rlim_max == strtoull(end, NULL, 10));
}

static void has_environment(const char *text)
{
	NEED(environ[0] && strcmp(environ[0], text) == 0);
	NEED(!environ[1]);
}

static void say(const char *text)
{
	NEED(write(STDOUT_FILENO, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Ends by itself in the end, so that a test that fails leaves no process, which
 * would hold the pipes of whatever runs the test. */
static void stay(void)
{
	(void)alarm(40);
	say("r");
	for (;;)
		pause();
}

/* With an argument it ignores SIGTERM. */
static void hold(const char *arg)
{
	if (*arg)
		NEED(signal(SIGTERM, SIG_IGN) != SIG_ERR);
	stay();
}

/* Ends with what it is asked to say last. */
static const char *last_words;
static void say_last(int number)
{
	(void)number;
	say(last_words);
	_exit(0);
}

static void part(const char *arg)
{
	last_words = arg;
	NEED(signal(SIGTERM, say_last) != SIG_ERR);
	stay();
}

/* Leaves a child behind that has its descriptors. */
static void leave(const char *arg)
{
	pid_t child = fork();

	NEED(child >= 0);
	if (child == 0) {
		NEED(!*arg || signal(SIGTERM, SIG_IGN) != SIG_ERR);
		stay();
	}
}

/* Leaves the group that it leads, with an argument to a child of its own. */
static void desert(const char *arg)
{
	if (*arg && fork() == 0) {
		(void)alarm(40);
		pause();
		_exit(0);
	}
	NEED(setpgid(0, getpgid(getppid())) == 0);
	stay();
}

static void compute(const char *ms)
{
	struct rusage usage;

	do
		NEED(getrusage(RUSAGE_SELF, &usage) == 0);
	while (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec +
		       1000000 * (usage.ru_utime.tv_sec +
				  usage.ru_stime.tv_sec) <
	       atoi(ms) * 1000);
}

/* Writes that many bytes, or without end. */
static void flood(const char *bytes)
{
	static char block[4096];
	long left = atol(bytes);

	memset(block, 'f', sizeof(block));
	while (left != 0) {
		size_t n = left > 0 && left < 4096 ? (size_t)left : 4096;

		NEED(write(STDOUT_FILENO, block, n) == (ssize_t)n);
		if (left > 0)
			left -= (long)n;
	}
}

static void fall(const char *number)
{
	struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	NEED(raise(atoi(number)) == 0);
}

static void finish(const char *status)
{
	_exit(atoi(status));
}

/* Until its input ends. */
static void follow(const char *arg)
{
	char byte;

	(void)arg;
	NEED(read(STDIN_FILENO, &byte, 1) == 0);
}

static const struct {
	const char *name;
	void (*play)(const char *arg);
} roles[] = {
	{ "fds", has_fds },
	{ "signals", has_signals },
	{ "directory", is_in },
	{ "place", has_place },
	{ "limit", has_limit },
	{ "environment", has_environment },
	{ "hold", hold },
	{ "part", part },
	{ "leave", leave },
	{ "desert", desert },
	{ "compute", compute },
	{ "flood", flood },
	{ "fall", fall },
	{ "exit", finish },
	{ "say", say },
	{ "follow", follow },
};

int child_play(int argc, char **argv)
{
	NEED(argc == 3);
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (strcmp(argv[1], roles[i].name) == 0) {
			roles[i].play(argv[2]);
			_exit(0);
		}
	_exit(255);
}

/* A process that holds a pipe for longer was not ended. */
#define PATIENCE_NS WEFT_SEC(20)

/* ---- Parents ------------------------------------------------------------- */

static char own_path[PATH_MAX];

__attribute__((constructor)) static void own_path_read(void)
{
	if (readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) < 0)
		abort();
}

void role_init(struct role *role, const char *name, const char *arg)
{
	*role = (struct role){
		.argv = { "child", name, arg, NULL },
		.opts = WEFT_SPAWN_OPTS_INIT,
	};
	role->opts.argv = role->argv;
	role->opts.path = own_path;
}

struct weft_process *role_start(struct role *role)
{
	struct weft_process *process = NULL;

	ck_assert_int_eq(weft_spawn(&role->opts, &process), 0);
	ck_assert_ptr_nonnull(process);
	return process;
}

void role_run(struct role *role)
{
	struct weft_process *process = role_start(role);
	struct weft_exit exit;

	ck_assert_int_eq(weft_process_wait(process, &exit), 0);
	ck_assert_msg(exit.status == 0,
		      "child '%s' '%s': line %d of process_kit.c, or signal %d",
		      role->argv[1], role->argv[2], exit.status - 1,
		      exit.signal);
	ck_assert_int_eq(weft_process_close(process, NULL), 0);
}

struct weft_process *role_start_ready(struct role *role)
{
	struct weft_process *process;

	role->output = (struct weft_child_fd){ 1, WEFT_PIPE_WRITTEN,
					       &role->fd };
	role->opts.fds = &role->output;
	role->opts.fds_count = 1;
	process = role_start(role);
	expect_bytes(role->fd, "r");
	return process;
}

void expect_bytes(int fd, const char *text)
{
	char got[256] = { 0 };
	int r = 0;

	WEFT_WITHIN(PATIENCE_NS)
		r = weft_read_all(fd, got, strlen(text), NULL);
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(got, text);
}

void expect_end(int fd)
{
	ssize_t n = 0;
	char byte;

	WEFT_WITHIN(PATIENCE_NS)
		n = weft_read(fd, &byte, 1);
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(weft_close(fd), 0);
}

void expect_no_children(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno_now(), ECHILD);
}

/* A test may be started without 0, 1 and 2. */
void process_test_begin(int turn)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			ck_assert_int_eq(open("/dev/null", O_RDWR), fd);
	if (turn & 2)
		ck_assert_int_eq(setenv("WEFT_MASK", "pidfd,close_range", 1),
				 0);
}
