/* SPDX-License-Identifier: MIT */
/*
 * Dump socket - a Unix stream socket at a path, to which the owner of the
 * process may connect.  A path that begins with @ is a name without a file.
 */
#ifndef WEFT_RUNTIME_DUMP_DUMP_SOCKET_H
#define WEFT_RUNTIME_DUMP_DUMP_SOCKET_H

/* A non-blocking listener.  Replaces a socket's file if no process listens at
 * it.  -EADDRINUSE, -EINVAL (the path is too long), or an error of socket(2) or
 * bind(2). */
int weft__dump_socket_open(const char *path);

/* Accepts a client.  Returns a non-blocking descriptor to write to, or
 * -errno. */
int weft__dump_socket_answer(int dump_socket);

void weft__dump_socket_close(int dump_socket, const char *path);

#endif
