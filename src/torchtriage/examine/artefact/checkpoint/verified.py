"""All numbers of a checkpoint read once: held against the checksums, where there are some, and looked at for NaN."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from torchtriage.examine.artefact.checkpoint import finite, kept, zips
from torchtriage.examine.artefact.checkpoint.content import Content, Trouble
from torchtriage.examine.artefact.checkpoint.files import opened
from torchtriage.examine.artefact.checkpoint.folders import Folder
from torchtriage.examine.artefact.checkpoint.looked import NotFinite, Verified
from torchtriage.examine.artefact.checkpoint.sharded import Shards
from torchtriage.examine.artefact.checkpoint.sources import Damaged, Source, inside, reading
from torchtriage.examine.artefact.checkpoint.sums import fastest, hashing
from torchtriage.examine.artefact.checkpoint.tensors import tensors

PIECE = 2**20
"""Bytes that are looked at at once: they stay in the cache of a core."""


class Region(Struct, frozen=True):
    """Bytes of a file. tensor: whose numbers they are, "" for none. crc, xxh3: 0 and "" where there is no such sum."""

    path: str
    name: str
    start: int
    size: int
    crc: int = 0
    tensor: str = ""
    dtype: str = ""
    xxh3: str = ""


def file(content: Content, source: Source) -> Verified:
    """The numbers of one file."""
    return _looked(list(_regions(content, source)))


def folder(made: Folder, manifest: kept.Manifest | None = None) -> Verified:
    """The numbers of all files of a folder, those of DCP shards among them; by the hashes of MANIFEST, if any."""
    regions: list[Region] = []
    if manifest is not None:
        dtypes = {name: each.dtype for content in made.contents.values() for name, each in tensors(content.tree)}
        for each in kept.hashes(made, manifest):
            name = each.tensor or Path(each.path).name
            regions.append(
                Region(each.path, name, each.start, each.size, 0, each.tensor, dtypes.get(name, ""), each.xxh3)
            )
        return _looked(regions)
    for content in made.contents.values():
        if isinstance(content, Shards):
            regions += _sharded(content)
        else:
            with reading(content.path) as source:
                regions += _regions(content, source)
    return _looked(regions)


def _regions(content: Content, source: Source, base: int = 0, name: str = "") -> Iterator[Region]:
    """The storages of a file with the first tensor of each; of safetensors the tensors; of a zip file the rest, too."""
    owners: dict[str, tuple[str, str]] = {}
    for path, tensor in tensors(content.tree):
        key = tensor.storage.key if tensor.storage is not None else path
        owners.setdefault(key, (name or path, tensor.dtype))
    if not content.entries:
        for key, (start, size, _) in content.places.items():
            if start + size <= source.size:
                yield Region(content.path, key, base + start, size, 0, *owners.get(key, (key, "")))
        return
    for entry in content.entries:
        if entry.packed == 0 or entry.at + entry.packed > source.size:
            continue
        key = entry.name.partition("/data/")[2]
        try:
            start = zips.start(source, entry)
        except Damaged as damaged:
            content.wrong(damaged.why, damaged.at)
            continue
        owner = owners.get(key, ("", "")) if entry.method == 0 else ("", "")
        yield Region(content.path, entry.name, base + start, entry.packed, entry.crc * (entry.method == 0), *owner)


def _sharded(shards: Shards) -> Iterator[Region]:
    """Of DCP each piece is a file of torch.save by itself, within a data file."""
    for item in shards.items:
        path = inside(shards.path, item.file)
        if not path or not os.path.isfile(path) or item.start + item.size > Path(path).stat().st_size:  # noqa: PTH113
            continue  # told of already
        with reading(path) as source:
            part = source.part(item.start, item.size)
            content = opened(path, part)
            shards.troubles += [_of_item(each, path, item.name) for each in content.troubles]
            yield from _regions(content, part, item.start, item.name)


def _of_item(trouble: Trouble, path: str, name: str) -> Trouble:
    return Trouble(path, f"{name}: {trouble.why}", trouble.at, trouble.rescue, name)


def _looked(regions: list[Region]) -> Verified:
    """Every region once; a core for each of them, as there are cores."""
    made = Verified()
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 8)) as several:
        for region, (is_whole, bad) in zip(regions, several.map(_summed, regions), strict=True):
            made.checked += region.size * (is_whole is True)
            made.unchecked += region.size * (is_whole is None)
            made.troubles += [_changed(region)] if is_whole is False else []
            made.not_finite += bad
    return made


def _changed(region: Region) -> Trouble:
    what = f"the numbers of {region.tensor}" if region.tensor else region.name
    why = f"{what}: the checksum does not agree with the {region.size:,} bytes: they changed since they were written"
    return Trouble(region.path, why, region.start, tensor=region.tensor)


def _summed(region: Region) -> tuple[bool | None, list[NotFinite]]:
    """Whether a region has the sum that it should have, None where it has none, and what in it is not finite.

    The file is mapped: a copy of its bytes would take as long as all else.
    """
    crc, suspect, crc32 = 0, False, fastest()
    xxh3 = hashing() if region.xxh3 else None
    with Path(region.path).open("rb") as file:
        if os.fstat(file.fileno()).st_size < region.start + region.size:
            return False, []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as whole:
            for begin in range(region.start, region.start + region.size, PIECE):
                with whole[begin : min(begin + PIECE, region.start + region.size)] as piece:
                    crc = crc32(piece, crc) if region.crc else 0
                    if xxh3 is not None:
                        xxh3.update(piece)
                    suspect = suspect or (bool(region.tensor) and finite.may_be(piece, region.dtype))
    bad = list(_counted(region)) if suspect else []
    if xxh3 is not None:
        return xxh3.hexdigest() == region.xxh3, bad
    return crc == region.crc if region.crc else None, bad


def _counted(region: Region) -> Iterator[NotFinite]:
    """Every number looked at, since some of them seem to be none."""
    numbers = nan = inf = minus = 0
    with Path(region.path).open("rb") as file:
        file.seek(region.start)
        for at in range(0, region.size, PIECE):
            each = finite.counts(memoryview(file.read(min(PIECE, region.size - at))), region.dtype)
            numbers, nan, inf, minus = numbers + each.numbers, nan + each.nan, inf + each.inf, minus + each.minus
    if nan or inf:
        yield NotFinite(region.tensor, region.path, region.dtype, numbers, nan, inf, minus)
