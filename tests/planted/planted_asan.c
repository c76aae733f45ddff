/* SPDX-License-Identifier: MIT */
/*
 * A planted bug, which AddressSanitizer must report: a task reads memory that
 * it freed before it was suspended.
 */
#include <stdlib.h>

#include <weft/weft.h>

static int64_t read_after_free(void *arg)
{
	char *volatile memory = malloc(64);

	(void)arg;
	if (memory == NULL)
		return -1;
	memory[7] = 1;
	free(memory);
	if (weft_yield() < 0)
		return -1;
	return memory[7];
}

int main(void)
{
	return weft_run(read_after_free, NULL, NULL) < 0;
}
