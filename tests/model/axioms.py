#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the model checker with the axioms of C11.

    axioms.py build/tests/model/test_model_reduction [programs [seed]]

The program given, run with "print", prints small random programs and every
outcome that the engine reaches.  For each, this enumerates the store that each
load reads from and every modification order, keeps the candidates that the
axioms accept, and demands the same set of outcomes: none missing (the engine
would overlook errors), none extra (it would report false ones).

Axioms  happens-before: program order and release/acquire, through release
sequences of RMWs (as C++20 has them); coherence; RMWs read what they directly
follow; program order and reads-from have no cycle (so no load buffering); and
the seq_cst operations have an order that agrees with happens-before,
modification order and reads-before.
"""

import itertools
import os
import subprocess
import sys

(LOAD, LOAD_ACQUIRE, LOAD_SEQ_CST, STORE, STORE_RELEASE, STORE_SEQ_CST, ADD,
 ADD_ACQ_REL, ADD_SEQ_CST, CAS, CAS_ACQUIRE, CAS_SEQ_CST) = range(12)
LOCATIONS = 3
INITIAL = -1


class Event:
    """An operation of a program; of a CAS, its success or its failure."""

    def __init__(self, op, success):
        self.thread, self.kind, self.location, self.value = op
        kind, is_cas = self.kind, self.kind >= CAS
        self.success = is_cas and success
        self.fails = is_cas and not success
        self.rmw = ADD <= kind <= ADD_SEQ_CST or self.success
        self.writes = STORE <= kind <= STORE_SEQ_CST or self.rmw
        self.reads = not STORE <= kind <= STORE_SEQ_CST
        self.acquires = not self.fails and kind in (
            LOAD_ACQUIRE, LOAD_SEQ_CST, ADD_ACQ_REL, ADD_SEQ_CST, CAS_ACQUIRE,
            CAS_SEQ_CST) or kind == CAS_ACQUIRE
        self.releases = not self.fails and kind in (
            STORE_RELEASE, STORE_SEQ_CST, ADD_ACQ_REL, ADD_SEQ_CST,
            CAS_ACQUIRE, CAS_SEQ_CST)
        self.seq_cst = not self.fails and kind in (
            LOAD_SEQ_CST, STORE_SEQ_CST, ADD_SEQ_CST, CAS_SEQ_CST)


def close(relation, n):
    """The transitive closure, or None if it has a cycle."""
    for k in range(n):
        for i in range(n):
            if relation[i][k]:
                for j in range(n):
                    if relation[k][j]:
                        relation[i][j] = True
    return None if any(relation[i][i] for i in range(n)) else relation


class Candidate:
    """Events, the write each reads from, and the place of each write."""

    def __init__(self, events, orders, reads_from):
        self.events = events
        self.n = len(events)
        self.orders = orders
        self.reads_from = reads_from
        self.place = {w: i for order in orders for i, w in enumerate(order)}

    def program_order(self):
        return [[i < j and self.events[i].thread == self.events[j].thread
                 for j in range(self.n)] for i in range(self.n)]

    def values(self):
        """The values that events read and writes store, or None."""
        causes = self.program_order()
        for read, write in self.reads_from.items():
            if write != INITIAL:
                causes[write][read] = True
        if close(causes, self.n) is None:
            return None
        stored, read = {INITIAL: 0}, {}
        for i in sorted(range(self.n),
                        key=lambda i: sum(row[i] for row in causes)):
            event = self.events[i]
            if event.reads:
                read[i] = stored[self.reads_from[i]]
            if event.kind >= CAS and \
                    (read[i] == event.value) != event.success:
                return None
            if event.success:
                stored[i] = event.value + 1
            elif event.rmw:
                stored[i] = read[i] + event.value
            elif event.writes:
                stored[i] = event.value
        return read, stored

    def happens_before(self):
        relation = self.program_order()
        for read, write in self.reads_from.items():
            while self.events[read].acquires and write != INITIAL:
                if self.events[write].releases:
                    relation[write][read] = True
                if not self.events[write].rmw:
                    break
                write = self.reads_from[write]
        return close(relation, self.n)

    def place_read(self, i):
        write = self.reads_from[i]
        return 0 if write == INITIAL else self.place[write]

    def place_seen(self, i):
        return self.place[i] if self.events[i].writes else self.place_read(i)

    def coherent(self, before):
        for i, j in itertools.permutations(range(self.n), 2):
            a, b = self.events[i], self.events[j]
            if a.location != b.location or not before[i][j]:
                continue
            seen, then = self.place_seen(i), self.place_seen(j)
            if seen > then or (seen == then and b.writes):
                return False
        return True

    def sequential(self, before):
        order = [[False] * self.n for _ in range(self.n)]
        for i, j in itertools.permutations(range(self.n), 2):
            a, b = self.events[i], self.events[j]
            if not (a.seq_cst and b.seq_cst):
                continue
            order[i][j] = before[i][j]
            if a.location == b.location and b.writes:
                if a.writes and self.place[i] < self.place[j]:
                    order[i][j] = True
                if a.reads and self.place_read(i) < self.place[j]:
                    order[i][j] = True
        return close(order, self.n) is not None

    def outcome(self):
        values = self.values()
        before = values and self.happens_before()
        if not before or not self.coherent(before) or \
                not self.sequential(before):
            return None
        read, stored = values
        return tuple([stored[order[-1]] for order in self.orders] +
                     [read.get(i, 0) for i in range(self.n)])


def candidates(ops):
    cas = [i for i, op in enumerate(ops) if op[1] >= CAS]
    for successes in itertools.product((False, True), repeat=len(cas)):
        success = dict(zip(cas, successes))
        events = [Event(op, success.get(i)) for i, op in enumerate(ops)]
        writes = [[i for i, event in enumerate(events)
                   if event.writes and event.location == location]
                  for location in range(LOCATIONS)]
        loads = [i for i, event in enumerate(events)
                 if event.reads and not event.rmw]
        for orders in itertools.product(*map(itertools.permutations, writes)):
            orders = [(INITIAL,) + order for order in orders]
            rmws = {order[i]: order[i - 1] for order in orders
                    for i in range(1, len(order)) if events[order[i]].rmw}
            for sources in itertools.product(
                    *[orders[events[i].location] for i in loads]):
                yield Candidate(events, orders,
                                {**rmws, **dict(zip(loads, sources))})


def expected(ops):
    return {candidate.outcome() for candidate in candidates(ops)} - {None}


def compare(line, reached):
    """Whether the outcomes are those of the axioms; prints how they differ."""
    ops = [tuple(map(int, op.split(":"))) for op in line.split()[1:]]
    axioms = expected(ops)
    if axioms == reached:
        return True
    print("%s\n  missing %s\n  extra %s" % (
        line.strip(), sorted(axioms - reached), sorted(reached - axioms)))
    return False


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    environment = dict(os.environ)
    if len(sys.argv) > 2:
        environment["MODEL_PROGRAMS"] = sys.argv[2]
    if len(sys.argv) > 3:
        environment["MODEL_SEED"] = sys.argv[3]
    output = subprocess.run([sys.argv[1], "print"], env=environment, text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    programs, outcomes, wrong = 0, 0, 0
    for block in output.split("program")[1:]:
        line, *reached = block.strip("\n").split("\n")
        reached = {tuple(map(int, text.split()[1:])) for text in reached}
        programs += 1
        outcomes += len(reached)
        wrong += not compare("program" + line, reached)
    print("%d programs, %d outcomes, %d programs differ from the axioms" % (
        programs, outcomes, wrong))
    return 1 if wrong or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
