/* SPDX-License-Identifier: MIT */
/*
 * refuse ERROR CALL[,CALL ...] COMMAND [ARGUMENT ...]
 *
 * Runs a command, and all that it starts, where the kernel answers the system
 * calls with the error.  A call is a number or one of names[]; io_uring means
 * its three calls.  guards, alone, means madvise(2) for guard pages, which is
 * in Linux from 6.13 on.  The exit status is 77 if the kernel takes no filter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/guards.h"
#include "tests/support/refuse_calls.h"

enum { CANNOT = 77, WRONG = 2 };

static const struct {
	const char *name;
	unsigned number;
} names[] = {
	{ "io_uring", SYS_io_uring_setup },
	{ "io_uring", SYS_io_uring_enter },
	{ "io_uring", SYS_io_uring_register },
	{ "clone3", SYS_clone3 },
	{ "epoll_pwait2", SYS_epoll_pwait2 },
	{ "eventfd2", SYS_eventfd2 },
	{ "membarrier", SYS_membarrier },
	{ "memfd_create", SYS_memfd_create },
	{ "openat2", SYS_openat2 },
	{ "pidfd_open", SYS_pidfd_open },
	{ "preadv2", SYS_preadv2 },
	{ "pwritev2", SYS_pwritev2 },
	{ "rseq", SYS_rseq },
	{ "statx", SYS_statx },
};

static const struct {
	const char *name;
	unsigned error;
} errors[] = {
	{ "EACCES", EACCES }, { "EINVAL", EINVAL }, { "EMFILE", EMFILE },
	{ "ENOMEM", ENOMEM }, { "ENOSYS", ENOSYS }, { "EPERM", EPERM },
};

enum {
	NAMES = sizeof(names) / sizeof(names[0]),
	ERRORS = sizeof(errors) / sizeof(errors[0]),
};

static void leave(const char *what, const char *which)
{
	(void)fprintf(stderr, "refuse: %s%s\n", what, which);
	exit(WRONG);
}

static unsigned number_of(const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text || *end || number >= 1 << 12)
		leave("neither a name that it knows nor a number: ", text);
	return (unsigned)number;
}

static unsigned error_of(const char *text)
{
	for (size_t i = 0; i < ERRORS; i++) {
		if (strcmp(errors[i].name, text) == 0)
			return errors[i].error;
	}
	return number_of(text);
}

/* Changes the text.  Returns how many calls it names. */
static unsigned calls_of(char *text, unsigned *ret_numbers)
{
	unsigned count = 0, before;
	char *rest;

	for (char *word = strtok_r(text, ",", &rest); word;
	     word = strtok_r(NULL, ",", &rest)) {
		before = count;
		if (count + NAMES > REFUSED_CALLS_MAX)
			leave("too many calls", "");
		for (size_t i = 0; i < NAMES; i++) {
			if (strcmp(names[i].name, word) == 0)
				ret_numbers[count++] = names[i].number;
		}
		if (count == before)
			ret_numbers[count++] = number_of(word);
	}
	return count;
}

static bool refuse(char *calls, unsigned error)
{
	unsigned numbers[REFUSED_CALLS_MAX];

	if (strcmp(calls, "guards") == 0)
		return refuse_call_with(SYS_madvise, 2, GUARD_INSTALL, error);
	return refuse_calls(numbers, calls_of(calls, numbers), error);
}

int main(int count, char **arguments)
{
	if (count < 4)
		leave("ERROR CALL[,CALL ...] COMMAND [ARGUMENT ...]", "");
	if (!refuse(arguments[2], error_of(arguments[1]))) {
		perror("the kernel takes no filter of system calls");
		return CANNOT;
	}
	execvp(arguments[3], arguments + 3);
	perror(arguments[3]);
	return WRONG;
}
