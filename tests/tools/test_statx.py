#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library compiles with the struct statx of musl 1.2.4 and later, which is as
large as the kernel's and names fewer fields.  TAP."""

import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import tap

ROOT = pathlib.Path(__file__).resolve().parents[2]
# In front of this machine's <sys/stat.h>.
HEADER = """#define statx statx_of_this_library
#include_next <sys/stat.h>
#undef statx
#ifndef WITH_STATX
#define WITH_STATX
#undef STATX_ATTR_NODUMP
#undef STATX_ATTR_MOUNT_ROOT
#include <stdint.h>
#ifndef STATX_TYPE
#define STATX_TYPE 1
#endif
struct statx {
	uint32_t stx_mask, stx_blksize;
	uint64_t stx_attributes;
	uint32_t stx_nlink, stx_uid, stx_gid;
	uint16_t stx_mode, pad0;
	uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
	struct {
		int64_t tv_sec;
		uint32_t tv_nsec, pad;
	} stx_atime, stx_btime, stx_ctime, stx_mtime;
	uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
	uint64_t pad1[14];
};
#endif
"""


def sources():
    """Those that read the status of files, and need no other library."""
    for path in sorted([*ROOT.glob("io/**/*.c"), *ROOT.glob("fs/*.c")]):
        if "uring" not in path.parts:
            yield path


def claims():
    with tempfile.TemporaryDirectory() as include:
        header = pathlib.Path(include, "sys/stat.h")
        header.parent.mkdir()
        header.write_text(HEADER)
        for path in sources():
            done = subprocess.run(
                ["gcc", "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE",
                 "-Wall", "-Werror", f"-I{include}", f"-I{ROOT}",
                 f"-I{ROOT}/include", path],
                capture_output=True, text=True)
            yield (f"{path.relative_to(ROOT)} compiles",
                   done.stderr.splitlines())


if __name__ == "__main__":
    sys.exit(tap.judge(claims()))
