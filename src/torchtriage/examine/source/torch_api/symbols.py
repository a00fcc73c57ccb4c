"""The names of torch that are no operators, from symbols.toml: wrappers, layers, losses, contexts."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct


class Argument(Struct, frozen=True, forbid_unknown_fields=True):
    """An argument of a function, by its name and its place from 0."""

    name: str
    place: int


class Symbols(Struct, frozen=True, forbid_unknown_fields=True):
    """A field for each group of the file, where it is explained."""

    grad_free: frozenset[str]
    module_self: frozenset[str]
    tensor_methods: frozenset[str]
    shared_methods: frozenset[str]
    harmless_methods: frozenset[str]
    unmistakable_methods: frozenset[str]
    checkpoint_options: frozenset[str]
    checkpoints: frozenset[str]
    cache_emptying: frozenset[str]
    module_parts: frozenset[str]
    gradient_checks: frozenset[str]
    collectives_in_place: frozenset[str]
    parameters: frozenset[str]
    clips: frozenset[str]
    lower_bounds: frozenset[str]
    scalings: frozenset[str]
    updates: frozenset[str]
    guards: frozenset[str]
    choosing_methods: frozenset[str]
    saving_layers: frozenset[str]
    registering_containers: frozenset[str]
    stateless_layers: frozenset[str]
    parameterless_layers: frozenset[str]
    batch_norms: frozenset[str]
    dropout_layers: frozenset[str]
    device_defaults: frozenset[str]
    anomaly_setters: frozenset[str]
    anomaly_contexts: frozenset[str]
    profilers: frozenset[str]
    waits: frozenset[str]
    heavy_operators: frozenset[str]
    finite_tests: frozenset[str]
    weight_readers: frozenset[str]
    host_seeds: frozenset[str]
    device_seeds: frozenset[str]
    meeting_methods: frozenset[str]
    memory_errors: frozenset[str]
    falling_schedules: frozenset[str]
    schedule_lengths: dict[str, Argument]
    activating_losses: dict[str, str]
    key_prefixes: dict[str, str]
    tensor_classes: dict[str, str]
    dtypes: dict[str, str]


@cache
def symbols() -> Symbols:
    """Every group."""
    text = Path(__file__).with_name("symbols.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Symbols)
