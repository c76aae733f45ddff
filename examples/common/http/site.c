/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../serving.h"
#include "site.h"

int site_fail(const char *what, const char *name, int error)
{
	fprintf(stderr, "%s: cannot %s %s: %s\n", program_invocation_short_name,
		what, name, strerror(error));
	return 1;
}

bool site_open(struct site *site)
{
	const struct site_opts *opts = &site->opts;
	char text[WEFT_ADDR_TEXT_BYTES];

	serving_raise_descriptor_limit();
	site->root_fd = open(opts->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (site->root_fd < 0)
		return !site_fail("serve", opts->directory, errno);
	site->secure = NULL;
	if (opts->cert) {
		site->secure =
			secure_context_new(opts->cert,
					   opts->key ? opts->key : opts->cert,
					   opts->alpn);
		if (!site->secure)
			return false;
	}
	site->listener = weft_tcp_listen(opts->address, NULL);
	if (site->listener < 0)
		return !site_fail("listen on", opts->address, -site->listener);
	/* For port 0 this is the port that the kernel chose. */
	printf("listening on %s\n", weft_local_addr_text(site->listener, text));
	fflush(stdout);
	return true;
}

int64_t site_run(struct site *site, weft_fn first, void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = site->opts.workers;
	return weft_run(first, arg, &opts);
}

void site_close(struct site *site)
{
	if (site->listener >= 0)
		close(site->listener);
	close(site->root_fd);
	secure_context_free(site->secure);
}
