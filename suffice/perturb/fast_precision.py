"""``precision="auto"``: the precision in which a device is fast at forwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch

from suffice.vision.classifier import Classifier

# Instructions of x86 processors that multiply bf16. oneDNN's own question, whether bf16 is supported, will not do: it
# is so on every processor with AVX-512, most of which only imitate it and take several times as long as for fp32.
_BF16_UNITS = ("avx512_bf16", "amx_bf16")
_TENSOR_CORES = 7  # since compute capability 7.0; many GPUs before were slower in fp16 than in fp32


def fast_precision(net: Classifier) -> Literal["fp32", "bf16", "fp16"]:
    """fp16 on a GPU with tensor cores, bf16 on a CPU that has units for it, fp32 everywhere else.

    A module whose weights are not in fp32 has been put into another precision by somebody, and keeps it (``"fp32"``).
    """
    device = net.device
    if net.dtype != torch.float32:
        return "fp32"
    if device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= _TENSOR_CORES:
        return "fp16"
    if device.type == "cpu" and torch.backends.mkldnn.is_available() and _multiplies_bf16():
        return "bf16"
    return "fp32"


def _multiplies_bf16() -> bool:
    """Whether the processor is known to; versions of PyTorch that cannot tell leave it at fp32."""
    ask = getattr(torch.cpu, "get_capabilities", None)
    known: Mapping[str, Any] = {} if ask is None else ask()
    if ask is None:  # before there was that function, this one had no public name
        older = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
        known = {"avx512_bf16": older is not None and older()}
    return any(known.get(name, False) for name in _BF16_UNITS)
