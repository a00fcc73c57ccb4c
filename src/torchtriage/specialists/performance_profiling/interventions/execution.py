"""How operations are carried out: threads, layouts, compilation, and what is checked on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.trial.experiment.job.interventions import Interventions, Start


def threads(start: Start, number: float) -> None:
    """Computes on NUMBER threads, whatever the job asks for. From its start, since a fork has none but one."""
    import torch

    if torch.get_num_threads() == number:
        start.give_up(f"it computes on {number:g} {'thread' if number == 1 else 'threads'} as it is")
    torch.set_num_threads(int(number))
    start.job.wrap(torch, "set_num_threads", lambda _original: lambda _number: None)


def channels_last(now: Interventions, _value: float) -> None:
    """Keeps images and the weights of convolutions with their channels last; refuses where there are none."""
    import torch
    from torch import nn

    root = now.call[0]
    kinds = (nn.Conv2d, nn.ConvTranspose2d)
    found = [part for part in root.modules() if isinstance(part, kinds)]
    if not found:
        now.refuse("its model convolves no images")
    if all(part.weight.is_contiguous(memory_format=torch.channels_last) for part in found):
        now.refuse("its convolutions have their channels last as it is")
    root.to(memory_format=torch.channels_last)

    def turned(value: Any) -> Any:
        is_image = isinstance(value, torch.Tensor) and value.dim() == 4
        return value.contiguous(memory_format=torch.channels_last) if is_image else value

    def turn(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return tuple(map(turned, args)), {name: turned(value) for name, value in kwargs.items()}

    root.register_forward_pre_hook(turn, with_kwargs=True)


def compilation(now: Interventions, _value: float) -> None:
    """Compiles the root module; refuses where a part of it is."""
    import torch

    root = now.call[0]
    if any(type(part).__name__ == "OptimizedModule" or part._compiled_call_impl for part in root.modules()):
        now.refuse("its model is compiled as it is")
    root.forward = torch.compile(root.forward)


def anomaly_detection(now: Interventions, _value: float) -> None:
    """Looks for no anomalies; refuses where the job does not."""
    import torch

    if not torch.is_anomaly_enabled():
        now.refuse("it does not look for anomalies")
    torch.set_anomaly_enabled(False)
    now.job.wrap(torch, "set_anomaly_enabled", lambda original: lambda *_args, **_kwargs: original(False))


def deterministic_kernels(now: Interventions, _value: float) -> None:
    """Lets torch choose the fastest kernels; refuses where it may."""
    import torch

    if not torch.are_deterministic_algorithms_enabled():
        now.refuse("it does not ask for deterministic kernels")
    torch.use_deterministic_algorithms(False)
