"""The tables of what waits and what does not, held against CUDA itself where there is one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "synchronisations", Path(__file__).parent / "test_synchronisations.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.gpu
def test_cuda_waits_where_the_simulation_says_so_and_nowhere_else() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    explicit = {"device", "stream", "event"}  # torch's debug mode lets these pass
    expected = {name: call not in explicit for name, (_, call) in tables().WAITING.items()}
    expected |= dict.fromkeys(tables().FREE, False)
    calls = {name: call for name, (call, _) in tables().WAITING.items()} | tables().FREE
    found = {}
    for name, call in calls.items():
        x = torch.ones(4, 4, device="cuda")
        torch.cuda.set_sync_debug_mode("error")
        try:
            call(x)
            found[name] = False
        except RuntimeError as error:
            found[name] = "synchronizing CUDA operation" in str(error) or str(error)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert found == expected
