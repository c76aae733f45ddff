/* SPDX-License-Identifier: MIT */
/*
 * A planted bug, which UndefinedBehaviorSanitizer must report: an addition in a
 * task overflows an int.
 */
#include <limits.h>

#include <weft/weft.h>

static int64_t overflow(void *arg)
{
	volatile int sum = INT_MAX;

	(void)arg;
	if (weft_yield() < 0)
		return -1;
	sum = sum + 1;
	return sum == 0;
}

int main(void)
{
	return weft_run(overflow, NULL, NULL) < 0;
}
