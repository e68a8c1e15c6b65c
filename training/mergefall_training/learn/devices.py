"""Parts that learners with PyTorch share: the device, fused updates, mixed precision."""

from typing import Any

import torch
from mergefall.threads import cores


def device_of(name: str) -> torch.device:
    """PyTorch's device from its name; "auto": a GPU if there is one, else the CPU.

    Raises ValueError if PyTorch does not find the device.
    """
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise ValueError(f"device is {name!r}; expected auto, cpu, or another that PyTorch finds here") from error
    return device


def quicken(policy: Any, mixed_precision: bool) -> None:
    """Let Adam update all parameters in one call, which is several times as fast, and extractors use all cores.

    With `mixed_precision`, extractors that have it compute in bfloat16 where that is much faster than float32: on GPUs,
    and on CPUs with AMX or AVX-512 BF16.
    """
    for group in policy.optimizer.param_groups:
        group["fused"] = True
    processor = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}  # older PyTorch
    fast = policy.device.type == "cuda" or any(processor.get(name) for name in ("amx_bf16", "avx512_bf16"))
    for module in policy.modules():
        if hasattr(module, "mixed_precision"):
            module.mixed_precision = mixed_precision and fast
            module.threads = cores()
