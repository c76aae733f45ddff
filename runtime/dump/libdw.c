/* SPDX-License-Identifier: MIT */
#include "runtime/dump/libdw.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define LIBRARY "libdw.so.1"

static struct weft__libdw libdw;
static const char *missing; /* NULL: nothing is missing */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void symbol_load(void *library, const char *name, void *ret_function,
			size_t bytes)
{
	void *address = library ? dlsym(library, name) : NULL;

	if (!address)
		missing = library ? name : LIBRARY;
	memcpy(ret_function, &address, bytes);
}

static void load(void)
{
	/* The library stays loaded. */
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

#define LOAD(name) \
	symbol_load(library, #name, &libdw.name, sizeof(libdw.name));
	WEFT__LIBDW(LOAD)
#undef LOAD
	/*
	 * glibc keeps the error for this thread's dlerror(); the second call
	 * frees it.  The thread of a dump may end with the process.
	 */
	if (missing) {
		dlerror();
		dlerror();
	}
}

const struct weft__libdw *weft__libdw(const char **ret_why)
{
	pthread_once(&once, load);
	if (!missing)
		return &libdw;
	*ret_why = strcmp(missing, LIBRARY) == 0 ?
			   LIBRARY " (elfutils) cannot be loaded" :
			   LIBRARY " is too old";
	return NULL;
}
