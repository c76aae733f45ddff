# SPDX-License-Identifier: MIT
"""The order in which builds and programs run, and what runs beside what.

Most programs with threads measure time, but their bounds are wide: they must
hold on a busy machine.  So one of them runs at a time while there is something
else to do: jobs that do not measure time run beside it on the other processors,
models, programs on virtual time, scripts that wait most of the time.  Then a
second one runs, so that no processor is idle.  A program that judges figures on
the real clock runs alone, after everything else.

Most programs wait for a part of their time.  So there is one place more than
there are processors.  A build has it, with a low priority: its compilers take
the processors that nothing else takes.  It begins as early as possible, so that
the programs of the next stage are ready when those of the previous one have
run.  While nothing is built, a program has the place.
"""

import collections
import threading
import traceback

BUILD, SINGLE, SHARED, ALONE = KINDS = "build", "single", "shared", "alone"


class Schedule:
    def __init__(self, slots, tally):
        self.slots, self.tally = slots, tally
        self.waiting = {kind: collections.deque() for kind in KINDS}
        self.running = collections.Counter()
        self.changed = threading.Condition()

    def add(self, kind, job, first=False):
        with self.changed:
            queue = self.waiting[kind]
            queue.appendleft(job) if first else queue.append(job)
            self.changed.notify_all()

    def run(self):
        threads = [threading.Thread(target=self.work)
                   for _ in range(self.slots + 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def work(self):
        while taken := self.take():
            kind, job = taken
            try:
                job()
            except Exception:  # the others go on, and the run has failed
                self.tally.fail("the runner itself", traceback.format_exc())
            with self.changed:
                self.running[kind] -= 1
                self.changed.notify_all()

    def take(self):
        """A job and its kind, or None at the end."""
        with self.changed:
            while True:
                kind = self.next_kind()
                if kind:
                    self.running[kind] += 1
                    return kind, self.waiting[kind].popleft()
                if not self.running.total() and not any(self.waiting.values()):
                    return None
                self.changed.wait()

    def next_kind(self):
        if self.running[ALONE]:
            return None
        if self.waiting[BUILD] and not self.running[BUILD]:
            return BUILD
        places = self.slots + (not self.running[BUILD])
        has_slot = self.running.total() - self.running[BUILD] < places
        for kind, most in (SINGLE, 1), (SHARED, places), (SINGLE, 2):
            if has_slot and self.waiting[kind] and self.running[kind] < most:
                return kind
        if self.waiting[ALONE] and not self.running.total():
            return ALONE
        return None
