"""2048 and Tetris as exact, fast Gymnasium environments. Importing this package registers them."""

__version__ = "0.1.0"

from mergefall.registration import register_all

register_all()
