"""What tensors say of the device, and the types by which old scripts name it: `x.is_cuda`, `torch.cuda.FloatTensor`."""

from __future__ import annotations

from typing import Any

DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8",
    "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool",
}  # fmt: skip


def map_tensors(torch: Any) -> None:
    """Tensors of the device say that they are CUDA's, and can be made by CUDA's old types."""

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        chosen = torch.device("cuda", torch.cuda.current_device()) if device is None else torch.device(device)
        return self.to(chosen, non_blocking=non_blocking, **kwargs)

    torch.Tensor.cuda = cuda
    torch.Tensor.is_cuda = property(lambda self: self.device.type == "cuda")
    types = {f"{name}Tensor": _legacy_type(torch, name, getattr(torch, dtype)) for name, dtype in DTYPES.items()}
    for name, made in types.items():
        setattr(torch.cuda, name, made)
    _map_types(torch, {f"torch.cuda.{name}": made for name, made in types.items()})


def _legacy_type(torch: Any, name: str, dtype: Any) -> type:
    """`torch.cuda.FloatTensor`: makes tensors of the device as `torch.FloatTensor` does on the host."""
    on_host = getattr(torch, f"{name}Tensor")

    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return on_host(*args, **kwargs).cuda()

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, torch.Tensor) and instance.is_cuda and instance.dtype is dtype

    return Meta(f"{name}Tensor", (), {"dtype": dtype, "is_cuda": True, "__module__": "torch.cuda"})


def _map_types(torch: Any, types: dict[str, Any]) -> None:
    """`x.type()` and `x.type(torch.cuda.FloatTensor)`, and the default type of that kind."""
    original, set_default = torch.Tensor.type, torch.set_default_tensor_type

    def type_(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if (wanted := types.get(dtype, dtype) if isinstance(dtype, str) else dtype) in types.values():
            return self.to(torch.device("cuda"), wanted.dtype, non_blocking=non_blocking)
        said = original(self) if dtype is None else original(self, dtype, non_blocking, **kwargs)
        return said.replace("torch.sim.", "torch.cuda.") if isinstance(said, str) else said

    def set_default_tensor_type(wanted: Any) -> None:
        chosen = types.get(wanted, wanted) if isinstance(wanted, str) else wanted
        if chosen in types.values():
            torch.set_default_dtype(chosen.dtype)
            torch.set_default_device("cuda")
        else:
            set_default(wanted)

    torch.Tensor.type = type_
    torch.set_default_tensor_type = set_default_tensor_type
