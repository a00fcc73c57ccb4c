"""Started by the user's own Python, by its path: loads the package beside it under a name that shadows nothing."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

NAME = "_torchtriage_gradient"


def load(folder: str) -> Any:
    """The module `start` of the package in FOLDER."""
    init = os.path.join(folder, "__init__.py")  # noqa: PTH118
    spec: Any = spec_from_file_location(NAME, init, submodule_search_locations=[folder])
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
    return import_module(f"{NAME}.start")


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - Path would have to be imported
    sys.path.pop(0)  # this file's own folder, whose names are not the user's
    load(os.path.join(here, "job")).main()  # noqa: PTH118
