/* SPDX-License-Identifier: MIT */
/*
 * The values of all clients.
 */
#pragma once

#include <map>
#include <mutex>
#include <string>

class Store
{
	std::mutex mutex; /* no call that suspends is made while it is held */
	std::map<std::string, std::string> values;

public:
	/* Carries a command out, and returns the answer to it.  A command that
	 * is wrong throws a std::logic_error. */
	std::string execute(const std::string &line);
};
