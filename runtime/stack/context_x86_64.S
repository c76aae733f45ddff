/* SPDX-License-Identifier: MIT */
/*
 * The entry of a task on x86-64; the switch itself is in line,
 * runtime/stack/context.h.
 */
#if defined(__x86_64__)
	.text

	/* Below the bottom frame of every task.  A jump, not a call, with a
	 * return address that unwinders know: a call would leave an entry in
	 * the return predictor that no return matches, and every return of the
	 * code that runs next on this core would be mispredicted. */
	.globl	weft__context_entry
	.hidden	weft__context_entry
	.type	weft__context_entry, @function
	.p2align 4
weft__context_entry:
	.cfi_startproc
	.cfi_undefined %rip
	endbr64
	movq	%rax, %rdi
	leaq	1f(%rip), %rcx
	pushq	%rcx
	jmp	weft__task_main
1:	ud2
	.cfi_endproc
	.size	weft__context_entry, .-weft__context_entry

	/* Indirect branches land on endbr64 (IBT); shadow stacks are not
	 * supported, since the switch changes stacks. */
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 1, 0
#endif

	.section .note.GNU-stack, "", @progbits
