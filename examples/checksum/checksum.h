/* SPDX-License-Identifier: MIT */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <openssl/evp.h>
#include <stdio.h>
#include <weft/weft.h>

#include "../common/files.h"

enum { SUM_BYTES = 32, SUM_DIGITS = 2 * SUM_BYTES };

struct sums {
	EVP_MD *algorithm;
	bool checks;
	char **names; /* of files, or of lists, that are still to be read */
	unsigned listed, misformatted, unreadable;
};

int sums_begin(struct sums *sums);

/* For struct files; list.c has the first. */
int sums_list(struct files *files);
size_t sums_feed(struct files *files, struct file *file, char *data,
		 size_t bytes, bool last);
void sums_end(struct files *files, struct file *file);

#endif
