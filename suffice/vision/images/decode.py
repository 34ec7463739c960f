"""From a file nobody has vouched for to an upright RGB image, or to an error that says what is wrong with it.

Three promises: only the decoders of six common formats ever run; an image over the pixel limit is refused on
its header, before memory is spent on it; and whatever is wrong comes out as an
:class:`~suffice.errors.ImageError`, so that one bad file in fifty thousand can be skipped by name.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import struct
from collections.abc import Iterator
from typing import BinaryIO, Union

import numpy as np
from PIL import ExifTags, Image, ImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from suffice.errors import ImageError, ImageTooLarge, UnreadableImage
from suffice.options import Count, check_options

Encoded = Union[str, "os.PathLike[str]", bytes, BinaryIO]

# How a file begins, and Pillow's class for it.
_READERS: tuple[tuple[bytes, type[ImageFile.ImageFile]], ...] = (
    (rb"\xff\xd8\xff", JpegImageFile),
    (rb"\x89PNG\r\n\x1a\n", PngImageFile),
    (rb"GIF8[79]a", GifImageFile),
    (rb"RIFF....WEBP", WebPImageFile),
    (rb"II[*+]\0|MM\0[*+]", TiffImageFile),
    (rb"BM", BmpImageFile),
)

# What undoes each EXIF orientation; 1 is upright.
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode(source: Encoded, *, name: str | None = None, max_pixels: Count | None = None) -> Image.Image:
    """Decode one image file, given as path, bytes or binary file, to an upright image in mode RGB.

    JPEG, PNG, WebP, BMP, TIFF and GIF are read; of several frames, the first. The EXIF orientation is applied, and
    metadata dropped so that nobody turns it a second time. Transparent pixels show white. See :func:`to_rgb` for the
    other color modes. Images with more than ``max_pixels`` are refused; default: ``PIL.Image.MAX_IMAGE_PIXELS`` at the
    time of the call. For GIF, TIFF and WebP Pillow's limit holds as well: its readers of these enforce it themselves.
    """
    name = name or _name_of(source)
    check_options({"max_pixels": max_pixels}, decode)
    # Pillow lets many kinds of exception through on damaged files (struct.error, zlib.error, IndexError, …)
    # and adds new ones with new versions, so no list of them would be complete.
    try:
        with _opened(source) as file:
            image = _open_header(file, name, max_pixels)
            image.load()
            # After loading: Pillow itself turns TIFF upright, and then forgets the tag.
            orientation = _orientation(image)
            rgb = to_rgb(image)
    except ImageTooLarge:
        raise
    except Image.DecompressionBombError as error:
        raise ImageTooLarge(f"{name}: {error} To decode it anyway, raise PIL.Image.MAX_IMAGE_PIXELS.") from error
    except Exception as error:
        raise UnreadableImage(f"Cannot read {name}: {_reason(error)}.") from error
    upright = rgb.transpose(_UPRIGHT[orientation]) if orientation in _UPRIGHT else rgb
    upright.info = {}
    return upright


def check_size(size: tuple[int, int], name: str, max_pixels: int | None, *, pillow_checks: bool = False) -> None:
    """Raise :class:`~suffice.errors.ImageTooLarge` for an image (width, height) with more pixels than the limit.

    By default that is ``PIL.Image.MAX_IMAGE_PIXELS``, which may be None for no limit; where Pillow compares with it
    too (``pillow_checks``), it bounds ``max_pixels``.
    """
    pillow_limit = Image.MAX_IMAGE_PIXELS
    limit = pillow_limit if max_pixels is None else max_pixels
    remedy = "give a larger max_pixels="
    if pillow_checks and pillow_limit is not None and limit is not None and pillow_limit <= limit:
        limit, remedy = pillow_limit, "raise PIL.Image.MAX_IMAGE_PIXELS"
    elif max_pixels is None:
        remedy += " or raise PIL.Image.MAX_IMAGE_PIXELS"
    width, height = size
    if limit is not None and width * height > limit:
        seen = f"{name} has {width} × {height} = {width * height} pixels"
        raise ImageTooLarge(f"{seen}; the limit is {limit}. To decode it anyway, {remedy}.")


def _name_of(source: Encoded) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, bytes):
        return f"<{len(source)} bytes>"
    return str(getattr(source, "name", "<file>"))


@contextlib.contextmanager
def _opened(source: Encoded) -> Iterator[BinaryIO]:
    """A seekable binary file at its start."""
    if isinstance(source, (str, os.PathLike)):
        # Opening a named pipe would wait forever for somebody to write to it.
        mode = os.stat(source).st_mode
        if not stat.S_ISREG(mode):
            raise ImageError("it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file")
        with open(source, "rb") as file:
            yield file
    elif isinstance(source, (bytes, bytearray, memoryview)):
        yield io.BytesIO(source)
    elif hasattr(source, "read"):
        data = source.read()
        if not isinstance(data, bytes):
            raise ImageError(f"reading it gives {type(data).__name__}, not bytes; open it in binary mode")
        yield io.BytesIO(data)
    else:
        raise ImageError(f"expected a path, bytes or a binary file, not {type(source).__name__}")


def _open_header(file: BinaryIO, name: str, max_pixels: int | None) -> ImageFile.ImageFile:
    """Read the header with the one decoder that fits, and check the size.

    Pillow's classes are called directly, not through ``Image.open``: that would compare with the global
    ``MAX_IMAGE_PIXELS`` and warn, and neither the limit nor the warning can be changed for one thread only.
    """
    start = file.read(12)
    file.seek(0)
    if not start:
        raise ImageError("the file is empty")
    reader = next((reader for beginning, reader in _READERS if re.match(beginning, start, re.DOTALL)), None)
    if reader is None:
        raise ImageError(f"it is not a JPEG, PNG, WebP, BMP, TIFF or GIF image; it starts with {start!r}")
    if reader is GifImageFile:
        # Pillow allocates a whole frame while it opens a GIF, so its size must be known before.
        check_size(_gif_size(file), name, max_pixels, pillow_checks=True)
        file.seek(0)
    image = reader(file)
    if isinstance(image, PngImageFile):
        _scale_gray_key(image)
    check_size(image.size, name, max_pixels, pillow_checks=reader in (GifImageFile, TiffImageFile, WebPImageFile))
    return image


def _scale_gray_key(image: PngImageFile) -> None:
    """Bring the transparent gray of a PNG with 2 or 4 bits to 8 bits, as Pillow does with the pixels only."""
    key = image.info.get("transparency")
    raw_mode = image.tile[0][3] if image.tile else None
    if isinstance(key, int) and raw_mode in ("L;2", "L;4"):
        image.info["transparency"] = key * (85 if raw_mode == "L;2" else 17)


def _gif_size(file: BinaryIO) -> tuple[int, int]:
    """Width and height of the screen of a GIF, enlarged to hold its first frame as Pillow does."""
    width, height, flags = struct.unpack("<6xHHB2x", file.read(13))
    if flags & 0x80:  # a global color table follows
        file.seek(3 << ((flags & 7) + 1), os.SEEK_CUR)
    while (kind := file.read(1)) not in (b"", b";"):
        if kind == b"!":
            file.seek(1, os.SEEK_CUR)
            while (length := file.read(1)) and length != b"\0":  # skip its blocks
                file.seek(length[0], os.SEEK_CUR)
        elif kind == b",":
            left, top, frame_width, frame_height = struct.unpack("<HHHH", file.read(8))
            return max(width, left + frame_width), max(height, top + frame_height)
    return width, height


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8. Damaged metadata does not spoil the pixels: it counts as absent."""
    try:
        orientation = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:
        return 1
    return orientation if isinstance(orientation, int) else 1


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    if isinstance(error, MemoryError):
        return "there is not enough memory to decode it"
    return str(error).rstrip(".") or type(error).__name__


