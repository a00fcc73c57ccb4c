"""Samples where the watched thread stands, from a thread of its own that ends by itself."""

from __future__ import annotations

import _thread
import dis
import os
import sys
import weakref
from collections import Counter
from time import thread_time_ns as now
from typing import TYPE_CHECKING, TypeVar

from ..code.frames import OURS, path_of
from .cpu import Ran

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .. import events
    from .session import Session

S = TypeVar("S", bound="events.Stacks")
EVERY = 0.005  # seconds between two samples, or longer where a step is long
SAMPLES = 200
SPREAD = 8  # steps, at least, over which the samples are spread
LINES = 16  # the most frequent ones, which are told
CALLS = 32  # the same of lines that call
DEPTH = 200  # frames that are looked at
SWITCH = 0.0001  # seconds after which Python code is interrupted while samples are taken; 0.005 is Python's own
DEEP = 24  # frames of the user's code up to which a stack is recorded whole
GOLDEN = 0.618034  # its multiples, taken modulo 1, are spread evenly: no beat with the steps, no random numbers
HERE = OURS / "examine/run/job"
INTERPRETED = frozenset(dis.opmap[name] for name in ("RESUME", "JUMP_BACKWARD") if name in dis.opmap)
TRAINING = (  # what a training loop has to call: time there is the training's own
    "optim/", "autograd/", "nn/utils/", "nn/parallel/", "amp/", "cuda/", "distributed/", "_dynamo/", "_functorch/",
    "_inductor/", "_compile.py", "fx/",
)  # fmt: skip
HOOKS = {  # which function, in which file, stands in the stack during a phase
    "ask": (f"{HERE}/hooks/batches.py", "data"),
    "fetch": ("torch/utils/data/_utils/fetch.py", "data"),
    "_run": (f"{HERE}/hooks/roots.py", "forward"),
    "backward": (f"{HERE}/hooks/gradients.py", "backward"),
    "wait": ("distributed_training_strategies/probes/arrivals.py", "communication"),
    "fire": (f"{HERE}/watch/session.py", "probes"),
    "safely": (f"{HERE}/watch/session.py", "probes"),
    "wrapper": ("torch/optim/optimizer.py", "optimizer"),
}


