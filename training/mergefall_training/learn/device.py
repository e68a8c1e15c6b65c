"""PyTorch's device, from its name."""

from __future__ import annotations

import torch


def device_of(name: str) -> torch.device:
    """PyTorch's device of a name; "auto": a GPU if there is one, else the CPU.

    Raises ValueError for a device that PyTorch does not find here.
    """
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise ValueError(f"device is {name!r}; expected auto, cpu, or another that PyTorch finds here") from error
    return device
