/* SPDX-License-Identifier: MIT */
/* Names, in a build without c-ares. */
#include <errno.h>

#include "net/names.h"
#include "runtime/sched/wait.h"

int weft__names_look_up(const char *name __attribute__((unused)),
			int family __attribute__((unused)),
			struct weft_addr *ret_addrs __attribute__((unused)),
			int addrs_max __attribute__((unused)))
{
	return -ENOSYS;
}

int weft_resolver_set(const struct weft_resolver_opts *opts
		      __attribute__((unused)))
{
	return weft__running(weft__worker_self()) ? -ENOSYS : -EPERM;
}
