/* SPDX-License-Identifier: MIT */
/*
 * A real server of a package: started on a port of the loopback, with its data
 * in a directory of its own, and ended by its process id.  It dies with the
 * test, however that ends.
 */
#ifndef WEFT_TESTS_SUPPORT_SERVER_KIT_H
#define WEFT_TESTS_SUPPORT_SERVER_KIT_H

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

enum { SERVER_ARGS_MAX = 32, SERVER_STARTS_MAX = 20 };

struct server {
	pid_t pid;
	const char *user; /* if root starts it; NULL: root */
	char dir[64];
	char port[8];
	char address[32]; /* "127.0.0.1:port" */
};

/* The program's path, from PATH and from a directory that is not in it; NULL if
 * it is not installed. */
static inline const char *server_program(const char *name, const char *dir,
					 char path[256])
{
	const char *list = getenv("PATH");
	size_t length;

	if (dir) {
		snprintf(path, 256, "%s/%s", dir, name);
		if (access(path, X_OK) == 0)
			return path;
	}
	for (; list && *list; list += length + (list[length] == ':')) {
		length = strcspn(list, ":");
		snprintf(path, 256, "%.*s/%s", (int)length, list, name);
		if (access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

/* A port that is free now.  Another process may take it before the server does,
 * which then ends, and is started again with another one. */
static inline void server_choose_port(struct server *server)
{
	int fd = weft_tcp_listen("127.0.0.1:0", NULL);
	struct weft_addr addr;

	if (fd < 0 || weft_local_addr(fd, &addr) < 0)
		abort();
	close(fd);
	snprintf(server->port, sizeof(server->port), "%u",
		 (unsigned)weft_addr_port(&addr));
	snprintf(server->address, sizeof(server->address), "127.0.0.1:%s",
		 server->port);
}

/* Servers that refuse to be run by root. */
static inline bool server_become(const struct server *server)
{
	struct passwd *user;

	if (!server->user || getuid() != 0)
		return true;
	user = getpwnam(server->user);
	return user && setgroups(0, NULL) == 0 && setgid(user->pw_gid) == 0 &&
	       setuid(user->pw_uid) == 0;
}

/* Runs a program, whose output goes to a file in the server's directory. */
static inline pid_t server_spawn(const struct server *server,
				 const char *const argv[])
{
	pid_t parent = getpid(), pid = fork();
	char log[80];
	int fd;

	if (pid != 0)
		return pid;
	snprintf(log, sizeof(log), "%s/log", server->dir);
	if (!server_become(server) || chdir(server->dir) < 0)
		_exit(126);
	fd = open(log, O_RDWR | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		_exit(126);
	if (fd > 2)
		close(fd);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(126);
	execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* Runs a program to its end: its exit status, or -1. */
static inline int server_run(const struct server *server,
			     const char *const argv[])
{
	pid_t pid = server_spawn(server, argv);
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static inline bool server_make_dir(struct server *server)
{
	struct passwd *user = server->user ? getpwnam(server->user) : NULL;

	snprintf(server->dir, sizeof(server->dir), "/tmp/weft-server-XXXXXX");
	if (!mkdtemp(server->dir))
		return false;
	return !user || getuid() != 0 ||
	       chown(server->dir, user->pw_uid, user->pw_gid) == 0;
}

static inline int server_remove_one(const char *path, const struct stat *st,
				    int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static inline void server_remove_dir(struct server *server)
{
	nftw(server->dir, server_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline bool server_is_there(const struct server *server)
{
	struct weft_addr addr;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is = fd >= 0 && weft_addr_parse(server->address, &addr) == 0 &&
		  connect(fd, weft_addr_sockaddr(&addr),
			  weft_addr_sockaddr_bytes(&addr)) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

/* Ends it, by the signal, and waits for that. */
static inline void server_end(struct server *server, int signal)
{
	int status;

	if (server->pid <= 0)
		return;
	kill(server->pid, signal);
	kill(server->pid, SIGCONT); /* a test may have stopped it */
	waitpid(server->pid, &status, 0);
	server->pid = 0;
}

/* Says why it does not begin to serve, as far as its log tells.  Returns the
 * exit status for that. */
static inline int server_failed(struct server *server, const char *name)
{
	char path[80], text[4096];
	size_t bytes = 0;
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", server->dir);
	log = fopen(path, "re");
	if (log) {
		if (fseek(log, -(long)sizeof(text), SEEK_END) < 0)
			rewind(log);
		bytes = fread(text, 1, sizeof(text), log);
		fclose(log);
	}
	printf("%s does not begin to serve:\n%.*s\n", name, (int)bytes, text);
	server_remove_dir(server);
	return 1;
}

/* Waits until the server listens; false if it does not. */
static inline bool server_wait(struct server *server)
{
	struct timespec pause = { 0, 10000000 };
	int status;

	for (int i = 0; i < 6000; i++) {
		if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
			server->pid = 0;
			return false;
		}
		if (server_is_there(server))
			return true;
		ppoll(NULL, 0, &pause, NULL);
	}
	server_end(server, SIGKILL);
	return false;
}

#endif
