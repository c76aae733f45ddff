/* SPDX-License-Identifier: MIT */
/*
 * Dump socket - binds the path, replaces a stale file, and accepts only the
 * owner of the process and root.
 */
#include "runtime/dump/dump_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/own_fd.h"

enum { BACKLOG = 8 };

struct place {
	struct sockaddr_un address;
	socklen_t bytes;
};

static int place_of(const char *path, struct place *ret_place)
{
	size_t length = strlen(path);
	struct sockaddr_un *to = &ret_place->address;

	if (length == 0 || length >= sizeof(to->sun_path))
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	to->sun_family = AF_UNIX;
	memcpy(to->sun_path, path, length);
	ret_place->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				       length + 1);
	if (*path == '@') {
		to->sun_path[0] = '\0';
		ret_place->bytes--;
	}
	return 0;
}

/* Replaces the file if it is a socket that no process listens at. */
static int take_over(int fd, const struct place *place)
{
	const char *path = place->address.sun_path;
	struct stat st;
	bool refused;
	int probe;

	if (!*path || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return -errno;
	refused = connect(probe, (const void *)&place->address,
			  place->bytes) < 0 &&
		  errno == ECONNREFUSED;
	close(probe);
	if (!refused)
		return -EADDRINUSE;
	if (unlink(path) < 0 ||
	    bind(fd, (const void *)&place->address, place->bytes) < 0)
		return -errno;
	return 0;
}

static int dump_socket_bind(int fd, const struct place *place)
{
	const char *path = place->address.sun_path;
	int error = 0;

	/* The file has this mode from its start.  A chmod() of the path after
	 * bind() would leave a gap, and could meet another file. */
	if (fchmod(fd, S_IRUSR | S_IWUSR) < 0)
		return -errno;
	if (bind(fd, (const void *)&place->address, place->bytes) < 0)
		error = errno == EADDRINUSE ? take_over(fd, place) : -errno;
	if (error < 0)
		return error;
	if (listen(fd, BACKLOG) == 0)
		return 0;
	error = -errno;
	if (*path)
		unlink(path);
	return error;
}

int weft__dump_socket_open(const char *path)
{
	struct place place;
	int error = place_of(path, &place), fd;

	if (error < 0)
		return error;
	fd = weft__fd_above_stdio(socket(
		AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return fd;
	error = dump_socket_bind(fd, &place);
	if (error < 0)
		close(fd);
	return error < 0 ? error : fd;
}

/* Other users may know a name without a file, too. */
static int check_who(int fd)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) < 0)
		return -errno;
	return who.uid == 0 || who.uid == geteuid() ? 0 : -EACCES;
}

int weft__dump_socket_answer(int dump_socket)
{
	int fd = weft__fd_above_stdio(accept4(
		dump_socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	int error;

	if (fd < 0)
		return fd;
	error = check_who(fd);
	if (error < 0)
		close(fd);
	return error < 0 ? error : fd;
}

void weft__dump_socket_close(int dump_socket, const char *path)
{
	close(dump_socket);
	if (*path != '@')
		unlink(path);
}
