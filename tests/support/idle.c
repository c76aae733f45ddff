/* SPDX-License-Identifier: MIT */
#include "tests/support/idle.h"

#include <sys/resource.h>

#include "tests/support/expect.h"
#include "tests/support/few.h"
#include "tests/support/io_kit.h"

/* The share of a processor that is next to nothing: what is tried 20 times a
 * second, and the monitor's look every millisecond meanwhile.  A tool makes
 * that dearer; a loop would take all of it. */
static uint64_t next_to_nothing(void)
{
#if defined(WEFT__ASAN) || defined(WEFT__TSAN)
	return 8;
#else
	/* An emulator, too, where the stage has only a few seeds. */
	return test_few() > 2 ? 4 : 10;
#endif
}

struct spent {
	uint64_t now_ns;
	struct rusage usage;
};

static struct spent spent_now(void)
{
	struct spent spent = { .now_ns = weft_now() };

	EXPECT(getrusage(RUSAGE_SELF, &spent.usage) == 0);
	return spent;
}

static uint64_t ns_between(struct timeval from, struct timeval to)
{
	return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000 + to.tv_usec -
			  from.tv_usec) *
	       1000;
}

static void pause_here(weft_nsec ns)
{
	if (weft_runtime_self())
		EXPECT(weft_sleep(ns) == 0);
	else
		thread_pause_ns((long)ns);
}

/* Check writes to a file in /tmp for each of its assertions, and may be held up
 * there (quiet_dir.h): so there is none in a window. */
void expect_idle(void)
{
	enum { WINDOWS = 16, WINDOW_MS = 200 };
	struct spent old, new;
	uint64_t user_ns, system_ns, max_ns;

	for (int i = 0; i < WINDOWS; i++) {
		old = spent_now();
		pause_here(WEFT_MS(WINDOW_MS));
		new = spent_now();
		user_ns = ns_between(old.usage.ru_utime, new.usage.ru_utime);
		system_ns = ns_between(old.usage.ru_stime, new.usage.ru_stime);
		/* A window lasts longer where the processors are busy. */
		max_ns = (new.now_ns - old.now_ns) / next_to_nothing();
		if (user_ns + system_ns < max_ns)
			return;
	}
	ck_abort_msg("%lu us in user mode and %lu us in the kernel, at most "
		     "%lu us; %ld faults, %ld waits, %ld times interrupted",
		     user_ns / 1000, system_ns / 1000, max_ns / 1000,
		     new.usage.ru_minflt - old.usage.ru_minflt,
		     new.usage.ru_nvcsw - old.usage.ru_nvcsw,
		     new.usage.ru_nivcsw - old.usage.ru_nivcsw);
}
