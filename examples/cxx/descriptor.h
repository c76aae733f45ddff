/* SPDX-License-Identifier: MIT */
/*
 * A descriptor that is closed with its owner, and calls that throw.
 */
#pragma once

#include <string>
#include <system_error>
#include <utility>

#include <weft/weft.h>

/* The result of a call of weft, if it is none of its errors. */
inline int64_t check(int64_t result, const char *what)
{
	if (result < 0)
		throw std::system_error(static_cast<int>(-result),
					std::system_category(), what);
	return result;
}

class Descriptor
{
	int fd = -1;

public:
	explicit Descriptor(int of) : fd(of)
	{
	}
	Descriptor(Descriptor &&other) noexcept
		: fd(std::exchange(other.fd, -1))
	{
	}
	Descriptor &operator=(Descriptor &&) = delete;
	/* May wait, also while an exception passes.  Is done in full even in a
	 * cancelled task. */
	~Descriptor()
	{
		if (fd >= 0)
			weft_close(fd);
	}

	size_t read(char *buf, size_t bytes) const
	{
		return static_cast<size_t>(
			check(weft_read(fd, buf, bytes), "read"));
	}
	void write(const std::string &text) const
	{
		check(weft_write_all(fd, text.data(), text.size(), nullptr),
		      "write");
	}
};
