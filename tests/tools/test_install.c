/* SPDX-License-Identifier: MIT */
/* Dumps in every way, for test_install.py: dump_path is the argument.  The task
 * keeps its worker until a byte can be read from stdin. */
#include <signal.h>
#include <unistd.h>
#include <weft/weft.h>

static int64_t dump_and_stall(void *arg)
{
	int r = weft_dump(NULL, STDOUT_FILENO);
	char byte;

	(void)arg;
	return r < 0 ? r : read(STDIN_FILENO, &byte, 1) != 1;
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	if (argc != 2)
		return 2;
	opts.workers = 1;
	opts.dump_signal = SIGUSR1;
	opts.dump_path = argv[1];
	opts.stall_ns = WEFT_MS(20);
	return (int)weft_run(dump_and_stall, NULL, &opts);
}
