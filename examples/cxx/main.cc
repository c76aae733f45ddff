/* SPDX-License-Identifier: MIT */
/*
 * store [ADDR] - a server that keeps values by name, in C++.
 *
 * Shows	tasks from lambdas (go.h), each of which owns its connection;
 *		a destructor that waits (descriptor.h); exceptions within a
 *		task, and a catch block that waits; a std::mutex that is held
 *		only where nothing waits (store.cc).  SIGINT and SIGTERM cancel
 *		all tasks: their calls fail, and so they throw.
 * Run		build/examples/store 127.0.0.1:7000 &  nc 127.0.0.1 7000
 */
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "descriptor.h"
#include "go.h"
#include "store.h"

namespace
{

void answer(const Descriptor &peer, Store &store, const std::string &line)
{
	try {
		peer.write(store.execute(line) + "\n");
	} catch (const std::logic_error &wrong) {
		/* Waits, and other tasks throw and catch meanwhile. */
		peer.write("error: " + std::string(wrong.what()) + "\n");
	}
}

void serve(const Descriptor &peer, Store &store)
{
	std::string rest;
	char buf[1024];

	while (size_t n = peer.read(buf, sizeof(buf))) {
		size_t end;

		rest.append(buf, n);
		while ((end = rest.find('\n')) != rest.npos) {
			answer(peer, store, rest.substr(0, end));
			rest.erase(0, end + 1);
		}
		if (rest.size() > 65536)
			throw std::length_error("a line is too long");
	}
}

int64_t accept_all(void *arg)
{
	const int listener = *static_cast<int *>(arg);
	Store store;
	int fd = -1, r = 0;

	WEFT_SUPERVISE(peers) {
		while (r == 0 && (fd = weft_accept(listener, nullptr)) >= 0)
			r = go(peers, [&store, peer = Descriptor(fd)] {
				try {
					serve(peer, store);
				} catch (const std::exception &error) {
					std::fprintf(stderr, "store: %s\n",
						     error.what());
				}
			});
	}
	return r < 0 ? r : fd;
}

} /* namespace */

int main(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	int listener = weft_tcp_listen(address, nullptr), number;
	char text[WEFT_ADDR_TEXT_BYTES];
	weft_runtime *runtime;
	sigset_t signals;

	try {
		check(listener, address);
		sigemptyset(&signals);
		sigaddset(&signals, SIGINT);
		sigaddset(&signals, SIGTERM);
		/* Before the runtime starts, so that no worker takes them. */
		pthread_sigmask(SIG_BLOCK, &signals, nullptr);
		check(weft_start(nullptr, &runtime), "start");
		check(weft_submit(runtime, accept_all, &listener,
				  sizeof(listener), nullptr),
		      "submit");
		std::printf("listening on %s\n",
			    weft_local_addr_text(listener, text));
		std::fflush(stdout);
		sigwait(&signals, &number);
		check(weft_stop(runtime), "stop");
	} catch (const std::exception &error) {
		std::fprintf(stderr, "store: %s\n", error.what());
		return 1;
	}
	return 0;
}
