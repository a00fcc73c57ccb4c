"""The place in the data: how far a pass over a loader has come, and how to come there again with the same batches.

A plain loader cannot start at batch k. So kept are the states of the random generators from before the pass and the
number of batches that were taken; on a resume the pass is begun under those states, and that many batches are taken and
thrown away: the order, the workers and what they draw are then where they were.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state import generators
from torchtriage.toolkit.state.parts import in_memory

PLACED = ("batch size", "number of samples")
"""What makes the same count of batches another place."""
_TURNS = itertools.count(1)
"""Which came first of what the passes over all loaders do."""


@dataclass(eq=False)
class Pass:
    """One pass over a loader. begun: where all was before it; done: its batches; handling: an error being handled.

    broken: whether an error has ended it, so that only a resume goes on with it.
    """

    begun: dict[str, Any]
    done: int
    handling: BaseException | None = None
    broken: bool = False


class Loader:
    """One loader of the training, and the pass over it that is under way."""

    component = "loader"

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.replay = True
        self.passes = 0
        self.turn = 0
        self._open: list[Pass] = []
        self._left: tuple[Pass, int] | None = None
        self._early = False
        self._from: Any = None
        self._ready: Iterator[Any] | None = None

    @property
    def midway(self) -> bool:
        return bool(self._open)

    @property
    def pending(self) -> bool:
        """Whether a pass was loaded that nobody has gone on with yet."""
        return self._from is not None and self._from["midway"] is not None

    def broken_off(self, turn: int, *, epochs: bool) -> None:
        """A pass that an error has ended is under way still, as nothing has come of what it had left.

        TURN: of the last batch of any loader. EPOCHS: whether the loop over the epochs has been left early, too.
        """
        left, self._left = self._left, None
        if left is not None and not self._open and left[1] > turn:
            failed = sys.exc_info()[1]
            if epochs or (failed is not None and failed is not left[0].handling):
                left[0].broken, self._open = True, [left[0]]
                self.passes -= 1

    def begin_epoch(self) -> None:
        self.passes, self._left = 0, None
        self._open = [each for each in self._open if not each.broken]

    def samplers(self) -> list[Any]:
        """What gives the loader its indices, the outermost first."""
        found: list[Any] = []
        for name in ("batch_sampler", "sampler"):
            outer = getattr(self.loader, name, None)
            found += [each for each in (outer, getattr(outer, "sampler", None)) if each is not None]
        return list({id(each): each for each in found}.values())

    def taken(self) -> Any:
        if self.pending:
            return self._from
        mid = {"begun": self._open[-1].begun, "done": self._open[-1].done} if self._open else None
        own = self.loader.state_dict() if self._by_its_own() else None
        return {
            "midway": mid,
            "generators": generators.states_of(self._generators()),
            "own": own,
            "of": self._of(),
            **self._of_samplers(),
        }

    def changes(self, saved: Any) -> tuple[Any, Any]:
        """What the loader was made of when it was SAVED, and is now, where both are known."""
        return saved.get("of"), self._of()

    def misfits(self, saved: Any) -> list[str]:
        here, there = len(self._generators()), len(saved["generators"])
        found = [f"has {here} generators of its own here, and had {there}"] if here != there else []
        if saved["own"] is not None and not _keeps_place(self.loader):
            found.append("had a state of its own, and is no stateful loader here")
        if saved["midway"] is not None and saved["own"] is None and saved.get("of") is not None:
            now = self._of()
            found += [
                f"was saved midway with {was} as its {what}, and has {now[what]}: its place is another"
                for what, was in saved["of"].items()
                if what in PLACED and was != now[what]
            ]
        return found

    def put_back(self, saved: Any) -> None:
        """The next pass goes on where the saved one was."""
        self._from = in_memory(saved)
        self._ready = None
        self._open, self._left, self._early = [], None, False
        self.settle()

    def settle(self) -> None:
        """The loader's own generators and samplers are where they were when it was saved."""
        if self._from is not None:
            for generator, state in zip(self._generators(), self._from["generators"], strict=True):
                generators.put_back_to(generator, state)
            self._to_samplers(self._from)

    def forget(self) -> None:
        """The next pass is a new one, wherever the saved one was."""
        if self._from is not None:
            self._from["midway"] = self._from["own"] = None

    def catch_up(self) -> bool:
        """Takes the batches again that the saved pass had taken; generators of others are left where that leaves them.

        Returns whether there was such a pass.
        """
        saved, self._from = self._from, None
        if saved is None:
            return False
        mid = saved["midway"]
        under_way = [Pass(mid["begun"], mid["done"], sys.exc_info()[1])] if mid else []
        if saved["own"] is not None:
            self.loader.load_state_dict(saved["own"])
            self._open = under_way
            self._ready = iter(self.loader) if mid else None
        elif mid is not None:
            self._to_samplers(mid["begun"])
            generators.put_back(mid["begun"]["host"])
            for generator, state in zip(self._generators(), mid["begun"]["generators"], strict=True):
                generators.put_back_to(generator, state)
            self._open = under_way
            self._ready = self._replayed(mid["done"]) if self.replay else self._skipped(mid["done"])
        if mid is not None or self._early:  # what the pass draws as it begins is drawn; its own generators go on
            for generator, state in zip(self._generators(), saved["generators"], strict=True):
                generators.put_back_to(generator, state)
        return mid is not None

    def batches(self) -> Iterator[Any]:
        """One pass: the rest of the one that was saved, else a new one."""
        if self._ready is None:
            alive = [each for each in self._open if not each.broken]
            self._open = [*alive, Pass(self._beginning(), 0, sys.exc_info()[1])]
            self._ready = iter(self.loader)
        under_way, self._ready = self._ready, None
        this, over = self._open[-1], False
        try:
            while True:
                try:
                    batch = next(under_way)
                except StopIteration:
                    over = True
                    return
                this.done += 1
                self.turn = next(_TURNS)
                yield batch
        finally:
            if this in self._open:  # no load has come in between
                self._open.remove(this)
                self.passes += 1
                self._left = None if over else (this, next(_TURNS))

    def early(self) -> None:
        """A pass begins before one of another loader that is to be gone on with."""
        self._early = True

    def end(self) -> None:
        """The pass has given its last batch, though nobody has asked for one more."""
        if self._open:
            self.passes += 1
            self._open = []

    def set_epoch(self, epoch: int) -> None:
        for each in (*self.samplers(), self.loader, getattr(self.loader, "dataset", None)):
            if (move := getattr(each, "set_epoch", None)) is not None:
                move(epoch)

    def _beginning(self) -> dict[str, Any]:
        states = generators.states_of(self._generators())
        return {"host": generators.on_host(), "generators": states, **self._of_samplers()}

    def _replayed(self, done: int) -> Iterator[Any]:
        under_way: Iterator[Any] = iter(self.loader)
        there = sum(1 for _ in itertools.islice(under_way, done))
        if there < done:
            do = "Give it the data that it had, or begin the epoch anew: load(without=[…]) with the loader's name."
            raise TriageError(f"a pass was saved after {done} batches, and its loader has {there}", "TrainingState", do)
        return under_way

    def _skipped(self, done: int) -> Iterator[Any]:
        """A pass whose first DONE batches are not loaded: right where the data set draws no random numbers."""
        from torch.utils.data import IterableDataset

        held = vars(self.loader)
        name = "batch_sampler" if held.get("batch_sampler") is not None else "sampler"
        indices = held.get(name)
        if indices is None or isinstance(self.loader.dataset, IterableDataset):
            do = "Take state.batches(loader) as it is, which loads them again, or a StatefulDataLoader."
            raise TriageError(
                "the loader has no indices, so its first batches cannot be passed over", "replay=False", do
            )
        rest = held[name] = _Rest(indices, done)
        try:
            under_way: Iterator[Any] = iter(self.loader)
        finally:
            held[name] = indices
        for each in rest.under_way:  # what the order is drawn from is right now, and may not be at the next batch
            each.advance()
        return under_way

    def _generators(self) -> list[Any]:
        """The generators that belong to the loader and its samplers, each once."""
        owners = (self.loader, *self.samplers())
        found = [getattr(each, "generator", None) for each in owners]
        return list({id(each): each for each in found if each is not None and generators.is_generator(each)}.values())

    def _of(self) -> dict[str, Any]:
        """What the place in a pass depends on beside its generators."""
        from torch.utils.data import IterableDataset

        loader, samples = self.loader, None
        if not isinstance(loader.dataset, IterableDataset):
            try:
                samples = len(loader.dataset)
            except (TypeError, NotImplementedError):  # a sampler of the training's own needs no length
                samples = None
        size = getattr(loader.batch_sampler, "batch_size", loader.batch_size)
        return {"batch size": size, "number of samples": samples, "number of workers": loader.num_workers}

    def _of_samplers(self) -> dict[str, Any]:
        return {"samplers": [each.state_dict() if _keeps_place(each) else None for each in self.samplers()]}

    def _to_samplers(self, saved: Any) -> None:
        for sampler, state in zip(self.samplers(), saved["samplers"], strict=False):
            if state is not None and _keeps_place(sampler):
                sampler.load_state_dict(state)

    def _by_its_own(self) -> bool:
        """Whether the loader's own state says the place: where its data has one too, or where that was asked for."""
        return _keeps_place(self.loader) and (not self.replay or _keeps_place(getattr(self.loader, "dataset", None)))


