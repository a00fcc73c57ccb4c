"""Single numbers out of a file: how many steps an optimizer has made is a tensor of one element."""

from __future__ import annotations

import struct

from torchtriage.examine.artefact.checkpoint import zips
from torchtriage.examine.artefact.checkpoint.content import Content
from torchtriage.examine.artefact.checkpoint.sources import Damaged, Source
from torchtriage.examine.artefact.checkpoint.tensors import SIZES, Tensor

_FORMS = {"float32": "f", "float64": "d", "int64": "q", "int32": "i", "float16": "e", "uint8": "B", "int16": "h"}


def number(content: Content, source: Source, tensor: Tensor, name: str = "") -> float | None:
    """The one element of TENSOR; None where it has more, or cannot be had. NAME: of it, in a file of safetensors."""
    form = _FORMS.get(tensor.dtype)
    key = tensor.storage.key if tensor.storage is not None else name
    place = content.places.get(key)
    if form is None or tensor.numel != 1 or place is None:
        return None
    try:
        begin = _begin(content, source, place[0], key)
    except Damaged:
        return None
    data = source.at(begin + tensor.offset * SIZES[tensor.dtype], SIZES[tensor.dtype])
    return float(struct.unpack(f"<{form}", data)[0]) if len(data) == SIZES[tensor.dtype] else None


def _begin(content: Content, source: Source, place: int, key: str) -> int:
    """Of a zip file the place is that of the header before the data; raises Damaged where that is not there."""
    if not content.entries:
        return place
    entry = next(each for each in content.entries if each.at == place and each.name.endswith(key))
    if entry.method != 0:
        raise Damaged(f"{entry.name} is packed")
    return zips.start(source, entry)
