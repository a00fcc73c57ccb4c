from __future__ import annotations

import random
from collections.abc import Iterator

import pytest


@pytest.fixture
def torch_as_it_was() -> Iterator[None]:
    """What a block sets in torch holds no longer than the block."""
    import torch

    dtype, threads, state = torch.get_default_dtype(), torch.get_num_threads(), torch.get_rng_state()
    deterministic, own = torch.are_deterministic_algorithms_enabled(), random.getstate()
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(dtype)
    torch.set_num_threads(threads)
    torch.set_rng_state(state)
    torch.use_deterministic_algorithms(deterministic)
    torch.set_grad_enabled(True)
    random.setstate(own)
    assert not torch.distributed.is_initialized()
