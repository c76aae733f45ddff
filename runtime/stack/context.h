/* SPDX-License-Identifier: MIT */
/*
 * Context - the switch from one stack to another.
 *
 * x86-64: in line, so that nothing is called.  A switch behind a call leaves an
 * entry in the return predictor that no return will match, and then every
 * return up the resumed task's stack is mispredicted; leaving by a return pairs
 * it with the call on the other stack.  Without a call the predictor holds the
 * returns of the task that was left, which for tasks of one kind are the right
 * ones (docs/decisions/0002).  The compiler saves the registers that it needs.
 * Frame pointer, continuation and floating-point control words are stored here,
 * below the stack pointer, where a signal leaves them alone: the files are
 * compiled with -mno-red-zone.  The stack pointer moves only once, from one
 * stack to the other, when all but the jump is done, so that a signal handler
 * that interrupts a switch (dump/snapshot.c) finds a frame that its table
 * describes.
 *
 *	sp + 0	 mxcsr, x87 control word
 *	sp + 8	 rbp
 *	sp + 16	 where it continues
 *
 * At the continuation the frame is the compiler's own again, so its CFI holds:
 * gdb unwinds a suspended task from sp + 24, [sp + 16], [sp + 8].
 *
 * aarch64: a function, runtime/stack/context_aarch64.S.
 */
#ifndef WEFT_RUNTIME_STACK_CONTEXT_H
#define WEFT_RUNTIME_STACK_CONTEXT_H

#include <stdint.h>
#include <string.h>

struct weft__worker;

/* The layout of a waiting context's stack, in words from its stack pointer. */
enum {
#if defined(__x86_64__)
	WEFT__CONTEXT_CONTROL = 0,
	WEFT__CONTEXT_FRAME = 1,
	WEFT__CONTEXT_PC = 2,
	WEFT__CONTEXT_WORDS = 3,
#else
	WEFT__CONTEXT_FRAME = 10, /* x29 */
	WEFT__CONTEXT_PC = 11,	  /* x30 */
	WEFT__CONTEXT_CONTROL = 20,
	WEFT__CONTEXT_WORDS = 22,
#endif
};

/* A task's first run begins here, and continues in weft__task_main(pass). */
void weft__context_entry(void);

/* The floating-point control words of the calling thread, in the form that a
 * waiting context keeps. */
static inline uint64_t weft__context_control(void)
{
#if defined(__x86_64__)
	uint32_t mxcsr;
	uint16_t x87;

	__asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
	return (uint64_t)x87 << 32 | mxcsr;
#else
	uint64_t fpcr;

	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	return fpcr;
#endif
}

/* Fills the words below the top of a stack as a switch would have left them,
 * with the entry as continuation.  The control words are passed in, since
 * reading them is slow.  Returns the saved stack pointer. */
static inline void *weft__context_prepare(void *top, uint64_t control)
{
	uint64_t *end = (void *)((uintptr_t)top & ~(uintptr_t)15);
	uint64_t *sp = end - WEFT__CONTEXT_WORDS;

#if !defined(__x86_64__)
	memset(sp, 0, WEFT__CONTEXT_WORDS * sizeof(*sp));
#endif
	sp[WEFT__CONTEXT_CONTROL] = control;
	sp[WEFT__CONTEXT_FRAME] = 0;
	sp[WEFT__CONTEXT_PC] = (uintptr_t)weft__context_entry;
	return sp;
}

/* Registers that the compiler may use when the target has AVX-512, and must
 * therefore treat as lost; each line ends in a comma. */
#if defined(__AVX512F__)
#define WEFT__CONTEXT_AVX512                                             \
	"xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",   \
	"xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29",   \
	"xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#else
#define WEFT__CONTEXT_AVX512
#endif

/* Saves the stack pointer in *save_sp, continues at load_sp, and returns `pass`
 * there. */
#if defined(__x86_64__)
static inline __attribute__((always_inline)) struct weft__worker *
weft__context_jump(void **save_sp, void *load_sp, struct weft__worker *pass)
{
	__asm__ volatile(
		"leaq	1f(%%rip), %%rcx\n\t"
		"movq	%%rcx, -8(%%rsp)\n\t"
		"movq	%%rbp, -16(%%rsp)\n\t"
		"stmxcsr -24(%%rsp)\n\t"
		"fnstcw	-20(%%rsp)\n\t"
		"movzwl	-20(%%rsp), %%edx\n\t"
		"leaq	-24(%%rsp), %%rcx\n\t"
		"movq	%%rcx, (%%rdi)\n\t"
		/* Reading back the word just stored costs more than loading
		 * mxcsr.  The load of the x87 word is slow on some processors,
		 * and needless: it rarely differs. */
		"ldmxcsr (%%rsi)\n\t"
		"cmpw	4(%%rsi), %%dx\n\t"
		"je	2f\n\t"
		"fldcw	4(%%rsi)\n"
		"2:	movq	16(%%rsi), %%rcx\n\t"
		"movq	8(%%rsi), %%rbp\n\t"
		"leaq	24(%%rsi), %%rsp\n\t"
		/* notrack: the label below is not a function. */
		"notrack jmp *%%rcx\n"
		"1:\n"
		: "+a"(pass), "+D"(save_sp), "+S"(load_sp)
		:
		: WEFT__CONTEXT_AVX512
		  "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13",
		  "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
		  "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
		  "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)",
		  "st(4)", "st(5)", "st(6)", "st(7)", "memory", "cc");
	return pass;
}

/* The same from a context that never continues. */
static inline __attribute__((always_inline, noreturn)) void
weft__context_leave(void *load_sp, struct weft__worker *pass)
{
	__asm__ volatile("ldmxcsr (%1)\n\t"
			 "fldcw	4(%1)\n\t"
			 "movq	16(%1), %%rcx\n\t"
			 "movq	8(%1), %%rbp\n\t"
			 "leaq	24(%1), %%rsp\n\t"
			 "notrack jmp *%%rcx\n"
			 :
			 : "a"(pass), "S"(load_sp)
			 : "rcx", "memory");
	__builtin_unreachable();
}
#else
struct weft__worker *weft__context_jump(void **save_sp, void *load_sp,
					struct weft__worker *pass);

static inline __attribute__((noreturn)) void
weft__context_leave(void *load_sp, struct weft__worker *pass)
{
	void *ignored;

	(void)weft__context_jump(&ignored, load_sp, pass);
	__builtin_unreachable();
}
#endif

#endif
