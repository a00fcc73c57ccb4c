"""What lies on several ranks: nothing of it is computed by one rank alone, and no collective of a job's is repeated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtriage.examine.run.reader import load
from torchtriage.triage import judge, probes

Run = Callable[..., Any]

GROUP = """
import os, tempfile, torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
class Reduced(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.passes = 0
    def forward(self, x):
        y = self.inner(x)
        dist.all_reduce(y.detach().clone())
        return y
torch.manual_seed(0)
model = Reduced()
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
"""

NAN = (
    GROUP
    + """
for step in range(12):
    optimizer.zero_grad()
    x = torch.randn(4, 4)
    (model(x * float("nan")) if step == 8 else model(x)).sum().backward()
    optimizer.step()
from torch._C._distributed_c10d import _dump_fr_trace
import pickle
print(len(pickle.loads(_dump_fr_trace(True, False, False)).get("entries", ())))
dist.destroy_process_group()  # else gloo's threads abort the process at its end now and then
"""
)


def test_a_collective_within_a_pass_is_not_entered_again_to_find_where_a_nan_arose(run: Run) -> None:
    plain, watched = (run(NAN, watched=yes, probes=probes()) for yes in (False, True))

    assert (
        (watched.code, watched.stdout, watched.stderr)
        == (plain.code, plain.stdout, plain.stderr)
        == (0, plain.stdout, "")
    )
    (event,) = watched.events("non-finite")
    assert "in which other ranks take part" in event["why"]
    assert watched.events("probe-off") == []


SHARDED = """
import tempfile, torch, torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_module
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
model = distribute_module(nn.Linear(4, 4), init_device_mesh("cpu", (1,)))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
from torch.distributed.tensor import DTensor
for step in range(12):
    optimizer.zero_grad()
    model(DTensor.from_local(torch.randn(4, 4), model.weight.device_mesh)).sum().to_local().backward()
    optimizer.step()
"""


def test_norms_of_gradients_on_several_ranks_are_not_seen_and_that_is_said(run: Run) -> None:
    trial = run(SHARDED, probes=probes())

    assert (trial.code, trial.stderr) == (0, "")
    assert len(trial.events("step")) == 12
    assert trial.events("grad_norm") == trial.events("probe-off") == []
    (item,) = (each for each in load.read(trial.folder).inconclusive if each.detector == "run/gradients")
    assert item.why.startswith("2 of 2 parameters of SGD on rank 0 are divided among ranks")
    assert judge(trial.folder).findings == ()
