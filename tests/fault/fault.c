/* SPDX-License-Identifier: MIT */
/*
 * Orderings
 *   [fault.begin]  `kind` store release -> load acquire of who makes a call:
 *       what is to fail, and how.
 */
#include "tests/fault/fault.h"

#include <errno.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "tests/support/guards.h"

static struct {
	weft__atomic(int) kind;
	int error;
	unsigned n;
	bool lasts;
	weft__atomic(unsigned) calls;
	weft__atomic(uint64_t) until_ns; /* 0: none has failed */
} fault;

/* ---- Whether a call fails ----------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fault_begin(enum fault_kind kind, int error, unsigned n, bool lasts)
{
	fault.error = error;
	fault.n = n;
	fault.lasts = lasts;
	/* relaxed: published by `kind`. */
	weft__store(&fault.calls, 0u, relaxed);
	weft__store(&fault.until_ns, (uint64_t)0, relaxed);
	/* pairs: [fault.begin] */
	weft__store(&fault.kind, (int)kind, release);
}

void fault_end(void)
{
	/* relaxed: a call may fail a moment later. */
	weft__store(&fault.kind, (int)FAULT_NONE, relaxed);
}

bool fault_fired(void)
{
	/* relaxed: of this thread, or of what it has waited for. */
	return weft__load(&fault.until_ns, relaxed) != 0;
}

bool fault_forbids(void)
{
	return fault_fired() && fault.error == EPERM;
}

static bool fails(enum fault_kind kind)
{
	uint64_t until_ns;
	unsigned call;

	/* pairs: [fault.begin] */
	if (kind == FAULT_NONE || weft__load(&fault.kind, acquire) != (int)kind)
		return false;
	/* relaxed: a count. */
	call = weft__add(&fault.calls, 1u, relaxed) + 1;
	if (call == fault.n) {
		/* relaxed: a point in time. */
		weft__store(&fault.until_ns, now_ns() + FAULT_LASTS_NS,
			    relaxed);
		return true;
	}
	/* relaxed: a point in time. */
	until_ns = weft__load(&fault.until_ns, relaxed);
	return fault.lasts && call > fault.n && now_ns() < until_ns;
}

/* ---- The allocator ------------------------------------------------------ */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

enum { BLOCKS = 1 << 16 };

struct block {
	void *memory; /* NULL: free, and the end of a search; GONE */
	void *caller;
	size_t bytes;
	uint64_t number;
};

static char gone;
#define GONE ((void *)&gone)

static struct weft__lock blocks_lock;
static struct block blocks[BLOCKS + 1]; /* the last is free */
static size_t blocks_count, mapped_pages;
static uint64_t blocks_ever;

extern const char __executable_start[], etext[];

/* Of weft, and of the test.  The C library keeps memory for the next thread;
 * and libdw, of elfutils 0.188, ends the process where it gets none. */
static bool is_ours(const void *caller)
{
	return (const char *)caller >= __executable_start &&
	       (const char *)caller < etext;
}

static struct block *block_find(const void *memory)
{
	size_t i = (size_t)((uintptr_t)memory * 0x9e3779b97f4a7c15u >> 48);

	for (unsigned tries = 0; tries < BLOCKS; tries++, i++) {
		struct block *block = &blocks[i % BLOCKS];

		if (block->memory == memory)
			return block;
		if (!block->memory)
			return NULL;
	}
	return NULL;
}

static struct block *block_place(const void *memory)
{
	size_t i = (size_t)((uintptr_t)memory * 0x9e3779b97f4a7c15u >> 48);

	for (unsigned tries = 0; tries < BLOCKS; tries++, i++) {
		struct block *block = &blocks[i % BLOCKS];

		if (!block->memory || block->memory == GONE)
			return block;
	}
	abort();
}

static void *block_add(void *memory, size_t bytes, void *caller)
{
	if (!memory || !is_ours(caller))
		return memory;
	weft__lock_take(&blocks_lock);
	*block_place(memory) =
		(struct block){ memory, caller, bytes, blocks_ever++ };
	blocks_count++;
	weft__lock_drop(&blocks_lock);
	return memory;
}

