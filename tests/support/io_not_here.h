/* SPDX-License-Identifier: MIT */
/*
 * The functions that the library exports and tests/support/io_calls.h has no
 * row for, and why.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_NOT_HERE_H
#define WEFT_TESTS_SUPPORT_IO_NOT_HERE_H

static const char *const not_here[] = {
	/* They suspend: test_sync_cancel.c, test_sync_chan_cancel.c and
	 * test_sync_broadcast.c interrupt them. */
	"barrier_wait", "cond_wait", "wait_group_wait", "event_wait",
	"mutex_lock", "notify_wait", "once_run", "oneshot_recv", "rwlock_read",
	"rwlock_write", "sem_acquire", "watch_wait", "chan_recv", "chan_send",
	"broadcast_recv",

	/* They suspend: test_io_stream_races.c, test_io_stream_close.c and
	 * test_io_stream_put.c interrupt them. */
	"stream_close", "stream_flush", "stream_peek", "stream_put",
	"stream_read", "stream_read_all", "stream_write_all",
	/* They are made of those; test_io_stream_until.c and
	 * test_io_stream_over.c interrupt them. */
	"stream_copy", "stream_line", "stream_putv", "stream_until",
	/* So is this one; test_net_proxy.c interrupts it. */
	"proxy_read",

	/* A job of the pool, as weft_follow_open() is, which has a row. */
	"follow_open_fd",
	/* weft_sleep_until_wall(), which has a row, until times of whole
	 * seconds, which no test here waits for; test_io_wall.c interrupts
	 * it. */
	"calendar_wait",
	/* It drops what was typed before, so that nothing lets it go on before
	 * it waits; test_io_terminal.c interrupts it. */
	"terminal_password",
	/* weft_read() of an eventfd, which has a row; but the process keeps one
	 * that was opened.  test_io_terminal.c interrupts it. */
	"terminal_resize_wait",
	/* weft_close(), in full. */
	"terminal_resize_close",

	/* Calls of a future, which has no stack for a call to wait on, and
	 * calls that do not suspend: test_io_future*.c, test_future_tasks.c,
	 * test_future_grants.c. */
	"await_accept", "await_chan_recv", "await_chan_send", "await_close",
	"await_connect", "await_event", "await_ready", "await_recv",
	"await_sem_acquire", "await_send", "await_sleep", "await_sleep_until",
	"await_yield", "future_interrupted", "future_wake", "future_within",
	"go_future",

	/* Requests of a name, as weft_rename() is. */
	"linkat", "mkdir", "mkdirat", "renameat2", "rmdir", "symlinkat",
	"unlink", "unlinkat",

	/* Jobs of the pool, as weft_mkdir_all() and weft_fchmod() are. */
	"faccessat", "fallocate", "fchmodat", "fchown", "fchownat",
	"fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "ftruncate",
	"futimens", "getxattr", "lgetxattr", "listxattr", "llistxattr",
	"lremovexattr", "lsetxattr", "open_parent", "readlinkat", "realpath",
	"removexattr", "setxattr", "sync_file_range", "syncfs", "truncate",
	"utimensat",
	"direct_alloc",
	/* The same; test_io_replace.c interrupts them. */
	"temp_open", "temp_link", "replace_begin", "replace_commit",
	"replace_file",

	/* Done in full, whatever happens. */
	"dump", "dir_close", "temp_close", "replace_abort",

	/* weft_close(), in full. */
	"udp_close",

	/* The same function as weft_go(). */
	"go_opts",

#ifdef WEFT_WITHOUT_NAMES
	/* It does not wait, without c-ares. */
	"resolve",
#endif

	/* They suspend in what they call, if that does. */
	"deferred_run", "dir_open",

	/* For a thread that runs no task; they do not block it. */
	"attach", "loop_fd", "turn",

	/* They block a thread that runs no task. */
	"run", "start", "stop", "wait", "wait_until",

	/* They do not suspend. */
	"addr_equal", "addr_family", "addr_format", "addr_from_sockaddr",
	"addr_parse", "addr_port", "addr_sockaddr", "addr_sockaddr_bytes",
	"blocking_stats_get", "broadcast_close", "broadcast_init",
	"calendar_next", "wall_now", "terminal_hide", "terminal_raw",
	"terminal_resize_open", "terminal_restore", "terminal_size",
	"broadcast_send", "broadcast_try_recv", "cancel", "cancel_all",
	"cancel_in", "chan_close", "chan_count", "chan_init", "chan_push",
	"chan_try_recv", "chan_try_send", "cond_broadcast", "cond_signal",
	"wait_group_add", "wait_group_done", "deadline", "deadline_passed",
	"defer", "deferred_cancel", "detach", "dir_init", "direct_free",
	"engine", "event_clear",
	"event_is_set",
	"event_set", "follow_fd", "follow_polls", "follow_seek",
	"follow_stream", "fs_watch_fd",
	"fs_watch_open", "group_begin",
	"interval_init", "local_addr",
	"local_addr_text", "task_local_get", "task_local_set", "mutex_try_lock",
	"mutex_unlock", "notify_all", "notify_one", "now", "oneshot_abandon",
	"oneshot_drop", "oneshot_new", "oneshot_send", "oneshot_try_recv",
	"peer_addr", "peer_cred", "process_fd", "process_pid",
	"process_signal", "proxy_format", "proxy_parse",
	"proxy_tlv_next", "race_begin", "race_drop", "resolver_set",
	"runtime_self", "systemd_notify", "systemd_sockets",
	"systemd_watchdog", "tcp_listen_group",
	"rwlock_try_read", "rwlock_try_write", "rwlock_unlock", "scope_cancel",
	"scope_count", "scope_fail", "scope_limit", "self", "sem_count",
	"sem_release", "sem_try_acquire", "signal_open", "stats_get",
	"stats_worker", "stream_fd", "stream_init", "stream_init_over",
	"stream_skip", "submit",
	"subscribe", "supervisor_begin", "task_name", "tcp_listen",
	"timer_clear", "timer_set", "try_select", "udp_connect", "udp_fd",
	"udp_join", "udp_leave", "udp_open", "unix_listen", "watch_close",
	"watch_get", "watch_set", "within_begin", "within_end",
};

#endif
