/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_MIME_H
#define HTTPD_MIME_H

/* The Content-Type for a file of this name. */
const char *mime_type(const char *path);

#endif
