"""The manifest of a saved step: which files it has, and the hash of every byte in them, its own among them."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from torchtriage.toolkit.state import hashing

NAME = "manifest.json"
LARGEST = 1 << 30  # bytes: a manifest of 100,000 tensors has 10 million
FORMAT = "training state of torchtriage"
_FORM = re.compile(rb'\{"xxh3_128":"([0-9a-f]{32})","body":(.*)\}\n', re.DOTALL)

Count = Annotated[int, msgspec.Meta(ge=0)]
Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class Damaged(Exception):
    """A saved step that cannot be trusted; the text says which part of it and why."""


class Shard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one rank wrote. state: of its JSON; head: of the safetensors header; tensors: of each tensor's bytes."""

    state: Hash
    head: Hash
    tensors: dict[str, Hash]
    bytes: Count


class Piece(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rank's part of a tensor that several ranks hold: where it begins in each dimension, and its lengths."""

    rank: Count
    name: str
    offsets: tuple[Count, ...]
    lengths: tuple[Count, ...]


class Sharded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor of which each rank wrote a part."""

    shape: tuple[Count, ...]
    dtype: str
    pieces: tuple[Piece, ...]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes a folder a saved step. save: the id that stands in every file of this one save."""

    format: Literal["training state of torchtriage"]
    version: Literal[1]
    save: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    step: Count
    shards: tuple[Shard, ...]
    sharded: dict[str, Sharded]
    written: dict[str, str]


def packed(manifest: Manifest) -> bytes:
    body = msgspec.json.encode(manifest)
    return b'{"xxh3_128":"%s","body":%s}\n' % (hashing.of(body).encode(), body)


def unpacked(data: bytes) -> Manifest:
    """The manifest in DATA; raises Damaged where one bit of it is not as it was written."""
    found = _FORM.fullmatch(data)
    if found is None:
        why = "is empty" if not data else "is not complete or not a manifest"
        raise Damaged(f"{NAME} {why}")
    if hashing.of(found[2]) != found[1].decode():
        raise Damaged(f"{NAME} does not have the bytes that were written")
    try:
        return msgspec.json.decode(found[2], type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(f"{NAME} is not one that this version of torchtriage reads: {error}") from error