static void block_remove(const void *memory)
{
	struct block *block;

	weft__lock_take(&blocks_lock);
	block = memory ? block_find(memory) : NULL;
	if (block) {
		block->memory = block[1].memory ? GONE : NULL;
		blocks_count--;
	}
	weft__lock_drop(&blocks_lock);
}

static bool heap_fails(const void *caller)
{
	if (!is_ours(caller) || !fails(FAULT_HEAP))
		return false;
	errno = fault.error;
	return true;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t bytes)
{
	if (heap_fails(CALLER))
		return NULL;
	return block_add(__libc_malloc(bytes), bytes, CALLER);
}

void *calloc(size_t count, size_t bytes)
{
	if (heap_fails(CALLER))
		return NULL;
	return block_add(__libc_calloc(count, bytes), count * bytes, CALLER);
}

void *realloc(void *memory, size_t bytes)
{
	if (heap_fails(CALLER))
		return NULL;
	block_remove(memory);
	return block_add(__libc_realloc(memory, bytes), bytes, CALLER);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	if (heap_fails(CALLER))
		return NULL;
	return block_add(__libc_memalign(alignment, bytes), bytes, CALLER);
}

int posix_memalign(void **ret_memory, size_t alignment, size_t bytes)
{
	void *memory =
		heap_fails(CALLER) ? NULL : __libc_memalign(alignment, bytes);

	if (!memory)
		return ENOMEM;
	*ret_memory = block_add(memory, bytes, CALLER);
	return 0;
}

char *strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = heap_fails(CALLER) ? NULL : __libc_malloc(bytes);

	return copy ? memcpy(block_add(copy, bytes, CALLER), text, bytes) :
		      NULL;
}

void free(void *memory)
{
	block_remove(memory);
	__libc_free(memory);
}

static void *own_alloc(size_t bytes, size_t align, void *arg)
{
	void *memory =
		fails(FAULT_OWN) ? NULL : __libc_memalign(align, bytes);

	(void)arg;
	/* Filled, so that a read before the first write is noticed. */
	return memory ? memset(block_add(memory, bytes, CALLER), 0xa5, bytes) :
			NULL;
}

static void own_dealloc(void *memory, size_t bytes, size_t align, void *arg)
{
	struct block *block;

	(void)align, (void)arg;
	weft__lock_take(&blocks_lock);
	block = block_find(memory);
	if (!block || block->bytes != bytes)
		abort();
	weft__lock_drop(&blocks_lock);
	free(memset(memory, 0x5a, bytes));
}

const struct weft_allocator fault_allocator = {
	.alloc = own_alloc,
	.dealloc = own_dealloc,
};

/* ---- Memory that is held ------------------------------------------------ */

struct fault_held fault_held(void)
{
	struct fault_held held;

	weft__lock_take(&blocks_lock);
	held = (struct fault_held){ blocks_count, mapped_pages };
	weft__lock_drop(&blocks_lock);
	return held;
}

uint64_t fault_blocks_ever(void)
{
	uint64_t ever;

	weft__lock_take(&blocks_lock);
	ever = blocks_ever;
	weft__lock_drop(&blocks_lock);
	return ever;
}

void fault_name_blocks(uint64_t since)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		const struct block *block = &blocks[i];

		if (!block->memory || block->memory == GONE ||
		    block->number < since)
			continue;
		fprintf(stderr, "%zu bytes, allocated at %#tx of the program\n",
			block->bytes,
			(const char *)block->caller - __executable_start);
	}
}

/* ---- Mappings, threads -------------------------------------------------- */

static size_t pages_of(size_t bytes)
{
	return (bytes + 4095) / 4096;
}

static void mapped_add(size_t pages)
{
	weft__lock_take(&blocks_lock);
	mapped_pages += pages;
	weft__lock_drop(&blocks_lock);
}

/* Of the library and of others that call them by name, for the count alone:
 * whether they fail is the filter's. */
