"""Parts of torch that choose by the name of a device or its library: autocast, cuDNN, NCCL, compilers, extensions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .absent import Absences
from .names import is_cuda

SIM = "sim"
_UNCOMPILED = "ignored: the model runs uncompiled, so kernels and memory are those of eager mode"
_KERNELS = "kernels of your own, written in CUDA, cannot run on the simulated accelerator"


def map_backends(torch: Any, absences: Absences) -> None:
    """Autocast, flags, torch.distributed, torch.compile and extensions."""
    _map_autocast(torch)
    torch.backends.cuda.is_built = lambda: True
    torch.backends.cudnn.is_acceptable = lambda tensor: False  # noqa: ARG005
    _map_collectives(torch)
    _map_compilers(torch, absences)
    _map_extensions(absences)


def _map_autocast(torch: Any) -> None:
    for owner, name in (
        (torch, "is_autocast_enabled"),
        (torch, "set_autocast_enabled"),
        (torch, "get_autocast_dtype"),
        (torch, "set_autocast_dtype"),
        (torch._C, "_is_autocast_available"),
    ):
        setattr(owner, name, _of_kind(getattr(owner, name)))
    original = torch.is_autocast_enabled
    torch.is_autocast_enabled = functools.wraps(original)(lambda kind=SIM: original(kind))
    torch.get_autocast_gpu_dtype = lambda: torch.get_autocast_dtype(SIM)
    torch.set_autocast_gpu_dtype = lambda dtype: torch.set_autocast_dtype(SIM, dtype)


def _of_kind(original: Callable[..., Any]) -> Callable[..., Any]:
    """ORIGINAL, whose first argument is a kind of device; without one it means CUDA."""

    @functools.wraps(original)
    def call(*args: Any) -> Any:
        first, *rest = args or (SIM,)
        if isinstance(first, bool):  # torch.set_autocast_enabled(True)
            first, rest = SIM, [first, *rest]
        return original(SIM if is_cuda(first) else first, *rest)

    return call


def _map_collectives(torch: Any) -> None:
    """`init_process_group("nccl")` is the backend of simulated devices, which calls itself so."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    c10d = torch.distributed.distributed_c10d
    if SIM not in c10d.Backend.backend_list:
        return
    c10d.Backend.default_device_backend_map["cuda"] = SIM
    c10d.Backend.backend_capability[SIM] = ["cuda", "cpu"]
    for name, at in (("init_process_group", 0), ("new_group", 2)):
        _replace(c10d, distributed, name, _with_backend(getattr(c10d, name), at))
    get_backend = c10d.get_backend
    _replace(c10d, distributed, "get_backend", lambda group=None: _nccl(get_backend(group)))
    _replace(c10d, distributed, "is_nccl_available", lambda: True)


def _replace(module: Any, package: Any, name: str, value: Any) -> None:
    setattr(module, name, value)
    setattr(package, name, value)


def _nccl(backend: str) -> str:
    return "nccl" if backend == SIM else backend


def _with_backend(original: Callable[..., Any], at: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > at:
            args = (*args[:at], _simulated(args[at]), *args[at + 1 :])
        elif "backend" in kwargs or original.__name__ == "init_process_group":
            kwargs["backend"] = _simulated(kwargs.get("backend"))
        return original(*args, **kwargs)

    return call


def _simulated(backend: Any) -> Any:
    """The simulated backend serves tensors of the host, too, and must be the only one that is named."""
    return SIM if backend is None or "nccl" in str(backend) else backend


def _map_compilers(torch: Any, absences: Absences) -> None:
    def compile(model: Any = None, **_: Any) -> Any:  # noqa: A001
        absences.note("torch.compile", _UNCOMPILED)
        return model if model is not None else lambda function: function

    def compile_module(self: Any, *_: Any, **__: Any) -> None:
        absences.note(f"{type(self).__name__}.compile", _UNCOMPILED)

    torch.compile = compile
    torch.nn.Module.compile = compile_module


def _map_extensions(absences: Absences) -> None:
    from torch.utils import cpp_extension

    def checked(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(name: str, *args: Any, **kwargs: Any) -> Any:
            sources = args[0] if args and not isinstance(args[0], str) else kwargs.get("sources") or ()
            of_cuda = [each for each in sources if str(each).endswith((".cu", ".cuh"))]
            if of_cuda or kwargs.get("cuda_sources") or kwargs.get("with_cuda"):
                absences.refuse(f"the extension {name}", _KERNELS)
            return original(name, *args, **kwargs)

        return call

    cpp_extension.load = checked(cpp_extension.load)
    cpp_extension.load_inline = checked(cpp_extension.load_inline)
