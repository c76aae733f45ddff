/* SPDX-License-Identifier: MIT */
#include "tests/model/fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACK_SIZE (128u << 10)
#define GUARD_SIZE (64u << 10)

/*
 * Pushes the registers that the ABI lets a callee expect, stores the stack
 * pointer through the first argument, loads the second and returns on the other
 * stack.
 */
void model__fiber_switch(void **save_sp, void *load_sp);

#if defined(__x86_64__)

#define RETURN_WORD 6

__asm__(".text\n"
	".globl model__fiber_switch\n"
	".type model__fiber_switch, @function\n"
	"model__fiber_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size model__fiber_switch, . - model__fiber_switch\n");

/* As after a call: the stack is aligned but for the return address. */
#define FRAME_WORDS 8

#elif defined(__aarch64__)

#define RETURN_WORD 11

__asm__(".text\n"
	".globl model__fiber_switch\n"
	".type model__fiber_switch, %function\n"
	"model__fiber_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size model__fiber_switch, . - model__fiber_switch\n");

#define FRAME_WORDS 20

#else
#error "The model checker has no fiber switch for this processor."
#endif

void fiber_open(struct fiber *fiber)
{
	char *base;

	if (fiber->top)
		return;
	base = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED || mprotect(base, GUARD_SIZE, PROT_NONE)) {
		perror("model: mmap");
		exit(2);
	}
	fiber->top = base + GUARD_SIZE + STACK_SIZE;
}

void fiber_reset(struct fiber *fiber, void (*entry)(void))
{
	uintptr_t *frame = (uintptr_t *)(void *)fiber->top - FRAME_WORDS;

	memset(frame, 0, FRAME_WORDS * sizeof(*frame));
	frame[RETURN_WORD] = (uintptr_t)entry;
	fiber->sp = frame;
}

void fiber_switch(struct fiber *from, const struct fiber *to)
{
	model__fiber_switch(&from->sp, to->sp);
}