void *mmap64(void *at, size_t bytes, int access, int flags, int fd,
	     off64_t offset)
{
	long r = syscall(SYS_mmap, at, bytes, access, flags, fd, offset);

	if (r == -1)
		return MAP_FAILED;
	mapped_add(pages_of(bytes));
	return (void *)r;
}

/* <sys/mman.h> gives it another name where offsets are long: both are ours. */
void *mmap_short(void *at, size_t bytes, int access, int flags, int fd,
		 long offset) __asm__("mmap");
void *mmap_short(void *at, size_t bytes, int access, int flags, int fd,
		 long offset)
{
	return mmap64(at, bytes, access, flags, fd, offset);
}

int munmap(void *at, size_t bytes)
{
	int r = (int)syscall(SYS_munmap, at, bytes);

	if (r == 0)
		mapped_add(-pages_of(bytes));
	return r;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*fn)(void *), void *arg)
{
	if (fails(FAULT_THREAD))
		return fault.error;
	return __real_pthread_create(thread, attr, fn, arg);
}

/* ---- The filter --------------------------------------------------------- */

/* long fault_raw(long number, const long arguments[6]): -errno, or the result.
 * The kernel tells the filter where the instruction behind it lies. */
long fault_raw(long number, const long arguments[6]);
extern const char fault_raw_end[];
__asm__(".text\n"
	".type fault_raw, @function\n"
	"fault_raw:\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %r11\n"
	"	mov 0(%r11), %rdi\n"
	"	mov 8(%r11), %rsi\n"
	"	mov 16(%r11), %rdx\n"
	"	mov 24(%r11), %r10\n"
	"	mov 32(%r11), %r8\n"
	"	mov 40(%r11), %r9\n"
	"	syscall\n"
	"fault_raw_end:\n"
	"	ret\n"
	".size fault_raw, . - fault_raw\n");

static const struct {
	int number;
	enum fault_kind kind;
} trapped[] = {
	{ SYS_mmap, FAULT_MAP },
	{ SYS_mprotect, FAULT_MAP },
	{ SYS_openat, FAULT_FD },
	{ SYS_openat2, FAULT_FD },
	{ SYS_inotify_init1, FAULT_FD },
	{ SYS_timerfd_create, FAULT_FD },
	{ SYS_pipe2, FAULT_FD },
	{ SYS_dup3, FAULT_FD },
	{ SYS_eventfd2, FAULT_FD },
	{ SYS_epoll_create1, FAULT_FD },
	{ SYS_signalfd4, FAULT_FD },
	{ SYS_socket, FAULT_FD },
	{ SYS_accept4, FAULT_FD },
	{ SYS_memfd_create, FAULT_FD },
	{ SYS_io_uring_setup, FAULT_SETUP },
	{ SYS_io_uring_register, FAULT_CANCEL },
	{ SYS_io_uring_enter, FAULT_ENTER },
	{ SYS_epoll_ctl, FAULT_WATCH },
	{ SYS_bind, FAULT_SOCKET },
	{ SYS_listen, FAULT_SOCKET },
	{ SYS_setsockopt, FAULT_SOCKET },
	{ SYS_preadv2, FAULT_FILE },
	{ SYS_pwritev2, FAULT_FILE },
	{ SYS_sendfile, FAULT_FILE },
	{ SYS_splice, FAULT_FILE },
	{ SYS_tee, FAULT_FILE },
	{ SYS_copy_file_range, FAULT_FILE },
	{ SYS_sendto, FAULT_MESSAGE },
	{ SYS_recvfrom, FAULT_MESSAGE },
	{ SYS_sendmsg, FAULT_MESSAGE },
	{ SYS_recvmsg, FAULT_MESSAGE },
	{ SYS_sendmmsg, FAULT_MESSAGE },
	{ SYS_recvmmsg, FAULT_MESSAGE },
	{ SYS_membarrier, FAULT_ASIDE },
	{ SYS_sched_getattr, FAULT_ASIDE },
	{ SYS_sched_setattr, FAULT_ASIDE },
	{ SYS_getrandom, FAULT_ASIDE },
};

