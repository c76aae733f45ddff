# SPDX-License-Identifier: MIT
"""Mutants of a source, one change each:

  order    every memory order at a weft__ atomic operation, one step weaker
  failure  a weft__cas_acquire() that does not acquire on failure
  barrier  a weft__heavy_barrier() removed
  recheck  the condition at a comment "mutate: recheck", "recheck=false" or
           "recheck=true", replaced with that value (false); it is not evaluated
  wake     the statement at a comment "mutate: wake" removed
  retry    the loop at a comment "mutate: retry" tries once

A tag stands before its statement, or after it on the line where it ends.  The
tag of a recheck may also stand inside the condition, and means all of it.  The
tag of a retry may also be the last thing in the body of its loop; to give up is
then the first return statement of that loop, or else a break.
"""

import os
import re

OPERATION = re.compile(
    r"\bweft__(load|store|swap|add|sub|or|and|cas|cas_acquire)\s*\(")
BARRIER = re.compile(r"\bweft__heavy_barrier\s*\(\s*\)")
COMMENT = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
                     re.S)
TAG = re.compile(r"mutate:\s*(recheck|wake|retry)(?:=(true|false))?")
HEADER = re.compile(r"\s*(?:else\b|(?:if|while|for|switch)\s*\()")

WEAKER = {
    "load": {"seq_cst": ["acquire"], "acquire": ["relaxed"]},
    "store": {"seq_cst": ["release"], "release": ["relaxed"]},
    "rmw": {"seq_cst": ["acq_rel"], "acq_rel": ["acquire", "release"],
            "acquire": ["relaxed"], "release": ["relaxed"]},
}
ORDERS = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"}


class BadTag(Exception):
    pass


class Mutant:
    def __init__(self, source, position, kind, what, edits):
        self.source = source
        self.line = source.text.count("\n", 0, position) + 1
        self.kind = kind
        self.edits = edits
        self.id = "%s %s: %s" % (source.path, source.function_at(position),
                                 what)
        self.verdict, self.how = "", ()

    def text(self):
        text = self.source.text
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text


