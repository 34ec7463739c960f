"""Color modes: whatever numbers an image holds, as the RGB they are meant to show."""

from __future__ import annotations

import numpy as np
from PIL import Image

from suffice.errors import ImageError


def to_rgb(image: Image.Image) -> Image.Image:
    """Bring an image of any mode to RGB, with the colors it is meant to have.

    * Transparency (an alpha channel, a transparent palette entry or color) is composited over white.
    * 16-bit gray (``I;16``, ``I``) is divided by 257, which takes 65535 to 255 (Pillow's own clips).
    * Floating point (``F``) must lie in [0, 1].

    Args:
        image: Image of any mode. It is not changed.

    Returns:
        A new image in mode RGB, of the same size.

    Raises:
        ImageError: The values are outside the range that their mode can show.

    Example:
        >>> to_rgb(Image.new("RGBA", (1, 1), (255, 0, 0, 0))).getpixel((0, 0))
        (255, 255, 255)
        >>> to_rgb(Image.new("I;16", (1, 1), 257 * 100)).getpixel((0, 0))
        (100, 100, 100)
    """
    if image.mode == "I" or image.mode.startswith("I;16"):
        return _gray16_to_rgb(image)
    if image.mode == "F":
        values = np.asarray(image)
        if not (values.min() >= 0 and values.max() <= 1):  # also false for NaN
            raise ImageError(
                f"floating-point pixels range from {values.min():g} to {values.max():g}; expected [0, 1], "
                "so scale them first"
            )
        return Image.fromarray(np.rint(values * 255).astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    # The colors under transparent pixels are arbitrary (editors leave black, white or noise there), so
    # dropping the alpha channel would show the model things that nobody sees. White is what most viewers
    # put behind.
    with_alpha = _with_alpha(image)
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, with_alpha).convert("RGB")


def _gray16_to_rgb(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise ImageError(
            f"integer pixels range from {values.min()} to {values.max()}; expected 16 bits, 0 to 65535, "
            "so scale them first"
        )
    gray = ((values + 128) // 257).astype(np.uint8)
    key = image.info.get("transparency")
    if isinstance(key, int):
        gray[values == key] = 255
    return Image.fromarray(gray).convert("RGB")


def _with_alpha(image: Image.Image) -> Image.Image:
    """The image in mode RGBA."""
    key = image.info.get("transparency")
    if image.mode == "RGB" and isinstance(key, tuple) and max(key) > 255:
        # A PNG with 16 bits a channel names its transparent color in 16 bits; Pillow keeps the upper 8 of
        # the pixels, but not of this.
        image = image.copy()
        image.info["transparency"] = tuple(value >> 8 for value in key)
    if image.mode == "La":  # premultiplied; Pillow converts it only by way of LA
        image = image.convert("LA")
    return image.convert("RGBA")
