"""python bench/mutants VERB …: see README.md beside this file."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parent.parent)
    from mutants.commands import main

    main()
