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
    (
        "device-mismatch",
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    ),
    ("index-out-of-range", "RuntimeError: CUDA error: device-side assert triggered"),
    (
        "keys-mismatched",
        "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for a.weight: copying a param with shape "
        "torch.Size([10, 4]) from checkpoint, the shape in current model is torch.Size([5, 4]).",
    ),
    ("checkpoint-corrupt", "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"),
    ("checkpoint-corrupt", "EOFError: Ran out of input"),
    ("shape-mismatch", "ValueError: Using a target size (torch.Size([8])) that is different to the input size (torch.Size([8, 1])) is deprecated. Please ensure they have the same size."),
    ("device-out-of-memory", OUT.format(free="1.00", own="22.00", tensors="21.50", unused="0.10")),
    ("device-out-of-memory", OUT.format(free="1.00", own="21.50", tensors="21.00", unused="0.10")),  # the context of CUDA
    ("device-out-of-memory", OUT.replace("capacity", "capacty").format(free="1.00", own="22.00", tensors="21.50", unused="0.10")),
    ("device-out-of-memory", "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.98 GiB of which 0 bytes is free."),
    ("host-out-of-memory", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 3.35 GiB for an array with shape (60000, 15000) and data type float32"),
    ("host-out-of-memory", "MemoryError"),
    ("device-fault", "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    ("device-fault", "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa)`"),
    ("device-fault", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    ("device-unavailable", "AssertionError: Torch not compiled with CUDA enabled"),
    ("device-unavailable", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ("environment-broken", "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"),
    ("compile-failed", "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: Cannot find a working triton installation."),
    ("sharding-inconsistent", "RuntimeError: aten.mm.default: got mixed torch.Tensor and DTensor, need to convert all"),
    ("sharding-inconsistent", "ValueError: `FlatParameter` requires uniform `requires_grad`"),
    ("rendezvous-failed", "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."),
    ("nccl-failed", "RuntimeError: NCCL error in: /b/ProcessGroupNCCL.cpp:911, unhandled system error, NCCL version 2.7.8"),
    ("parameter-reduced-twice", "RuntimeError: Expected to mark a variable ready only once."),
    ("half-model-trained", "ValueError: Attempting to unscale FP16 gradients."),
    ("scaler-bypassed", "AssertionError: No inf checks were recorded for this optimizer."),
    ("loss-not-scalar", "RuntimeError: grad can be implicitly created only for scalar outputs"),
    ("recompute-differs", "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass."),
    ("loss-diverged", "OverflowError: math range error"),
    ("non-finite-origin", "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"),
    (
        "batch-not-collatable",
        "TypeError: Caught TypeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "/job/data.py", line 9, in __getitem__\n    return collate(rows)\n'
        "TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>",
    ),
    (
        "device-out-of-memory",  # what it passed through is none
        "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    ),
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
    # a limit of the simulated device, which the rehearsal tells
    "NotImplementedError: Could not run 'aten::_sparse_coo_tensor_with_dims_and_tensors' with arguments from the 'Sparsesim' backend.",
    "TypeError: Expected state_dict to be dict-like, got <class 'project.State'>.",
    "KeyError: 'labels'",
    "RuntimeError: DataLoader worker (pid 77) is killed by signal: Terminated.",
    "IndexError: list index out of range",
    "KeyboardInterrupt",
]


OUT_OF_ANOTHER = (
    "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB. Of the "
    "allocated memory 15.00 GiB is allocated by PyTorch, and 6.50 GiB is reserved by PyTorch but unallocated."
)
BESIDE: list[tuple[set[str], str]] = [
    ({"fragmentation"}, OUT.format(free="1.00", own="22.00", tensors="15.00", unused="6.50")),
    ({"other-process-holds-memory"}, OUT.format(free="1.00", own="8.00", tensors="7.00", unused="0.50")),
    ({"device-out-of-memory"}, OUT.format(free="1.00", own="8.00", tensors="31.00", unused="0.50")),  # more than there is
    ({"fragmentation"}, OUT_OF_ANOTHER),
]  # fmt: skip
SUMMARY = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2031-01-02_03:04:05
  host      : node7
  rank      : 2 (local_rank: 2)
  exitcode  : {code} (pid: 77)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
ENDED: list[tuple[set[str], str]] = [
    ({"first-failure-missing"}, SUMMARY.format(code=1)),
    (set(), SUMMARY.format(code=-9)),
    ({"native-crash"}, SUMMARY.format(code=-11)),
    ({"shape-mismatch"}, f"{FRAME}{SHOWN[0][1]}\n{SUMMARY.format(code=1)}"),
    ({"first-failure-missing"}, f"{FRAME}RuntimeError: [/b/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:4411"),
    ({"global-rank-as-device"}, f"[rank9]: {FRAME.strip()}\n[rank9]: RuntimeError: CUDA error: invalid device ordinal"),
    (set(), "job.sh: line 12:  4411 Killed                  python train.py"),
    (set(), "[1]    12345 killed     python train.py"),
    ({"host-out-of-memory"}, "[1.2] Memory cgroup out of memory: Killed process 4411 (python3) total-vm:9kB, anon-rss:8kB"),
    ({"stopped-from-outside"}, "slurmstepd: error: *** JOB 77 ON node9 CANCELLED AT 2031-01-02T03:04:05 DUE TO TIME LIMIT ***"),
    ({"device-fault"}, "[9.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=77, GPU has fallen off the bus."),
    ({"worker-killed"}, "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."),
    ({"device-out-of-memory"}, "2031-01-02 03:04:05,678 - ERROR - RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"),
    (set(), "torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 2"),
]  # fmt: skip
SURVIVED: list[str] = [
    "INFO no CUDA out of memory occurred",
    "WARNING - CUDA out of memory with a batch of 64, trying 32",
    "/env/x.py:3: UserWarning: the optimizer may run out of memory (CUDA out of memory. Tried to allocate 1.00 GiB was seen here)",
    "DEBUG the loader retries on 'RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.'",
    '    """Raises RuntimeError: CUDA error: device-side assert triggered where an index is too large."""',
    "args: Namespace(on_error='Killed', msg='Segmentation fault')",
    "| WARNING: ran out of memory in forward pass; skipping batch",
    "port 29500 is free, no address already in use",
]


def slugs(text: str, path: Path) -> set[str]:
    """The faults that a log of TEXT shows."""
    path.write_text(f"step 1 loss 0.5\n{text}\n")
    return {finding.fault.slug for finding in torchtriage.read([path]).findings}


@pytest.mark.parametrize(("slug", "text"), SHOWN, ids=lambda each: each[:30])
def test_an_error_that_has_one_meaning_is_a_finding(slug: str, text: str, tmp_path: Path) -> None:
    for said in (f"{FRAME}{text}", "\n".join(f"[rank1]: {line}" for line in f"{FRAME}{text}".split("\n"))):
        assert slugs(said, tmp_path / "a.log") == {slug}


@pytest.mark.parametrize(("found", "text"), BESIDE, ids=["fragmentation", "others", "contradiction", "another device"])
def test_the_figures_of_a_lack_of_memory_show_more(found: set[str], text: str, tmp_path: Path) -> None:
    assert slugs(f"{FRAME}{text}", tmp_path / "a.log") == found


@pytest.mark.parametrize(
    ("found", "text"), ENDED, ids=lambda each: ",".join(sorted(each)) if isinstance(each, set) else each[:40]
)
def test_the_end_of_a_process_shows_what_ended_it(found: set[str], text: str, tmp_path: Path) -> None:
    assert slugs(text, tmp_path / "a.log") == found


@pytest.mark.parametrize("text", SURVIVED, ids=lambda each: each[:40])
def test_words_of_an_error_in_a_healthy_log_are_none(text: str, tmp_path: Path) -> None:
    assert slugs(f"{text}\nstep 2 loss 0.4", tmp_path / "a.log") == set()


@pytest.mark.parametrize(("slug", "text"), WARNED, ids=lambda each: each[:30])
def test_a_line_that_has_one_meaning_is_a_finding(slug: str, text: str, tmp_path: Path) -> None:
    assert slugs(text, tmp_path / "a.log") == {slug}


@pytest.mark.parametrize("text", SILENT, ids=lambda each: each[:40])
def test_an_error_that_may_be_many_things_is_none(text: str, tmp_path: Path) -> None:
    assert slugs(f"{FRAME}{text}", tmp_path / "a.log") == set()


@pytest.mark.parametrize(
    "text",
    [
        "WARNING received SIGTERM at step 45, saving and leaving",
        "2026-11-28 10:06:44,924 Caught signal SIGUSR1: requeueing",
        "Trainer interrupted by SIGHUP",
    ],
)
def test_the_words_of_a_handler_that_stopped_the_job_are_a_finding(text: str, tmp_path: Path) -> None:
    assert slugs(f"step 40 loss 0.5\n{text}\nwrote last.pt\n", tmp_path / "a.log") == {"stopped-from-outside"}


@pytest.mark.parametrize("text", [text for _, text in SHOWN], ids=lambda each: each[:30])
def test_a_message_that_is_only_talked_about_is_none(text: str, tmp_path: Path) -> None:
    said = "\n".join(f"INFO we once saw '{line}' here" for line in text.split("\n"))
    assert slugs(said, tmp_path / "a.log") == set()
