/* SPDX-License-Identifier: MIT */
/*
 * Names of a runtime - makes and frees what names.c works on, keeps the options
 * of the resolver, and looks after the files.
 *
 * A runtime has none of it until a task first looks up a name.  The files are
 * looked at before new options hold, and then by a task that looks up, at most
 * once a second; others go on meanwhile with what was seen the last time.
 *
 * Orderings
 *   [names.made]  `reactor->names` cas release -> load acquire of a task that
 *       looks up: what names_new() wrote.
 */
#include "net/names.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <weft/runtime.h>

#include "io/os/syscall.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"
#include "runtime/sched/wait.h"

enum {
	ANSWERS_DEFAULT = 1024,
	/* Each may have a query for either family: half of the 16 bits. */
	PLACES = 16384,
	SYSTEM_LANE = 32,
};
#define LOOK_EVERY_NS WEFT_SEC(1)

#define LEAF __attribute__((noinline))

const char *weft__names_hosts_path = "/etc/hosts";

static const struct weft_resolver_opts defaults = WEFT_RESOLVER_OPTS_INIT;

/* ---- Files and options --------------------------------------------------- */

static LEAF void stamp_of(const char *path, struct weft__names_stamp *ret_stamp)
{
	struct stat st;

	*ret_stamp = (struct weft__names_stamp){ 0 };
	if (stat(path, &st) == 0)
		*ret_stamp = (struct weft__names_stamp){
			st.st_ino,
			(uint64_t)st.st_size,
			(uint64_t)st.st_ctim.tv_sec,
			(uint64_t)st.st_ctim.tv_nsec,
		};
}

static void files_look(const struct weft__names_opts *opts,
		       struct weft__names_files *ret_files)
{
	struct weft__names_stamp *stamps = ret_files->stamps;

	stamp_of(opts->resolv_conf ? opts->resolv_conf : "/etc/resolv.conf",
		 &stamps[0]);
	stamp_of(weft__names_hosts_path, &stamps[1]);
	stamp_of(weft__names_nsswitch_path, &stamps[2]);
	ret_files->by_system = !opts->servers && weft__names_nsswitch();
}