def to_rgb(image: Image.Image) -> Image.Image:
    """Bring an image of any mode to RGB, with the colors it is meant to have.

    * Transparency (an alpha channel, a transparent palette entry or color) is composited over white.
    * 16-bit gray (``I;16``, ``I``) is divided by 257, which takes 65535 to 255 (Pillow's own clips).
    * Floating point (``F``) must lie in [0, 1].
    """
    if image.mode == "I" or image.mode.startswith("I;16"):
        return _gray16_to_rgb(image)
    if image.mode == "F":
        values = np.asarray(image)
        if not (values.min() >= 0 and values.max() <= 1):  # also false for NaN
            seen = f"from {values.min():g} to {values.max():g}"
            raise ImageError(f"floating-point pixels range {seen}; expected [0, 1], so scale them first")
        return Image.fromarray(np.rint(values * 255).astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    # The colors under transparent pixels are arbitrary (editors leave black, white or noise there), so dropping the
    # alpha channel would show the model things that nobody sees. White is what most viewers put behind.
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, _with_alpha(image)).convert("RGB")


def _gray16_to_rgb(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        seen = f"from {values.min()} to {values.max()}"
        raise ImageError(f"integer pixels range {seen}; expected 16 bits, 0 to 65535, so scale them first")
    gray = ((values + 128) // 257).astype(np.uint8)
    key = image.info.get("transparency")
    if isinstance(key, int):
        gray[values == key] = 255
    return Image.fromarray(gray).convert("RGB")


def _with_alpha(image: Image.Image) -> Image.Image:
    """The image in mode RGBA."""
    key = image.info.get("transparency")
    if image.mode == "RGB" and isinstance(key, tuple) and max(key) > 255:
        # A PNG with 16 bits a channel names its transparent color in 16 bits; Pillow keeps the upper 8 of the pixels,
        # but not of this.
        image = image.copy()
        image.info["transparency"] = tuple(value >> 8 for value in key)
    if image.mode == "La":  # premultiplied; Pillow converts it only by way of LA
        image = image.convert("LA")
    return image.convert("RGBA")