/* The advice that weft gives is trapped.  The C library gives another, with all
 * signals blocked, for the stack of a thread that ends: that is not. */
static const int trapped_advice[] = {
	GUARD_INSTALL,
	MADV_NOHUGEPAGE,
	MADV_HUGEPAGE,
	MADV_DONTFORK,
};

enum {
	TRAPPED = sizeof(trapped) / sizeof(trapped[0]),
	ADVICE = sizeof(trapped_advice) / sizeof(trapped_advice[0]),
};

static enum fault_kind kind_of(int number, const long arguments[6])
{
	if (number == SYS_madvise)
		return FAULT_MAP;
	if (number == SYS_io_uring_register &&
	    arguments[1] == IORING_REGISTER_PROBE)
		return FAULT_PROBE;
	/* The kernel can always forget what a thread registered. */
	if (number == SYS_io_uring_register &&
	    arguments[1] == IORING_UNREGISTER_RING_FDS)
		return FAULT_NONE;
	/* Without the flag they wait, as read() does, and do not fail so. */
	if ((number == SYS_preadv2 || number == SYS_pwritev2) &&
	    !(arguments[5] & RWF_NOWAIT))
		return FAULT_NONE;
	/* The kernel needs no memory to change what is in the set. */
	if (number == SYS_epoll_ctl && arguments[1] != EPOLL_CTL_ADD)
		return FAULT_NONE;
	for (int i = 0; i < TRAPPED; i++)
		if (trapped[i].number == number)
			return trapped[i].kind;
	return FAULT_NONE;
}

static void on_trap(int signal_number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const long arguments[6] = {
		registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
		registers[REG_R10], registers[REG_R8],	registers[REG_R9],
	};

	(void)signal_number;
	if (fails(kind_of(info->si_syscall, arguments)))
		registers[REG_RAX] = -fault.error;
	else
		registers[REG_RAX] = fault_raw(info->si_syscall, arguments);
}

#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)(at))
#define IF(value, then, other) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), then, other)
#define TRAP BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

#define FIELD(name) offsetof(struct seccomp_data, name)

static unsigned short filter_make(struct sock_filter *code)
{
	uint64_t raw_end = (uint64_t)(uintptr_t)fault_raw_end;
	struct sock_filter *next = code;

	*next++ = (struct sock_filter)LOAD(FIELD(instruction_pointer));
	*next++ = (struct sock_filter)IF(raw_end & UINT32_MAX, 0, 3);
	*next++ = (struct sock_filter)LOAD(FIELD(instruction_pointer) + 4);
	*next++ = (struct sock_filter)IF(raw_end >> 32, 0, 1);
	*next++ = (struct sock_filter)ALLOW;
	*next++ = (struct sock_filter)LOAD(FIELD(nr));
	for (int i = 0; i < TRAPPED; i++) {
		*next++ = (struct sock_filter)IF(trapped[i].number, 0, 1);
		*next++ = (struct sock_filter)TRAP;
	}
	*next++ = (struct sock_filter)IF(SYS_madvise, 1, 0);
	*next++ = (struct sock_filter)ALLOW;
	*next++ = (struct sock_filter)LOAD(FIELD(args[2]));
	for (int i = 0; i < ADVICE; i++) {
		*next++ = (struct sock_filter)IF(trapped_advice[i], 0, 1);
		*next++ = (struct sock_filter)TRAP;
	}
	*next++ = (struct sock_filter)ALLOW;
	return (unsigned short)(next - code);
}

static void filter_install(void)
{
	struct sock_filter code[2 * TRAPPED + 2 * ADVICE + 10];
	struct sock_fprog program = { filter_make(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		abort();
}

void fault_install(void)
{
	/* A call made by a handler inside the handler is trapped, too. */
	struct sigaction action = {
		.sa_sigaction = on_trap,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGSYS, &action, NULL) < 0)
		abort();
	filter_install();
}
