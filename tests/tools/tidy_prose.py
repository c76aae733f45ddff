# SPDX-License-Identifier: MIT
"""The rules of tidy.py about prose: comments, docstrings, Markdown, man pages.

A file is cut into passages: a paragraph, a list item, a heading or a row of a
table.  Code is left out: fenced blocks and code spans of Markdown, literal
displays of man pages, and all but the comments and docstrings of sources.
Text between double quotes is left out too, as it is mentioned and not said.
"""

import ast
import io
import re
import tokenize

OVERVIEW_FILE_LINES = 100
OVERVIEW_LINES = 2
OVERVIEW_FOLDERS = ("runtime", "timer", "io", "net", "fs", "process", "tls", "tests")

SPDX = re.compile(r"/\* SPDX-License-Identifier: MIT \*/\s*")
# A bullet, a number, a ruler, a label of an invariant or the tag of an order.
ITEM = re.compile(
    r"\s*(?:(?:[-*+]|-{2,}|\d+[.)]|\[[a-z0-9_.]+\])\s+|[A-Z]+\d+[.:]?\s{2,})")
HEADING = re.compile(r"\s*#+\s+")
QUOTED = re.compile(r"\"[^\"\n]{1,80}\"")
CODE_SPAN = re.compile(r"(`+)[^`]+\1")
PERSON = re.compile(r"\b(?:he|him|his)\b(?!\s*\(|->|[._]\w)", re.I)
# Closing marks may follow the stop of a sentence, opening ones precede a word.
HEADLESS = re.compile(
    r"(?:\A|[.!?][\"')\]*_]*\s+)[\s(*_]*\b(Who|What)\s"
    # The heading under which a bench says what would make its figure wrong.
    r"(?!would\s+fool\s)")
SENTENCE_END = re.compile(r"[.!?](?=[\"')\]*_]*(?:\s|\Z))")


class Passages:
    """Collects lines into passages of (line number, text)."""

    def __init__(self):
        self.done = []
        self.lines = []

    def end(self):
        if self.lines:
            self.done.append((self.lines[0][0], "\n".join(
                text for _, text in self.lines)))
            self.lines = []

    def add(self, number, text):
        """A line that goes on, or begins an item, or, if empty, ends."""
        item = ITEM.match(text)
        if item or not text.strip():
            self.end()
        text = text[item.end():] if item else text
        if text.strip():
            self.go_on(number, text)

    def go_on(self, number, text):
        """Lines left out since the last one count as empty lines."""
        if self.lines:
            for missing in range(self.lines[-1][0] + 1, number):
                self.lines.append((missing, ""))
        self.lines.append((number, text))

    def alone(self, number, text):
        """A passage of one line."""
        self.end()
        self.add(number, text)
        self.end()


def add_lines(passages, first, lines):
    passages.end()
    for number, line in enumerate(lines, first):
        passages.add(number, line)
    passages.end()


def c_passages(file, passages):
    for start, comment in file.comments:
        inside = re.sub(r"\A/[*/]+|\*+/\Z", "", comment)
        lines = [re.sub(r"\A\s*\*(?=\s|\Z)", "", line)
                 for line in inside.split("\n")]
        add_lines(passages, file.line_at(start), lines)


