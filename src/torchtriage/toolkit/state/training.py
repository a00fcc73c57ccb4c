"""The state of a training, saved so that it survives and resumed so that it goes on bit by bit."""

from __future__ import annotations

import atexit
import logging
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state import generators, plain, settings
from torchtriage.toolkit.state.folder import Folder
from torchtriage.toolkit.state.loaders import Loader
from torchtriage.toolkit.state.manifest import Damaged
from torchtriage.toolkit.state.opening import Opened
from torchtriage.toolkit.state.parts import in_memory
from torchtriage.toolkit.state.ranks import Ranks
from torchtriage.toolkit.state.registered import Registered
from torchtriage.toolkit.state.resuming import Loaded, fitted, found
from torchtriage.toolkit.state.saving import Snapshot, saved
from torchtriage.toolkit.state.tensors import Tensors

LOG = logging.getLogger("torchtriage")
MOST = 10**18
"""Steps that a folder's name has digits for."""


class TrainingState:
    """All that a training carries from one step to the next, with a folder of steps to go on from.

        state = TrainingState("checkpoints", keep=3, model=model, optimizer=optimizer, loader=loader)
        state.load()
        for epoch in state.epochs(10):
            for batch in state.batches(loader):
                ...
                state.step += 1
                if state.step % 100 == 0:
                    state.save()

    folder: of this training alone; all ranks name the same one.
    keep: how many steps stay, all without it. An old one goes only once the new one has been read back.
    async_: a save copies the tensors and returns; it is written beside the training.
    config: the settings, told when they differ at a resume. dict, dataclass or Namespace of plain values.
    parts: model, optimizer, scheduler, scaler, loader and whatever else has a state_dict, each by a name of yours;
        lists and dicts of them too. With them go all random generators.

    step, epoch: the next to be run, once loaded. best: the best metric. values: what else you count, as plain values.
    """

    def __init__(
        self, folder: str | Path, *, keep: int | None = None, async_: bool = False, config: Any = None, **parts: Any
    ) -> None:
        if keep is not None and type(keep) is not int:
            raise TriageError(f"keep={keep!r} is no whole number", "TrainingState", "Keep 1 or more, or None for all.")
        if keep is not None and keep < 1:
            raise TriageError(f"keep={keep} would leave no step", "TrainingState", "Keep 1 or more, or None for all.")
        self.step, self.epoch = 0, 0
        self.best: Any = None
        self.values: dict[str, Any] = {}
        self.keep = keep
        self._folder, self._ranks = Folder(Path(folder)), Ranks()
        self._registered = Registered(parts)
        self._config = settings.plain_config(config)
        self._async = async_
        self._writer: Thread | None = None
        self._failed: BaseException | None = None
        self._damaged: set[Path] = set()
        self._random: dict[str, Any] | None = None
        self._told = False
        self._line: int | None = None
        self._left_early = False
        atexit.register(self._at_exit)

    @property
    def folder(self) -> Path:
        return self._folder.root

    def save(self, step: int | None = None) -> None:
        """Saves everything as STEP, else as self.step; on the disk when this returns, with async_ when `wait` does.

        A step that this training has saved or loaded may be saved again: the later one counts, in a folder of its own.
        Raises TriageError where that cannot be; all earlier steps are then as they were. All ranks call it.
        """
        self.wait()
        self._ranks.meet()
        self.step = _checked(self.step if step is None else step)
        again = self.step == self._line
        turn = max((each.turn for each in self._loaders()), default=0)
        for each in self._loaders():
            each.broken_off(turn, epochs=self._left_early)
        taken: list[Snapshot] = []
        self._ranks.together(lambda: taken.append(self._taken()._replace(again=again)))
        if self._async:
            taken[0].tensors.copied()
            self._writer = Thread(target=self._write_beside, args=(taken[0],), name="torchtriage-save")
            self._writer.start()
        else:
            self._write(taken[0])

    def load(self, step: int | None = None, *, without: str | Sequence[str] = ()) -> Loaded:
        """Goes on from the newest step that is whole, or from STEP; says what it skipped and why.

        Nothing is there: nothing is changed, and what is returned is false. WITHOUT: parts that stay as they are.
        Raises TriageError where steps are there and none is whole, or where one does not fit what is registered; then
        nothing has been changed either. All ranks call it.
        """
        self.wait()
        self._ranks.meet()
        without = [without] if isinstance(without, str) else without
        opened, loaded = found(self._folder, self._ranks, step)
        self._damaged = {self._folder.root / each.name for each in loaded.skipped}
        if opened is not None:
            import torch

            held = fitted(opened, self._ranks, self._registered, without)
            with torch.inference_mode(False), torch.no_grad():  # what is made here is trained on
                self._put_back(opened, held, loaded, without)
        for each in loaded.skipped:
            LOG.warning("%s: skipped %s: %s", self._folder.root, each.name, each.why)
        for note in loaded.notes:
            LOG.warning("%s: step %s: %s", self._folder.root, loaded.step, note)
        return loaded

    def epochs(self, count: int) -> Iterator[int]:
        """The epochs that are left of COUNT. Save in the body: within `batches`, or as its last line."""
        self.settle()
        self._left_early = False
        try:
            for epoch in range(self.epoch, count):
                self.epoch = epoch
                for each in self._loaders():
                    each.set_epoch(epoch)
                    each.begin_epoch()
                yield epoch
        except GeneratorExit:
            self._left_early = True
            raise
        self.epoch = max(self.epoch, count)
        for each in self._loaders():
            each.begin_epoch()

    def batches(self, loader: Any, *, replay: bool = True) -> Batches:
        """One pass over LOADER; of the epoch that was saved midway, the rest.

        replay: after a resume the batches before are loaded again and thrown away, so that workers and augmentation are
        where they were. False passes over their indices only (a StatefulDataLoader loads its own state): quicker, and
        the same where the data set draws no random numbers.
        """
        part = self._registered.loader(loader)
        part.replay = replay
        return Batches(self, part)

    def settle(self) -> None:
        """What was drawn since `load` is drawn again: building things may draw. `epochs` does it by itself."""
        if self._random is not None:
            generators.put_back(self._random)
            for each in self._loaders():
                each.settle()

    def end_passes(self) -> None:
        """The passes over all loaders have come to their end, though no loop has asked for one batch more."""
        for each in self._loaders():
            each.end()

    def lacking(self) -> list[str]:
        """What a resume will miss, as far as it can be seen from what is registered, and what that does to it."""
        from torchtriage.catalog.load import catalog

        components = catalog().components
        said = [each.partition(": ") for each in self._registered.lacking()]
        return [f"{name}: {why}; without it {components[name].without}" for name, _, why in said]

    def wait(self) -> None:
        """Returns when no save is under way; raises what the last one could not do."""
        if self._writer is not None:
            self._writer.join()  # an interrupt here leaves it to the next one to wait
        self._writer = None
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Waits, and leaves the folder to other writers."""
        atexit.unregister(self._at_exit)
        try:
            self.wait()
        finally:
            self._folder.close()

    def __enter__(self) -> TrainingState:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _taken(self) -> Snapshot:
        tensors = Tensors()
        if not self._told:
            self._told = True
            for each in (*self.lacking(), *(f"left out of {said}" for said in self._registered.left_out())):
                LOG.warning("%s: %s", self._folder.root, each)
        ahead = self._random if any(each.pending for each in self._loaders()) else None
        parts = {name: plain.encoded(each.taken(), name, tensors.keep) for name, each in self._registered.parts.items()}
        beside = {
            "counters": {"step": self.step, "epoch": self._next_epoch(), "best": self.best, "values": self.values},
            "random": generators.taken() if ahead is None else ahead,
            "config": self._config,
            "settings": settings.here(self._ranks.count),
        }
        return Snapshot(self.step, {"parts": parts} | plain.encoded(beside, "state", tensors.keep), tensors)

    def _next_epoch(self) -> int:
        """The epoch to go on with: the next one where each loader that was begun in this one has ended its pass."""
        loaders = self._loaders()
        over = any(each.passes for each in loaders) and not any(each.midway for each in loaders)
        return self.epoch + over

    def _write(self, snapshot: Snapshot) -> None:
        path = saved(self._folder, self._ranks, snapshot, self._damaged)
        self._line = snapshot.step
        self._forget_old(path)

    def _write_beside(self, snapshot: Snapshot) -> None:
        try:
            self._write(snapshot)
        except BaseException as error:  # noqa: BLE001 - raised by the next save, wait or close
            self._failed = error

    def _forget_old(self, newest: Path) -> None:
        """Of the steps before NEWEST, those beyond `keep` go, once it has been read back."""
        ranks, keep = self._ranks, self.keep
        if keep is None:
            return
        there = [each for each in self._folder.steps() if each[1] not in self._damaged]
        listed = ranks.together(lambda: [[step, str(path)] for step, path in there[keep:]])[0]
        if not listed:
            return
        try:
            ranks.together(lambda: Opened(newest).verify([ranks.index]))
        except Damaged as error:
            do = "No older step was taken away: look at the disk, and save again."
            raise TriageError(f"{newest.name} was written and reads otherwise: {error}", str(newest), do) from error
        ranks.together(lambda: self._take_away(listed) if ranks.index == 0 else None)

    def _take_away(self, listed: Sequence[Sequence[Any]]) -> None:
        for step, path in listed:
            try:
                self._folder.take_away(int(step), Path(path))
            except OSError as error:  # the new step is there, whatever becomes of the old one
                LOG.warning("%s: step %s could not be taken away: %s", self._folder.root, step, error.strerror)

    def _put_back(self, opened: Opened, held: dict[str, Any], loaded: Loaded, without: Sequence[str]) -> None:
        alike = opened.ranks == self._ranks.count
        for name, part in self._registered.ordered():
            if name in without:
                continue
            part.put_back(held["parts"][name])
            if isinstance(part, Loader):
                was, now = part.changes(held["parts"][name])
                loaded.notes += settings.differences(was, now, f"{name}: ") if was else []
                part.passes = 0
                if not alike:
                    part.forget()
        counters = in_memory(held["counters"])
        self.step, self.epoch, self.best = counters["step"], counters["epoch"], counters["best"]
        self.values = counters["values"]
        self._line = opened.manifest.step
        self._random = in_memory(held["random"]) if alike and "random" not in without else None
        loaded.notes += settings.differences(held["settings"], settings.here(self._ranks.count), "")
        loaded.notes += settings.differences(in_memory(held["config"]), self._config, "config.")
        if not alike:
            loaded.notes.append("random generators and the place in the data begin anew, for the ranks are others")
        if self._random is not None:
            loaded.notes += generators.put_back(self._random)

    def _catch_up(self, part: Loader) -> None:
        """All passes that were under way are where they were, and after them all generators; PART is to begin now."""
        if not part.pending and any(each.pending for each in self._loaders()):
            part.early()
            return
        random, self._random = self._random, None
        loaders = self._loaders()
        midway = [each.catch_up() for each in loaders]
        if random is not None and any(midway):
            generators.put_back(random)

    def _loaders(self) -> list[Loader]:
        return list(self._registered.of(Loader).values())

    def _at_exit(self) -> None:
        try:
            self.wait()
        except BaseException:
            LOG.exception("%s: the last save has failed", self._folder.root)


def _checked(step: Any) -> int:
    """STEP as the number that it is; raises TriageError for one that no folder is named by."""
    try:
        number = operator.index(step)
    except TypeError:
        number = -1
    if not 0 <= number < MOST:
        do = "Count the steps of the optimizer in state.step, or give save a whole number."
        raise TriageError(f"step {step!r} is no whole number of 0 to {MOST - 1:,}", "TrainingState", do)
    return number


class Batches:
    """The passes over one loader, each as an iteration; see `TrainingState.batches`."""

    def __init__(self, state: TrainingState, part: Loader) -> None:
        self._state, self._part = state, part

    def __iter__(self) -> Iterator[Any]:
        """Begins with the first batch that is asked for: what is drawn until then comes before."""
        self._state._catch_up(self._part)
        yield from self._part.batches()

    def __len__(self) -> int:
        return len(self._part.loader)
