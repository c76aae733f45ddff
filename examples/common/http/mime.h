/* SPDX-License-Identifier: MIT */
#ifndef HTTP_MIME_H
#define HTTP_MIME_H

/* The Content-Type of a file with this name. */
const char *mime_type(const char *path);

#endif
