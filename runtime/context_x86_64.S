/* SPDX-License-Identifier: MIT */
/*
 * The entry of a task on x86-64; the switch itself is in line,
 * runtime/context.h.
 */
#if defined(__x86_64__)
	.text

	/* The bottom frame of every task. */
	.globl	weft__context_entry
	.hidden	weft__context_entry
	.type	weft__context_entry, @function
	.p2align 4
weft__context_entry:
	.cfi_startproc
	.cfi_undefined %rip
	endbr64
	movq	%rax, %rdi
	xorl	%ebp, %ebp
	call	weft__task_main
	ud2
	.cfi_endproc
	.size	weft__context_entry, .-weft__context_entry

	/* void *weft__context_prepare(void *top): a context at its entry. */
	.globl	weft__context_prepare
	.hidden	weft__context_prepare
	.type	weft__context_prepare, @function
	.p2align 4
weft__context_prepare:
	.cfi_startproc
	endbr64
	andq	$-16, %rdi
	leaq	weft__context_entry(%rip), %rax
	movq	%rax, -8(%rdi)
	movq	$0, -16(%rdi)
	movq	$0, -24(%rdi)
	stmxcsr	-24(%rdi)
	fnstcw	-20(%rdi)
	leaq	-24(%rdi), %rax
	ret
	.cfi_endproc
	.size	weft__context_prepare, .-weft__context_prepare

	/* Indirect branches land on endbr64 (IBT); shadow stacks are not
	 * supported, since the switch changes stacks. */
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 1, 0
#endif

	.section .note.GNU-stack, "", @progbits
