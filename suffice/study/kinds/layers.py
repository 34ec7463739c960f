"""Whether a method can read the layer that a study names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suffice.attribution import Method
from suffice.attribution.tokens.block_layers import BLOCK_LAYERS, block_layer
from suffice.errors import AnatomyError, OptionError
from suffice.vision import Classifier
from suffice.vision.anatomy.structure import layer_of


def no_such_layer(net: Classifier, method: Method, options: Mapping[str, Any]) -> str | None:
    """Why a method cannot read the layer among its options; None where it can, or is told none."""
    layer = options.get("layer")
    if not isinstance(layer, str) or "feature maps" not in method.needs:
        return None
    try:
        name = block_layer(net, layer) if layer in BLOCK_LAYERS else layer
        if layer_of(name) not in dict(net.module.named_modules(remove_duplicate=False)):
            return f"there is no layer {layer!r}; without the option it reads {net.anatomy.target_layer!r}"
        net.anatomy.layout(name)
    except AnatomyError:
        return f"layer {layer!r} cannot be read as maps; without the option it reads {net.anatomy.target_layer!r}"
    except OptionError as error:
        return str(error).removesuffix(".")
    return None
