/* SPDX-License-Identifier: MIT */
/*
 * A planted bug, which Valgrind must report: a task branches on an
 * uninitialized value.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weft/weft.h>

static int64_t read_unset(void *arg)
{
	int *volatile memory = malloc(sizeof(*memory));

	(void)arg;
	if (memory == NULL)
		return -1;
	if (weft_yield() == 0 && *memory == 42)
		puts("the answer");
	free(memory);
	return 0;
}

int main(void)
{
	return weft_run(read_unset, NULL, NULL) < 0;
}
