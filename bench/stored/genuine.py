"""Healthy checkpoints of many kinds, written by torch, safetensors and frameworks, or laid out as others do."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

Maker = Callable[[Path], Path]


def _model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))


def _trained(optimizer: Any = torch.optim.AdamW, **given: Any) -> tuple[Any, Any, Any]:
    """A model, its optimizer and a scheduler after three steps."""
    model = _model()
    made = optimizer(model.parameters(), lr=1e-3, **given)
    scheduler = torch.optim.lr_scheduler.StepLR(made, 2)
    for _ in range(3):
        made.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        made.step()
        scheduler.step()
    return model, made, scheduler


def _saved(what: Any, **given: Any) -> Maker:
    def make(folder: Path) -> Path:
        path = folder / "model.pt"
        torch.save(what() if callable(what) else what, path, **given)
        return path

    return make


def _full() -> dict[str, Any]:
    model, optimizer, scheduler = _trained()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": torch.amp.GradScaler("cpu").state_dict(),
        "epoch": 1,
        "global_step": 3,
        "best_acc": 0.5,
        "rng": torch.get_rng_state(),
        "cuda": [torch.zeros(16, dtype=torch.uint8)],
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "config": {"lr": 1e-3, "betas": (0.9, 0.999)},
        "sampler": {"_num_yielded": 7},
    }


def _tutorial() -> dict[str, Any]:
    model, optimizer, _ = _trained(torch.optim.SGD, momentum=0.9)
    return {
        "epoch": 5,
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "loss": 0.4,
    }


def _gan() -> dict[str, Any]:
    (generator, one, _), (critic, other, _) = _trained(), _trained(torch.optim.Adam)
    return {
        "G": generator.state_dict(),
        "D": critic.state_dict(),
        "optimizers": [one.state_dict(), other.state_dict()],
        "it": 3,
    }


def _averaged() -> dict[str, Any]:
    model, optimizer, _ = _trained()
    ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    ema.update_parameters(model)
    return {"model": model.state_dict(), "ema": ema.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}


def _wound_by_epoch() -> dict[str, Any]:
    """As timm and YOLO do: the schedule is a function of the epoch, and nothing of it is saved."""
    model, optimizer, _ = _trained()
    return {
        "epoch": 3,
        "arch": "net",
        "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "version": 2,
    }


def _plateau() -> dict[str, Any]:
    model, optimizer, _ = _trained()
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    scheduler.step(1.0)
    scheduler.step(float("inf"))
    return {
        "net": model.state_dict(),
        "optim": optimizer.state_dict(),
        "lr_scheduler": scheduler.state_dict(),
        "epoch": 1,
        "best_loss": float("inf"),
        "early_stopping": {"best": torch.tensor(float("inf"))},
    }


def _lbfgs() -> dict[str, Any]:
    model = _model()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}


def _not_begun() -> dict[str, Any]:
    model = _model()
    return {"model": model.state_dict(), "optimizer": torch.optim.AdamW(model.parameters()).state_dict(), "epoch": 0}


def _plain_sgd() -> dict[str, Any]:
    model, optimizer, _ = _trained(torch.optim.SGD)
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 9}


def _kinds() -> dict[str, Any]:
    whole = torch.randn(1000)
    return {
        "coo": torch.eye(3).to_sparse(),
        "csr": torch.eye(3).to_sparse_csr(),
        "meta": torch.empty(3, device="meta"),
        "view": whole[10:20],
        "strided": whole.view(10, 100).t(),
        "bf16": torch.ones(3, dtype=torch.bfloat16),
        "f8": torch.ones(3).to(torch.float8_e4m3fn),
        "bool": torch.ones(3) > 0,
        "empty": torch.empty(0, 5),
        "scalar": torch.tensor(1.0),
        "u16": torch.ones(2, dtype=torch.uint16),
        "complex": torch.ones(2, dtype=torch.complex64),
        "parameter": nn.Parameter(torch.ones(2)),
        "half": torch.ones(5).half(),
        "i8": torch.ones(7, dtype=torch.int8),
    }


def _tied() -> dict[str, Any]:
    weight = torch.randn(10, 4)
    return {"wte.weight": weight, "lm_head.weight": weight, "h.0.bias": torch.zeros(4)}


def _masked() -> dict[str, Any]:
    mask = torch.full((6, 6), float("-inf")).triu(1)
    return {"attn.weight": torch.randn(6, 6), "attn.mask": mask, "attn.bias": torch.zeros(6)}


def _options() -> dict[str, Any]:
    import datetime as dt

    return {
        "state_dict": _model().state_dict(),
        "out": Path("runs/1"),
        "when": dt.datetime(2026, 1, 2),
        "tags": {"a", "b"},
        "lr": np.float64(0.1),
        "mean": np.zeros(3),
        "versions": {"torch": torch.__version__},
    }


def _prefixed(prefix: str) -> Callable[[], dict[str, Any]]:
    return lambda: {"model": {f"{prefix}{key}": each for key, each in _model().state_dict().items()}, "epoch": 1}


def _fairscale() -> dict[str, Any]:
    """A sharded optimizer that keeps flat tensors."""
    flat = torch.randn(100)
    state = {
        "state": {0: {"step": 3, "exp_avg": flat, "exp_avg_sq": flat.abs()}},
        "param_groups": [{"lr": 0.1, "params": [0]}],
        "uncollected_local_ids": [],
        "loss_scale": 1.0,
    }
    return {
        "model": {"flat_param_0.weight": flat},
        "last_optimizer_state": state,
        "extra_state": {"num_updates": 3, "epoch": 1},
    }


def _no_checksums(folder: Path) -> Path:
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        return _saved(_full)(folder)
    finally:
        torch.serialization.set_crc32_options(before)


def _script(folder: Path) -> Path:
    torch.jit.save(torch.jit.trace(_model().eval(), torch.randn(2, 8)), str(folder / "script.pt"))
    return folder / "script.pt"


def _safetensors(folder: Path) -> Path:
    from safetensors.torch import save_file

    save_file(
        {key: each.clone() for key, each in _model().state_dict().items()}, folder / "m.safetensors", {"format": "pt"}
    )
    return folder / "m.safetensors"


def _hub(folder: Path) -> Path:
    """A model as hubs have it, in shards with an index, its files being links into a folder of blobs."""
    from safetensors.torch import save_file

    home, blobs = folder / "snapshot", folder / "blobs"
    home.mkdir()
    blobs.mkdir()
    index = {}
    for number, (key, each) in enumerate(_model().state_dict().items(), 1):
        name = f"model-{number:05d}-of-00007.safetensors"
        save_file({key: each.clone()}, blobs / str(number), {"format": "pt"})
        (home / name).symlink_to(blobs / str(number))
        index[key] = name
    (home / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": index}))
    (home / "config.json").write_text(json.dumps({"model_type": "net", "hidden_size": 16}))
    (home / "README.md").write_text("# A net\n")
    (home / "vocab.txt").write_text("a\nb\nnan\n")
    return home


def _adapter(folder: Path) -> Path:
    from safetensors.torch import save_file

    home = folder / "adapter"
    home.mkdir()
    save_file({"base_model.model.q.lora_A.weight": torch.zeros(2, 8)}, home / "adapter_model.safetensors")
    (home / "adapter_config.json").write_text('{"r": 2}')
    return home


def _shards(folder: Path, state: dict[str, Any]) -> Path:
    import torch.distributed.checkpoint as dcp

    dcp.save(state, checkpoint_id=folder / "step-3", no_dist=True)
    return folder / "step-3"


def _dcp(folder: Path) -> Path:
    from torch.distributed.checkpoint.state_dict import get_state_dict

    weights, state = get_state_dict(*_trained()[:2])
    whole = {"model": weights, "optim": state, "step": 3, "rng": torch.get_rng_state()}
    return _shards(folder, whole)


def _dcp_weights(folder: Path) -> Path:
    return _shards(folder, {"model": _model().state_dict()})


def _deepspeed(folder: Path) -> Path:
    """Hand-made after the layout: the model of each rank, the optimizer's share of each, and the latest step."""
    home = folder / "ds" / "global_step3"
    home.mkdir(parents=True)
    model, optimizer, _ = _trained()
    (folder / "ds/latest").write_text("global_step3")
    states = {
        "module": model.state_dict(),
        "buffer_names": [],
        "optimizer": None,
        "lr_scheduler": {"last_batch_iteration": 3},
        "global_steps": 3,
        "ds_config": {"train_batch_size": 4},
        "ds_version": "0.16",
    }
    torch.save(states, home / "mp_rank_00_model_states.pt")
    flat = torch.randn(64)
    share = {
        "loss_scaler": None,
        "dynamic_loss_scale": False,
        "zero_stage": 2,
        "partition_count": 1,
        "base_optimizer_state": {
            "state": {0: {"step": 3, "exp_avg": flat}},
            "param_groups": optimizer.param_groups[0]["lr"],
        },
        "single_partition_of_fp32_groups": [flat],
    }
    torch.save(
        {"optimizer_state_dict": share, "ds_version": "0.16"}, home / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"
    )
    return folder / "ds"


