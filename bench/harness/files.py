# SPDX-License-Identifier: MIT
"""The trees of files on which tools are measured: a hundred files in each folder."""

import itertools
import os
import random
import shutil

FOLDER_FILES = 100
COPIED_BYTES_MAX = 8192
LARGE_FILES = 8
WORDS = [b"of", b"the", b"ring", b"task", b"queue", b"worker", b"stack", b"deadline"]
WORD = "needle"  # which some lines have


def make(root, paths, contents):
    """Makes root with files: the next of contents for each of the paths.  An old root
    is replaced.  A tree that was interrupted does not get the name."""
    made = root.with_name(f"{root.name}-new")
    for old in made, root:
        remove(old)
    folder = None
    for path, data in zip(paths, contents):
        file = made / path
        if file.parent != folder:
            folder = file.parent
            folder.mkdir(parents=True)
        file.write_bytes(data)
    made.rename(root)


def kept(root, paths, contents):
    """Makes root, or keeps it for the next round; returns it."""
    if not root.exists():
        make(root, paths, contents)
    return root


def remove(root):
    if root.exists():
        shutil.rmtree(root)


def count(root):
    return sum(len(names) for _, _, names in os.walk(root))


# --- Paths ------------------------------------------------------------------

def in_parts(files):
    """Folders in fifty parts."""
    return (f"part-{i // FOLDER_FILES % 50}/directory-{i // FOLDER_FILES}"
            f"/file-{i % FOLDER_FILES}" for i in range(files))


def in_thousands(files):
    """Ten folders in each folder, and no more levels."""
    return (f"{i // 1000}/{i // FOLDER_FILES}/file{i}.txt" for i in range(files))


def in_tens(files):
    """Ten folders in each folder, in as many levels as there are digits."""
    return ("/".join([*str(i // FOLDER_FILES), f"file{i % FOLDER_FILES}.txt"])
            for i in range(files))


# --- Contents ---------------------------------------------------------------

def text(size, seed, lines_per_word):
    """Lines of words; some have WORD."""
    choose = random.Random(seed)
    lines = [b" ".join(choose.choices(WORDS, k=9)) for _ in range(997)]
    out, n = [], 0
    while n < size:
        line = lines[choose.randrange(len(lines))]
        if choose.randrange(lines_per_word) == 0:
            line = line[:20] + WORD.encode() + line[20:]
        out.append(line)
        n += len(line) + 1
    return (b"\n".join(out) + b"\n")[:size - 1] + b"\n"


def random_bytes():
    """4 KiB on average."""
    choose = random.Random(1)
    while True:
        yield choose.randbytes(choose.randrange(COPIED_BYTES_MAX))


def random_text():
    """0.5 to 8 KiB of lines."""
    data, choose = text(1 << 20, 1, 3000), random.Random(2)
    while True:
        size = choose.randrange(512, 8192)
        at = choose.randrange(len(data) - size)
        yield data[at:at + size]


def large_text(size):
    while True:
        yield text(1 << 20, 3, 4000) * (size >> 20)


def nothing():
    return itertools.repeat(b"")


# --- Trees ------------------------------------------------------------------

def copied_tree(bench):
    """Random bytes, to be copied."""
    return kept(bench.scratch / "tree-bytes", in_parts(bench.plan.tree_files),
                random_bytes())


def text_tree(bench):
    return kept(bench.scratch / "tree-text", in_thousands(bench.plan.tree_files),
                random_text())


def walked_tree(bench):
    """Empty files."""
    return kept(bench.scratch / "tree-names", in_tens(bench.plan.tree_files), nothing())


def removed_tree(bench):
    """The same, made now."""
    root = bench.scratch / "tree-removed"
    make(root, in_tens(bench.plan.tree_files), nothing())
    return root


def large_files(bench):
    """A few files of megabytes, each named often enough for the plan's bytes."""
    size = bench.plan.file_mib << 20
    root = kept(bench.scratch / "large-text",
                (f"file{i}.txt" for i in range(LARGE_FILES)),
                large_text(size // LARGE_FILES))
    return sorted(root.iterdir()) * max(1, (bench.plan.large_mib << 20) // size)
