"""Compares two checkpoints entry by entry and bit by bit.

Prints for each entry that is not the same: in one file only, another shape or type, or by how much it differs, and then
how many entries were compared. Files are read with weights_only=True, on the CPU, without copying them into memory.
Ends with 0 where all bits are equal, with 1 where not. Without files it shows itself on two small ones.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import nn


def entries(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of nested containers by their place."""
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        pairs = list(enumerate(value))
    else:
        yield name, value
        return
    for key, each in pairs:
        yield from entries(each, f"{name}.{key}" if name else str(key))


def difference(one: object, two: object) -> str:
    """What tells two leaves apart; empty where nothing does."""
    if not (isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor)):
        return "" if one == two else f"{one!r} and {two!r}"
    if one.shape != two.shape or one.dtype != two.dtype:
        return f"{tuple(one.shape)} {one.dtype} and {tuple(two.shape)} {two.dtype}"
    if torch.equal(one, two):
        return ""
    apart = (one.double() - two.double()).abs()
    return f"{int(apart.ne(0).sum())} of {apart.numel()} numbers, by {apart.max().item():.3g} at most"


def compare(first: Path, second: Path) -> int:
    """Prints what differs and returns how many entries do."""
    one, two = (
        dict(entries(torch.load(path, map_location="cpu", weights_only=True, mmap=True))) for path in (first, second)
    )
    found = {name: f"only in {first.name if name in one else second.name}" for name in one.keys() ^ two.keys()}
    found |= {name: how for name in one.keys() & two.keys() if (how := difference(one[name], two[name]))}
    for name in sorted(found):
        print(f"{name}: {found[name]}")
    print(f"{len(found)} of {len(one.keys() | two.keys())} entries differ")
    return len(found)


def example(folder: Path) -> tuple[Path, Path]:
    """Two checkpoints: the second one step later, and with the prefix of a wrapper on one key."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    paths = folder / "first.pt", folder / "second.pt"
    for number, path in enumerate(paths):
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        weights = dict(model.state_dict())
        if number:
            weights["module.bias"] = weights.pop("bias")
        torch.save({"model": weights, "optimizer": optimizer.state_dict(), "epoch": number}, path)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("files", nargs="*", type=Path, help="two files of torch.save; none: an example")
    files = parser.parse_args().files
    if len(files) not in (0, 2):
        parser.error("name two files, or none")
    if files:
        sys.exit(min(compare(*files), 1))
    with tempfile.TemporaryDirectory() as folder:
        compare(*example(Path(folder)))


if __name__ == "__main__":
    main()
