/* SPDX-License-Identifier: MIT */
/*
 * resolve [SERVERS] - reads names from its input, one a line, looks up many of
 * them at the same time, and prints the addresses as they come.
 *
 * Shows	weft_resolve() in plain code, a task for each name.  A limit of
 *		the scope keeps input unread while 1000 look-ups are under way;
 *		a deadline gives up a name whose servers do not answer.
 * Run		echo localhost | build/examples/resolve
 *		build/examples/resolve 127.0.0.1:5353 <names
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

enum { LOOK_UPS_MAX = 1000 };

struct name {
	char text[256];
};

static void print_addresses(const char *name, const struct weft_addr *addrs,
			    int count)
{
	char text[WEFT_ADDR_TEXT_BYTES];

	for (int i = 0; i < count; i++) {
		weft_addr_format(&addrs[i], text, sizeof(text));
		*strrchr(text, ':') = '\0'; /* the port */
		printf("%s %s\n", name, text);
	}
}

static int64_t look_up(void *arg)
{
	const struct name *name = arg;
	struct weft_addr addrs[8];
	char text[sizeof(name->text) + 2];
	int count = 0;

	snprintf(text, sizeof(text), "%s:0", name->text);
	WEFT_WITHIN(WEFT_SEC(30))
		count = weft_resolve(text, NULL, addrs, 8);
	if (count < 0)
		printf("%s: %s\n", name->text, strerror(-count));
	else
		print_addresses(name->text, addrs, count);
	return count < 0 ? count : 0;
}

/* Starts a task for each line. */
static int64_t read_names(struct weft_scope *all)
{
	struct weft_stream in = WEFT_STREAM_INIT(STDIN_FILENO);
	struct name name;
	ssize_t n;
	int64_t r = 0;

	while (r == 0 && (n = weft_stream_line(&in, name.text,
					       sizeof(name.text))) != 0) {
		r = n < 0 ? n : 0;
		name.text[strcspn(name.text, "\n")] = '\0';
		if (r == 0)
			r = WEFT_GO(all, look_up, name);
	}
	weft_stream_close(&in);
	return r;
}

static int64_t resolve_all(void *arg)
{
	struct weft_resolver_opts opts = WEFT_RESOLVER_OPTS_INIT;
	struct weft_scope all;
	int64_t r, failed;

	opts.servers = arg;
	r = weft_resolver_set(&opts);
	if (r < 0)
		return r;
	r = weft_supervisor_begin(&all);
	if (r == 0)
		r = weft_scope_limit(&all, LOOK_UPS_MAX);
	if (r == 0)
		r = read_names(&all);
	failed = weft_scope_end(&all);
	return r < 0 ? r : failed;
}

int main(int argc, char **argv)
{
	int64_t r = weft_run(resolve_all, argc > 1 ? argv[1] : NULL, NULL);

	if (r < 0)
		fprintf(stderr, "resolve: %s\n", strerror((int)-r));
	return r != 0;
}