class Sampler:
    """At most SAMPLES looks at the innermost line of the user's code, at those that call it, and at the phase that it
    runs in.

    A thread that samples is held up by Python code that runs; it waits SWITCH at most. It ends before the process
    forks: a child would inherit whatever it holds.
    """

    def __init__(self, job: Session) -> None:
        self.job = job
        self.running = False
        self.cost = 0  # nanoseconds of CPU time
        self._forget()
        self._every = EVERY
        self._stop = self._ended = _thread.allocate_lock()
        self._hooked = False

    def start(self, step: float) -> bool:
        """Begins to sample steps of about so many seconds; False while samples are being taken."""
        if self.running:
            return False
        self._end_before_forks()
        self._every = max(EVERY, SPREAD * step / SAMPLES)
        self._forget()
        self._stop, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._ended.acquire()
        self.running, self.cost = True, 0
        _thread.start_new_thread(self._sample, (self.job.watched.thread, _thread.get_native_id()))
        return True

    def end(self) -> None:
        """Ends the sampling, if any is under way, and waits for that."""
        if self.running:
            if self._stop.locked():
                self._stop.release()
            self._ended.acquire(timeout=1.0)
            self.running = False

    def summary(self, kind: type[S]) -> S:
        """What was seen, as an event of that KIND."""
        parts: dict[str, int] = {}
        for (phase, *_), count in self._counts.items():
            parts[phase] = parts.get(phase, 0) + count
        return kind(
            samples=sum(parts.values()),
            every=self._every,
            parts=parts,
            lines=[(*where, count) for where, count in self._counts.most_common(LINES)],
            calls=[(*where, self._depths[where], count) for where, count in self._calls.most_common(CALLS)],
            frames=self._stacks.frames,
            stacks=self._stacks.rows,
        )

    def _forget(self) -> None:
        self._counts: Counter[tuple[str, str, int, str, bool]] = Counter()
        self._calls: Counter[tuple[str, str, int, str, bool]] = Counter()
        self._depths: dict[tuple[str, str, int, str, bool], int] = {}
        self._stacks = Stacks()

    def _sample(self, thread: int, native: int) -> None:
        ran = Ran(native)
        switch = sys.getswitchinterval()
        sys.setswitchinterval(min(switch, SWITCH))
        lowered = sys.getswitchinterval()  # what is set is rounded
        try:
            for number in range(SAMPLES):
                wait = self._every * (0.5 + number * GOLDEN % 1)
                if self._stop.acquire(timeout=wait) or self.job.left:
                    break
                began = now()
                frame = sys._current_frames().get(thread)
                if frame is None:
                    break
                self._look(frame, ran.since(int(wait * 1e9)))
                self.cost += now() - began
                del frame
        except Exception as error:  # noqa: BLE001 - a thread of ours must not print into the job's output
            self.job.lost["stacks"] = f"{type(error).__name__}: {error}"
        finally:
            if sys.getswitchinterval() == lowered:
                sys.setswitchinterval(switch)
            self.running = False
            self._ended.release()

    def _look(self, frame: FrameType | None, stood_for: int = 0) -> None:
        """Counts the innermost line of the user's code that FRAME runs, those that call it, and the innermost phase.

        STOOD_FOR: nanoseconds since the look before. What holds the interpreter's lock, as torch.tensor(list) does,
        holds up the sampler too, and a look that comes late shows the line that has just ended.
        """
        stood: list[tuple[str, int, str]] = []  # the innermost first
        codes: list[CodeType] = []
        phase, inner, depth, inside = "other", 0, 0, ""
        interpreted = frame is not None and frame.f_code.co_code[frame.f_lasti] in INTERPRETED
        while frame is not None and depth < DEPTH:
            code = frame.f_code
            if phase == "other" and code.co_name in HOOKS and _is_hook(code):
                phase, inner = HOOKS[code.co_name][1], len(stood)
            if (path := path_of(code)) is not None and frame.f_lineno:
                stood.append((path, frame.f_lineno, code.co_name))
                codes.append(code)
            elif not stood:
                inside = max(inside, _library(code.co_filename))
            frame, depth = frame.f_back, depth + 1
        if not stood or phase == "probes":
            return
        keys = [(phase, *where, at < inner) for at, where in enumerate(stood)]
        self._counts[keys[0]] += 1
        self._calls.update(set(keys))
        self._depths.update((key, len(keys) - 1 - at) for at, key in enumerate(keys))
        frames = [(path, line, code.co_qualname) for (path, line, _), code in zip(stood, codes, strict=True)][:DEEP]
        where = (self.job.step, self._part(phase), inside, interpreted, inner)
        self._stacks.add(where, frames, stood_for)

    def _part(self, phase: str) -> str:
        """PHASE, or which part of it: a forward pass that does not learn, or what follows one that does."""
        if phase == "forward" and not self.job.learning:
            return "evaluation"
        return "loss" if phase == "other" and self.job.phases.row else phase

    def _end_before_forks(self) -> None:
        if not self._hooked and hasattr(os, "register_at_fork"):
            itself = weakref.ref(self)

            def before() -> None:
                if (sampler := itself()) is not None:
                    sampler.end()

            os.register_at_fork(before=before)
            self._hooked = True


class Stacks:
    """The stacks of the user's code that were seen, each once, with where that was and how often."""

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int, str], int] = {}
        self._seen: dict[tuple[int, str, str, bool, int, tuple[int, ...]], list[int]] = {}

    def add(self, where: tuple[int, str, str, bool, int], frames: list[tuple[str, int, str]], nanoseconds: int) -> None:
        numbers = tuple(self._frames.setdefault(each, len(self._frames)) for each in frames)
        counts = self._seen.setdefault((*where, numbers), [0, 0])
        counts[0] += 1
        counts[1] += nanoseconds

    @property
    def frames(self) -> list[tuple[str, int, str]]:
        return list(self._frames)

    @property
    def rows(self) -> list[tuple[int, str, str, bool, int, tuple[int, ...], int, int]]:
        return [(*where, looks, nanoseconds) for where, (looks, nanoseconds) in self._seen.items()]


_libraries: dict[str, str] = {}


def _library(file: str) -> str:
    """Whether FILE is torch's, and of what a training has to call: "", "torch" or "training", in that order."""
    if file not in _libraries:
        _, found, rest = file.rpartition("/torch/")
        known = "torch" if found and not rest.startswith("utils/data/") else ""
        _libraries[file] = "training" if (known and rest.startswith(TRAINING)) or "/torchinductor_" in file else known
    return _libraries[file]


def _is_hook(code: CodeType) -> bool:
    return code.co_filename.endswith(HOOKS[code.co_name][0])
