/* SPDX-License-Identifier: MIT */
/*
 * Names - what a runtime knows of names, and what it asks.
 *
 * names.c keeps the table of questions, and the tasks that wait for them;
 * names_new.c makes it, and keeps the options.  names_ask.c has
 * the task that asks over c-ares, names_system.c asks getaddrinfo().  Without
 * c-ares names_none.c stands in their place.
 */
#ifndef WEFT_NET_NAMES_H
#define WEFT_NET_NAMES_H

#include <weft/resolve.h>
#include <weft/sync.h>

#include "io/request/reactor.h"
#include "runtime/base/lock.h"
#include "runtime/sched/runtime.h"

enum {
	WEFT__NAME_BYTES_MAX = 253,
	WEFT__NAMES_BUCKETS = 1024,
};

/* A name that was asked for.  `refs` counts the table, each task that waits,
 * and the one that asks. */
struct weft__question {
	struct weft__question *next;  /* of its bucket; under lock */
	struct weft__question *newer; /* of those answered; under lock */
	struct weft__question *older; /* likewise */
	/* Of the list of those that are asked, under lock, or of those that
	 * c-ares has, which is the task's own. */
	struct weft__question *next_asked;
	struct weft__question *before;
	struct weft__names *names; /* immutable */
	uint32_t hash;		   /* immutable */
	int family;		   /* immutable */
	bool by_system;	  /* getaddrinfo() is asked; immutable once it is
				    in the table */
	bool in_table;	  /* under lock */
	bool answered;	  /* under lock; then the answer is immutable */
	unsigned refs;	  /* under lock */
	unsigned waiters; /* that wait for the answer; under lock */
	unsigned version; /* of the files and options; owned by whoever asks */
	int error;	  /* the answer: 0, or a negative errno */
	unsigned count;	  /* of addrs */
	struct weft_addr *addrs; /* without ports */
	uint64_t expires_ns;
	struct weft_event done;
	char name[];
};

/* The options, as copies. */
struct weft__names_opts {
	char *servers;
	char *resolv_conf;
	weft_nsec timeout_ns;
	unsigned tries;
};

/* A file as it was when it was last looked at. */
struct weft__names_stamp {
	uint64_t ino, size, changed_s, changed_ns;
};

/* The files, as they were read last. */
struct weft__names_files {
	struct weft__names_stamp stamps[3];
	bool by_system; /* nsswitch.conf asks for getaddrinfo() */
};

struct weft__names_engine;

struct weft__names {
	struct weft__kept kept;	      /* first: see reactor.h */
	struct weft_runtime *runtime; /* immutable */
	struct weft_lane system;      /* of getaddrinfo() */
	struct weft_sem places;	      /* of questions that are under way */
	struct weft__lock lock;
	/* Under lock: */
	struct weft__question *buckets[WEFT__NAMES_BUCKETS];
	struct weft__question *newest, *oldest; /* of those answered */
	unsigned answers, answers_max;
	struct weft__question *asked; /* that the task has not taken yet */
	struct weft__question **asked_last;
	unsigned waiters; /* of questions to c-ares */
	bool serving;	  /* the task exists */
	bool asleep;	  /* it is about to wait, or waits */
	unsigned version;
	uint64_t looked_ns; /* when a look at the files last began */
	struct weft__names_files files; /* always those of opts */
	struct weft__names_opts opts;
	int wake_fd; /* an eventfd, which the task waits for too */
	/* The task's own: */
	struct weft__names_engine *engine;
};

/* The runtime's; made if there are none.  0 or -errno.  names_new.c */
int weft__names_get(struct weft_runtime *runtime,
		    struct weft__names **ret_names);

/* Once a second at most, looks if a file has changed.  names_new.c */
int weft__names_watch(struct weft__names *names);
/* Takes over what a task saw that looked when it was this version, unless that
 * has changed.  names_new.c */
void weft__names_files_set(struct weft__names *names,
			   const struct weft__names_files *files,
			   unsigned version);

/* A copy of a text that may be NULL.  0 or -ENOMEM.  names_new.c */
int weft__names_text(const struct weft_allocator *memory, const char *text,
		     char **ret_copy);
void weft__names_opts_free(const struct weft_allocator *memory,
			   struct weft__names_opts *opts);

/* Under the lock: the files or the options have changed.  Answers that were
 * kept go to *dead. */
void weft__names_forget(struct weft__names *names,
			struct weft__question **dead);
/* Frees those that are linked by `next`. */
void weft__questions_free(struct weft__question *dead);

/* Under the lock: is the task that asks to be woken, by the caller? */
bool weft__names_wakes(struct weft__names *names);
void weft__names_wake(struct weft__names *names);

/* Fills ret_addrs as weft_resolve() does, with port 0. */
int weft__names_look_up(const char *name, int family,
			struct weft_addr *ret_addrs, int addrs_max);

/*
 * Gives a question's answer to all that wait for it, and takes over the
 * caller's reference; addrs is copied.  The answer is kept for ttl_ns.
 * Or, if again_if_awaited and a task waits for it, asks again.
 */
void weft__names_answer(struct weft__question *question, int error,
			const struct weft_addr *addrs, unsigned count,
			uint64_t ttl_ns, bool again_if_awaited);

/* Takes all questions that were asked. */
struct weft__question *weft__names_take(struct weft__names *names);

/* The task that asks.  names_ask.c */
int64_t weft__names_serve(void *arg);
bool weft__names_servers_valid(const char *servers);
void weft__names_engine_free(struct weft__names *names);

/* Asks getaddrinfo(), for a reference of the caller.  names_system.c */
void weft__names_ask_system(struct weft__question *question);
/* Does this nsswitch.conf name more than files and dns for hosts? */
bool weft__names_wants_system(const char *nsswitch);
bool weft__names_nsswitch(void);
/* A test has its own. */
extern const char *weft__names_nsswitch_path;
extern const char *weft__names_hosts_path;

#endif
