"""What every room makes of the messages that have one meaning, and of those that look alike."""

from __future__ import annotations

from pathlib import Path

import pytest

import torchtriage

FRAME = 'Traceback (most recent call last):\n  File "/job/train.py", line 27, in <module>\n    loss.backward()\n'
OUT = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
    "which {free} GiB is free. Including non-PyTorch memory, this process has {own} GiB memory in use. Of the allocated "
    "memory {tensors} GiB is allocated by PyTorch, and {unused} GiB is reserved by PyTorch but unallocated."
)
SHOWN: list[tuple[str, str]] = [
    ("shape-mismatch", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x16)"),
    ("shape-mismatch", "RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"),
    ("shape-mismatch", "RuntimeError: shape '[4, -1, 7]' is invalid for input of size 100"),
    ("backward-twice", "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors)"),
    (
        "inplace-breaks-autograd",
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [4, 8]], which is output 0 of ReluBackward0, is at version 1; expected version 0 instead.",
    ),
    ("index-out-of-range", "IndexError: index out of range in self"),
    ("index-out-of-range", "IndexError: Target 3 is out of bounds."),
    ("loss-detached", "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"),
    ("worker-killed", "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed."),
    ("worker-killed", "RuntimeError: DataLoader worker (pid(s) 77) exited unexpectedly"),
    ("super-init-missing", "AttributeError: cannot assign module before Module.__init__() call"),
    ("unregistered-modules", "ValueError: optimizer got an empty parameter list"),
    ("gradient-count", "RuntimeError: function FBackward returned an incorrect number of gradients (expected 2, got 1)"),
    ("saved-non-tensor", "TypeError: save_for_backward can only save variables, but argument 0 is of type int"),
    ("loader-args-invalid", "ValueError: prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."),
    ("checkpoint-incomplete", "KeyError: \"param 'initial_lr' is not specified in param_groups[0] when resuming an optimizer\""),
    (
        "keys-mismatched",
        'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "a.weight". \n'
        '\tUnexpected key(s) in state_dict: "module.a.weight". ',
    ),
    ("checkpoint-corrupt", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"),
    ("checkpoint-corrupt", "RuntimeError: unexpected EOF, expected 4096 more bytes. The file might be corrupted."),
    ("checkpoint-corrupt", "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer"),
    ("state-dict-not-called", "TypeError: Expected state_dict to be dict-like, got <class 'str'>."),
    ("dtype-mismatch", "RuntimeError: expected scalar type Half but found Float"),
    ("dtype-mismatch", "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16"),
    ("scaler-not-updated", "RuntimeError: unscale_() has already been called on this optimizer since the last update()."),
    ("scale-collapsing", "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."),
    ("unused-parameters", "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one."),
    (
        "launch-environment",
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set",
    ),
    ("global-rank-as-device", "torch.AcceleratorError: CUDA error: invalid device ordinal"),
    (
        "device-mismatch",
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    ),
    ("fragmentation", OUT.format(free="1.00", own="22.00", tensors="15.00", unused="6.50")),
    ("other-process-holds-memory", OUT.format(free="1.00", own="8.00", tensors="7.00", unused="0.50")),
]  # fmt: skip
WARNED: list[tuple[str, str]] = [
    (
        "scheduler-before-optimizer",
        "/env/torch/optim/lr_scheduler.py:192: UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
    ),
    (
        "loss-broadcast",
        "/job/a.py:3: UserWarning: Using a target size (torch.Size([8])) that is different to the input size "
        "(torch.Size([8, 1])). This will likely lead to incorrect results due to broadcasting. Please ensure they have the "
        "same size.",
    ),
    ("recompiling", "W1122 10:00:00.1 7 torch/_dynamo/convert_frame.py:906] [0/8] torch._dynamo hit config.recompile_limit (8)"),
    (
        "index-out-of-range",
        "/x/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] "
        "Assertion `t >= 0 && t < n_classes` failed.",
    ),
    (
        "collective-timeout",
        "[rank0]:[E1122 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
    ),
]  # fmt: skip
SILENT: list[str] = [
    OUT.format(free="1.00", own="22.00", tensors="21.50", unused="0.10"),
    OUT.format(free="1.00", own="21.50", tensors="21.00", unused="0.10"),  # the context of CUDA
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for a.weight: copying a param with shape "
    "torch.Size([10, 4]) from checkpoint, the shape in current model is torch.Size([5, 4]).",
    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
    "TypeError: Expected state_dict to be dict-like, got <class 'project.State'>.",
    "EOFError: Ran out of input",
    "KeyError: 'labels'",
    "RuntimeError: DataLoader worker (pid 77) is killed by signal: Terminated.",
    "IndexError: list index out of range",
    "ValueError: Using a target size (torch.Size([8])) that is different to the input size (torch.Size([8, 1])) is deprecated.",
    "KeyboardInterrupt",
]


def slugs(text: str, path: Path) -> set[str]:
    """The faults that a log of TEXT shows."""
    path.write_text(f"step 1 loss 0.5\n{text}\n")
    return {finding.fault.slug for finding in torchtriage.read([path]).findings}


@pytest.mark.parametrize(("slug", "text"), SHOWN, ids=lambda each: each[:30])
def test_an_error_that_has_one_meaning_is_a_finding(slug: str, text: str, tmp_path: Path) -> None:
    for said in (f"{FRAME}{text}", "\n".join(f"[rank1]: {line}" for line in f"{FRAME}{text}".split("\n"))):
        assert slugs(said, tmp_path / "a.log") == {slug}


@pytest.mark.parametrize(("slug", "text"), WARNED, ids=lambda each: each[:30])
def test_a_line_that_has_one_meaning_is_a_finding(slug: str, text: str, tmp_path: Path) -> None:
    assert slugs(text, tmp_path / "a.log") == {slug}


@pytest.mark.parametrize("text", SILENT, ids=lambda each: each[:40])
def test_an_error_that_may_be_many_things_is_none(text: str, tmp_path: Path) -> None:
    assert slugs(f"{FRAME}{text}", tmp_path / "a.log") == set()


@pytest.mark.parametrize("text", [text for _, text in SHOWN], ids=lambda each: each[:30])
def test_a_message_that_is_only_talked_about_is_none(text: str, tmp_path: Path) -> None:
    said = "\n".join(f"INFO we once saw '{line}' here" for line in text.split("\n"))
    assert slugs(said, tmp_path / "a.log") == set()
