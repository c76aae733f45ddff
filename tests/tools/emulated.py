# SPDX-License-Identifier: MIT
"""The tests that an emulator, or a static program, cannot run.

From a program to its tests, each with the reason; "" is the whole program.  The
runner counts each of them as skipped, by name.  A name that no test has is a
failure.  The reasons were found with qemu-user 7.2, on 6.18.
"""

CACHED = "without preadv2() nothing is known to be cached"
CRASH = "QEMU fails an assertion of its own in a child after fork()"
FILTERS = "it has no filters of system calls (seccomp)"
MULTICASTS = "it does not know all options of multicasts"
OPENAT2 = "it has no openat2()"
SECOND = "dlsym() finds no second function of a name in a static program"
SLOW = "it takes longer than the bound on the real clock"
TCP_INFO = "its getsockopt() knows no TCP_INFO, which counts a backlog"

QEMU_USER = {
    "test_io_accept": {
        "connections_wait_in_the_backlog": TCP_INFO,
        "backlog_outlives_the_runtime": TCP_INFO,
    },
    "test_io_address_space": {
        "start_that_fails_names_the_address_space": "it has no RLIMIT_AS",
    },
    "test_io_cached": {"": CACHED},
    "test_io_engine": {
        "program_runs_where_io_uring_is_refused": FILTERS,
        "refused_program_needs_little": FILTERS,
        "signal_that_cannot_be_sent_is_not_chosen": FILTERS,
        "newer_calls_may_be_missing": FILTERS,
        "who_asks_for_io_uring_in_vain_is_told": FILTERS,
    },
    "test_io_position": {"end_that_is_none_is_not_believed": FILTERS},
    "test_io_position_pool": {
        "transfer_that_gets_no_thread_is_made_all_the_same": FILTERS,
    },
    "test_io_fifo": {"": OPENAT2},
    "test_io_file": {
        "cached_reads_do_not_visit_the_ring": CACHED,
        "openat2_is_strict": OPENAT2,
        "openat2_stays_beneath": OPENAT2,
    },
    "test_io_future_accept": {
        "connections_wait_for_futures": TCP_INFO,
    },
    "test_io_runtimes": {
        "forked_child_closes_what_its_parent_waits_on": CRASH,
    },
    "test_io_sendfile": {"": CACHED},
    "test_io_soft": {
        "task_that_waits_for_errors_hides_no_data":
            "its recvmsg() without a buffer does nothing",
        "two_tasks_may_wait_for_both_directions": SLOW,
    },
    "test_io_stream": {
        "write_of_nothing_sends_what_was_put": "it knows no SIOCOUTQNSD",
    },
    "test_io_wrong": {
        "wrong_descriptors_give_one_error_each": OPENAT2,
        "lack_of_descriptors_is_emfile": OPENAT2,
    },
    "test_io_stream_kernel": {"": SECOND},
    "test_net_tcp": {
        "connecting_goes_on_while_others_close": SLOW,
    },
    "test_net_udp": {
        "options_of_both_families_are_set": MULTICASTS,
        "groups_may_be_wrong": MULTICASTS,
        "group_receives_until_it_is_left": MULTICASTS,
    },
}

# On a kernel for aarch64.
STATIC = {"test_io_stream_kernel": {"": SECOND}}
