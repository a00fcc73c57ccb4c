"""What logs show of checkpoints beyond the meaning of one message: which file is meant tells the line that failed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.examine.artefact.logs.messages import sightings, sightings_by_code, writes_file
from torchtriage.examine.artefact.logs.said import Logs, fact
from torchtriage.examine.detector import Sighting, detector

_LOADS = re.compile(r"\btorch\.load\(|\bload_(?:checkpoint|state|model|weights)\w*\(")


_MISSING = re.compile(r"KeyError: '(?P<key>[^'\n]{1,100})'$")
_OF_MODEL = re.compile(r"model|net|weight|param|state_dict|encoder|decoder|module", re.IGNORECASE)
_STATES = re.compile(
    r"\bload_state_dict\(|\bset_rng_state\w*\(|\b\w{0,40}(?:ckpt|chkpt|checkpoint|snapshot)\w{0,40}\[", re.IGNORECASE
)
"""Lines that take a part out of a checkpoint: opt.load_state_dict(saved["opt"]), epoch = ckpt["epoch"]."""


@detector("log/checkpoint-incomplete")
def checkpoint_incomplete(logs: Logs) -> Iterator[Sighting]:
    """A part of the training is not in the checkpoint: a state beside the model's, or how far it was."""
    yield from sightings(logs, "checkpoint-incomplete")
    yield from _missing(logs, is_of_model=False)


@detector("log/keys-mismatched")
def keys_mismatched(logs: Logs) -> Iterator[Sighting]:
    """The keys of a checkpoint are not those of the model, or it keeps the model under another key."""
    yield from sightings(logs, "keys-mismatched")
    yield from _missing(logs, is_of_model=True)


def _missing(logs: Logs, *, is_of_model: bool) -> Iterator[Sighting]:
    """The keys that were asked of a checkpoint in vain, of the model or of what is kept beside it."""
    for said in logs.causes:
        found, code = _MISSING.match(said.text.strip()), said.frame.code if said.frame else ""
        if found and _STATES.search(code) and bool(_OF_MODEL.search(found["key"])) == is_of_model:
            yield Sighting(said.place, fact(logs, [said], f"the checkpoint has no '{found['key']}'"))


@detector("log/checkpoint-corrupt")
def checkpoint_corrupt(logs: Logs) -> Iterator[Sighting]:
    """A checkpoint is damaged: to torch.load the end of a file that was cut may be an error of the system."""
    yield from sightings(logs, "checkpoint-corrupt")
    yield from sightings_by_code(logs, "file-position-invalid", lambda code: _LOADS.search(code) is not None)


@detector("log/whole-object-saved")
def whole_object_saved(logs: Logs) -> Iterator[Sighting]:
    """A file of whole objects is refused or lacks their classes; or one of them cannot be pickled as it is saved."""
    yield from sightings(logs, "whole-object-saved")
    yield from sightings_by_code(logs, "cannot-pickle", writes_file)
