#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""qemu.py KERNEL COMMAND [ARGUMENT ...]: run a program on another kernel.

KERNEL is a directory into which Debian's packages linux-image-* and
busybox-static were unpacked.  The machine is QEMU's, with KVM where that works,
for the kernel's architecture.  It has no network but its loopback, and a file
system of its own, in memory: Busybox, the program, the libraries that it loads,
the files that its variables and arguments name, and those OF_THE_TREE; and an
ext4 on a disk as /var/tmp.  All else of this machine is absent.

The program has the same path, working directory and variables (PASSED), and
WEFT_TEST_OWN_MACHINE, by which a test knows that it may set the clock.  Its
output comes over the serial console to the standard output; the file that
CK_TAP_LOG_FILE_NAME names is brought back.  The exit status is the program's,
or 1 if the machine ended without one.  It is 77 where there is no such kernel
or no QEMU for it.
"""

import os
import pathlib
import platform
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
PASSED = ("CK_", "MODEL_", "WEFT_", "LD_LIBRARY_PATH")
REPORT = os.environ.get("CK_TAP_LOG_FILE_NAME")
# The end of a program's output; a line of its own, that it does not write.
END = "=== end of the program on the other kernel ==="
MEMORY = "3G"
DISK_BYTES = 256 << 20
MACHINE = {
    "x86_64": ["-machine", "q35", "-cpu", "max"],
    "aarch64": ["-machine", "virt", "-cpu", "cortex-a72"],
}
CONSOLE = {"x86_64": "ttyS0", "aarch64": "ttyAMA0"}
# For the disk, without what they depend on.
MODULES = "virtio_pci", "virtio_blk", "crc32c_generic", "ext4", \
    "overlay"
# Read by a test.
OF_THE_TREE = "weft.map",
# Loaded with the program, but not linked to it.
LOADED = "libdw.so.1", "libgcc_s.so.1"

FILES = {
    "etc/passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "hosts: files\n",
}

INIT = """#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /tmp /var/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
for module in {modules}; do
	insmod $module
