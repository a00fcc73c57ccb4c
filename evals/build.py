"""Hatchling's hook: what is built has the scenarios of the rooms in one file, which a checkout does not need."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOMS = "../src/torchtriage"
FIRST = "\n[[evaluation]]\n"  # behind it stands nothing else
INSIDE = {"wheel": "torchtriage_evals/scenarios.json", "sdist": "src/torchtriage_evals/scenarios.json"}


class Scenarios(BuildHookInterface[Any]):
    """Writes the tables `evaluation` of every scenarios.toml into what is built; an sdist has them already."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the file, unless the installation only points to the checkout (VERSION editable)."""
        built = Path(self.root, "src/torchtriage_evals/scenarios.json")
        if version == "editable" or built.is_file():
            return
        paths = sorted(Path(self.root, ROOMS).rglob("scenarios.toml"))
        if not paths:
            raise FileNotFoundError(f"no scenarios.toml under {Path(self.root, ROOMS)}: build in a checkout")
        ends = [path.read_text(encoding="utf-8").partition(FIRST)[1:] for path in paths]
        found = [row for end in ends for row in tomllib.loads("".join(end)).get("evaluation", [])]
        file = Path(self.directory, "scenarios.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")
        build_data["force_include"][str(file)] = INSIDE[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's
        """The file stands in what was built, and nowhere else."""
        Path(self.directory, "scenarios.json").unlink(missing_ok=True)
