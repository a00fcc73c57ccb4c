"""A job computes, says and leaves the same to the last bit with all probes in it as without them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from torchtriage.triage import probes

Run = Callable[..., Any]

BEGIN = """
import hashlib, json, os, random, struct, sys, warnings
import numpy, torch
torch.manual_seed(0); random.seed(0); numpy.random.seed(0)
losses = []
def took(loss): losses.append(struct.pack("d", float(loss)).hex())
"""

END = """
def digest(*parts): return hashlib.sha256(b"".join(parts)).hexdigest()
def raw(tensor): return tensor.detach().contiguous().view(torch.uint8).numpy().tobytes() if tensor.dim() else repr(tensor.item()).encode()
state = model.state_dict()
print("weights", digest(*(name.encode() + raw(each) for name, each in state.items())))
print("loss", losses)
print("torch", digest(torch.get_rng_state().numpy().tobytes()))
print("python", digest(repr(random.getstate()).encode()))
print("numpy", digest(repr(numpy.random.get_state()).encode()))
warnings.warn("of the job's own")
print("files", sorted(os.listdir()))
print("path", sys.path)
print("finders", [getattr(each, "__name__", type(each).__name__) for each in (*sys.meta_path, *sys.path_hooks)])
print("variables", sorted((name, value) for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("TORCHTRIAGE_")))
threading = __import__("threading")
for each in threading.enumerate()[1:]: each.join(9)  # a loader's own, on their way out
print("threads", threading.active_count(), sys.excepthook is sys.__excepthook__, sys.gettrace(), sys.getprofile())
print(json.dumps({name: getattr(module, "__file__", None) for name, module in sys.modules.items()}))
raise SystemExit(3)
"""

MLP = """
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for step in range(30):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    took(loss)
"""

BF16 = """
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten(), torch.nn.Linear(288, 4))
optimizer = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9)
for step in range(12):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.randint(4, (4,)))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    took(loss)
"""

PROFILED = """
os.environ["KINETO_LOG_LEVEL"] = "99"  # its words hold the time of day
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for step in range(30):
    recording = torch.autograd.profiler.profile(enabled=step in (1, 2, 20))
    with recording:
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
    took(loss)
    if step in (1, 2, 20):
        print(step, sorted((each.key, each.count) for each in recording.key_averages()))
"""

PARAMETRIZED = """
from torch.nn.utils import parametrizations
model = torch.nn.Sequential(
    parametrizations.weight_norm(torch.nn.Linear(8, 16)), torch.nn.ReLU(),
    parametrizations.spectral_norm(torch.nn.Linear(16, 8)), parametrizations.orthogonal(torch.nn.Linear(8, 8)),
)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for step in range(30):
    optimizer.zero_grad()
    loss = (model(torch.randn(4, 8)) - 1).square().mean()
    loss.backward()
    optimizer.step()
    took(loss)
"""

LSTM = """
class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = torch.nn.Embedding(20, 8), torch.nn.LSTM(8, 8, 2, dropout=0.2), torch.nn.Linear(8, 3)
    def forward(self, words):
        return self.head(self.lstm(self.embed(words))[0])
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for step in range(12):
    words = torch.randint(20, (6, 4))
    loss = torch.nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten() % 3)
    optimizer.zero_grad(); loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    took(loss)
"""

SCALED = """
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=4)
for step in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer); scaler.update()
    took(loss)
print("scale", scaler.get_scale())
"""

LBFGS = """
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters(), 0.1, max_iter=4)
data = torch.randn(16, 4)
def closure():
    optimizer.zero_grad()
    loss = (model(data).squeeze() - data.sum(1)).square().mean()
    loss.backward()
    return loss
for step in range(6): took(optimizer.step(closure))
"""

LOADER = """
class Noise(torch.utils.data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, index): return torch.randn(4) * random.random() * numpy.random.rand() + index
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-4)
loader = torch.utils.data.DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=2)
for epoch in range(2):
    for batch in loader:
        loss = model(batch).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        took(loss)
"""

COMPILED = """
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
fast = torch.compile(model, backend="aot_eager")
for step in range(12):
    loss = fast(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    took(loss)
print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"], dict(torch._dynamo.utils.counters["graph_break"]))
"""

NAN = """
class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop = torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.3)
    def forward(self, x):
        noise = random.random() + numpy.random.rand()
        return (self.drop(self.norm(self.first(x))).sum(1) + 4 - 0.7 * took_so_far() + noise).sqrt()
