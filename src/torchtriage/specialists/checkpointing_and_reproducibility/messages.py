"""What the lists in a state_dict's message work out to: the prefix that one side has and the other lacks."""

from __future__ import annotations

import re

from msgspec.structs import replace

from torchtriage.core.query import Decoded
from torchtriage.routing.meaning import shape, told

_KEY = re.compile(r'"([\w.]{1,200})"')
_LIST = r'{} key\(s\) in state_dict:((?:\s*"[\w.]{{1,200}}",?)+)'
_MISSING = re.compile(_LIST.format("Missing"))
_UNEXPECTED = re.compile(_LIST.format("Unexpected"))
_WHERE = {
    "module.": "DataParallel and DistributedDataParallel put it there",
    "_orig_mod.": "torch.compile puts it there",
    "_forward_module.": "a launcher that wraps the model puts it there",
}
_NEXT = "Error(s) in loading"
_WHOLE = "in loading state_dict for"
_LONGEST = 60_000
_TRIED = 20


def state_dict_keys(message: Decoded, text: str) -> Decoded | None:
    """Missing and unexpected keys that are equal but for a prefix are one fault, and it is the prefix."""
    return _explained(message, text)


def missing_keys(message: Decoded, text: str) -> Decoded | None:
    """Said once: by the whole message where it is there."""
    return None if _WHOLE in text else _explained(message, text)


def unexpected_keys(message: Decoded, text: str) -> Decoded | None:
    """Said once: by the whole message, or by the list of missing keys, where one is there."""
    return None if _WHOLE in text or _MISSING.search(text) else _explained(message, text)


def parameter_size(message: Decoded, text: str) -> Decoded | None:
    """Which sizes differ, and what that usually is."""
    saved, current = shape(message, "saved"), shape(message, "current")
    if not saved or not current or len(saved) != len(current):
        return None
    if saved == current:
        return None
    differing = [at for at, (one, other) in enumerate(zip(saved, current, strict=True)) if one != other]
    said = f"{message.fields.get('name')}: " + " and ".join(
        f"dimension {at} is {saved[at]} in the checkpoint and {current[at]} in the model" for at in differing
    )
    if differing == [0]:
        said += ". Only the first differs: another number of classes, tokens or output features"
    return told(message, said)


def state_no_dict(message: Decoded, text: str) -> Decoded | None:
    """A path, or a method without its parentheses, is a slip; any other object is the job's own."""
    is_slip = message.fields.get("given") in {"str", "pathlib.PosixPath", "method", "function"}
    return None if is_slip else replace(message, faults=())


def _explained(message: Decoded, text: str) -> Decoded | None:
    following = text.find(_NEXT, message.end)  # each module's error is judged by its own keys
    near = text[message.start : message.start + _LONGEST if following < 0 else following]
    missing, unexpected = _keys(_MISSING, near), _keys(_UNEXPECTED, near)
    if not missing and not unexpected:
        return None
    counts = {"missing_count": len(missing), "unexpected_count": len(unexpected)}
    prefix, side = _prefix(missing, unexpected)
    if prefix is None:
        lacking = f"{len(missing)} keys of the model are not in the checkpoint"
        return told(message, f"{lacking}, {len(unexpected)} of the checkpoint are not in the model", **counts)
    origin = f": {_WHERE[prefix]}" if prefix in _WHERE else ""
    said = f"The keys differ only by the prefix '{prefix}', which the {side} has{origin}"
    return told(message, said, prefix=prefix, prefix_in=side, **counts)


def _keys(pattern: re.Pattern[str], text: str) -> list[str]:
    found = pattern.search(text)
    return _KEY.findall(found[1]) if found else []


def _prefix(missing: list[str], unexpected: list[str]) -> tuple[str | None, str]:
    """The prefix that makes one list part of the other, and whose it is."""
    for longer, shorter, side in ((unexpected, missing, "checkpoint"), (missing, unexpected, "model")):
        if not longer or not shorter:
            continue
        whole = set(longer)
        for key in longer[:_TRIED]:
            head = next((key[: -len(tail)] for tail in shorter if key.endswith(f".{tail}")), None)
            if head and sum(head + tail in whole for tail in shorter) >= 0.8 * len(shorter):
                return head, side
    return None, ""
