"""What the sheet on mixed precision claims, taken again from the installed torch."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
HEADER = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"


def test_exp_ends() -> None:
    values = {torch.float16: (11.08, 11.1), torch.float32: (88.72, 88.73), torch.bfloat16: (88.5, 89.0)}
    for dtype, ends in values.items():
        assert torch.tensor(ends, dtype=dtype).exp().isinf().tolist() == [False, True]
    assert torch.tensor(65504.0).log().item() == pytest.approx(11.09, abs=0.001)


def test_formats_range() -> None:
    said = {
        torch.float16: (65504.0, 6.10e-5, 5.96e-8),
        torch.bfloat16: (3.39e38, 1.18e-38, 9.2e-41),
        torch.float32: (3.40e38, 1.18e-38, 1.4e-45),
    }
    for dtype, (largest, normal, above) in said.items():
        info = torch.finfo(dtype)
        assert (info.max, info.smallest_normal) == pytest.approx((largest, normal), rel=0.005)
        smallest = torch.nextafter(torch.tensor(0, dtype=dtype), torch.tensor(1, dtype=dtype))
        assert smallest.double().item() == pytest.approx(above, rel=0.02)


def test_formats_eps() -> None:
    said = {torch.float16: (10, 9.8e-4), torch.bfloat16: (7, 7.8e-3), torch.float32: (23, 1.2e-7)}
    for dtype, (bits, step) in said.items():
        assert torch.finfo(dtype).eps == 2.0**-bits == pytest.approx(step, rel=0.01)


def test_fp8_range() -> None:
    said = {torch.float8_e4m3fn: (448, 1.6e-2, 3), torch.float8_e5m2: (57344, 6.1e-5, 2)}
    for dtype, (largest, normal, bits) in said.items():
        info = torch.finfo(dtype)
        assert (info.max, info.eps) == (largest, 2.0**-bits)
        assert info.smallest_normal == pytest.approx(normal, rel=0.03)


def test_bf16_loses() -> None:
    one = torch.tensor(1.0, dtype=torch.bfloat16)
    assert (one + torch.tensor(0.0039, dtype=torch.bfloat16)).item() == 1.0
    assert (one + torch.tensor(0.004, dtype=torch.bfloat16)).item() > 1.0


def stepped(scaler: torch.amp.GradScaler, weight: torch.nn.Parameter, factor: float) -> float:
    """The scale after one step whose gradient is FACTOR."""
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return float(scaler.get_scale())


def test_scaler_dynamics() -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    scaler = torch.amp.GradScaler("cpu")
    assert (scaler.get_scale(), scaler.get_growth_interval()) == (65536.0, 2000)
    assert stepped(scaler, weight, float("inf")) == 32768.0
    few = torch.amp.GradScaler("cpu", growth_interval=3)
    assert [stepped(few, weight, 1.0) for _ in range(3)] == [65536.0, 65536.0, 131072.0]


def test_clip_shrinks() -> None:
    weight = torch.nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(weight.sum()).backward()
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    scaler.step(optimizer)
    assert weight.norm().item() == pytest.approx(1.5e-5, rel=0.03)


def test_update_asserts() -> None:
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.nn.Parameter(torch.zeros(1)).sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()


def test_adam_bytes() -> None:
    model = torch.nn.Linear(8, 8, bias=False)
    optimizer = torch.optim.Adam(model.parameters())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(2, 8)).sum()
    loss.backward()
    optimizer.step()
    state = [each for each in optimizer.state[model.weight].values() if each.ndim]
    tensors = [model.weight, model.weight.grad, *state]
    assert {each.dtype for each in tensors} == {torch.float32}
    assert sum(each.nbytes for each in tensors) == 16 * model.weight.numel()


def test_cpu_autocast() -> None:
    functional = torch.nn.functional
    with torch.autocast("cpu", dtype=torch.float16):
        low = functional.linear(torch.randn(4, 4), torch.randn(4, 4))
        kept = (low.exp(), low.abs().log(), low.softmax(-1), low.sum(), low.norm(), functional.layer_norm(low, (4,)))
        raised = (functional.mse_loss(low, low), functional.cross_entropy(low, torch.arange(4)))
    assert {each.dtype for each in kept} == {torch.float16}
    assert {each.dtype for each in raised} == {torch.float32}


def test_temperature() -> None:
    exponent = torch.tensor(1 / 0.07)
    assert exponent.item() == pytest.approx(14.3, abs=0.05)
    assert exponent.half().exp().isinf()
    assert exponent.exp().isfinite()


def test_eps_zero() -> None:
    assert torch.tensor([1e-8, 1e-12], dtype=torch.float16).tolist() == [0.0, 0.0]


def test_squares() -> None:
    assert torch.tensor([255.0, 256.0], dtype=torch.float16).square().isinf().tolist() == [False, True]


def test_mask_value() -> None:
    assert torch.tensor(-1e9).half().item() == -float("inf")
    assert torch.isfinite(torch.tensor(torch.finfo(torch.float16).min).half())


def test_autocast_default() -> None:
    assert torch.get_autocast_dtype("cuda") == torch.float16
    assert torch.get_autocast_dtype("cpu") == torch.bfloat16


def test_recompile_limit() -> None:
    from torch._dynamo import config

    assert config.recompile_limit == 8


def test_tf32_default() -> None:
    assert torch.get_float32_matmul_precision() == "highest"
    assert torch.backends.cudnn.allow_tf32


def test_autocast_fp32_list() -> None:
    text = HEADER.read_text()
    listed = {
        name: set(re.findall(r"_\((\w+)", text.partition(f"#define {name}(_)")[2].partition("#define")[0]))
        for name in ("AT_FORALL_LOWER_PRECISION_FP", "AT_FORALL_FP32", "AT_FORALL_FP32_SET_OPT_DTYPE")
    }
    low, high, summed = listed.values()
    assert {"matmul", "linear", "conv2d", "einsum", "lstm_cell", "scaled_dot_product_attention"} <= low
    assert {"exp", "log", "pow", "rsqrt", "layer_norm", "group_norm", "nll_loss", "mse_loss", "logsumexp"} <= high
    assert {"l1_loss", "kl_div", "binary_cross_entropy_with_logits", "upsample_bilinear2d"} <= high
    assert {"softmax", "log_softmax", "sum", "prod", "cumsum", "linalg_vector_norm"} <= summed
    assert not {"mean", "relu", "gelu", "add", "max", "batch_norm", "index"} & (low | high | summed)


def test_bf16_native() -> None:
    text = inspect.getsource(torch.cuda.is_bf16_supported)
    assert "including_emulation: bool = True" in text
    assert "get_device_properties(device).major >= 8" in text
    assert "is_bf16_supported(including_emulation=False)" in inspect.getsource(torch.cuda.is_tf32_supported)


def test_fp8_native() -> None:
    path = Path(torch.__file__).parent / "testing/_internal/common_cuda.py"
    text = path.read_text().partition("def evaluate_platform_supports_fp8")[2]
    assert "SM90OrLater or torch.cuda.get_device_capability() == (8, 9)" in text


def test_fp8_sixteen() -> None:
    text = (Path(torch.__file__).parent / "_meta_registrations.py").read_text()
    assert "Expected both dimensions of mat2 to be divisible by 16" in text
    assert "mat2.size(0) % 16 == 0 and mat2.size(1) % 16 == 0" in text


def test_tf32_bits() -> None:
    assert "TensorFloat32 datatype (10 mantissa bits" in " ".join(torch.set_float32_matmul_precision.__doc__.split())


def test_island_needs_float() -> None:
    layer = torch.nn.Linear(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = layer(torch.ones(1, 2))
        with torch.autocast("cpu", enabled=False):
            with pytest.raises(RuntimeError, match="must have the same dtype"):
                layer(hidden)
            assert layer(hidden.float()).dtype == torch.float32


def test_cuda_amp_warns() -> None:
    with pytest.warns(FutureWarning, match="autocast"):
        torch.cuda.amp.autocast(enabled=False)
    with pytest.warns(FutureWarning, match="GradScaler"):
        torch.cuda.amp.GradScaler(enabled=False)
