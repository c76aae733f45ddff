/* SPDX-License-Identifier: MIT */
/*
 * Tasks for tests/tools/test_ctypes.py, which compiles this file.
 */
#include <weft/weft.h>

struct call {
	weft_fn fn;
	int64_t number;
};

/* On a thread of the pool, as weft_foreign(7) says. */
WEFT_API int64_t call_in_pool(void *arg);
int64_t call_in_pool(void *arg)
{
	struct call *call = arg;

	return weft_blocking(call->fn, &call->number);
}