class Sampler:
    """A sampler that was registered by itself: its epoch, its generator, and the state that it may have."""

    component = "loader"

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def taken(self) -> Any:
        held = getattr(self.sampler, "generator", None)
        return {
            "epoch": getattr(self.sampler, "epoch", None),
            "generator": generators.state_of(held) if held is not None else None,
            "state": self.sampler.state_dict() if _keeps_place(self.sampler) else None,
        }

    def misfits(self, saved: Any) -> list[str]:
        has = getattr(self.sampler, "generator", None) is not None
        return ["has a generator here, and had none" if has else "had a generator, and has none here"] * (
            has != (saved["generator"] is not None)
        )

    def put_back(self, saved: Any) -> None:
        if saved["epoch"] is not None and hasattr(self.sampler, "set_epoch"):
            self.sampler.set_epoch(saved["epoch"])
        if saved["generator"] is not None:
            generators.put_back_to(self.sampler.generator, in_memory(saved["generator"]))
        if saved["state"] is not None:
            self.sampler.load_state_dict(in_memory(saved["state"]))


class _Rest:
    """INDICES without the first DONE, which are drawn when they would be: after the loader's own seed."""

    def __init__(self, indices: Any, done: int) -> None:
        self._indices, self._done = indices, done
        self.under_way: list[_Ahead] = []

    def __iter__(self) -> Iterator[Any]:
        self.under_way.append(_Ahead(iter(self._indices), self._done))
        return self.under_way[-1]

    def __len__(self) -> int:
        return len(self._indices)


class _Ahead(Iterator[Any]):
    """An iterator whose first LEFT are passed over."""

    def __init__(self, inner: Iterator[Any], left: int) -> None:
        self._inner, self._left = inner, left

    def __next__(self) -> Any:
        self.advance()
        return next(self._inner)

    def advance(self) -> None:
        left, self._left = self._left, 0
        for _ in itertools.islice(self._inner, left):
            pass


def _keeps_place(value: Any) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")
