"""What belongs to a message: lines as people and loggers repeat them, paragraphs, and where others begin to speak."""

from __future__ import annotations

import re

from torchtriage.examine.artefact.logs.tracebacks import ERROR, LONGEST, Open

_OTHERS = re.compile(r"(?:WARNING|ERROR|INFO|CRITICAL):[\w.]{1,80}:|\[\d{4}-\d\d-\d\d|wandb: |terminate called after")
"""Lines that follow a message without an empty one between: torchrun's up to 2.0, DeepSpeed's launcher, W&B's."""
_PARAGRAPHS = re.compile(r"Weights only load failed|WeightsUnpickler error: *$|' raised:|torch\._(?:dynamo|inductor)\.")
"""Messages in which paragraphs are parted by empty lines, so that what it is about may come after one."""
_GAPS = 6
_QUOTED = re.compile(r"(?:> ?|\*\*|`{1,3}|E {3})+(?=\S| +File |$)")
"""How a mail, a forum or pytest marks a line that it repeats."""
_PRIVATE = re.compile(r"^((?:\w{1,60}\.){0,8})_(?=[A-Z]\w{1,60}(?:Error|Exception)\b)")
_LEVEL = re.compile(
    r"[^'\"`]{0,120}?\b(?:ERROR|CRITICAL|FATAL)\b[^'\"`]{0,120}?[\s|:\]-]"
    r"(?=(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): )"
)
"""What a logger writes before the words of an exception."""


def unquoted(text: str) -> str:
    """TEXT as Python writes it: without the marks of a quotation, and the end of a traceback without a logger's words
    before it and with the public name of its class (numpy raises _ArrayMemoryError).
    """
    text = _QUOTED.sub("", text, count=1) if text[:1] in ">*`E" else text
    if "Error" not in text and "Exception" not in text:
        return text
    found = None if ERROR.match(text) else _LEVEL.match(text)
    return _PRIVATE.sub(r"\1", text[found.end() :] if found else text)


def continues(held: Open, text: str) -> bool:
    """Whether TEXT belongs to the message of HELD, which then keeps it: an empty line between its paragraphs, or the
    error that a compiler quotes.
    """
    if not held.message:
        return False
    if held.message[-1].rstrip().endswith("' raised:"):
        held.message.append(text[:LONGEST])
        return True
    is_gap = not text.strip() and held.message.count("") < _GAPS
    if not is_gap or not any(_PARAGRAPHS.search(each) for each in held.message):
        return False
    held.message.append("")
    return True


def is_of_another(held: Open, text: str) -> bool:
    """Whether TEXT stands after the message of HELD and is said by a launcher or a logger."""
    return bool(held.message) and _OTHERS.match(text) is not None
