"""How a worker measures: for about a second."""

SECONDS = 1.0


def rate(chunk, size):
    """Steps per second of `chunk`, which plays `size` steps and returns the seconds they took."""
    steps, seconds = 0, 0.0
    while seconds < SECONDS:
        seconds += chunk()
        steps += size
    return steps / seconds
