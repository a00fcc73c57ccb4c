"""What the callbacks of all frameworks do with a TrainingState: make it as a training begins, load it, and save it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state import TrainingState


class Keeping:
    """Takes what `torchtriage.toolkit.TrainingState` takes; see there.

    every: a step is saved after so many steps of the optimizer, and each epoch's end where it is None.
    parts: what the framework does not know of: an average of the weights, generators of your own.
    """

    def __init__(
        self,
        folder: str | Path,
        every: int | None = None,
        *,
        keep: int | None = None,
        async_: bool = False,
        **parts: Any,
    ) -> None:
        super().__init__()
        if every is not None and every < 1:
            raise TriageError(f"every={every} is no number of steps", "StateCallback", "Give 1 or more, or None.")
        self.folder, self.every = Path(folder), every
        self._options: dict[str, Any] = {"keep": keep, "async_": async_}
        self._parts = parts
        self._loaders: list[Watched] = []
        self._state: TrainingState | None = None
        self._last: int | None = None

    @property
    def state(self) -> TrainingState:
        """What is saved and loaded; raises TriageError until a training has begun."""
        if self._state is None:
            raise TriageError("no training has begun", "StateCallback", "Ask for it within the training.")
        return self._state

    def batches(self, loader: Any) -> Watched:
        """LOADER, to be trained on in its place: after a resume it goes on with the batch that comes next."""
        self._loaders.append(Watched(self, loader))
        return self._loaders[-1]

    def begin(self, **parts: Any) -> None:
        """The training begins, with PARTS that the framework knows of; what was saved is put back."""
        self.finish()
        loaders = [each.loader for each in self._loaders]
        self._state = TrainingState(self.folder, **self._options, **parts, **self._parts, loader=loaders)
        self._last = self._state.step if self._state.load() else None

    def keep_step(self, step: int) -> None:
        """Saves STEP, unless it has been saved."""
        if step != self._last:
            self.state.save(step)
            self._last = step

    def due(self, step: int) -> bool:
        """Whether STEP is one to be saved within an epoch."""
        return self.every is not None and step > 0 and step % self.every == 0 and step != self._last

    def end_passes(self) -> None:
        """An epoch has ended: its loaders have given all that is asked of them."""
        self.state.end_passes()

    def finish(self) -> None:
        """The training has ended; its last save is on the disk when this returns."""
        if self._state is not None:
            self._state.close()


class Watched:
    """A loader as a framework sees it, whose passes are followed."""

    def __init__(self, home: Keeping, loader: Any) -> None:
        self._home, self.loader = home, loader

    def __iter__(self) -> Iterator[Any]:
        return iter(self._home.state.batches(self.loader))

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("state_dict", "load_state_dict"):
            raise AttributeError(name)
        return getattr(self.loader, name)
