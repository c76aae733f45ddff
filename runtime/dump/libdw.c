/* SPDX-License-Identifier: MIT */
#include "runtime/dump/libdw.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define LIBRARY "libdw.so.1"

static struct weft__libdw libdw;
static const char *failure; /* NULL: it is loaded */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void symbol_load(void *library, const char *name, void *ret_function,
			size_t bytes)
{
	void *address = library ? dlsym(library, name) : NULL;

	if (!address)
		failure = library ? LIBRARY " is too old" :
				    LIBRARY " (elfutils) cannot be loaded";
	memcpy(ret_function, &address, bytes);
}

/* Of the first object, which is the program. */
static int names_loader(struct dl_phdr_info *program, size_t bytes, void *arg)
{
	bool *ret_names = arg;

	(void)bytes;
	for (unsigned i = 0; i < program->dlpi_phnum; i++)
		*ret_names |= program->dlpi_phdr[i].p_type == PT_INTERP;
	return 1;
}

/* A static program has no loader.  glibc's dlopen() would load a second C
 * library for libdw, which crashes. */
static bool is_static(void)
{
	bool names = false;

	(void)dl_iterate_phdr(names_loader, &names);
	return !names;
}

static void load(void)
{
	void *library;

	if (is_static()) {
		failure = "a static program cannot load " LIBRARY;
		return;
	}
	/* The library stays loaded. */
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
#define LOAD(name) \
	symbol_load(library, #name, &libdw.name, sizeof(libdw.name));
	WEFT__LIBDW(LOAD)
#undef LOAD
	/*
	 * glibc keeps the error for this thread's dlerror(); the second call
	 * frees it.  The thread of a dump may end with the process.
	 */
	if (failure) {
		dlerror();
		dlerror();
	}
}

const struct weft__libdw *weft__libdw(const char **ret_why)
{
	pthread_once(&once, load);
	*ret_why = failure;
	return failure ? NULL : &libdw;
}
