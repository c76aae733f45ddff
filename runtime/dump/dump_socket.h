/* SPDX-License-Identifier: MIT */
/*
 * Door - a Unix stream socket at a path, at which the owner of the process may
 * knock.  A path that begins with @ is a name without a file.
 */
#ifndef WEFT_RUNTIME_DUMP_DUMP_SOCKET_H
#define WEFT_RUNTIME_DUMP_DUMP_SOCKET_H

/* A listener that does not block.  A socket's file that nobody listens at is
 * taken over.  -EADDRINUSE, -EINVAL (the path is too long), or as socket(2) and
 * bind(2) say. */
int weft__dump_socket_open(const char *path);

/* Who knocks, and is to be written to without blocking; or -errno. */
int weft__dump_socket_answer(int door);

void weft__dump_socket_close(int door, const char *path);

#endif
