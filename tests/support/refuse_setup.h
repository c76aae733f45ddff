/* SPDX-License-Identifier: MIT */
/*
 * A kernel that refuses io_uring or a part of it, by a filter for this process,
 * as containers have one.
 */
#ifndef WEFT_TESTS_SUPPORT_REFUSE_SETUP_H
#define WEFT_TESTS_SUPPORT_REFUSE_SETUP_H

#include <check.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* That system call gives that error from now on, in this process. */
static inline void refuse_call(unsigned number, unsigned error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
			 0);
}

static inline void refuse_setup(unsigned error)
{
	refuse_call(SYS_io_uring_setup, error);
}

#endif
