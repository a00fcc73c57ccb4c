"""Follows a training unit by unit, a unit being one backward pass, and takes its whole state where that is asked for.

A unit begins when the one before has had its backward, so a checkpoint that is written meanwhile is one from which a
resumed job goes on with this very unit. Its state is that at its first forward pass with gradients, after the batch has
come: whatever a resume puts back, it has put back by then.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from . import _draws, _raw
from ._dump import Dump
from ._walk import Walk

LOGS = frozenset({
    ".log", ".txt", ".csv", ".tsv", ".out", ".err", ".png", ".jpg", ".svg", ".pdf", ".html", ".md", ".yaml", ".yml",
    ".jsonl", ".json", ".py", ".pyc", ".lock", ".gitignore",
})  # fmt: skip
GRACE = 30  # seconds that a job has which saves once it is told to end
LAST = "last"
BEHIND = 8  # units that one rank may be behind another


def states(job: Any) -> None:
    """Places the follower; what it is asked for stands in the environment."""
    Follower(job)


class Follower:
    """unit: the one that is under way, from 0; turns: of the optimizer that has had most."""

    def __init__(self, job: Any) -> None:
        self.job = job
        self.pid, self.folder = os.getpid(), job.writer.folder
        self.rank = job.writer.ranked()
        self.wanted = os.environ.get("TORCHTRIAGE_STATES", "")  # "written", or the number of a unit
        self.stop = _number("TORCHTRIAGE_STOP")  # after so many turns
        self.soon = bool(os.environ.get("TORCHTRIAGE_SOON"))  # or soon after the first checkpoint
        self.unit = self.turns = self.passes = 0
        self.counts: dict[int, int] = {}
        self.optimizers: dict[int, Any] = {}
        self.roots: dict[int, Any] = {}
        self.walk: Walk | None = None
        self.unnamed: list[tuple[str, Any]] = []
        self.pending: dict[str, Any] | None = None
        self.written: int | None = None  # the turn at which the first checkpoint was written
        self.due = False  # a checkpoint has been written since the last state was taken
        self.told: dict[str, Any] = {}
        self.asked = self.in_pass = self.given = 0
        self.since_turn = 0  # backward passes since the optimizer's last turn
        self.indices: dict[int, deque[Any]] = {}
        self.batch: tuple[list[str], Any] = ([], None)
        self._lines = open(f"{self.folder}/resume{self.rank}.jsonl", "a", encoding="utf-8")  # noqa: PTH123, SIM115
        self._listen()
        self._hear()

    def _listen(self) -> None:
        job = self.job
        for event, listener in (
            ("built", self._built), ("begun", self._begun), ("batch", self._batch), ("forward", self._forward),
            ("backward", self._backward), ("stepping", self._stepping), ("stepped", self._stepped),
            ("skipped", self._stepped), ("ending", self._ending),
        ):  # fmt: skip
            job.on(event, listener)
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        job.wrap(_BaseDataLoaderIter, "_next_index", self._indexed)

    def _hear(self) -> None:
        for guard in getattr(sys.modules.get("_torchtriage_guard"), "standing", ()):
            guard.heard = self._heard

    def _say(self, event: str, **fields: Any) -> None:
        if os.getpid() == self.pid:
            self._lines.write(json.dumps({"event": event, "unit": self.unit, "turn": self.turns, **fields}) + "\n")
            self._lines.flush()

    def _heard(self, how: str, path: str, to: str) -> None:
        """A file is about to be written, read, moved or removed."""
        if os.getpid() != self.pid or path.startswith(self.folder) or _is_temporary(to or path):
            return
        name = to or path
        log = Path(name).suffix in LOGS or "tfevents" in name
        if how == "read" and (
            self.unit or log or "-packages/" in path or path.startswith(("/proc", "/sys", sys.prefix))
        ):
            return
        self._say("file", how=how, path=path, to=to, log=log, rng=_draws.marks() if how != "read" else {})
        if how in ("write", "move") and not log:
            self.due = True
            if self.turns and self.written is None:
                self.written = self.turns

    def _built(self, optimizer: Any) -> None:
        self.optimizers.setdefault(id(optimizer), optimizer)

    def _begun(self, _loader: Any, _given: int) -> None:
        self.passes += 1
        self.in_pass = 0
        if self.pending is not None:
            self.pending["passes"] = -1  # whatever was taken before this pass belongs to an evaluation
        self._say("pass", number=self.passes, rng=_draws.marks())

    def _indexed(self, original: Any) -> Any:
        @functools.wraps(original)
        def next_index(iterator: Any) -> Any:
            found = original(iterator)
            if isinstance(found, (list, tuple)) and all(isinstance(each, int) for each in found):
                self.indices.setdefault(id(iterator._index_sampler), deque(maxlen=4096)).append(list(found))
            return found

        return next_index

    def _batch(self, loader: Any, batch: Any) -> None:
        queue = self.indices.get(id(loader._index_sampler))
        self.batch = (_raw.rows(batch), queue.popleft() if queue else None)
        self.in_pass += 1

    def _forward(self, module: Any, args: Any, kwargs: Any) -> None:
        import torch

        if not torch.is_grad_enabled() or os.getpid() != self.pid:
            return
        self.roots.setdefault(id(module), module)
        flags = {name: each.training for name, each in module.named_modules()}
        if self.pending is not None and (self.pending["flags"], self.pending["passes"]) == (flags, self.passes):
            return
        frame = self.job.frame(sys._getframe(1))
        self.walk = Walk(self.job.path_of).run(frame)
        wanted = self._is_wanted()
        self._complete(module, everywhere=wanted or not self.unit)
        row = self._row(args, kwargs)
        dump = self._dump(module, args, kwargs) if wanted else None
        self.pending = {"flags": flags, "passes": self.passes, "row": row, "dump": dump}

    def _complete(self, module: Any, *, everywhere: bool) -> None:
        """Optimizers, schedulers and scalers that no name of the user's leads to, and the module that runs."""
        walk = self.walk
        if walk is None:
            return
        if everywhere:
            self._look_everywhere(walk)
        for name, each in self.unnamed:
            have = walk.parts.setdefault(name, [])
            if not any(found is each for _, found in have):
                have.append((f"{type(each).__name__} {sum(type(f) is type(each) for _, f in have)}", each))
        have = walk.parts.setdefault("module", [])
        if not any(module is inner for _, found in have for inner in found.modules()):
            have.append((type(module).__name__, module))
        for _, optimizer in walk.parts.get("optimizer", []):
            self.optimizers.setdefault(id(optimizer), optimizer)

    def _look_everywhere(self, walk: Walk) -> None:
        """All objects of the process, which takes as long as a short step."""
        import gc

        kinds = [(name, kind) for name, kind in walk.kinds if name in ("optimizer", "scheduler", "scaler")]
        of_type: dict[type, str] = {}
        self.unnamed = []
        for each in gc.get_objects():
            kind = type(each)
            name = of_type.get(kind)
            if name is None:
                name = of_type[kind] = next((name for name, wanted in kinds if issubclass(kind, wanted)), "")
            if name:
                self.unnamed.append((name, each))

    def _is_wanted(self) -> bool:
        if self.wanted == "written":
            return self.due or self.unit == 0 or self.rank > 0  # which cannot know when rank 0 writes
        return self.wanted == str(self.unit)

    def _trained(self) -> list[Any]:
        found = {
            id(each): each
            for optimizer in self.optimizers.values()
            for group in optimizer.param_groups
            for each in group["params"]
        }
        return list(found.values())

    def _row(self, args: Any, kwargs: Any) -> dict[str, Any]:
        trained = self._trained()
        ours = {id(each) for each in trained}
        learning = [root for root in self.roots.values() if any(id(each) in ours for each in root.parameters())]
        inputs = _raw.tensors_in([args, dict(kwargs)])
        given, indices = self.batch
        walk = self.walk
        numbers = dict(walk.numbers) if walk is not None else {}
        changed = {key: _plain(each) for key, each in numbers.items() if self.told.get(key, self) != each}
        self.told = numbers
        return {
            "weights": _raw.mark_of(trained),
            "buffers": _raw.mark_of(each for root in learning for each in root.buffers()),
            "batch": _raw.mark_of(inputs),
            "rows": given or _raw.rows([args, dict(kwargs)]),
            "indices": indices,
            "place": self.in_pass,
            "waiting": self.since_turn,
            "pass": self.passes,
            "rng": _draws.marks(),
            "lr": [_plain(group.get("lr")) for each in self.optimizers.values() for group in each.param_groups],
            "numbers": changed,
        }

    def _dump(self, module: Any, args: Any, kwargs: Any) -> Dump:
        dump = Dump()
        if self.walk is not None:
            dump.found(self.walk, {id(each) for each in self._trained()})
        for name, state in _draws.states().items():
            dump.add(name, name, "", state)
        for number, each in enumerate(_raw.tensors_in([args, dict(kwargs)])):
            dump.add("batch", "batch", str(number), each, most=1 << 20)
        for name, each in module.named_modules():
            dump.add("flags", "training", name, each.training)
        for name, each in module.named_parameters():
            dump.add("flags", "requires_grad", name, each.requires_grad)
        return dump

    def _backward(self, _roots: Any) -> None:
        if os.getpid() == self.pid:
            self._unit_done()
            self.since_turn += 1

    def _unit_done(self) -> None:
        pending, self.pending = self.pending or {"row": {}, "dump": None}, None
        self._say("unit", loss=_plain(self.job.loss), **pending["row"])
        dump = pending["dump"]
        if dump is not None:
            for name, each in self._gradients():
                dump.add("gradients", "gradients", name, each)
            dump.write(f"{self.folder}/state{self.rank}-{self.unit}", unit=self.unit, turn=self.turns)
            self._say("state")
            self.due = False
            if self.rank and self.wanted == "written":
                self._forget()
        self.unit += 1

    def _forget(self) -> None:
        """Removes the states of this rank before which rank 0 has written nothing, but for the last ones."""
        first = Path(self.folder, "resume0.jsonl")
        lines = first.read_text(encoding="utf-8").splitlines() if first.is_file() else []
        kept = {
            json.loads(line)["unit"] for line in lines if line.startswith('{"event": "file"') and line.endswith("}")
        }
        for unit in range(max(1, self.unit - 3 * BEHIND), self.unit - BEHIND):
            if unit not in kept:
                for kind in ("bin", "json"):
                    Path(f"{self.folder}/state{self.rank}-{unit}.{kind}").unlink(missing_ok=True)

    def _gradients(self) -> Any:
        """Gradients that are there before the backward pass, and not zero."""
        names = {id(each): name for root in self.roots.values() for name, each in root.named_parameters()}
        for each in self._trained():
            if each.grad is not None and bool(_raw.plain(each.grad).any()):
                yield names.get(id(each), "?"), each.grad

    def _stepping(self, optimizer: Any) -> None:
        if os.getpid() != self.pid:
            return
        self._built(optimizer)
        had = self.counts.get(id(optimizer), 0)
        after = self.stop
        if self.soon and self.written is not None:
            after = self.written + 1 if after is None else after
        if after is not None and had >= after and not self.asked:
            self._end()

    def _stepped(self, optimizer: Any, _scaler: Any = None) -> None:
        if os.getpid() != self.pid:
            return
        if not self.since_turn:  # gradients that came by another way than backward
            self._unit_done()
        self.since_turn = 0
        self.counts[id(optimizer)] = self.counts.get(id(optimizer), 0) + 1
        self.turns = max(self.counts.values())

    def _end(self) -> None:
        """As a preempted job: one that listens to SIGTERM is told, any other stands still until it is killed."""
        self.asked = 1
        self._last()
        handler = signal.getsignal(signal.SIGTERM)
        if callable(handler) and getattr(handler, "__code__", None) and self.job.path_of(handler.__code__):
            self._mark("asked")
            os.kill(self.pid, signal.SIGTERM)
            return
        self._mark("stopped")
        while True:
            time.sleep(1)

    def _mark(self, word: str) -> None:
        with open(f"{self.folder}/{word}{self.rank}", "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(os.environ.get("WORLD_SIZE", "1"))

    def _ending(self) -> None:
        if os.getpid() == self.pid:
            self._last()

    def _last(self) -> None:
        """The state at the end, of what was found last: the frames that held it may be gone."""
        if self.walk is None:
            return
        dump = Dump()
        dump.found(self.walk, {id(each) for each in self._trained()})
        dump.write(f"{self.folder}/state{self.rank}-{LAST}", unit=self.unit, turn=self.turns)
        self._say("end")
        self.walk = None


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)[:200]


def _number(name: str) -> int | None:
    value = os.environ.get(name, "")
    return int(value) if value.isdecimal() else None


def _is_temporary(path: str) -> bool:
    folder = os.environ.get("TMPDIR")
    return bool(folder) and path.startswith(f"{folder}/")
