/* SPDX-License-Identifier: MIT */
/*
 * Context - the switch from one stack to another.
 *
 * x86-64: in line, so that nothing is called.  A switch behind a call leaves an
 * entry in the return predictor that no return will match, and every return up
 * the resumed task's stack is then mispredicted; leaving by a return pairs it
 * with the call on the other stack.  Without a call the predictor holds the
 * returns of the task that was left, which for tasks of one kind are the right
 * ones (measured: docs/DECISIONS.md).  The compiler saves what it needs of the
 * registers; frame pointer, continuation and floating-point control words are
 * pushed here.  The files are compiled with -mno-red-zone.
 *
 *	sp + 0	 mxcsr, x87 control word
 *	sp + 8	 rbp
 *	sp + 16	 where it continues
 *
 * At the continuation the frame is the compiler's own again, so its CFI holds:
 * gdb unwinds a suspended task from sp + 24, [sp + 16], [sp + 8].
 *
 * aarch64: a function, runtime/context_aarch64.S.
 */
#ifndef WEFT_RUNTIME_CONTEXT_H
#define WEFT_RUNTIME_CONTEXT_H

#include "runtime/fiber.h"

struct weft__worker;

/* Where a task's first run begins; calls weft__task_main(pass). */
void weft__context_entry(void);

/* Fills the words below the top of a stack as a switch would have left them, at
 * the entry.  Returns the saved stack pointer. */
void *weft__context_prepare(void *top);

/* Saves the stack pointer in *save_sp, continues at load_sp, and returns `pass`
 * there. */
#if defined(__x86_64__)
static inline __attribute__((always_inline)) struct weft__worker *
weft__context_jump(void **save_sp, void *load_sp, struct weft__worker *pass)
{
	__asm__ volatile(
		"leaq	1f(%%rip), %%rcx\n\t"
		"pushq	%%rcx\n\t"
		"pushq	%%rbp\n\t"
		"subq	$8, %%rsp\n\t"
		"stmxcsr (%%rsp)\n\t"
		"fnstcw	4(%%rsp)\n\t"
		"movl	(%%rsp), %%ecx\n\t"
		"movzwl	4(%%rsp), %%edx\n\t"
		"movq	%%rsp, (%%rdi)\n\t"
		"movq	%%rsi, %%rsp\n\t"
		/* Loading control words is slow, and they rarely differ.  The
		 * low six bits of mxcsr are sticky; no call preserves them. */
		"xorl	(%%rsp), %%ecx\n\t"
		"testl	$0xffc0, %%ecx\n\t"
		"je	2f\n\t"
		"ldmxcsr (%%rsp)\n"
		"2:	cmpw	4(%%rsp), %%dx\n\t"
		"je	3f\n\t"
		"fldcw	4(%%rsp)\n"
		"3:	movq	8(%%rsp), %%rbp\n\t"
		"movq	16(%%rsp), %%rcx\n\t"
		"addq	$24, %%rsp\n\t"
		/* notrack: the label below is no function. */
		"notrack jmp *%%rcx\n"
		"1:\n"
		: "+a"(pass), "+D"(save_sp), "+S"(load_sp)
		:
		: "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13",
		  "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
		  "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
		  "xmm13", "xmm14", "xmm15", "memory", "cc");
	return pass;
}
#else
struct weft__worker *weft__context_jump(void **save_sp, void *load_sp,
					struct weft__worker *pass);
#endif

/* from, to: the stacks, NULL for the worker's own. */
static inline struct weft__worker *
weft__context_switch(void **save_sp, void *load_sp, struct weft__stack *from,
		     struct weft__stack *to, struct weft__worker *worker)
{
	weft__fiber_leave(worker, from, to);
	worker = weft__context_jump(save_sp, load_sp, worker);
	weft__fiber_arrive(worker, from);
	return worker;
}

#endif
