"""Everything the station knows by heart: one structure, read from a cache and compiled anew when a file has changed."""

from __future__ import annotations

from functools import cache

from torchtriage.catalog.cache import compiled
from torchtriage.catalog.walk import files
from torchtriage.routing import tables
from torchtriage.routing.lexicon import Lexicon


@cache
def lexicon() -> Lexicon:
    """The lexicon of this installation, compiled once for each content of the files it is made of."""
    return compiled("lexicon", (*files(), *tables.files()), Lexicon, _made)


def _made() -> Lexicon:
    from torchtriage.routing.build import build  # tomllib costs more than everything else of a cold query

    return build()
