/* SPDX-License-Identifier: MIT */
/*
 * A kernel that makes no more threads, by a filter for this process.
 */
#ifndef WEFT_TESTS_SUPPORT_REFUSE_THREADS_H
#define WEFT_TESTS_SUPPORT_REFUSE_THREADS_H

#include <check.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Valgrind does not support a seccomp filter for all threads. */
#ifdef WEFT_VALGRIND
enum { HAS_FILTERS = 0 };
#else
enum { HAS_FILTERS = 1 };
#endif

/* The filter holds for all threads of the process from here on. */
static inline void filter_threads(struct sock_filter *code,
				  unsigned short count)
{
	struct sock_fprog program = { count, code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				 SECCOMP_FILTER_FLAG_TSYNC, &program),
			 0);
}

/* From here on the process can make no more threads, as if a limit were
 * reached. */
static inline void refuse_threads(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 2),
		/* clone3() keeps its flags in memory that the filter cannot
		 * read: make the C library fall back to clone(). */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	filter_threads(code, 8);
}

#endif
