/* SPDX-License-Identifier: MIT */
/*
 * Scenes: small programs over the whole of the API, for a process in which a
 * call may fail.  Each starts runtimes, and ends them.
 */
#ifndef WEFT_TESTS_FAULT_FAULT_SCENE_H
#define WEFT_TESTS_FAULT_FAULT_SCENE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/weft.h>

#include "runtime/base/atomic.h"
#include "tests/fault/fault.h"

struct fault_scene {
	const char *name;
	void (*run)(unsigned workers);
	bool slow;
};

extern const struct fault_scene fault_scenes[];
extern const int fault_scenes_count;

/* tests/fault/fault_scene_sync.c */
void scene_channels(unsigned workers);
void scene_select(unsigned workers);
void scene_semaphores(unsigned workers);
void scene_locks(unsigned workers);
void scene_time(unsigned workers);
void scene_locals(unsigned workers);
void scene_news(unsigned workers);
void scene_oneshots(unsigned workers);

/* tests/fault/fault_scene_fs.c */
void scene_watching(unsigned workers);
void scene_following(unsigned workers);

/* tests/fault/fault_scene_io.c */
void scene_pipes(unsigned workers);
void scene_files(unsigned workers);
void scene_sendfile(unsigned workers);
void scene_copy(unsigned workers);
void scene_paths(unsigned workers);
void scene_pipeline(unsigned workers);

/* tests/fault/fault_scene_copy.c */
void scene_copy_tree(unsigned workers);

/* tests/fault/fault_scene_net.c */
void scene_datagrams(unsigned workers);
void scene_streams(unsigned workers);
void scene_tcp(unsigned workers);
void scene_tcp_futures(unsigned workers);
void scene_unix(unsigned workers);
void scene_dial(unsigned workers);
void scene_names(unsigned workers);

/* tests/fault/fault_scene_process.c */
/* Its children end by SIGSYS, some while they share the parent's memory. */
extern bool scene_has_children;
void scene_processes(unsigned workers);

/* tests/fault/fault_scene_trees.c */
void scene_trees(unsigned workers);

/* tests/fault/fault_scene_beside.c */
void scene_cancelled(unsigned workers);
void scene_signals(unsigned workers);
void scene_blocking(unsigned workers);
void scene_dump(unsigned workers);
void scene_lookout(unsigned workers);

/* Ends the process: the program is not what it should be. */
#define EXPECT(holds)                                                      \
	do {                                                               \
		if (!(holds)) {                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#holds);                                   \
			_exit(EXIT_FAILURE);                               \
		}                                                          \
	} while (0)

/* A call that may fail with these errors, if one was made to fail before; its
 * result.  That there is no engine is to be said only where that is so. */
#define MAY(call, ...)                               \
	scene_may((call), #call, __FILE__, __LINE__, \
		  (const int[]){ __VA_ARGS__, 0 })

static inline int64_t scene_may(int64_t r, const char *call, const char *file,
				int line, const int *errors)
{
	if (r >= 0)
		return r;
	for (; fault_fired() && *errors; errors++)
		if (r == -*errors && (r != -ENOSYS || fault_forbids()))
			return r;
	fprintf(stderr, "%s:%d: %s gives %lld\n", file, line, call,
		(long long)r);
	_exit(EXIT_FAILURE);
}

/* The same for a call that another task or a deadline may end, which is no
 * fault. */
#define MAY_END(call, ...)                               \
	scene_may_end((call), #call, __FILE__, __LINE__, \
		      (const int[]){ __VA_ARGS__, 0 })

static inline int64_t scene_may_end(int64_t r, const char *call,
				    const char *file, int line,
				    const int *errors)
{
	if (r == -ECANCELED || r == -ETIMEDOUT)
		return r;
	return scene_may(r, call, file, line, errors);
}

/* The errors that weft_run() and weft_start() are documented to return. */
#define RUN_ERRORS ENOMEM, EMFILE, ENFILE, EAGAIN, ENOSYS

/* The errors of calls that make a descriptor. */
#define FD_ERRORS EMFILE, ENFILE, ENOMEM

/* The errors of a transfer, and those that its peer meets then. */
#define MOVE_ERRORS ENOMEM, ENOBUFS, EIO, EPIPE, ECONNRESET, ENODATA

/* The errors of calls that listen or connect. */
#define CONNECT_ERRORS FD_ERRORS, ENOBUFS, EADDRINUSE

/* Of the runtimes of a scene, if the test has chosen them. */
extern const struct weft_allocator *scene_allocator;
extern size_t scene_stack_bytes;

static inline struct weft_opts scene_opts(unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	opts.allocator = scene_allocator;
	opts.stack_bytes = scene_stack_bytes;
	return opts;
}

/* Runs fn(arg) as the first task, which gives 0. */
static inline void scene_run(weft_fn fn, void *arg, unsigned workers)
{
	struct weft_opts opts = scene_opts(workers);

	MAY(weft_run(fn, arg, &opts), RUN_ERRORS);
}

/* The same; arg points to the descriptor of a file in memory. */
static inline void scene_run_file(weft_fn fn, unsigned workers)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (fd < 0) {
		EXPECT(fault_fired());
		return;
	}
	scene_run(fn, &fd, workers);
	close(fd);
}

static inline void scene_socket_pair(int fds[2])
{
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
}

#endif
