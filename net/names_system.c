/* SPDX-License-Identifier: MIT */
/*
 * Names, of the system - getaddrinfo(), for sources that c-ares does not have.
 *
 * Each question has a task of its own, which calls getaddrinfo() in a lane of
 * weft_blocking().  A call that has begun is waited for in full by that task;
 * those that wait for the answer may give up.  Nothing is kept: there is no
 * TTL, and such systems have a cache of their own.
 */
#include "net/names.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>
#include <weft/blocking.h>

#include "io/os/syscall.h"

enum { ASK_STACK_BYTES = 64 << 10 };

#define LEAF __attribute__((noinline))

const char *weft__names_nsswitch_path = "/etc/nsswitch.conf";

/* ---- nsswitch.conf ------------------------------------------------------- */

/* The sources behind "hosts:"; the end of the line in *ret_end. */
static const char *hosts_line(const char *text, const char **ret_end)
{
	while (*text) {
		const char *end = text + strcspn(text, "\n");

		text += strspn(text, " \t");
		if (strncmp(text, "hosts:", 6) == 0) {
			*ret_end = end;
			return text + 6;
		}
		text = *end ? end + 1 : end;
	}
	return NULL;
}

static bool is_own_source(const char *word, size_t bytes)
{
	return (bytes == 5 && memcmp(word, "files", 5) == 0) ||
	       (bytes == 3 && memcmp(word, "dns", 3) == 0);
}

bool weft__names_wants_system(const char *nsswitch)
{
	const char *end, *at = hosts_line(nsswitch, &end);

	while (at && at < end && *at != '#') {
		size_t bytes = strcspn(at, " \t\n#[");

		if (bytes > 0 && !is_own_source(at, bytes))
			return true;
		at += bytes;
		/* "[NOTFOUND=return]" and the like. */
		if (*at == '[')
			at += strcspn(at, "]\n");
		if (at < end && *at != '#')
			at++;
	}
	return false;
}

static LEAF bool nsswitch_read(char *text, size_t bytes)
{
	int fd = open(weft__names_nsswitch_path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		weft__syscall_close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool weft__names_nsswitch(void)
{
	char text[4096];

	return nsswitch_read(text, sizeof(text)) &&
	       weft__names_wants_system(text);
}

/* ---- getaddrinfo() ------------------------------------------------------- */

struct system_call {
	struct weft__question *question;
	struct weft_addr addrs[WEFT_RESOLVE_MAX];
	unsigned count;
};

static int info_error(int error, int system_error)
{
	switch (error) {
	case 0:
		return 0;
	case EAI_NONAME:
		return -ENOENT;
#ifdef EAI_NODATA
	case EAI_NODATA:
		return -ENODATA;
#endif
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return -system_error;
	default:
		return -EBADMSG;
	}
}

static int64_t call_system(void *arg)
{
	struct system_call *call = arg;
	struct addrinfo hints = {
		.ai_family = call->question->family,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *info = NULL;
	int error = getaddrinfo(call->question->name, NULL, &hints, &info);

	error = info_error(error, errno);
	for (struct addrinfo *node = info;
	     node && call->count < WEFT_RESOLVE_MAX; node = node->ai_next)
		if (weft_addr_from_sockaddr(node->ai_addr, node->ai_addrlen,
					    &call->addrs[call->count]) == 0)
			call->count++;
	if (info)
		freeaddrinfo(info);
	return error == 0 && call->count == 0 ? -ENODATA : error;
}

static int64_t ask_system(void *arg)
{
	struct system_call call = { .question = *(void **)arg };
	struct weft__question *question = call.question;
	int64_t r;

	r = weft_blocking_lane(&question->names->system, call_system, &call);
	weft__names_answer(question, (int)r, call.addrs, r < 0 ? 0 : call.count,
			   0, false);
	return 0;
}

void weft__names_ask_system(struct weft__question *question)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int r;

	opts.name = "name";
	opts.stack_bytes = ASK_STACK_BYTES;
	r = weft_submit(question->names->runtime, ask_system, &question,
			sizeof(question), &opts);
	if (r < 0)
		weft__names_answer(question, r, NULL, 0, 0, false);
}
