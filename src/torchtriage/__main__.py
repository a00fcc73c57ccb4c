"""`python -m torchtriage`."""

from torchtriage.interface.cli import main

if __name__ == "__main__":
    main()