def python_passages(file, passages):
    tree = ast.parse(file.text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            if ast.get_docstring(node) is not None:
                text = node.body[0]
                lines = file.lines[text.lineno - 1:text.end_lineno]
                add_lines(passages, text.lineno,
                          [line.replace('"""', "") for line in lines])
    before = 0
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type == tokenize.COMMENT:
            number = token.start[0]
            alone = file.lines[number - 1].lstrip().startswith("#")
            if not alone or number != before + 1:
                passages.end()
            passages.add(number, token.string.lstrip("#"))
            before = number if alone else 0
    passages.end()


def hash_passages(file, passages):
    """Comments from a # to the end of their line."""
    for number, line in enumerate(file.lines, 1):
        comment = re.match(r"\s*#+(?!!)(.*)", line)
        passages.add(number, comment.group(1) if comment else "")
    passages.end()


def slash_passages(file, passages):
    """Comments from a // to the end of their line."""
    for number, line in enumerate(file.lines, 1):
        comment = re.match(r"\s*//[/!]?(.*)", line)
        passages.add(number, comment.group(1) if comment else "")
    passages.end()


def markdown_passages(file, passages):
    text = CODE_SPAN.sub(lambda span: re.sub(r"[^\n]", "`", span.group()),
                         markdown_without_fences(file.text))
    for number, line in enumerate(text.split("\n"), 1):
        heading = HEADING.match(line)
        if heading:
            passages.alone(number, line[heading.end():])
        elif line.lstrip().startswith("|"):
            passages.alone(number, line)
        else:
            passages.add(number, re.sub(r"\A\s*>\s?", "", line))
    passages.end()


def markdown_without_fences(text):
    lines, fence = [], None
    for line in text.split("\n"):
        mark = re.match(r"\s*(```|~~~)", line)
        if mark and fence in (None, mark.group(1)):
            fence = None if fence else mark.group(1)
            line = ""
        lines.append("" if fence else line)
    return "\n".join(lines)


BREAKS = ("Pp", "Bl", "El", "Ed", "Sh", "Ss", "Nd", "It", "Dl", "D1", "Bd")


def man_passages(file, passages):
    literal = False
    for number, line in enumerate(file.lines, 1):
        macro = re.match(r"\.\s*(\w+|\\\")\s*(.*)", line)
        name, text = macro.groups() if macro else ("", line)
        if name in BREAKS:
            passages.end()
        if name == "Bd":
            literal = bool(re.match(r"-(?:literal|unfilled)\b", text))
        elif name == "Ed":
            literal = False
        elif literal or name in ("Pp", "Bl", "El", "Dl", "D1", "Bd"):
            continue
        elif name in ("Sh", "Ss", "Nd"):
            passages.alone(number, text)
        elif name == "\\\"":
            continue
        elif text:
            # An option of a list or a number alone begins no item here.
            passages.go_on(number, re.sub(r"\\&", "", text))
    passages.end()


def reader(file):
    """The function that cuts a file of this kind, or None."""
    if file.is_c:
        return c_passages
    if file.kind == ".py":
        return python_passages
    if file.kind == ".md":
        return markdown_passages
    if file.kind in (".3", ".7"):
        return man_passages
    if file.kind in (".go", ".rs"):
        return slash_passages
    if (file.kind in (".build", ".txt", ".sh", ".map")
            or file.text.startswith("#!")):
        return hash_passages
    return None


def passages_of(file):
    read = reader(file)
    passages = Passages()
    if read:
        read(file, passages)
    for line, text in passages.done:
        # Quotes become as many marks that are no word and no stop.
        yield line, QUOTED.sub(lambda q: "`" * len(q.group()), text)


def prose_lines(comment):
    """How many lines of a comment have three words at least."""
    return sum(len(re.findall(r"\b[A-Za-z][a-z']*\b", line)) >= 3
               for line in comment.split("\n"))


def has_overview(file):
    spdx = SPDX.match(file.text)
    start = spdx.end() if spdx else 0
    return any(at == start and comment.startswith("/*")
               and prose_lines(comment) >= OVERVIEW_LINES
               for at, comment in file.comments)


def rule_overviews(files):
    """every C file of more than 100 lines opens with an overview"""
    headers = {file.name: file for file in files if file.kind == ".h"}
    for file in files:
        if not file.is_c or file.folder not in OVERVIEW_FOLDERS:
            continue
        if len(file.lines) <= OVERVIEW_FILE_LINES or has_overview(file):
            continue
        own = headers.get(file.name.removesuffix(file.kind) + ".h")
        if not (own and file is not own and has_overview(own)):
            yield (file.name, 1,
                   f"{len(file.lines)} lines, and no overview after the SPDX line")


def places(file, pattern, group, unless=lambda text, match: False):
    """A finding for each match in a passage of the file."""
    for first, text in passages_of(file):
        for match in pattern.finditer(text):
            if not unless(text, match):
                line = first + text.count("\n", 0, match.start(group))
                yield file.name, line, file.lines[line - 1].strip()


def is_question(text, match):
    end = SENTENCE_END.search(text, match.end(1))
    return end is not None and end.group() == "?"


def rule_persons(files):
    """no "he", "him" or "his" in prose"""
    for file in files:
        yield from places(file, PERSON, 0)


def rule_headless(files):
    """no sentence begins with "Who" or "What" but a question"""
    for file in files:
        yield from places(file, HEADLESS, 1, unless=is_question)
