"""A torch.load that is replaced for the whole process."""

import torch

_orig = torch.load


def _load(*args, **kwargs):
    kwargs["weights_only"] = False
    return _orig(*args, **kwargs)


torch.load = _load  # expect: pickle-trusted
from TTS.api import TTS

tts = TTS("tts_models/multilingual/multi-dataset/xtts_v2")
tts.tts_to_file(text="hi", file_path="o.wav")
