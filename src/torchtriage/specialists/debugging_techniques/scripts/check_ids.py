"""Ids and labels, looked at on the CPU before they reach the device.

Give `Checked` to a DataLoader as collate_fn, with what each field of a batch may hold. The first value out of range
raises with the field, the place, the value and the range, in place of a device-side assert. Here: a data set with one
bad id. Prints what it says, and the range of all ids and labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

Sample = tuple[torch.Tensor, int]


@dataclass(frozen=True)
class Allowed:
    """The values from 0 to size - 1, and one more that a loss leaves out."""

    size: int
    ignore: int | None = None

    def first_bad(self, values: torch.Tensor) -> tuple[list[int], int] | None:
        bad = (values < 0) | (values >= self.size)
        if self.ignore is not None:
            bad &= values != self.ignore
        if not bool(bad.any()):
            return None
        place = [int(each) for each in bad.nonzero()[0]]
        return place, int(values[tuple(place)])


class Checked:
    """A collate function that makes a batch and refuses what no table has a row for."""

    def __init__(self, fields: Mapping[int, Allowed], collate: Any = default_collate) -> None:
        self.fields, self.collate = fields, collate

    def __call__(self, samples: Sequence[Any]) -> Any:
        batch = self.collate(samples)
        for field, allowed in self.fields.items():
            found = allowed.first_bad(batch[field])
            if found is not None:
                place, value = found
                raise ValueError(f"field {field}{place} is {value}: allowed are 0 to {allowed.size - 1}")
        return batch


class Texts(Dataset[Sample]):  # type: ignore[misc]
    """Sequences of six ids, with a label; one of them is beyond the vocabulary where BAD says so."""

    def __init__(self, count: int, words: int, classes: int, bad: int | None) -> None:
        self.ids = torch.randint(words, (count, 6))
        self.labels = torch.randint(classes, (count,))
        if bad is not None:
            self.ids[bad, 2] = words

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        return self.ids[index], int(self.labels[index])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=100, help="rows of the embedding (default 100)")
    parser.add_argument("--classes", type=int, default=5, help="classes of the loss (default 5)")
    parser.add_argument("--sound", action="store_true", help="plant no bad id")
    given = parser.parse_args()
    torch.manual_seed(0)
    texts = Texts(64, given.words, given.classes, None if given.sound else 37)
    print(f"ids {int(texts.ids.min())} to {int(texts.ids.max())}, of 0 to {given.words - 1}")
    print(f"labels {int(texts.labels.min())} to {int(texts.labels.max())}, of 0 to {given.classes - 1}")
    fields = {0: Allowed(given.words), 1: Allowed(given.classes, ignore=-100)}
    loader = DataLoader(texts, batch_size=8, collate_fn=Checked(fields))
    try:
        print(f"{sum(1 for _ in loader)} batches, all in range")
    except ValueError as error:
        print(f"refused before the device saw it: {error}")


if __name__ == "__main__":
    main()
