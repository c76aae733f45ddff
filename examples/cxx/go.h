/* SPDX-License-Identifier: MIT */
/*
 * go(scope, function) - starts a task that calls a function object, such as a
 * lambda.  The task owns the object, with all that it has captured.
 */
#pragma once

#include <memory>
#include <utility>

#include <weft/weft.h>

/* An exception must not leave a task: noexcept makes that an end of the process
 * at the place of the throw. */
template <typename Function> int64_t call(void *arg) noexcept
{
	std::unique_ptr<Function> function(*static_cast<Function **>(arg));

	(*function)();
	return 0;
}

/* If no task is started, the object is destroyed here. */
template <typename Function>
[[nodiscard]] int go(weft_scope *scope, Function function)
{
	auto owned = std::make_unique<Function>(std::move(function));
	int r = WEFT_GO(scope, call<Function>, owned.get());

	if (r == 0)
		(void)owned.release();
	return r;
}
