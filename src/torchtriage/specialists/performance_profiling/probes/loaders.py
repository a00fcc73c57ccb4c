"""What a run writes down about its loaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Loader

from .events import Arrivals

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job


def loaders(job: Job) -> None:
    """Every DataLoader once: its arguments, its dataset's class, where it was built, where the code is that makes
    a sample.
    """
    import weakref

    from torch.utils.data import DataLoader

    known: weakref.WeakSet[Any] = weakref.WeakSet()
    lines: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()

    def building(original: Any) -> Any:
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            lines[loader] = job.caller()
            original(loader, *args, **kwargs)

        return __init__

    def begun(loader: Any, _given: int) -> None:
        if loader in known:
            return
        known.add(loader)
        dataset = _innermost(loader.dataset)
        source, path, line = _source_of_samples(loader, dataset)
        event = Loader(
            dataset=type(dataset).__name__,
            source=source,
            path=path,
            line=line,
            collate=_place(loader.collate_fn),
            built=lines.get(loader),
            length=_length(loader),
            batch_size=loader.batch_size,
            num_workers=loader.num_workers,
            pin_memory=loader.pin_memory,
            persistent_workers=loader.persistent_workers,
            prefetch_factor=loader.prefetch_factor,
        )
        job.record(event)

    job.wrap(DataLoader, "__init__", building)
    job.listen(begun)


def arrivals(job: Job) -> None:
    """How often the device had already run out of work when a batch arrived, so that waiting cost time."""
    job.spaced()
    last: Any = None
    seen = drained = 0
    probe, inner = job.placing, f"{job.placing} within"

    def iterated(_step: int) -> None:
        if job.accelerator.kind:
            job.withdraw(probe)
            job.place(inner, lambda job: job.listen(stepped, batch, ending))

    def stepped(_optimizer: Any) -> None:
        nonlocal last
        last = job.accelerator.mark()

    def batch(_loader: Any, _batch: Any) -> None:
        nonlocal seen, drained
        if last is not None:
            seen += 1
            drained += last.query()
            if seen >= 16 and not seen & (seen - 1):  # thinned: at 16, 32, 64 and so on
                job.record(Arrivals(seen=seen, drained=drained))

    def ending() -> None:
        if seen:
            job.record(Arrivals(seen=seen, drained=drained))

    job.listen(iterated)


def _innermost(dataset: Any) -> Any:
    """The dataset that makes the samples: below Subset and its like."""
    for _ in range(8):
        inner = getattr(dataset, "dataset", None)
        if inner is None:
            break
        dataset = inner
    return dataset


def _source_of_samples(loader: Any, dataset: Any) -> tuple[str, str | None, int | None]:
    """The first of the dataset's and the loader's functions that is the user's own: its name, file and line."""
    named = [
        (f"{type(dataset).__name__}.{name}", getattr(type(dataset), name, None))
        for name in ("__getitems__", "__getitem__", "__iter__")
    ]
    named.append(("collate_fn", loader.collate_fn))
    for name, function in named:
        place = _place(function)
        if place is not None:
            return name, *place
    return type(dataset).__name__, None, None


def _place(function: Any) -> tuple[str, int] | None:
    """Where a function of the user's begins; for an object, its __call__."""
    if not hasattr(function, "__code__"):
        function = getattr(type(function), "__call__", None)  # noqa: B004 - its code is asked for, not whether it is there
    code = getattr(function, "__code__", None)
    if code is None or str(getattr(function, "__module__", "")).startswith("torch."):
        return None
    return _as_written(code.co_filename), code.co_firstlineno


def _as_written(path: str) -> str:
    """PATH relative to the working folder where it lies below."""
    from pathlib import Path

    full = Path(path).absolute()
    return str(full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else full)


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # an iterable dataset has no length
        return None
