"""What a job did on a simulated device: all of it simulated, none of it measured on a real one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torchtriage.examine.run.job.events import Ended, Error, NotSimulated, Rehearsal, RehearsedPeak, RehearsedSteps
from torchtriage.examine.run.record import RankRecord, RunRecord

HOLDERS = ("parameters", "gradients", "optimizer_states", "buffers", "other")
OUT = re.compile(r"\bout of memory\. Tried to allocate\b")
_KERNEL = re.compile(
    r"Could not run '(aten::[\w.]{1,80})' with arguments from the '(\w*?)(?:PrivateUse1|sim)\w*' backend"
)
_FOR_CUDA = (
    "triton", "flash_attn", "bitsandbytes", "apex", "xformers", "transformer_engine", "cupy", "pycuda", "mamba_ssm",
    "causal_conv1d", "deepspeed", "tensorrt", "pynvml",
)  # fmt: skip
"""Packages whose kernels are made for CUDA, by the name that scripts import."""
_LINE = re.compile(r'File "([^"\n]+)", line (\d+)')
_REFUSED = re.compile(r"(.{1,200}?) \([^()\n]*:\d+\): (.{1,300})")
_MODULE = re.compile(r"No module named '(\w+)")
_TIMES = ("step_time", "shares", "timeline", "stacks", "lines", "unexplained", "overhead", "overhead_later", "memory")


def without_times(figures: Mapping[str, Any]) -> dict[str, Any]:
    """FIGURES without those that a simulated device and the CPU that computes for it have no say in."""
    if not figures:
        return {}
    ranks = figures["ranks"]
    each = [{name: value for name, value in rank.items() if name in {"rank", "steps"}} for rank in ranks["each"]]
    kept = {name: value for name, value in figures.items() if name not in _TIMES}
    return {
        **kept,
        "ranks": {name: value for name, value in ranks.items() if name in {"world_size", "hang"}} | {"each": each},
    }


def rehearsal(record: RunRecord) -> dict[str, Any]:
    """The card, and by line what happened in a step of the first rank; memory is that of the rank that needs most.

    simulated: True, for whoever reads no more than this. kernels, and `times` of lines: in a mean step. device_seconds:
    the least that the card's data sheet allows for a step's kernels, None where it promises nothing. `fits`: whether
    the peak stayed below the memory of the card, None where nothing was put on the device. is_whole: the job came to
    its end. in_steps: of lines, in how many of the steps they did anything.
    """
    card = next(filter(None, (log.first(Rehearsal) for log in (record.notes, *record.ranks))), Rehearsal())
    steps = _last_steps(record.ranks[0]) if record.ranks else RehearsedSteps()
    peak, out = _highest(record), _out(record)
    return {
        "simulated": True,
        "card": card.card,
        "memory": card.memory,
        "devices": card.devices,
        "steps": steps.steps,
        "kernels": steps.kernels / steps.steps if steps.steps else None,
        "device_seconds": steps.nanoseconds / steps.steps / 1e9 if steps.steps and steps.nanoseconds else None,
        "waits": _each(steps.waits, ("path", "line", "call", "times", "in_steps"), steps.steps),
        "copies": _each(
            steps.transfers,
            ("path", "line", "kind", "pinned", "non_blocking", "times", "bytes", "in_steps"),
            steps.steps,
        ),
        "peak": peak,
        "out_of_memory": out,
        "is_whole": bool(record.ranks) and not any((each.code or 0) for each in record.notes.all(Ended)),
        "fits": False if out else None if peak is None else True,
        "absent": _unique([*_absent(record), *_lacking(record)]),
    }


def _last_steps(record: RankRecord) -> RehearsedSteps:
    return next(reversed(record.all(RehearsedSteps)), RehearsedSteps())


def _each(rows: Any, names: tuple[str, ...], steps: int) -> list[dict[str, Any]]:
    """ROWS by NAMES, with numbers and bytes of a mean step."""
    if not steps:
        return []
    found = [dict(zip(names, row, strict=False)) for row in rows]
    return [{**each, **{name: each[name] / steps for name in ("times", "bytes") if name in each}} for each in found]


def _highest(record: RunRecord) -> dict[str, Any] | None:
    last = {(rank.rank, each.device): each for rank in record.ranks for each in rank.all(RehearsedPeak)}
    if not last:
        return None
    (rank, _), peak = max(last.items(), key=lambda item: item[1].bytes)
    return {
        "rank": rank,
        "device": peak.device,
        "bytes": peak.bytes,
        "reserved": peak.reserved,
        "step": peak.at,
        "path": peak.path,
        "line": peak.line,
        "holders": {name: peak.holders.get(name, 0) for name in HOLDERS},
    }


def _out(record: RunRecord) -> dict[str, Any] | None:
    """Where the device ran out of memory."""
    errors = (error for log in (*record.ranks, record.notes) for error in log.all(Error))
    error = next((error for error in errors if OUT.search(error.message)), None)
    return {**_place(error), "step": error.step} if error is not None else None


def _absent(record: RunRecord) -> list[dict[str, Any]]:
    found = [event for rank in record.ranks for event in rank.all(NotSimulated)]
    return [{name: getattr(each, name) for name in ("name", "why", "path", "line", "ends")} for each in found]


def _unique(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what several ranks, or an event and the error after it, say of one line, the first."""
    keys = [(row["name"], row["line"]) for row in rows]
    return [row for at, row in enumerate(rows) if keys[at] not in keys[:at]]


def _lacking(record: RunRecord) -> list[dict[str, Any]]:
    """What the errors that ended processes say of a device that is none of CUDA's."""
    errors = [error for log in (*record.ranks, record.notes) for error in log.all(Error)]
    found = ((_why(error), _place(error)) for error in errors)
    return [{"name": told[0], "why": told[1], **place, "ends": True} for told, place in found if told is not None]


def _place(error: Error) -> dict[str, Any]:
    """Of a process that had no record yet, the last line of the traceback that is no installed package's."""
    lines = [each for each in _LINE.findall(error.traceback or "") if "site-packages" not in each[0]]
    path, at = (error.path, error.line) if error.path else lines[-1] if lines else ("", 0)
    return {"path": path, "line": int(at or 0)}


def _why(error: Error) -> tuple[str, str] | None:
    if error.error == NotSimulated.__name__ and (refused := _REFUSED.fullmatch(error.message)) is not None:
        return refused[1], refused[2]
    if (kernel := _KERNEL.search(error.message)) is not None:
        if kernel[2]:
            return kernel[1], f"it makes or takes {kernel[2].lower()} tensors, which are not simulated"
        return kernel[1], "the simulated accelerator has no kernel for it"
    if (module := _MODULE.search(error.message)) is not None and module[1] in _FOR_CUDA:
        return module[1], "it is not installed here, and its kernels cannot run on the simulated accelerator"
    for name in _FOR_CUDA:
        if re.search(rf'File "[^"\n]*[/\\]{name}[/\\]', error.traceback or ""):
            return name, "its kernels are made for CUDA, and cannot run on the simulated accelerator"
    return None
