"""What clients want beside the skills: manifests of plugins and marketplaces, and a passage for AGENTS.md.

The forms are those of each client's own documentation in November 2026; tests/interface/test_skills.py holds them.
"""

from __future__ import annotations

import json
from typing import Any

from torchtriage import __version__

NAME = "torchtriage"
DOES = "Triage and diagnosis for PyTorch training: routes symptoms to a specialist, measures, and verifies the remedy."
SNIPPET = """\
## PyTorch training

Slow, out of memory, NaN, hanging, diverging across ranks, not to be resumed: before any advice or edit, load the skill
`using-pytorch-engineering`, or ask the program.

- `torchtriage ask "the words or the traceback"` says which specialist comes first and what to collect.
- `torchtriage check PATH` reads the code; `torchtriage run -- CMD` measures the unchanged job.
- `torchtriage explain NAME` shows a fault, its remedies and how to verify them.
"""


def manifests() -> dict[str, str]:
    """The files by their path below the folder that holds `skills/`."""
    about = {"name": NAME, "version": __version__, "description": DOES, "license": "Apache-2.0"}
    author = {"name": "The torchtriage founders"}
    interface = {"displayName": NAME, "shortDescription": DOES, "defaultPrompt": "Why is my training slow?"}
    files: dict[str, Any] = {
        ".claude-plugin/plugin.json": {**about, "author": author, "keywords": ["pytorch", "training", "diagnosis"]},
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "owner": author,
            "plugins": [{"name": NAME, "source": "./", "description": DOES}],
        },
        ".codex-plugin/plugin.json": {**about, "skills": "./skills/", "interface": interface},
        ".agents/plugins/marketplace.json": {
            "name": NAME,
            "plugins": [
                {
                    "name": NAME,
                    "source": {"source": "url", "url": "./"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                }
            ],
        },
        ".cursor-plugin/plugin.json": {**about, "skills": "./skills/"},
        "gemini-extension.json": {"name": NAME, "version": __version__, "contextFileName": "AGENTS.md"},
    }
    written = {path: json.dumps(content, indent=2) + "\n" for path, content in files.items()}
    return {**written, "AGENTS.md": SNIPPET}
