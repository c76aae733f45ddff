# SPDX-License-Identifier: MIT
"""The tests that qemu-user cannot run, which are left out there.

From a program to its tests, each with the reason; "" is the whole program.  The
runner counts each of them as skipped, by name.  A name that no test has is a
failure.  The reasons were found with qemu-user 7.2, on 6.18.
"""

FILTERS = "it has no filters of system calls (seccomp)"
NETLINK = "its netlink sockets do not know what tells of a backlog"
SLOW = "it is too slow: the ring checks after 0.1 s what has waited"

QEMU_USER = {
    "test_io_engine": {
        "program_runs_where_io_uring_is_refused": FILTERS,
        "refused_program_needs_little": FILTERS,
        "newer_calls_may_be_missing": FILTERS,
        "lack_of_descriptors_is_an_error": FILTERS,
        "who_asks_for_io_uring_in_vain_is_told": FILTERS,
    },
    "test_io_calls": {
        "older_kernels_raise_no_sigpipe_either":
            "its sigtimedwait() does not take a signal that is pending",
    },
    "test_io_stream": {
        "write_of_nothing_sends_what_was_put": "it knows no SIOCOUTQNSD",
    },
}