def _rng(folder: Path) -> Path:
    state = {"python": random.getstate(), "numpy": np.random.get_state(), "cpu": torch.get_rng_state()}
    torch.save(state, folder / "rng_state.pth")
    return folder / "rng_state.pth"


def _accelerate(folder: Path) -> Path:
    from accelerate import Accelerator

    model, optimizer, scheduler = _trained()
    accelerator = Accelerator(cpu=True)
    accelerator.prepare(model, optimizer, scheduler)
    accelerator.save_state(str(folder / "state"))
    accelerator.free_memory()
    return folder / "state"


def _lightning(folder: Path) -> Path:
    import lightning

    class Net(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(8, 1)
            self.save_hyperparameters({"width": 8})

        def training_step(self, batch: Any, _: int) -> Any:
            return self.net(batch).square().mean()

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
            return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1)}

    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        barebones=False,
        enable_checkpointing=True,
    )
    trainer.fit(Net(), torch.utils.data.DataLoader(torch.randn(16, 8), batch_size=4))
    trainer.save_checkpoint(folder / "net.ckpt")
    return folder / "net.ckpt"


def _transformers(folder: Path) -> Path:
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    config = BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
    )
    rows = [{"input_ids": [1, 2, 3], "attention_mask": [1, 1, 1], "labels": number % 2} for number in range(8)]
    given = TrainingArguments(
        output_dir=str(folder),
        max_steps=4,
        save_steps=4,
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_steps=1,
    )
    Trainer(model=BertForSequenceClassification(config), args=given, train_dataset=rows).train()
    return folder / "checkpoint-4"