class Source:
    """A file, and the same with comments and strings blanked."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path)) as f:
            self.text = f.read()
        self.comments = []
        self.code = COMMENT.sub(self._blank, self.text)

    def _blank(self, match):
        if match.group().startswith("/*"):
            self.comments.append(match)
        return re.sub(r"[^\n]", " ", match.group())

    def function_at(self, position):
        """The function, or macro, that the position is in."""
        name, depth = "file", 0
        candidate = None
        start = 0
        for match in re.finditer(r"[{};]|^#\s*define\s+(\w+)", self.code, re.M):
            if match.start() >= position:
                break
            token = match.group()
            if token == "{":
                if depth == 0:
                    heads = re.findall(r"(\w+)\s*\((?=[^{;]*$)",
                                       self.code[start:match.start()])
                    candidate = heads[0] if heads else None
                depth += 1
                name = candidate or name
            elif token == "}":
                depth -= 1
                if depth == 0:
                    name = "file"
            elif match.group(1) and depth == 0:
                name = match.group(1)
            if depth == 0:
                start = match.end()
        return name

    def match(self, position, opening, closing, step):
        depth, i = 0, position
        while 0 <= i < len(self.code):
            depth += (self.code[i] in opening) - (self.code[i] in closing)
            if depth == 0:
                return i
            i += step
        raise BadTag("%s: unbalanced bracket" % self.path)

    def close(self, opening):
        return self.match(opening, "({", ")}", 1)

    def open(self, closing):
        return self.match(closing, ")}", "({", -1)

    def around(self, position):
        """The bracket that the position is in, within its statement, or -1."""
        depth, i = 0, position - 1
        while i >= 0 and self.code[i] not in ";{}":
            depth += (self.code[i] == ")") - (self.code[i] == "(")
            if depth < 0:
                return i
            i -= 1
        return -1

    def skip(self, position):
        match = re.compile(r"\S").search(self.code, position)
        return match.start() if match else len(self.code)

    def skip_back(self, position):
        return len(self.code[:position].rstrip()) - 1

    def word(self, position):
        match = re.compile(r"\w+").match(self.code, position)
        return match.group() if match else ""

    def word_before(self, position):
        match = re.search(r"(\w+)\s*$", self.code[:position])
        return (match.group(1), match.start(1)) if match else ("", position)

    def statement_end(self, position):
        """Just past the statement that begins at position."""
        position = self.skip(position)
        word = self.word(position)
        if self.code[position] == "{":
            return self.close(position) + 1
        if word in ("if", "while", "for", "switch"):
            body = self.close(self.code.index("(", position)) + 1
            end = self.statement_end(body)
            after = self.skip(end)
            if word == "if" and self.word(after) == "else":
                end = self.statement_end(after + 4)
            return end
        if word == "do":
            end = self.statement_end(position + 2)
            return self.code.index(";", self.close(
                self.code.index("(", end))) + 1
        depth = 0
        for i in range(position, len(self.code)):
            if self.code[i] in "({":
                depth += 1
            elif self.code[i] in ")}":
                depth -= 1
            elif self.code[i] == ";" and depth == 0:
                return i + 1
        raise BadTag("%s: no end of statement" % self.path)

    def statement_before(self, position):
        """Start of the simple statement whose ; is at position."""
        depth, start = 0, position - 1
        while start >= 0:
            c = self.code[start]
            if c == ")":
                depth += 1
            elif c == "(":
                depth -= 1
            elif c in ";{}" and depth == 0:
                break
            start -= 1
        start += 1
        while True:
            match = HEADER.match(self.code, start, position)
            if not match:
                return self.skip(start)
            start = match.end()
            if self.code[start - 1] == "(":
                start = self.close(start - 1) + 1


def squeeze(text):
    """One line, without comments: what survives reformatting."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", text).replace("( ", "(").strip()


def order_mutants(source):
    for match in OPERATION.finditer(source.code):
        name = match.group(1)
        end = source.close(match.end() - 1)
        if source.code.startswith("#define", source.code.rfind(
                "\n", 0, match.start()) + 1):
            continue
        comma = source.code.rfind(",", match.end(), end)
        order = source.code[comma + 1:end].strip()
        site = squeeze(source.text[match.start():end + 1])
        if order not in ORDERS:
            raise BadTag("%s: no memory order in %s" % (source.path, site))
        at = source.code.index(order, comma)
        kind = name if name in ("load", "store") else "rmw"
        for weaker in WEAKER[kind].get(order, []):
            yield Mutant(source, match.start(), "order",
                         "%s -> %s" % (site, weaker),
                         [(at, at + len(order), weaker)])
        if name == "cas_acquire":
            start = match.start(1)
            yield Mutant(source, match.start(), "failure",
                         "%s -> fails relaxed" % site,
                         [(start, start + len(name), "cas")])
    for match in BARRIER.finditer(source.code):
        yield Mutant(source, match.start(), "barrier", "no heavy barrier",
                     [(match.start(), match.end(), "(true)")])


def trailing(source, comment):
    line = source.code.rfind("\n", 0, comment.start()) + 1
    return source.code[line:comment.start()].strip() != ""


def recheck_edit(source, comment, value):
    if source.around(comment.start()) >= 0:
        at = source.word_before(source.around(comment.start()))[1]
    elif trailing(source, comment):
        last = source.skip_back(comment.start())
        if source.code[last] == ";":
            at = source.statement_before(last)
        else:
            while last >= 0 and source.code[last] != ")":
                last -= 1
            at = source.word_before(source.open(last))[1]
    else:
        at = source.skip(comment.end())
    word = source.word(at)
    if word in ("if", "while"):
        start = source.code.index("(", at)
        end = source.close(start)
        start += 1
    elif word == "return":
        start = source.skip(at + 6)
        end = source.statement_end(at) - 1
    else:
        raise BadTag("no condition")
    old = source.text[start:end]
    new = "1 || (%s)" if value == "true" else "0 && (%s)"
    return start, "%s is %s" % (squeeze(old), value), [(start, end, new % old)]


