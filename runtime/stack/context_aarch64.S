/* SPDX-License-Identifier: MIT */
/*
 * The switch on aarch64, a function (context.h), and the bottom frame of tasks.
 *
 * weft__context_jump() saves the registers that a callee keeps, and fpcr, on
 * the stack that is left, and stores its stack pointer.  It loads those of the
 * other context, and returns there.  It writes fpcr only if the two differ.
 *
 * The stack of a context that waits holds, from its stack pointer:
 *
 *	sp + 0	 x19 x20 ... x29 x30 (12 registers)
 *	sp + 96	 d8 ... d15
 *	sp + 160 fpcr
 */
#if defined(__aarch64__)
	.text

	.globl	weft__context_jump
	.hidden	weft__context_jump
	.type	weft__context_jump, %function
	.p2align 4
weft__context_jump:
	.cfi_startproc
	hint	#34		/* bti c */
	sub	sp, sp, #176
	.cfi_adjust_cfa_offset 176
	stp	x19, x20, [sp, #0]
	.cfi_rel_offset x19, 0
	.cfi_rel_offset x20, 8
	stp	x21, x22, [sp, #16]
	.cfi_rel_offset x21, 16
	.cfi_rel_offset x22, 24
	stp	x23, x24, [sp, #32]
	.cfi_rel_offset x23, 32
	.cfi_rel_offset x24, 40
	stp	x25, x26, [sp, #48]
	.cfi_rel_offset x25, 48
	.cfi_rel_offset x26, 56
	stp	x27, x28, [sp, #64]
	.cfi_rel_offset x27, 64
	.cfi_rel_offset x28, 72
	stp	x29, x30, [sp, #80]
	.cfi_rel_offset x29, 80
	.cfi_rel_offset x30, 88
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mrs	x9, fpcr
	str	x9, [sp, #160]
	mov	x10, sp
	str	x10, [x0]

	mov	sp, x1
	mov	x0, x2
	ldr	x10, [sp, #160]
	cmp	x9, x10
	b.eq	1f
	msr	fpcr, x10
1:	ldp	d8, d9, [sp, #96]
	ldp	d10, d11, [sp, #112]
	ldp	d12, d13, [sp, #128]
	ldp	d14, d15, [sp, #144]
	ldp	x19, x20, [sp, #0]
	ldp	x21, x22, [sp, #16]
	ldp	x23, x24, [sp, #32]
	ldp	x25, x26, [sp, #48]
	ldp	x27, x28, [sp, #64]
	ldp	x29, x30, [sp, #80]
	add	sp, sp, #176
	.cfi_adjust_cfa_offset -176
	.cfi_restore x19
	.cfi_restore x20
	.cfi_restore x21
	.cfi_restore x22
	.cfi_restore x23
	.cfi_restore x24
	.cfi_restore x25
	.cfi_restore x26
	.cfi_restore x27
	.cfi_restore x28
	.cfi_restore x29
	.cfi_restore x30
	/* Not br: the instruction behind the call at the other end is no
	 * landing pad. */
	ret
	.cfi_endproc
	.size	weft__context_jump, .-weft__context_jump

	/* The bottom frame of every task. */
	.globl	weft__context_entry
	.hidden	weft__context_entry
	.type	weft__context_entry, %function
	.p2align 4
weft__context_entry:
	.cfi_startproc
	.cfi_undefined x30
	hint	#34		/* bti c */
	mov	x29, xzr
	mov	x30, xzr
	bl	weft__task_main
	brk	#1
	.cfi_endproc
	.size	weft__context_entry, .-weft__context_entry

#endif

	.section .note.GNU-stack, "", %progbits
