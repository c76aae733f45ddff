/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/context: values that the compiler keeps in registers survive a
 * switch, whatever the other context does with the registers.  Compiled for
 * AVX-512 where the machine has it.
 */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/sched/context_switch.h"

static void *main_sp, *other_sp;
static _Alignas(64) char stack[64 << 10];

/* Overwrites every register that the switch does not save. */
static inline void overwrite_registers(void)
{
#if defined(__AVX512F__)
	__asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,"
			 "18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
			 "vpternlogd $0xff, %%zmm\\n, %%zmm\\n, %%zmm\\n\n\t"
			 ".endr\n\t"
			 ".irp n,0,1,2,3,4,5,6,7\n\t"
			 "kxorw	%%k\\n, %%k\\n, %%k\\n\n\t"
			 ".endr" ::: "memory");
#endif
#if defined(__x86_64__)
	__asm__ volatile("fninit" ::: "memory");
#endif
}

/* The other context, which replaces the library's own: it switches back
 * immediately, again and again. */
__attribute__((noreturn)) void weft__task_main(struct weft__worker *worker);
__attribute__((noreturn)) void weft__task_main(struct weft__worker *worker)
{
	for (;;) {
		overwrite_registers();
		worker = weft__context_jump(&other_sp, main_sp, worker);
	}
}

/* Switches there and back, inlined as in the library. */
#define SWITCH() (void)weft__context_jump(&main_sp, other_sp, NULL)

static void begin(void)
{
	other_sp = weft__context_prepare(stack + sizeof(stack),
					 weft__context_control());
}

/* Volatile, so that the compiler cannot compute the results itself. */
static volatile int one = 1;

START_TEST(long_doubles_survive)
{
	long double a = one, b = a + 1, c = b + 1;

	for (int i = 0; i < 3; i++) {
		SWITCH();
		a += one;
		SWITCH();
		b += a;
		c += b;
	}
	ck_assert(a == 4 && b == 11 && c == 25);
}
END_TEST

#if defined(__AVX512F__)

typedef int64_t vector __attribute__((vector_size(64)));

/* More values than 16 registers hold. */
#define VALUES(what)                                                       \
	what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7)    \
	what(8) what(9) what(10) what(11) what(12) what(13) what(14)       \
	what(15) what(16) what(17) what(18) what(19)
#define MAKE_VECTOR(n)                        \
	vector v##n = vector_of(n + one);     \
	__asm__ volatile("" : "+v"(v##n));
#define CHECK_VECTOR(n) wrong += v##n[0] != n + one || v##n[7] != n + one + 7;

static inline vector vector_of(int64_t first)
{
	return (vector){ 0, 1, 2, 3, 4, 5, 6, 7 } + first;
}

START_TEST(vectors_survive)
{
	int wrong = 0;

	VALUES(MAKE_VECTOR)
	SWITCH();
	VALUES(CHECK_VECTOR)
	ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(masks_survive)
{
	uint16_t a = (uint16_t)(one + 4), b = (uint16_t)(one + 8);

	__asm__ volatile("" : "+k"(a), "+k"(b));
	SWITCH();
	__asm__ volatile("" : "+k"(a), "+k"(b));
	ck_assert_int_eq(a, 5);
	ck_assert_int_eq(b, 9);
}
END_TEST

#endif

static Suite *context_suite(void)
{
	Suite *suite = suite_create("stack/context");
	TCase *registers = tcase_create("registers");

	tcase_add_checked_fixture(registers, begin, NULL);
	tcase_add_test(registers, long_doubles_survive);
#if defined(__AVX512F__)
	tcase_add_test(registers, vectors_survive);
	tcase_add_test(registers, masks_survive);
#endif
	suite_add_tcase(suite, registers);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(context_suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