def wake_edit(source, comment):
    if trailing(source, comment):
        end = source.skip_back(comment.start()) + 1
        start = source.statement_before(end - 1)
    else:
        start = source.skip(comment.end())
        end = source.statement_end(start)
    what = "without %s" % squeeze(source.text[start:end])
    return start, what, [(start, end, ";")]


def loop_once(source, at):
    """The loop statement at this position, made to try once."""
    word = source.word(at)
    if word == "do":
        end = source.statement_end(source.skip(at + 2))
        return tail_once(source, source.code.index("(", end))
    start = source.code.index("(", at)
    end = source.close(start)
    inside = source.text[start + 1:end]
    what = squeeze(source.text[at:end + 1])
    if word == "while":
        new = "for (int once_ = 1; once_-- && (%s);)" % inside
        return at, what + " once", [(at, end + 1, new)]
    if word == "for":
        semicolons = [i for i in range(start, end) if source.code[i] == ";"]
        first, second = semicolons[0], semicolons[-1]
        condition = source.text[first + 1:second].strip() or "1"
        return at, what + " once", [
            (at, at, "int once_ = 1; "),
            (first + 1, second, " once_-- && (%s)" % condition)]
    raise BadTag("no loop")


def tail_once(source, start):
    end = source.close(start)
    old = source.text[start + 1:end]
    return start, "do while (%s) once" % squeeze(old), [
        (start + 1, end, "(%s), 0" % old)]


def body_once(source, comment):
    end = source.skip(comment.end())
    start = source.open(end)
    gives_up = re.search(r"\breturn\b[^;]*;", source.code[start:end])
    exit_by = gives_up.group() if gives_up else "break;"
    return comment.start(), "no retry, %s" % squeeze(exit_by), [
        (comment.start(), comment.start(), exit_by + " ")]


def retry_edit(source, comment):
    after = source.skip(comment.end())
    last = source.skip_back(comment.start())
    if not trailing(source, comment):
        if source.code[after] == "}":
            return body_once(source, comment)
        return loop_once(source, after)
    if source.code[last] == ";":
        last = source.skip_back(last)
    if source.code[last] != ")":
        raise BadTag("no loop")
    start = source.open(last)
    word, at = source.word_before(start)
    if word == "while" and source.code[source.skip_back(at)] == "}" and \
            source.code[source.skip(last + 1)] == ";" and \
            source.word_before(source.open(source.skip_back(at)))[0] == "do":
        return tail_once(source, start)
    return loop_once(source, at)


def tag_mutants(source):
    for comment in source.comments:
        tag = TAG.search(comment.group())
        if not tag:
            continue
        kind, value = tag.group(1), tag.group(2)
        try:
            if kind == "recheck":
                position, what, edits = recheck_edit(source, comment,
                                                     value or "false")
            elif kind == "wake":
                position, what, edits = wake_edit(source, comment)
            else:
                position, what, edits = retry_edit(source, comment)
        except (BadTag, ValueError) as error:
            line = source.text.count("\n", 0, comment.start()) + 1
            raise BadTag("%s:%d: tag %s: %s" % (source.path, line, kind,
                                                error))
        yield Mutant(source, position, kind, "%s: %s" % (kind, what), edits)


def mutants_of(root, path):
    """All mutants of a source, in the order of its lines."""
    source = Source(root, path)
    mutants = sorted(list(order_mutants(source)) + list(tag_mutants(source)),
                     key=lambda m: m.line)
    seen = {}
    for mutant in mutants:
        seen[mutant.id] = seen.get(mutant.id, 0) + 1
        if seen[mutant.id] > 1:
            mutant.id += " #%d" % seen[mutant.id]
    return mutants
