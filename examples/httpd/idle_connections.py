#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""idle_connections.py HOST:PORT COUNT PATH -- COMMAND ...

Open COUNT HTTP connections, make one request on each, leave them idle while the
command runs, then make another request on each.  Status 0 if the command
succeeded and every request got a whole response with status 200.
"""

import resource
import signal
import socket
import subprocess
import sys


def raise_limit(count):
    """Allow a descriptor for each connection, as far as permitted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 100
    if soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def ask(peer, request):
    """Whether the request got a whole response with status 200."""
    try:
        peer.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = peer.recv(65536)
            if not piece:
                return False
            answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        while len(body) < length:
            piece = peer.recv(65536)
            if not piece:
                return False
            body += piece
        return b" 200 " in head.split(b"\r\n")[0]
    except (OSError, StopIteration):
        return False


def main():
    address, count, path, _, *command = sys.argv[1:]
    host, _, port = address.rpartition(":")
    count = int(count)
    raise_limit(count)
    # subprocess.run() ends the command when an exception passes through it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    request = f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode()
    peers = [socket.create_connection((host, int(port)), 20)
             for _ in range(count)]
    first = sum(ask(peer, request) for peer in peers)
    status = subprocess.run(command).returncode
    second = sum(ask(peer, request) for peer in peers)
    print(f"{count} idle connections: {first} answered before the load, "
          f"{second} after it")
    return 0 if status == 0 and first == second == count else 1


if __name__ == "__main__":
    sys.exit(main())
