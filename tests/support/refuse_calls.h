/* SPDX-License-Identifier: MIT */
/*
 * A kernel that refuses system calls, by a filter for this process and what it
 * starts, as containers have one.
 */
#ifndef WEFT_TESTS_SUPPORT_REFUSE_CALLS_H
#define WEFT_TESTS_SUPPORT_REFUSE_CALLS_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define REFUSE_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define REFUSE_ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define REFUSE_ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#error "no name for the architecture"
#endif

enum { REFUSED_CALLS_MAX = 32 };

/* A number means the same call only on the same architecture.  A program of
 * another one ends: it could get past the filter.  X86_64 has a second set of
 * numbers, from 0x40000000 on, which is refused too. */
static inline unsigned short refuse_filter(struct sock_filter *code,
					   const unsigned *numbers,
					   unsigned count, unsigned error)
{
	struct sock_filter *next = code;

	*next++ = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	*next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
					       REFUSE_ARCHITECTURE, 1, 0);
	*next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					       SECCOMP_RET_KILL_PROCESS);
	*next++ = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	*next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
					       0x40000000, 0, 1);
	*next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					       SECCOMP_RET_ERRNO | ENOSYS);
	for (unsigned i = 0; i < count; i++) {
		*next++ = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, numbers[i], 0, 1);
		*next++ = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
	}
	*next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					       SECCOMP_RET_ALLOW);
	return (unsigned short)(next - code);
}

static inline bool refuse_install(struct sock_fprog *program)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == 0)
		return true;
	return errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == 0;
}

/* Those system calls give that error from now on.  False, with errno, if the
 * kernel takes no filter.  A privileged process keeps what set-user-ID programs
 * can do. */
static inline bool refuse_calls(const unsigned *numbers, unsigned count,
				unsigned error)
{
	struct sock_filter code[2 * REFUSED_CALLS_MAX + 7];
	struct sock_fprog program = { 0, code };

	if (count > REFUSED_CALLS_MAX) {
		errno = E2BIG;
		return false;
	}
	program.len = refuse_filter(code, numbers, count, error);
	return refuse_install(&program);
}

/* Only with that value of an argument, from 0. */
static inline bool refuse_call_with(unsigned number, unsigned argument,
				    unsigned value, unsigned error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args) + 8 * argument),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return refuse_install(&program);
}

#endif