def _saved_pretrained(folder: Path) -> Path:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
    )
    BertModel(config).save_pretrained(folder / "bert", max_shard_size="4KB")
    return folder / "bert"


FRAMEWORKS: dict[str, Maker] = {
    "accelerate": _accelerate,
    "lightning": _lightning,
    "transformers-trainer": _transformers,
    "transformers-model": _saved_pretrained,
}
"""Those that need more than torch and safetensors."""

GENUINE: dict[str, Maker] = {
    "weights": _saved(lambda: _model().state_dict()),
    "weights-legacy": _saved(lambda: _model().state_dict(), _use_new_zipfile_serialization=False),
    "full": _saved(_full),
    "full-legacy": _saved(_full, _use_new_zipfile_serialization=False),
    "full-protocol-4": _saved(_full, pickle_protocol=4),
    "full-without-checksums": _no_checksums,
    "tutorial": _saved(_tutorial),
    "gan": _saved(_gan),
    "averaged": _saved(_averaged),
    "wound-by-epoch": _saved(_wound_by_epoch),
    "plateau": _saved(_plateau),
    "lbfgs": _saved(_lbfgs),
    "not-begun": _saved(_not_begun),
    "plain-sgd": _saved(_plain_sgd),
    "kinds-of-tensors": _saved(_kinds),
    "kinds-of-tensors-legacy": _saved(
        lambda: {k: v for k, v in _kinds().items() if k != "u16"}, _use_new_zipfile_serialization=False
    ),
    "tied": _saved(_tied),
    "masked": _saved(_masked),
    "options": _saved(_options),
    "data-parallel": _saved(_prefixed("module.")),
    "compiled": _saved(_prefixed("_orig_mod.")),
    "fairscale": _saved(_fairscale),
    "many": _saved(lambda: {f"blocks.{number}.weight": torch.zeros(2) for number in range(3000)}),
    "one-tensor": _saved(lambda: torch.randn(5)),
    "list-of-tensors": _saved(lambda: [torch.randn(5), torch.randn(2, 2)]),
    "script": _script,
    "safetensors": _safetensors,
    "hub": _hub,
    "adapter": _adapter,
    "dcp": _dcp,
    "dcp-weights": _dcp_weights,
    "deepspeed": _deepspeed,
    "rng": _rng,
}
"""By name, what writes one into a folder and says where it is."""
