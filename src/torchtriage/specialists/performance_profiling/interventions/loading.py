"""How batches are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.trial.experiment.job.interventions import Start

SIZE, WORKERS = 0, 4  # the places of batch_size and num_workers among the arguments of a DataLoader, behind its data


def workers(start: Start, number: float) -> None:
    """Lets NUMBER processes load, kept from one pass over the data to the next.

    Streams stay as they are: each worker of one would give all of it, unless the job divides it.
    """
    from torch.utils.data import DataLoader, IterableDataset

    changed: list[Any] = []

    def with_workers(original: Any) -> Any:
        def __init__(loader: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            given = args[WORKERS] if len(args) > WORKERS else kwargs.get("num_workers", 0)
            if isinstance(dataset, IterableDataset) or given == number:
                original(loader, dataset, *args, **kwargs)
                return
            changed.append(loader)
            if len(args) > WORKERS:
                args = (*args[:WORKERS], int(number), *args[WORKERS + 1 :])
            else:
                kwargs["num_workers"] = int(number)
            if number:
                kwargs["persistent_workers"] = True
            else:
                for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
                    kwargs.pop(name, None)
            original(loader, dataset, *args, **kwargs)

        return __init__

    def begin() -> None:
        if not changed:
            start.give_up(f"it builds no DataLoader of samples with another number of workers than {number:g}")

    start.job.wrap(DataLoader, "__init__", with_workers)
    start.on_begin(begin)


def batch_size(start: Start, factor: float) -> None:
    """Batches of FACTOR times the samples, one sample at least. Loaders with batches of their own stay as they are."""
    from torch.utils.data import DataLoader

    changed: list[Any] = []

    def with_size(original: Any) -> Any:
        def __init__(loader: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            given = args[SIZE] if args else kwargs.get("batch_size", 1)
            size = max(1, round(given * factor)) if isinstance(given, int) else given
            if size != given:
                changed.append(loader)
                if args:
                    args = (size, *args[1:])
                else:
                    kwargs["batch_size"] = size
            original(loader, dataset, *args, **kwargs)

        return __init__

    def begin() -> None:
        if not changed:
            start.give_up("it builds no DataLoader whose batches can have another size")

    start.job.wrap(DataLoader, "__init__", with_size)
    start.on_begin(begin)
