/* SPDX-License-Identifier: MIT */
/*
 * systemd's protocols: sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3).
 *
 * A service learns all that it needs from variables of its environment, which
 * name the process that they are for: a child that inherits them finds nothing.
 * Messages to the service manager are datagrams.
 */
#include <weft/serve.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/os/syscall.h"

/* The first descriptor that is passed. */
enum { FDS_START = 3 };

#define LEAF __attribute__((noinline))

/* A number in decimal digits alone: 1; 0 if there is none; or -EINVAL. */
static LEAF int number_of(const char *name, uint64_t max, uint64_t *ret_number)
{
	const char *text = getenv(name);
	uint64_t number = 0;

	if (!text)
		return 0;
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (digit > 9 || number > (max - digit) / 10)
			return -EINVAL;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return 1;
}

/* Is it for this process?  1, 0, or -EINVAL. */
static int is_ours(const char *name, bool needed)
{
	uint64_t pid;
	int r = number_of(name, INT32_MAX, &pid);

	if (r == 0)
		return !needed;
	return r < 0 ? r : pid == (uint64_t)getpid();
}

/* ---- Sockets ------------------------------------------------------------- */

/* The next name of a list with ":" between them; "unknown" if there is none, as
 * systemd calls such sockets. */
static void name_take(const char **names, char *name, size_t room)
{
	static const char unknown[] = "unknown";
	const char *from = *names ? *names : unknown;
	size_t bytes = strcspn(from, ":");

	if (*names)
		*names = from[bytes] ? from + bytes + 1 : NULL;
	if (bytes >= room)
		bytes = room - 1;
	memcpy(name, from, bytes);
	name[bytes] = '\0';
}

static LEAF int sockets_check(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!weft__syscall_is_open(FDS_START + (int)i))
			return -EBADF;
	return 0;
}

int weft_systemd_sockets(struct weft_systemd_socket *ret_sockets, size_t room)
{
	const char *names = getenv("LISTEN_FDNAMES");
	uint64_t count = 0;
	int r = is_ours("LISTEN_PID", true);

	if (r > 0)
		r = number_of("LISTEN_FDS", INT32_MAX - FDS_START, &count);
	if (r <= 0)
		return r;
	if (count > room)
		return -EMSGSIZE;
	r = sockets_check((unsigned)count);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < count; i++) {
		ret_sockets[i].fd = FDS_START + (int)i;
		(void)fcntl(ret_sockets[i].fd, F_SETFD, FD_CLOEXEC);
		name_take(&names, ret_sockets[i].name,
			  sizeof(ret_sockets[i].name));
	}
	return (int)count;
}

/* ---- Messages ------------------------------------------------------------ */

/* "/path" or "@abstract". */
static int address_of(const char *text, struct sockaddr_un *ret_un,
		      socklen_t *ret_bytes)
{
	size_t bytes = strlen(text);

	*ret_un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if ((text[0] != '/' && text[0] != '@') || bytes < 2 ||
	    bytes > sizeof(ret_un->sun_path))
		return -EINVAL;
	memcpy(ret_un->sun_path, text, bytes);
	if (text[0] == '@')
		ret_un->sun_path[0] = '\0';
	*ret_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				 bytes);
	return 0;
}

static LEAF int datagram_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int weft_systemd_notify(const char *message)
{
	const char *text = getenv("NOTIFY_SOCKET");
	struct iovec iov = { (void *)(uintptr_t)message, 0 };
	struct sockaddr_un un;
	struct msghdr msg = {
		.msg_name = &un,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n;
	int r, fd;

	if (!message || !*message)
		return -EINVAL;
	if (!text || !*text)
		return 0;
	r = address_of(text, &un, &msg.msg_namelen);
	if (r < 0)
		return r;
	fd = datagram_socket();
	if (fd < 0)
		return fd;
	iov.iov_len = strlen(message);
	n = weft__syscall_sendmsg(fd, &msg, 0);
	weft__syscall_close(fd);
	return n < 0 ? (int)n : 1;
}

int weft_systemd_watchdog(weft_nsec *ret_interval_ns)
{
	uint64_t interval_us = 0;
	int r;

	if (!ret_interval_ns)
		return -EINVAL;
	r = number_of("WATCHDOG_USEC", UINT64_MAX / 1000, &interval_us);
	if (r > 0 && interval_us == 0)
		return -EINVAL;
	if (r > 0)
		r = is_ours("WATCHDOG_PID", false);
	if (r > 0)
		*ret_interval_ns = interval_us * 1000;
	return r;
}
