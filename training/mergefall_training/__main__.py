"""``python -m mergefall_training``: the command ``mergefall``."""

from mergefall_training.cli import main

if __name__ == "__main__":
    main()
