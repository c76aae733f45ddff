/* SPDX-License-Identifier: MIT */
#include "io/request/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/os/mask.h"
#include "io/request/reactor.h"

#define BY_VARIABLE "it was asked for by WEFT_ENGINE"
#define BY_OPTION "the program asked for it"

int weft__engine_asked(const struct weft_opts *opts,
		       struct weft__engine *ret_engine)
{
	const char *name = secure_getenv("WEFT_ENGINE");

	if (weft__mask_read() < 0)
		return -EINVAL;
	*ret_engine = (struct weft__engine){
		.engine = opts ? opts->engine : WEFT_ENGINE_ANY,
		.why = BY_OPTION,
	};
	if (!name || !*name)
		return 0;
	ret_engine->why = BY_VARIABLE;
	if (strcmp(name, "uring") == 0) {
		ret_engine->engine = WEFT_ENGINE_URING;
	} else if (strcmp(name, "epoll") == 0) {
		ret_engine->engine = WEFT_ENGINE_EPOLL;
	} else {
		fprintf(stderr,
			"weft: WEFT_ENGINE is '%s', but must be 'uring' or "
			"'epoll'\n",
			name);
		return -EINVAL;
	}
	return 0;
}

/* A kernel that allows io_uring finds no parameters. */
bool weft__engine_is_likely_epoll(void)
{
	const char *name = secure_getenv("WEFT_ENGINE");

	if (name && *name)
		return strcmp(name, "epoll") == 0;
#ifdef WEFT_WITHOUT_URING
	return true;
#endif
	return syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno != EFAULT;
}

void weft__engine_opened(struct weft__engine *engine, unsigned used, int r,
			 const char *refusal)
{
	/* For a program that cannot run at all. */
	if (r == -ENOSYS && refusal)
		fprintf(stderr, "weft: %s; epoll is not used because %s\n",
			refusal, engine->why);
	if (engine->engine == WEFT_ENGINE_ANY)
		engine->why = used == WEFT_ENGINE_URING ?
				      "the kernel allows it" :
				      refusal;
	engine->engine = used;
}

unsigned weft_engine(const struct weft_runtime *runtime, const char **ret_why)
{
	const struct weft__reactor *reactor;

	if (!runtime)
		return WEFT_ENGINE_ANY;
	reactor = weft__reactor(runtime);
	if (ret_why)
		*ret_why = reactor->engine.why;
	return reactor->engine.engine;
}