int weft__names_text(const struct weft_allocator *memory, const char *text,
		     char **ret_copy)
{
	*ret_copy = text ? weft__memory_text(memory, text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

void weft__names_opts_free(const struct weft_allocator *memory,
			   struct weft__names_opts *opts)
{
	weft__memory_text_free(memory, opts->servers);
	weft__memory_text_free(memory, opts->resolv_conf);
}

static int opts_copy(const struct weft_allocator *memory,
		     const struct weft_resolver_opts *from,
		     struct weft__names_opts *ret_opts)
{
	struct weft__names_opts opts = { .timeout_ns = from->timeout_ns,
					 .tries = from->tries };
	int r = weft__names_text(memory, from->servers, &opts.servers);

	if (r == 0)
		r = weft__names_text(memory, from->resolv_conf,
				     &opts.resolv_conf);
	if (r < 0)
		weft__names_opts_free(memory, &opts);
	else
		*ret_opts = opts;
	return r;
}

static int opts_check(const struct weft_resolver_opts *opts)
{
	if (opts->size != sizeof(*opts) || opts->tries > 100 ||
	    opts->timeout_ns > WEFT_SEC(3600) || opts->answers_max > 1u << 24)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(opts->reserved) / sizeof(unsigned); i++)
		if (opts->reserved[i])
			return -EINVAL;
	if (opts->servers && !weft__names_servers_valid(opts->servers))
		return -EINVAL;
	return 0;
}

/* ---- Making and freeing -------------------------------------------------- */

static void names_free(struct weft__names *names)
{
	struct weft__question *dead = NULL;

	weft__names_engine_free(names);
	weft__names_forget(names, &dead);
	weft__questions_free(dead);
	if (names->wake_fd >= 0)
		weft__syscall_close(names->wake_fd);
	weft__names_opts_free(names->runtime->memory, &names->opts);
	weft__memory_free(names->runtime->memory, names, sizeof(*names));
}

static void names_end(struct weft__kept *kept)
{
	names_free((struct weft__names *)kept);
}

static LEAF int wake_fd_open(void)
{
	return weft__fd_above_stdio(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

static int names_new(struct weft_runtime *runtime,
		     struct weft__names **ret_names)
{
	struct weft__names *names =
		weft__memory_zeroed(runtime->memory, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->kept.end = names_end;
	names->runtime = runtime;
	names->system = (struct weft_lane)WEFT_LANE_INIT("names", SYSTEM_LANE);
	names->places = (struct weft_sem)WEFT_SEM_INIT(PLACES);
	names->answers_max = ANSWERS_DEFAULT;
	names->asked_last = &names->asked;
	names->wake_fd = wake_fd_open();
	if (names->wake_fd < 0) {
		int error = names->wake_fd;

		names_free(names);
		return error;
	}
	names->looked_ns = weft_now();
	files_look(&names->opts, &names->files);
	*ret_names = names;
	return 0;
}

int weft__names_get(struct weft_runtime *runtime,
		    struct weft__names **ret_names)
{
	struct weft__reactor *reactor = weft__reactor(runtime);
	/* pairs: [names.made] */
	struct weft__kept *kept = weft__load(&reactor->names, acquire);
	struct weft__names *names;
	int r;

	if (kept) {
		*ret_names = (struct weft__names *)kept;
		return 0;
	}
	r = names_new(runtime, &names);
	if (r < 0)
		return r;
	/* pairs: [names.made] */
	if (!weft__cas(&reactor->names, &kept, &names->kept, release)) {
		names_free(names);
		return weft__names_get(runtime, ret_names);
	}
	*ret_names = names;
	return 0;
}

void weft__names_files_set(struct weft__names *names,
			   const struct weft__names_files *files,
			   unsigned version)
{
	struct weft__question *dead = NULL;
	bool wakes_up = false;

	weft__lock_take(&names->lock);
	if (version == names->version) {
		if (memcmp(files->stamps, names->files.stamps,
			   sizeof(files->stamps)) != 0) {
			weft__names_forget(names, &dead);
			wakes_up = weft__names_wakes(names);
		}
		names->files = *files;
	}
	weft__lock_drop(&names->lock);
	if (wakes_up)
		weft__names_wake(names);
	weft__questions_free(dead);
}

int weft__names_watch(struct weft__names *names)
{
	const struct weft_allocator *memory = names->runtime->memory;
	struct weft__names_files files;
	struct weft__names_opts opts;
	uint64_t now_ns = weft_now();
	unsigned version = 0;
	bool looks;
	int r = 0;

	weft__lock_take(&names->lock);
	looks = now_ns >= names->looked_ns + LOOK_EVERY_NS;
	if (looks) {
		names->looked_ns = now_ns;
		version = names->version;
		opts = names->opts;
		r = weft__names_text(memory, names->opts.resolv_conf,
				     &opts.resolv_conf);
	}
	weft__lock_drop(&names->lock);
	if (!looks || r < 0)
		return r;
	/* Of the servers it reads only whether there are any. */
	files_look(&opts, &files);
	weft__memory_text_free(memory, opts.resolv_conf);
	weft__names_files_set(names, &files, version);
	return 0;
}

int weft_resolver_set(const struct weft_resolver_opts *opts)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__question *dead = NULL;
	struct weft__names_opts copy, old;
	struct weft__names_files files;
	struct weft__names *names;
	uint64_t now_ns;
	bool wakes_up;
	int r;

	if (!weft__running(worker))
		return -EPERM;
	opts = opts ? opts : &defaults;
	r = opts_check(opts);
	if (r == 0)
		r = weft__names_get(worker->runtime, &names);
	if (r == 0)
		r = opts_copy(names->runtime->memory, opts, &copy);
	if (r < 0)
		return r;
	now_ns = weft_now();
	files_look(&copy, &files);
	weft__lock_take(&names->lock);
	old = names->opts;
	names->opts = copy;
	names->answers_max =
		opts->answers_max ? opts->answers_max : ANSWERS_DEFAULT;
	names->looked_ns = now_ns;
	names->files = files;
	weft__names_forget(names, &dead);
	wakes_up = weft__names_wakes(names);
	weft__lock_drop(&names->lock);
	if (wakes_up)
		weft__names_wake(names);
	weft__names_opts_free(names->runtime->memory, &old);
	weft__questions_free(dead);
	return 0;
}
