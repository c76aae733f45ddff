/* SPDX-License-Identifier: MIT */
/*
 * Fault - calls of this process that fail on demand.
 *
 * The n-th call of one kind fails, counted from when it was asked for; or that
 * one and all that follow it within FAULT_LASTS_NS.  (Longer would tell nothing
 * more: a runtime out of memory waits until there is some.)
 *
 * The allocator and pthread_create() are defined here in place of the C
 * library's.  System calls are trapped by a filter (seccomp), whoever makes
 * them: liburing makes its own, without the C library.  The handler carries
 * them out, by an instruction that the filter lets pass.
 */
#ifndef WEFT_TESTS_FAULT_FAULT_H
#define WEFT_TESTS_FAULT_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/allocator.h>

#define FAULT_LASTS_NS 3000000u

enum fault_kind {
	FAULT_NONE,
	FAULT_HEAP,   /* malloc() and its kin, called by weft itself */
	FAULT_OWN,    /* fault_allocator's alloc */
	FAULT_MAP,    /* mmap(), mprotect(), some of madvise() */
	FAULT_THREAD, /* pthread_create() */
	FAULT_FD,     /* what makes a descriptor, but for io_uring_setup() */
	FAULT_SETUP,  /* io_uring_setup() */
	FAULT_PROBE,  /* io_uring_register(), to ask what a ring can do */
	FAULT_CANCEL, /* io_uring_register(), to cancel a request */
	FAULT_ENTER,  /* io_uring_enter() */
	FAULT_WATCH,  /* epoll_ctl(), to add a descriptor */
	FAULT_SOCKET, /* bind(), listen(), setsockopt() */
	FAULT_FILE, /* reading and writing at once, by preadv2() and its kin */
	FAULT_MESSAGE, /* sending and receiving at once */
	FAULT_ASIDE,   /* what the runtime can do without */
	FAULT_KINDS,
};

/* Its memory is among the blocks of fault_held().  It ends the process if the
 * size that is given back is not that which was taken. */
extern const struct weft_allocator fault_allocator;

/* The filter, for this process from now on. */
void fault_install(void);

void fault_begin(enum fault_kind kind, int error, unsigned n, bool lasts);
void fault_end(void);

/* Whether a call has failed since fault_begin(). */
bool fault_fired(void);

/* Whether io_uring is forbidden, not lacking in something. */
bool fault_forbids(void);

/* The blocks that weft and the test have allocated now, and the pages that any
 * code has mapped. */
struct fault_held {
	size_t blocks;
	size_t mapped_pages;
};

struct fault_held fault_held(void);

/* Names on stderr the blocks that were allocated since that many had been, and
 * are still there. */
uint64_t fault_blocks_ever(void);
void fault_name_blocks(uint64_t since);

#endif
