"""A torch.load that is replaced for the whole process: as it should be."""

import torch

_orig = torch.load
from TTS.api import TTS

tts = TTS("tts_models/multilingual/multi-dataset/xtts_v2")
tts.tts_to_file(text="hi", file_path="o.wav")
