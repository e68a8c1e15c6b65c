"""2048 as an exact, fast Gymnasium environment. Importing this package registers it."""

__version__ = "0.1.0"

from mergefall.registration import register_all

register_all()
