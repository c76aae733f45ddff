/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"

int sums_begin(struct sums *sums)
{
	sums->algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
	return sums->algorithm ? 0 : -ENOTSUP;
}

size_t sums_feed(struct files *files, struct file *file, char *data,
		 size_t bytes, bool last)
{
	const struct sums *sums = files->arg;

	(void)last;
	if (!file->state) {
		file->state = EVP_MD_CTX_new();
		if (!file->state ||
		    !EVP_DigestInit_ex2(file->state, sums->algorithm, NULL))
			abort();
	}
	if (!EVP_DigestUpdate(file->state, data, bytes))
		abort();
	return bytes;
}

/* Checks escape fewer names. */
static bool is_escaped(const struct file *file)
{
	return strpbrk(file->path, file->note ? "\n" : "\n\r\\");
}

/* As sha256sum: a name with a line break is escaped, and the line begins with a
 * backslash. */
static void print_name(struct file *file)
{
	bool escaped = is_escaped(file);

	for (const char *at = file->path; *at; at++)
		if (!escaped)
			file_print(file, at, 1);
		else if (*at == '\n')
			file_print(file, "\\n", 2);
		else if (*at == '\r')
			file_print(file, "\\r", 2);
		else if (*at == '\\')
			file_print(file, "\\\\", 2);
		else
			file_print(file, at, 1);
}

static void print_sum(struct file *file, const char *digits)
{
	if (is_escaped(file))
		file_print(file, "\\", 1);
	file_print(file, digits, SUM_DIGITS);
	file_print(file, "  ", 2);
	print_name(file);
	file_print(file, "\n", 1);
}

static void print_check(struct file *file, const char *digits)
{
	const char *text = ": FAILED open or read\n";

	if (file->error == 0) {
		file->found = strcasecmp(file->note, digits) == 0;
		text = file->found ? ": OK\n" : ": FAILED\n";
	}
	if (is_escaped(file))
		file_print(file, "\\", 1);
	print_name(file);
	file_print(file, text, strlen(text));
}

void sums_end(struct files *files, struct file *file)
{
	const struct sums *sums = files->arg;
	unsigned char sum[SUM_BYTES] = { 0 };
	static const char hex[] = "0123456789abcdef";
	char digits[SUM_DIGITS + 1] = "";

	if (file->state && !EVP_DigestFinal_ex(file->state, sum, NULL))
		abort();
	EVP_MD_CTX_free(file->state);
	for (int i = 0; i < SUM_DIGITS; i++)
		digits[i] = hex[sum[i / 2] >> (i % 2 ? 0 : 4) & 15];
	if (sums->checks)
		print_check(file, digits);
	else if (file->error == 0)
		print_sum(file, digits);
}
