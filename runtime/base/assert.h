/* SPDX-License-Identifier: MIT */
/*
 * Assertions that stay in the release: a broken invariant ends the process with
 * a sentence that names the mistake of the caller, or of weft.
 */
#ifndef WEFT_RUNTIME_BASE_ASSERT_H
#define WEFT_RUNTIME_BASE_ASSERT_H

/* Defined in runtime/sched/panic.c, since it names the task. */
__attribute__((noreturn, cold, format(printf, 3, 4))) void
weft__panic(const char *file, int line, const char *format, ...);

#define weft__assert(condition, sentence)                           \
	do {                                                        \
		if (__builtin_expect(!(condition), 0))              \
			weft__panic(__FILE__, __LINE__, "%s", sentence); \
	} while (0)

/* Checks that cost time; compiled in with -Dinvariants=true. */
#ifdef WEFT_INVARIANTS
#define weft__check(condition, sentence) weft__assert(condition, sentence)
#else
#define weft__check(condition, sentence) ((void)0)
#endif

#define weft__likely(condition) __builtin_expect(!!(condition), 1)
#define weft__unlikely(condition) __builtin_expect(!!(condition), 0)

#define WEFT__LINE_BYTES 64
/* Two cache lines, which adjacent-line prefetch moves together. */
#define WEFT__APART __attribute__((aligned(128)))

#endif
