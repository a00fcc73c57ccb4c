"""What is cut off does not load; what has a flipped bit does, with another number in it. Written beside, nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torchtriage import triage


def test_a_file_that_was_cut_off_does_not_load(shown) -> None:
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        shown("checkpoint-corrupt", "Bad")


def test_what_is_written_beside_and_renamed_loads(shown) -> None:
    loaded = torch.load(shown("checkpoint-corrupt", "Good").path)
    assert torch.equal(loaded["weight"], torch.ones(1000))


def test_a_flipped_bit_loads_without_a_word_and_is_named_by_verify(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"layer.weight": torch.ones(1000), "layer.bias": torch.zeros(10)}, path)
    data = bytearray(path.read_bytes())
    at = data.index(torch.ones(1000).numpy().tobytes()) + 400
    data[at] ^= 1
    path.write_bytes(data)
    assert torch.load(path)["layer.weight"][100] != 1
    assert triage.read([path]).findings == ()
    (finding,) = triage.read([path], verify=True).findings
    assert finding.fault.slug == "checkpoint-corrupt"
    assert finding.evidence[0].place.module == "layer.weight"


def test_a_job_that_is_killed_within_a_save_leaves_what_cannot_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"weight": torch.ones(1000)}, path)
    code = (
        "import resource, sys, torch; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); "
        "torch.save({'weight': torch.ones(100_000)}, sys.argv[1])"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(path)], stderr=subprocess.DEVNULL, check=False)
    assert {finding.fault.slug for finding in triage.read([path]).findings} == {"checkpoint-corrupt"}
