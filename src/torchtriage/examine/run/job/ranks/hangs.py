"""Notices that the training stands still, from a thread that sleeps almost always, and writes down where."""

from __future__ import annotations

import _thread
import os
import time
import weakref
from typing import TYPE_CHECKING, Any

from ..events import Hang, Left, Looked, Moved, Moves, Reached, Stands, Watches
from ..record.writer import opened
from .position import Look, Mark, grouped

if TYPE_CHECKING:
    from ..events import Note
    from ..watch.session import Session

UNASKED = 240.0  # seconds without movement that are written down though nobody asked: NCCL's own limit is ten minutes
PATIENCE = 5  # looks after which a process that works all the time is written down as one that does
MOST = 100  # events of one process
ASKED = "look"  # the file in the run's folder by which all ranks are asked for where they stand
ANSWERED = 1.5  # seconds that a rank waits for the others' answers, when a timeout of the group ends it
MOVING = ("batches", "epochs", "forwards", "backwards", "skipped")


class Hangs:
    """A thread that wakes each EVERY seconds in a job of several ranks, or in any when AFTER is given.

    after: seconds without a step, batch or pass until a look is taken. One who waits for other ranks is written down
    at the first look; one who does not, at a second one, AFTER seconds later, if nothing has moved since. It takes no
    lock that the job needs, looks at no tensor, and is not there while the process forks.
    """

    def __init__(self, job: Session, after: float | None) -> None:
        self.job, self.asked_for = job, after is not None
        self.after = after if after is not None else UNASKED
        self.every = min(self.after / 4, 1.0)
        self.running, self.cost, self.wakes = False, 0, 0  # nanoseconds of CPU time, and how often it woke
        self._stop = self._ended = _thread.allocate_lock()
        self._events, self._answered = 0, 0
        self._noted = self._told = False
        self.joining = False  # the process group is being made
        self.size = 1  # of the process group, if there was ever one
        self._begin_anew()

    def follow_forks(self) -> bool:
        """Ends the thread before the process forks, and begins anew after; False where forks cannot be followed."""
        if not hasattr(os, "register_at_fork"):
            return False
        itself = weakref.ref(self)
        os.register_at_fork(
            before=lambda: _forking(itself(), "pause"),
            after_in_parent=lambda: _forking(itself(), "resume"),
            after_in_child=lambda: _forking(itself(), "forked"),
        )
        return True

    def start(self) -> None:
        """Begins to watch; nothing where that is being done, or where the probes have left."""
        if self.running or self.job.left:
            return
        self._stop, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._ended.acquire()
        self.running = True
        _thread.start_new_thread(self._watch, (self._stop, self._ended))

    def end(self) -> None:
        """Ends the thread, and waits for that."""
        if self.running:
            if self._stop.locked():
                self._stop.release()
            self._ended.acquire(timeout=1.0)
            self.running = False

    def pause(self) -> None:
        """Before a fork: a child would inherit whatever the thread holds."""
        self._paused = self.running
        self.end()

    def resume(self) -> None:
        if self._paused:
            self.start()

    def forked(self) -> None:
        """In the child, which is a process of its own."""
        self.running = self._paused = self._noted = self._told = False
        self._events = 0
        self._begin_anew()

    def failed(self, error: BaseException) -> None:
        """The job ends with an error: the last that is known of its collectives; no lines, which take a second."""
        self.end()
        self._leaves()
        if self.size > 1:
            self._write("error", Look(self.job, error=error), "ended")

    def ended(self) -> None:
        """The job has come to its end: how far it came in each group."""
        self._leaves()
        if self.size > 1 and self.job.writer.opened:
            look, count = Look(self.job), self.job.phases.count
            self.job.record(
                Reached(
                    batches=count("batches"),
                    forwards=count("forwards"),
                    backwards=count("backwards"),
                    collectives=look.collectives,
                    last=look.last,
                    groups=look.groups,
                    wakes=self.wakes,
                    woken=round(self.cost / 1000),
                )
            )

    def _leaves(self) -> None:
        if self._noted or self._told:
            self._note(Left)

    def ask(self) -> None:
        """Asks all ranks where they stand, and gives them a moment to answer: this one is about to end the job."""
        path = f"{self.job.writer.folder}/{ASKED}"
        try:
            os.close(opened(path, os.O_CREAT | os.O_WRONLY))
            os.utime(path)
        except OSError:
            return
        time.sleep(ANSWERED)

    def _begin_anew(self) -> None:
        self._paused = False
        self._seen: tuple[int, ...] = ()
        self._since = self._woke = time.monotonic()
        self._first: Mark | None = None  # of this stand-still
        self._looks: list[Look] = []

    def _watch(self, stop: Any, ended: Any) -> None:
        try:
            while not stop.acquire(timeout=self.every):
                if self.job.left:
                    break
                began = time.thread_time_ns()
                self._wake()
                self.cost += time.thread_time_ns() - began
                self.wakes += 1
        except Exception as error:  # noqa: BLE001 - a thread of ours must not print into the job's output
            self.job.lost["hangs"] = f"{type(error).__name__}: {error}"
        finally:
            self.running = False
            ended.release()

    def _wake(self) -> None:
        moment = time.monotonic()
        self._since += max(moment - self._woke - 2 * self.every, 0.0)  # the whole process was held up, not the training
        self._woke = moment
        self._note_once()
        moved = self._progress()
        if moved != self._seen:
            self._moves(moved, moment)
        elif self._first is None:
            self._first = Mark(self.job)
        elif not self._told and moment - self._since >= self.after * (len(self._looks) + 1):
            self._look(self._first, moment - self._since)
        if self._is_asked():
            look = Look(self.job)
            waits = look.waits(self._first) if self._first is not None else look.call is not None
            self._write("signal", look, "waits" if waits else "seen")
            self._note(Looked)

    def _moves(self, moved: tuple[int, ...], moment: float) -> None:
        if self._told:
            self.job.writer.write_at_once(Moved(step=self.job.step, seconds=moment - self._since))
            self._note(Moves)
        self._seen, self._since, self._first, self._told = moved, moment, None, False
        self._looks = []

    def _look(self, first: Mark, stood: float) -> None:
        """Takes a look, and says where the process stands once that is plain."""
        look = Look(self.job)
        self._looks.append(look)
        if look.waits(first):
            self._tell("waits", look, stood)
        elif len(self._looks) > 1 and look.key == self._looks[-2].key and not look.worked_since(self._looks[-2]):
            self._tell("still", look, stood)
        elif len(self._looks) >= PATIENCE:
            self._tell("busy", look, stood)

    def _tell(self, state: str, look: Look, stood: float) -> None:
        if self._concerned():
            self.job.writer.flush()  # the job does not write, for it stands
            self._write("hang-after", look, state, stood)
            if state != "busy":
                self._note(Stands)
        self._told = True

    def _write(self, why: str, look: Look, state: str, stood: float | None = None) -> None:
        """One line, past the rows that the job's own thread may be adding to."""
        self._events += 1
        if self._events > MOST:
            return
        self.job.writer.open()
        seconds, count = time.monotonic() - self._since if stood is None else stood, self.job.phases.count
        self.job.writer.write_at_once(
            Hang(
                step=self.job.step,
                why=why,
                seconds=round(seconds, 3),
                state=state,
                at=time.time_ns(),
                stack=look.stack,
                frames=look.frames,
                call=look.call,
                training=look.training,
                batches=count("batches"),
                forwards=count("forwards"),
                backwards=count("backwards"),
                collectives=look.collectives,
                last=look.last,
                groups=look.groups,
            )
        )

    def _progress(self) -> tuple[int, ...]:
        clock = self.job.phases
        return (self.job.step, clock.turns, *map(clock.count, MOVING))

    def _is_asked(self) -> bool:
        """Whether somebody has asked since the last answer."""
        try:
            asked = os.stat(f"{self.job.writer.folder}/{ASKED}").st_mtime_ns  # noqa: PTH116 - a Path costs more
        except OSError:
            return False
        before, self._answered = self._answered, asked
        return asked != before and self._concerned()

    def _concerned(self) -> bool:
        """Whether this process takes part in a training, as far as it knows."""
        return self.job.writer.opened or self.joining or grouped()

    def _note_once(self) -> None:
        """Says once that answers may be waited for."""
        if not self._noted and self._concerned():
            self._noted = True
            self._note(Watches)

    def _note(self, kind: type[Note]) -> None:
        self.job.writer.note(kind(pid=os.getpid()))


def _forking(hangs: Hangs | None, what: str) -> None:
    if hangs is not None:
        getattr(hangs, what)()
