"""What a run writes down about the global generators: who seeds them, and which of them move while a model learns."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

from ._draws import Draws
from .events import Loose

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LOOKS = frozenset({0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384})  # steps after which they are read


def seeds(job: Job) -> None:
    """Calls that seed a global generator, and the steps between which each of them has moved."""
    import torch

    job.spaced()
    watch = _Seeds(job)
    for owner in (torch, torch.random):
        job.wrap(owner, "manual_seed", watch.seeding("torch"))
    for owner in (torch.cuda, torch.cuda.random):
        for name in ("manual_seed", "manual_seed_all"):
            job.wrap(owner, name, watch.seeding("cuda"))
    for name in ("seed", "setstate"):
        job.wrap(random, name, watch.seeding("random"))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        for name in ("seed", "set_state"):
            job.wrap(numpy.random, name, watch.seeding("numpy"))
    watch.begin(numpy)
    job.listen(watch.iterated, watch.ending)


class _Seeds:
    """claims: the user's own lines that seed a source. seeded: sources that anybody has seeded, libraries too."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.numpy: Any = None
        self.claims: dict[str, tuple[str, int]] = {}
        self.seeded: set[str] = set()
        self.moved = {"torch": 0, "random": 0, "numpy": 0}
        self.before: dict[str, int] = {}
        self.torch, self.script = 0, ""

    def begin(self, numpy: Any) -> None:
        import torch

        self.numpy, self.torch = numpy, torch.initial_seed()

    def seeding(self, source: str) -> Any:
        def make(original: Any) -> Any:
            def seed(*args: Any, **kwargs: Any) -> Any:
                given = next(iter([*args, *kwargs.values()]), None)
                if given is not None:  # without a seed it is drawn from the system
                    self.seeded.add(source)
                    frame = sys._getframe(1).f_back  # beyond the guard around this function
                    path = self.job.path_of(frame.f_code) if frame is not None else None
                    if frame is not None and path is not None:
                        self.claims[source] = path, frame.f_lineno
                return original(*args, **kwargs)

            return seed

        return make

    def states(self) -> dict[str, int]:
        """A mark of the state of each generator."""
        import torch

        found = {"torch": hash(bytes(torch.default_generator.get_state().numpy().data)) if self.numpy else 0}
        found["random"] = hash(random.getstate())
        if self.numpy is not None:
            inner = self.numpy.random.get_state(legacy=False)["state"]
            key = inner["key"].tobytes() if "key" in inner else str(inner)
            found["numpy"] = hash((key, inner.get("pos")))
        return found

    def iterated(self, step: int) -> None:
        import torch

        if step not in _LOOKS or not self.claims:
            return
        if torch._C._are_functorch_transforms_active():
            return  # within torch.func even the state of a generator is a tensor without numbers
        now = self.states()
        for source, mark in now.items():
            self.moved[source] += source in self.before and self.before[source] != mark
        self.before = now
        self.script = str(getattr(sys.modules.get("__main__"), "__file__", None) or self.script)

    def ending(self) -> None:
        """The lines that draw are looked for only where a generator has moved that nobody seeded."""
        import torch

        if not self.claims:
            return
        if torch.initial_seed() != self.torch:
            self.seeded.add("torch")
        loose = [source for source, times in self.moved.items() if times and source not in self.seeded]
        drawn = [source for source in loose if source != "torch"]
        draws = Draws(self.job, self.script).of(drawn) if drawn else {}
        path, line = list(self.claims.values())[-1]
        for source in loose:
            event = Loose(
                source=source, seeded=sorted(self.seeded), claims=sorted(self.claims), moved=self.moved[source],
                path=path, line=line, draws=draws.get(source, {}),
            )  # fmt: skip
            self.job.record(event)