done
mount -t ext4 /dev/vda /var/tmp
chmod 1777 /tmp /var/tmp
ifconfig lo 127.0.0.1 up
stty -F /dev/console -opost
ulimit -Hn 1048576
{variables}
mkdir -p {folders}
cd {folder}
{command} </dev/null 2>&1
status=$?
echo
echo "{end}"
cat {report} /dev/null
echo "{end}"
echo $status
stty -F /dev/console opost
poweroff -f
"""


# --- The file system --------------------------------------------------------

class Archive:
    """A cpio archive in the format `newc`, as the kernel unpacks it."""

    def __init__(self):
        self.data, self.names = bytearray(), set()

    def add(self, name, mode, content=b""):
        name = name.strip("/")
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent:
            self.add(parent, stat.S_IFDIR | 0o755)
        self.names.add(name)
        path = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0,
                  len(path), 0)
        self.data += b"070701" + b"".join(b"%08x" % f for f in fields)
        self.pad(path)
        self.pad(content)

    def pad(self, content):
        self.data += content
        self.data += bytes(-len(self.data) % 4)

    def add_file(self, path, name=None):
        """A file of this machine, through symbolic links."""
        path = pathlib.Path(path)
        self.add(name or str(path.absolute()),
                 stat.S_IFREG | path.stat().st_mode & 0o777,
                 path.read_bytes())

    def finished(self):
        self.add("TRAILER!!!", 0)
        return self.data


def libraries(program):
    """The libraries that a program is linked to; none of a static one."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True,
                          check=False)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def loaded():
    """Libraries that it loads, if this machine has them, and theirs."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True,
                           text=True, check=False).stdout
    for name in LOADED:
        found = re.search(rf"{re.escape(name)} \(libc6,.* => (\S+)", known)
        if found:
            yield found.group(1)
            yield from libraries(found.group(1))


def named(command, variables):
    """The files that the arguments and variables name."""
    for word in [*command[1:], *variables.values()]:
        if os.path.isabs(word) and os.path.isfile(word):
            yield word
    for folder in variables.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield from filter(pathlib.Path.is_file,
                              pathlib.Path(folder).glob("lib*.so*"))


def modules(kernel):
    """The files of MODULES, each behind what it depends on."""
    files = {path.stem.replace("-", "_"): path
             for path in kernel.folder.glob("lib/modules/*/kernel/**/*.ko")}
    found = {}

    def find(name):
        if name and name not in found and name in files:
            data = files[name].read_bytes()
            needed = re.search(rb"\0depends=([^\0]*)", data)
            for other in needed.group(1).decode().split(","):
                find(other.replace("-", "_"))
            found[name] = files[name]

    for name in MODULES:
        find(name)
    return found


def file_system(kernel, command, variables):
    archive = Archive()
    loads = modules(kernel)
    for name, path in loads.items():
        archive.add_file(path, f"modules/{name}.ko")
    archive.add("dev/console", stat.S_IFCHR | 0o600)
    program = command[0]
    for path in [program, *named(command, variables)]:
        for file in [path, *libraries(path)]:
            archive.add_file(file)
    if kernel.architecture == platform.machine():
        for path in loaded():
            archive.add_file(path)
    archive.add_file(kernel.busybox, "bin/busybox")
    for name in OF_THE_TREE:
        archive.add_file(ROOT / name)
    for name, text in FILES.items():
        archive.add(name, stat.S_IFREG | 0o644, text.encode())
    words = dict(
        modules=" ".join(f"/modules/{name}.ko" for name in loads),
        variables="\n".join(f"export {name}={shlex.quote(value)}"
                            for name, value in variables.items()),
        folders=shlex.join({os.getcwd(), os.path.dirname(REPORT or "/tmp/x")}),
        folder=shlex.quote(os.getcwd()), command=shlex.join(command), end=END,
        report=shlex.quote(REPORT or "/dev/null"))
    archive.add("init", stat.S_IFREG | 0o755, INIT.format(**words).encode())
    return archive.finished()


# --- The machine ------------------------------------------------------------

class Kernel:
    def __init__(self, folder):
        images = sorted(pathlib.Path(folder).glob("boot/vmlinuz-*"))
        if not images:
            skip(f"no kernel in {folder}")
        self.folder, self.image = pathlib.Path(folder), images[-1]
        self.architecture = ("aarch64" if self.image.name.endswith("arm64")
                             else "x86_64")
        self.busybox = self.folder / "bin/busybox"
        self.program = f"qemu-system-{self.architecture}"
        for needed in self.program, self.busybox, "mke2fs":
            if not shutil.which(needed):
                skip(f"no {needed}")

    def accelerator(self):
        """KVM is there without the processor's help on some machines, and does
        not start this kernel."""
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
        has_kvm = (self.architecture == platform.machine()
                   and os.access("/dev/kvm", os.R_OK | os.W_OK)
                   and ("vmx" in flags or "svm" in flags))
        return ["-accel", "kvm"] if has_kvm else []

    def command(self, initrd, disk):
        console = CONSOLE[self.architecture]
        return [self.program, *MACHINE[self.architecture],
                *self.accelerator(), "-accel", "tcg,thread=multi",
                "-smp", "2", "-m", MEMORY, "-nodefaults", "-display", "none",
                "-no-reboot", "-serial", "stdio", "-kernel", self.image,
                "-drive", f"file={disk},format=raw,if=virtio,cache=unsafe",
                "-initrd", initrd, "-append",
                f"console={console} quiet loglevel=1 panic=-1 "
                "mitigations=off cryptomgr.notests rdinit=/init"]


def skip(why):
    print(why, flush=True)
    sys.exit(SKIPPED)


def relay(lines):
    """Passes the program's output on; returns the rest, as parts."""
    parts = [[], [], []]
    part = 0
    for line in lines:
        line = line.replace("\r", "")
        if line == END + "\n":
            part += 1
        elif part == 0:
            sys.stdout.write(line)
            sys.stdout.flush()
        else:
            parts[min(part, 2)].append(line)
    return "".join(parts[1]), "".join(parts[2])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    kernel, command = Kernel(sys.argv[1]), sys.argv[2:]
    command[0] = os.path.abspath(command[0])
    variables = {name: value for name, value in os.environ.items()
                 if name.startswith(PASSED)}
    variables["WEFT_TEST_OWN_MACHINE"] = "yes"
    with tempfile.NamedTemporaryFile() as initrd, \
            tempfile.NamedTemporaryFile() as disk:
        initrd.write(file_system(kernel, command, variables))
        initrd.flush()
        disk.truncate(DISK_BYTES)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-b", "4096",
                        disk.name], check=True)
        machine = subprocess.Popen(
            kernel.command(initrd.name, disk.name), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True, errors="replace")
        report, status = relay(machine.stdout)
        machine.wait()
    if REPORT and report:
        pathlib.Path(REPORT).write_text(report)
    # A message of the kernel follows.
    status = re.match(r"\d+\n", status)
    if not status:
        print(f"{kernel.image.name}: the machine ended before the program")
        sys.exit(1)
    sys.exit(int(status.group()))


if __name__ == "__main__":
    main()
