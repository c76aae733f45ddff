/* SPDX-License-Identifier: MIT */
#include "store.h"

#include <sstream>
#include <stdexcept>

std::string Store::execute(const std::string &line)
{
	std::lock_guard<std::mutex> lock(mutex);
	std::istringstream words(line);
	std::string verb, key, value;

	words >> verb >> key >> std::ws;
	std::getline(words, value);
	if (verb == "set" && !value.empty())
		return values[key] = value;
	if (verb != "get")
		throw std::invalid_argument("get KEY, or set KEY VALUE");
	if (values.count(key) == 0)
		throw std::out_of_range("no value");
	return values[key];
}
