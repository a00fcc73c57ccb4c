"""Error messages are known by heart, taken apart, and provoked here on the installed torch so that none goes stale."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.catalog.symptom import Signature
from torchtriage.core.query import Decoded
from torchtriage.routing.build import build
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.listen import listen
from torchtriage.routing.signatures import MOST, decode

SIGNATURES = build().signatures  # straight from the files: collecting tests writes no cache
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "cuda-out-of-memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 23.69 GiB "
        "of which 1.10 GiB is free.",
        {
            "tried": 2.5,
            "tried_unit": "GiB",
            "gpu": 0,
            "capacity": 23.69,
            "capacity_unit": "GiB",
            "free": 1.1,
            "free_unit": "GiB",
        },
    ),
    "cuda-memory-figures": (
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.75 GiB total capacity; 14.10 GiB already allocated; "
        "512.00 KiB free; 14.30 GiB reserved in total by PyTorch)",
        {
            "capacity": 15.75,
            "capacity_unit": "GiB",
            "allocated": 14.1,
            "allocated_unit": "GiB",
            "free": 512.0,
            "free_unit": "KiB",
        },
    ),
    "cpu-out-of-memory": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 4000000000000 bytes. Error code 12",
        {"tried": 4000000000000},
    ),
    "collective-timeout": (
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=71, OpType=ALLREDUCE, NumelIn=10, "
        "NumelOut=10, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.",
        {"sequence": 71, "operation": "ALLREDUCE", "timeout_ms": 600000, "ran_ms": 600012},
    ),
    "address-in-use": (
        "The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, "
        "name: EADDRINUSE, message: address already in use",
        {"port": 29500},
    ),
    "marked-ready-twice": ("RuntimeError: Expected to mark a variable ready only once. This error", {}),
    "unfinished-reduction": (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
        {},
    ),
    "nccl-error": (
        "NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1191, unhandled system error, NCCL version 2",
        {"file": "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1191", "reason": "unhandled system error"},
    ),
    "no-inf-checks": ("AssertionError: No inf checks were recorded for this optimizer.", {}),
    "half-gradients": ("ValueError: Attempting to unscale FP16 gradients.", {}),
    "unscaled-twice": (
        "RuntimeError: unscale_() has already been called on this optimizer since the last update().",
        {},
    ),
    "loss-scale-falling": (
        "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 64.0, reducing to 32.0",
        {"from": "64.0", "to": "32.0"},
    ),
    "gradient-overflow": ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 8.0", {"to": "8.0"}),
    "same-dtype": (
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float",
        {"first": "Half", "second": "Float"},
    ),
    "unsafe-to-autocast": ("torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.", {}),
    "device-side-assert": ("RuntimeError: CUDA error: device-side assert triggered", {}),
    "forked-cuda": ("RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with", {}),
    "worker-killed": (
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible",
        {"worker": 4242, "signal": "Bus error"},
    ),
    "weights-only": (
        "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options.\n"
        "\tWeightsUnpickler error: Unsupported global: GLOBAL argparse.Namespace was not an allowed global by default.",
        {"blocked": "argparse.Namespace"},
    ),
    "unsupported-class": (
        "WeightsUnpickler error: Unsupported class pathlib.PosixPath",
        {"blocked": "pathlib.PosixPath"},
    ),
    "input-and-weight-type": (
        "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same",
        {"input": "torch.cuda.FloatTensor", "weight": "torch.cuda.HalfTensor"},
    ),
    "no-kernel-for-half": (
        "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'",
        {"operation": "addmm_impl_cpu_", "type": "Half"},
    ),
    "no-kernel-for-type": (
        "RuntimeError: \"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'",
        {"operation": "nll_loss_forward_reduce_cuda_kernel_2d_index", "type": "Int"},
    ),
    "cannot-pickle": (
        "AttributeError: Can't pickle local object 'make.<locals>.<lambda>'",
        {"local": "make.<locals>.<lambda>"},
    ),
    "same-device": (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
        "(when checking argument for argument mat2 in method wrapper_CUDA_mm)",
        {"first": "cuda:0", "second": "cpu", "checked": "mat2", "method": "wrapper_CUDA_mm"},
    ),
}


def only(text: str) -> Decoded:
    """The one message in TEXT."""
    (decoded,) = listen(text).decoded
    return decoded


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_message_that_needs_hardware_is_taken_apart(name: str) -> None:
    text, fields = CASES[name]
    decoded = next(each for each in listen(text).decoded if each.signature == name)
    assert decoded.fields == fields


def test_a_message_is_a_mention_of_its_symptom() -> None:
    query = listen("it says: CUDA out of memory. Tried to allocate 20.00 MiB")
    assert [(each.symptom, each.start) for each in query.symptoms] == [("out-of-memory", 9)]


def test_the_words_of_a_message_are_not_heard_a_second_time() -> None:
    query = listen("RuntimeError: Trying to backward through the graph a second time")
    assert [each.symptom for each in query.symptoms] == ["training-crash"]


@contextmanager
def _seeded() -> Iterator[None]:
    import torch

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _mat() -> None:
    import torch

    torch.nn.Linear(64, 128)(torch.ones(4, 57600))


def _sizes() -> None:
    import torch

    torch.ones(3, 4) + torch.ones(3, 5)


def _in_place() -> None:
    import torch

    x = torch.ones(5, requires_grad=True)
    y = x.exp()
    y.mul_(2)
    y.sum().backward()


def _twice() -> None:
    import torch

    y = (torch.ones(2, requires_grad=True) ** 2).sum()
    y.backward()
    y.backward()


def _no_grad() -> None:
    import torch

    torch.ones(2).sum().backward()


def _scalar() -> None:
    import torch

    torch.ones(2, requires_grad=True).exp().backward()


def _leaf() -> None:
    import torch

    torch.ones(2, requires_grad=True).add_(1)


def _target() -> None:
    import torch

    torch.nn.functional.cross_entropy(torch.ones(1, 3), torch.tensor([7]))


def _embedding() -> None:
    import torch

    torch.nn.Embedding(3, 2)(torch.tensor([5]))


def _deterministic() -> None:
    import torch

    torch.use_deterministic_algorithms(mode=True)
    try:
        torch.ones(4).put_(torch.tensor([0]), torch.ones(1))
    finally:
        torch.use_deterministic_algorithms(mode=False)


def _keys() -> None:
    import torch

    torch.nn.Linear(2, 3).load_state_dict({"fc.bias": torch.ones(1)})


def _shapes() -> None:
    import torch

    torch.nn.Linear(2, 3).load_state_dict(torch.nn.Linear(4, 3).state_dict())


def _broken_file(folder: Path) -> None:
    import torch

    path = folder / "model.pt"
    torch.save(torch.ones(1000), path)
    path.write_bytes(path.read_bytes()[:3000])
    torch.load(path)


def _weights_only(folder: Path) -> None:
    import argparse

    import torch

    torch.save({"args": argparse.Namespace(lr=1)}, folder / "model.pt")
    torch.load(folder / "model.pt")


def _before_init() -> None:
    import torch

    class Early(torch.nn.Module):
        def __init__(self) -> None:
            self.layer = torch.nn.Linear(1, 1)

    Early()


def _not_a_parameter() -> None:
    import torch

    torch.nn.Linear(1, 1).weight = torch.ones(1)  # type: ignore[assignment]


def _no_parameters() -> None:
    import torch

    torch.optim.SGD([], lr=1.0)


def _dtypes() -> None:
    import torch

    torch.nn.functional.linear(torch.ones(2, 2).double(), torch.ones(2, 2))


def _count() -> None:
    import torch

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    Two.apply(torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)).backward()


def _saved() -> None:
    import torch

    class Save(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(3)
            return x * 2

    Save.apply(torch.ones(1, requires_grad=True))


def _invalid() -> None:
    import torch

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.ones(3)

    Wrong.apply(torch.ones(4, requires_grad=True)).sum().backward()


def _no_input() -> None:
    import torch

    class Extra(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: Any) -> Any:
            return x * factor

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    Extra.apply(torch.ones(1, requires_grad=True), 2).backward()


def _jacobian() -> None:
    import torch

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    torch.autograd.gradcheck(Wrong.apply, (torch.ones(2, dtype=torch.float64, requires_grad=True),))


def _rendezvous() -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method="env://")


def _no_group() -> None:
    import torch.distributed as dist

    dist.get_rank(None) if dist.is_initialized() else dist.distributed_c10d._get_default_group()


def _one_value() -> None:
    import torch

    torch.nn.BatchNorm1d(3)(torch.zeros(1, 3))


PROVOKED: dict[str, tuple[Callable[[], None], dict[str, Any]]] = {
    "matmul-shapes": (_mat, {"mat1": [4, 57600], "mat2": [64, 128]}),
    "sizes-must-match": (_sizes, {"a": 4, "b": 5, "dimension": 1}),
    "modified-in-place": (
        _in_place,
        {"tensor": "torch.FloatTensor", "shape": [5], "output": 0, "version": 1, "expected": 0},
    ),
    "backward-twice": (_twice, {}),
    "no-gradient-to-follow": (_no_grad, {"element": 0}),
    "scalar-loss-needed": (_scalar, {}),
    "leaf-in-place": (_leaf, {}),
    "target-out-of-bounds": (_target, {"target": 7}),
    "embedding-index": (_embedding, {}),
    "one-value-per-channel": (_one_value, {"shape": [1, 3]}),
    "no-deterministic-kernel": (_deterministic, {"operation": "put_"}),
    "assigned-before-init": (_before_init, {"what": "module"}),
    "not-a-parameter": (_not_a_parameter, {"given": "torch.FloatTensor", "name": "weight"}),
    "empty-parameter-list": (_no_parameters, {}),
    "state-dict-keys": (_keys, {"module": "Linear"}),
    "missing-keys": (_keys, {"first": "weight"}),
    "unexpected-keys": (_keys, {"first": "fc.bias"}),
    "parameter-size": (_shapes, {"name": "weight", "saved": [3, 4], "current": [3, 2]}),
    "same-dtype-matmul": (_dtypes, {"first": "double", "second": "float"}),
    "gradient-count": (_count, {"function": "TwoBackward", "expected": 2, "got": 1}),
    "gradient-for-no-input": (_no_input, {"function": "ExtraBackward", "position": 2}),
    "saved-no-tensor": (_saved, {"argument": 0, "type": "int"}),
    "invalid-gradient": (_invalid, {"function": "WrongBackward", "index": 0, "got": [3], "expected": [4]}),
    "jacobian-mismatch": (_jacobian, {"output": 0, "input": 0}),
    "environment-variable-missing": (_rendezvous, {"variable": "RANK"}),
    "no-process-group": (_no_group, {}),
}


def _message(provoke: Callable[[], None]) -> str:
    with _seeded(), pytest.raises(Exception, match=r"(?s).") as caught:
        provoke()
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize("name", sorted(PROVOKED))
def test_the_installed_torch_still_says_it_that_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    provoke, fields = PROVOKED[name]
    found = {each.signature: each for each in listen(_message(provoke)).decoded}
    assert name in found
    assert found[name].fields.items() >= fields.items()


@pytest.mark.parametrize(("name", "provoke"), [("no-central-directory", _broken_file), ("weights-only", _weights_only)])
def test_a_broken_checkpoint_is_known_by_its_message(
    name: str, provoke: Callable[[Path], None], tmp_path: Path
) -> None:
    assert name in {each.signature for each in listen(_message(lambda: provoke(tmp_path))).decoded}


def test_the_message_for_a_blocked_class_names_the_class(tmp_path: Path) -> None:
    decoded = next(
        each for each in listen(_message(lambda: _weights_only(tmp_path))).decoded if each.signature == "weights-only"
    )
    assert decoded.fields["blocked"] == "argparse.Namespace"


def test_every_signature_has_a_case() -> None:
    elsewhere = {"no-central-directory", "expected-scalar-type"}
    # Those that are not here are in test_messages.py, which looks after all of them.
    assert {signature.name for _, signature in SIGNATURES} >= {*CASES, *PROVOKED, *elsewhere}


def test_a_parameter_of_another_size_is_named_even_where_the_message_is_cut() -> None:
    assert only("size mismatch for fc.weight").fields == {"name": "fc.weight"}


@pytest.mark.parametrize("text", ["size mismatch for my batch", "size mismatch for fc.weights", "weight mismatch"])
def test_a_size_mismatch_without_a_parameter_is_no_message_of_a_checkpoint(text: str) -> None:
    assert listen(text).decoded == ()


@pytest.mark.parametrize("name", ["slow_conv2d_cpu", "log_softmax_lastdim_kernel_impl", "memory_leak_cuda"])
def test_the_name_of_a_kernel_is_no_symptom(name: str) -> None:
    query = listen(f"\"{name}\" not implemented for 'BFloat16'")
    assert [each.symptom for each in query.symptoms] == ["dtype-error"]


def test_every_message_is_put_into_plain_words() -> None:
    said = [signature.says for _, signature in SIGNATURES]
    assert all(" " in says and not says.endswith(".") and len(says) <= 80 for says in said)


def test_an_expected_scalar_type_is_named_with_the_one_found() -> None:
    decoded = only("RuntimeError: expected scalar type Half but found Float")
    assert decoded.fields == {"expected": "Half", "found": "Float"}


@pytest.mark.parametrize(("symptom", "signature"), SIGNATURES, ids=[each.name for _, each in SIGNATURES])
def test_a_signature_is_well_formed(symptom: str, signature: Signature) -> None:
    assert symptom in lexicon().symptoms
    assert signature.contains == signature.contains.lower()
    groups = set(re.compile(signature.pattern).groupindex)
    assert set(signature.fields) <= groups
    assert set(signature.fields.values()) <= {"int", "float", "text", "shape"}
    assert not re.search(r"(?<!\[\\)[)\]\w][*+](?![?)])[^\[]*\)[*+]", signature.pattern), "nested repetition"


NUMBERED = Signature(
    "numbered",
    "size",
    r"size (?P<a>\d+) at (?P<b>[\d.]+) of (?P<c>[\dx]+)",
    fields={"a": "int", "b": "float", "c": "shape"},
)


def test_fields_are_read_as_they_are_declared() -> None:
    ((decoding),) = decode("size 3 at 1.5 of 4x5", [("s", NUMBERED)])
    assert decoding.decoded.fields == {"a": 3, "b": 1.5, "c": [4, 5]}


def test_a_number_of_any_length_is_read_without_an_error() -> None:
    ((decoding),) = decode(f"size {'9' * 900} at {'1' * 300} of 1", [("s", NUMBERED)])
    assert decoding.decoded.fields["a"] == int("9" * 18)


def test_only_the_first_repetitions_of_a_message_are_kept() -> None:
    found = decode("size 1 at 2.0 of 3 \n" * 10, [("s", NUMBERED)])
    assert [each.decoded.start for each in found] == [20 * number for number in range(MOST)]


def test_a_literal_without_its_message_is_no_message() -> None:
    assert decode("size matters, size counts", [("s", NUMBERED)]) == []


def test_positions_hold_where_lower_case_is_longer_than_the_text() -> None:
    text = "İİİ CUDA out of memory."
    assert only(text).start == 4


@given(st.text(), st.sampled_from(sorted(CASES)))
def test_a_message_is_found_wherever_it_stands(before: str, name: str) -> None:
    message, _ = CASES[name]
    assert name in {each.signature for each in listen(f"{before}\n{message}").decoded}