def took_so_far(): return len(losses)
model = Root()
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for step in range(16):
    loss = model(torch.randn(4, 4)).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    took(loss)
"""

JOBS = {
    "dropout": MLP,
    "batch norm in bf16": BF16,
    "a profiler of its own": PROFILED,
    "weights that are parametrized": PARAMETRIZED,
    "lstm": LSTM,
    "scaler": SCALED,
    "closure": LBFGS,
    "loader": LOADER,
    "compiled": COMPILED,
    "turns nan": NAN,
}


@pytest.mark.parametrize("source", JOBS.values(), ids=JOBS)
def test_numbers_words_and_files_are_the_same_to_the_last_bit(run: Run, source: str) -> None:
    script = BEGIN + source + END
    plain, watched = (run(script, watched=yes, probes=probes()) for yes in (False, True))
    assert (plain.code, watched.code) == (3, 3), plain.stderr + watched.stderr

    here, there = (str(each.folder.parent) for each in (plain, watched))
    expected = plain.stdout.replace("['train.py']", "['run', 'train.py']").replace(here, there).splitlines()
    said = watched.stdout.splitlines()
    assert said[:-1] == expected[:-1]
    assert watched.stderr == plain.stderr.replace(here, there)
    assert_none_is_shadowed(json.loads(expected[-1]), json.loads(said[-1]))
    assert len(watched.events("step")) > 5
    assert not watched.events("probe-off")


LEAKING = """
import torch
def resident():
    with open("/proc/self/statm") as file: return int(file.read().split()[1])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
kept = []
for step in range(600):
    loss = model(torch.randn(64, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    kept.append(loss)
    if step == 200: before = resident()
print(resident() - before)
"""


def test_a_job_that_keeps_its_graphs_grows_no_faster_when_it_is_watched(run: Run) -> None:
    plain, watched = (int(run(LEAKING, watched=yes, probes=()).stdout) for yes in (False, True))
    assert watched < 1.15 * plain  # 1.3 with the question that changed how torch allocates


RANKS = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler
dist.init_process_group("gloo")
data = torch.utils.data.TensorDataset(torch.randn(96, 8))
sampler = DistributedSampler(data)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1))
replica, model = DistributedDataParallel(net), net
head = torch.nn.Linear(1, 1)
optimizer = torch.optim.AdamW([*net.parameters(), *head.parameters()], 1e-2)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch, in torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler):
        optimizer.zero_grad()
        loss = head(replica(batch)).square().mean()
        loss.backward()
        for each in head.parameters():
            dist.all_reduce(each.grad)
        if dist.get_rank():
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        took(loss)
    dist.barrier()
dist.destroy_process_group()
"""


def test_two_ranks_compute_the_same_to_the_last_bit(run_ranks: Callable[..., Any]) -> None:
    plain, watched = (run_ranks(BEGIN + RANKS + END, watched=yes, probes=probes()) for yes in (False, True))
    for rank in (0, 1):
        bare, seen = plain[rank], watched[rank]
        assert (bare.code, seen.code) == (3, 3), bare.stderr + seen.stderr
        told = ("weights", "loss", "torch", "python", "numpy", "threads")
        expected, said = ([line for line in each.stdout.splitlines() if line.startswith(told)] for each in (bare, seen))
        assert len(expected) == len(told)
        assert said == expected
        assert seen.stderr == bare.stderr.replace(str(bare.folder.parent), str(seen.folder.parent))
        file = f"rank{rank}.jsonl"
        assert len(seen.events("look", file)) > 5
        assert not seen.events("probe-off", file)


def assert_none_is_shadowed(plain: dict[str, str | None], watched: dict[str, str | None]) -> None:
    """Every module of the job is the same; what came in beside is the standard library's, torch's own, or private."""
    beside = {name for name in watched if name not in plain}
    assert {name: file for name, file in watched.items() if name in plain} == plain
    known = {*sys.stdlib_module_names, "torch"}
    assert {name for name in beside if name.partition(".")[0] not in known and not name.startswith("_torchtriage")} == (
        set()
    )
