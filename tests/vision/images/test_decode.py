import io
import os
import stat
import struct
import threading
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from suffice.errors import ImageError, ImageTooLarge, OptionError, UnreadableImage
from suffice.vision.images.decode import decode, to_rgb


def encode(image, format, **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def pixels(image):
    assert image.mode == "RGB"
    return np.array(image)


def png(width, height, *, depth=8, kind=2, rows=b"", extra=b""):
    """A PNG written by hand, for what Pillow cannot write."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + (chunk(b"tRNS", extra) if extra else b"")
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def gif(screen, frame):
    """The head of a GIF whose frame may be larger than its screen."""
    return (
        b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0) + bytes(6)
        + b"!\xf9\x04\x08\0\0\0\0"  # disposal method 2: Pillow allocates a frame while opening
        + b"," + struct.pack("<HHHHB", 0, 0, *frame, 0) + b"\x02\x02\x4c\x01\0;"
    )  # fmt: skip


@pytest.fixture
def scene():
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (5, 7, 3), dtype=np.uint8)


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "WEBP", "JPEG", "GIF"])
def test_every_format_gives_its_pixels(format, scene):
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}.get(format, {})
    image = decode(encode(Image.fromarray(scene), format, **options))
    difference = np.abs(pixels(image).astype(int) - scene)
    assert type(image) is Image.Image
    assert difference.max() <= (6 if format == "JPEG" else 0)


def test_sources_are_paths_bytes_and_files(tmp_path, scene):
    data = encode(Image.fromarray(scene), "PNG")
    path = tmp_path / "scene.jpg"  # the content decides, not the suffix
    path.write_bytes(data)
    with open(path, "rb") as file:
        for source in (path, str(path), data, io.BytesIO(data), file):
            assert (pixels(decode(source)) == scene).all()


# What a viewer shows for each EXIF orientation, in numpy's words.
UPRIGHT = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: lambda a: np.rot90(a, 1),
    9: lambda a: a,
}


@pytest.mark.parametrize("orientation", UPRIGHT)
@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_exif_orientation_is_applied_once(format, orientation, scene):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}}.get(format, {})
    image = decode(encode(Image.fromarray(scene), format, exif=exif, **options))
    expected = UPRIGHT[orientation](scene)
    assert pixels(image).shape == expected.shape
    assert np.abs(pixels(image).astype(int) - expected).max() <= (6 if format == "JPEG" else 0)
    assert image.getexif().get(0x0112) is None


@pytest.mark.parametrize("exif", [b"Exif\0\0", b"Exif\0\0garbage", b"Exif\0\0II*\0\xff\xff\xff\x7f", bytes(30)])
def test_damaged_exif_leaves_the_pixels_readable(exif, scene):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = decode(encode(Image.fromarray(scene), "PNG", exif=exif))
    assert (pixels(image) == scene).all()


def test_one_bit(scene):
    bits = scene[..., 0] > 127
    image = decode(encode(Image.fromarray(bits), "PNG"))
    assert (pixels(image) == bits[..., None] * 255).all()


def test_gray(scene):
    image = decode(encode(Image.fromarray(scene[..., 0]), "PNG"))
    assert (pixels(image) == scene[..., :1]).all()


def test_palette():
    image = Image.new("P", (2, 2))
    image.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    image.putdata([0, 1, 2, 1])
    assert pixels(decode(encode(image, "PNG"))).reshape(4, 3).tolist() == [
        [10, 20, 30], [40, 50, 60], [70, 80, 90], [40, 50, 60],
    ]  # fmt: skip


@pytest.mark.parametrize("format", ["PNG", "GIF"])
def test_palette_with_one_transparent_entry_shows_white(format):
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putdata([0, 1])
    assert pixels(decode(encode(image, format, transparency=0))).tolist() == [[[255, 255, 255], [40, 50, 60]]]


def test_palette_with_graded_alpha():
    image = Image.new("P", (3, 1))
    image.putpalette([0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0])
    image.putdata([0, 1, 2])
    decoded = pixels(decode(encode(image, "PNG", transparency=bytes([0, 128, 255]))))
    assert decoded[0, :, 0].tolist() == [255, 127, 0]


@pytest.mark.parametrize(("mode", "color"), [("RGBA", (200, 100, 0)), ("LA", (200,)), ("PA", (200,))])
def test_alpha_is_composited_over_white(mode, color):
    image = Image.new(mode, (3, 1))
    if mode == "PA":
        image.putpalette([value for value in range(256) for _ in range(3)])
    for x, alpha in enumerate((0, 128, 255)):
        image.putpixel((x, 0), (*color, alpha))
    rgb = np.array(color if len(color) == 3 else color * 3)
    decoded = pixels(to_rgb(image) if mode == "PA" else decode(encode(image, "PNG")))
    expected = [rgb * a / 255 + 255 - a for a in (0, 128, 255)]
    assert np.abs(decoded[0] - np.stack(expected)).max() <= 1
    assert decoded[0, 0].tolist() == [255, 255, 255]
    assert decoded[0, 2].tolist() == rgb.tolist()


def test_transparent_color_key():
    rgb = png(2, 1, rows=bytes([0, 1, 2, 3, 4, 5, 6]), extra=struct.pack(">HHH", 1, 2, 3))
    assert pixels(decode(rgb)).tolist() == [[[255, 255, 255], [4, 5, 6]]]
    gray = png(2, 1, kind=0, rows=bytes([0, 9, 8]), extra=struct.pack(">H", 9))
    assert pixels(decode(gray))[0, :, 0].tolist() == [255, 8]
    rows = b"\0" + struct.pack(">HH", 257 * 9, 257 * 8)
    gray16 = png(2, 1, kind=0, depth=16, rows=rows, extra=struct.pack(">H", 257 * 9))
    assert pixels(decode(gray16))[0, :, 0].tolist() == [255, 8]


def test_transparent_gray_of_few_bits():
    two = png(4, 1, depth=2, kind=0, rows=bytes([0, 0b00_01_10_11]), extra=struct.pack(">H", 2))
    assert pixels(decode(two))[0, :, 0].tolist() == [0, 85, 255, 255]
    four = png(2, 1, depth=4, kind=0, rows=bytes([0, 0x3C]), extra=struct.pack(">H", 3))
    assert pixels(decode(four))[0, :, 0].tolist() == [255, 0xCC]
    one = png(2, 1, depth=1, kind=0, rows=bytes([0, 0b01_000000]), extra=struct.pack(">H", 0))
    assert pixels(decode(one))[0, :, 0].tolist() == [255, 255]


def test_16_bit_color_with_transparent_color_key():
    rows = b"\0" + struct.pack(">6H", 0x1234, 0x5678, 0x9ABC, 0x0F00, 0x1000, 0xFF00)
    data = png(2, 1, depth=16, rows=rows, extra=struct.pack(">HHH", 0x1234, 0x5678, 0x9ABC))
    assert pixels(decode(data)).tolist() == [[[255, 255, 255], [0x0F, 0x10, 0xFF]]]


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_16_bit_gray_is_scaled_not_clipped(format):
    values = np.array([[0, 128, 129, 257, 257 * 100, 32768, 65535]], dtype=np.uint16)
    image = decode(encode(Image.fromarray(values), format))
    assert pixels(image)[0, :, 0].tolist() == [0, 0, 1, 1, 100, 128, 255]
    assert (pixels(image)[..., :1] == pixels(image)).all()


def test_16_bit_big_endian():
    image = Image.frombytes("I;16B", (2, 1), struct.pack(">HH", 257 * 3, 257 * 200))
    assert pixels(to_rgb(image))[0, :, 0].tolist() == [3, 200]


def test_32_bit_integers_are_16_bit_values_or_an_error():
    image = Image.new("I", (2, 1))
    image.putdata([257 * 7, 65535])
    assert pixels(decode(encode(image, "TIFF")))[0, :, 0].tolist() == [7, 255]
    for outside in (-1, 65536):
        image.putdata([0, outside])
        with pytest.raises(UnreadableImage, match=r"deep\.tif.*0 to 65535"):
            decode(encode(image, "TIFF"), name="deep.tif")


def test_floats_in_the_unit_interval_or_an_error():
    values = np.array([[0, 0.5, 1]], dtype=np.float32)
    assert pixels(decode(encode(Image.fromarray(values), "TIFF")))[0, :, 0].tolist() == [0, 128, 255]
    for outside in (-0.1, 1.5, np.nan, np.inf):
        values[0, 0] = outside
        with pytest.raises(UnreadableImage, match=r"float\.tif.*expected \[0, 1\]"):
            decode(encode(Image.fromarray(values), "TIFF"), name="float.tif")


def test_cmyk_and_ycbcr():
    cmyk = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    assert pixels(decode(encode(cmyk, "TIFF")))[0, 0].tolist() == [255, 0, 0]
    assert np.abs(pixels(decode(encode(cmyk, "JPEG", quality=100)))[4, 4].astype(int) - [255, 0, 0]).max() <= 3
    ycbcr = Image.new("YCbCr", (1, 1), (76, 85, 255))
    assert np.abs(pixels(to_rgb(ycbcr))[0, 0].astype(int) - [255, 0, 0]).max() <= 2


def test_premultiplied_modes_and_hsv():
    assert pixels(to_rgb(Image.new("RGBa", (1, 1), (100, 50, 0, 128))))[0, 0, 0] in (226, 227)
    assert pixels(to_rgb(Image.new("La", (1, 1), (0, 0)))).tolist() == [[[255, 255, 255]]]
    assert pixels(to_rgb(Image.new("HSV", (1, 1), (0, 255, 255)))).tolist() == [[[255, 0, 0]]]


def test_to_rgb_leaves_the_original_alone():
    image = Image.new("RGB", (1, 1), (1, 2, 3))
    copy = to_rgb(image)
    copy.putpixel((0, 0), (9, 9, 9))
    assert image.getpixel((0, 0)) == (1, 2, 3)


def test_first_frame_of_an_animation():
    frames = [Image.new("RGB", (4, 4), color) for color in ((255, 0, 0), (0, 255, 0))]
    for format, options in (("GIF", {}), ("WEBP", {"lossless": True}), ("TIFF", {}), ("PNG", {})):
        data = encode(frames[0], format, save_all=True, append_images=frames[1:], **options)
        assert pixels(decode(data))[0, 0].tolist() == [255, 0, 0], format


GOOD_JPEG = encode(Image.fromarray(np.random.default_rng(1).integers(0, 256, (24, 32, 3), dtype=np.uint8)), "JPEG")
GOOD_PNG = encode(Image.fromarray(np.random.default_rng(2).integers(0, 256, (24, 32, 3), dtype=np.uint8)), "PNG")
GOOD = {
    "jpeg": GOOD_JPEG,
    "png": GOOD_PNG,
    "gif": encode(Image.open(io.BytesIO(GOOD_PNG)), "GIF"),
    "bmp": encode(Image.open(io.BytesIO(GOOD_PNG)), "BMP"),
    "tiff": encode(Image.open(io.BytesIO(GOOD_PNG)), "TIFF"),
    "lzw": encode(Image.open(io.BytesIO(GOOD_PNG)), "TIFF", compression="tiff_lzw"),
    "webp": encode(Image.open(io.BytesIO(GOOD_PNG)), "WEBP"),
}

BROKEN = {
    "empty": b"",
    "one byte": b"\xff",
    "text": b"Not Found\n",
    "html": b"<!DOCTYPE html><html></html>",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "jpeg magic only": b"\xff\xd8\xff",
    "jpeg without pixels": GOOD_JPEG[:200],
    "jpeg of zero width": GOOD_JPEG.replace(struct.pack(">HH", 24, 32), struct.pack(">HH", 24, 0)),
    "png magic only": b"\x89PNG\r\n\x1a\n",
    "png of zero width": png(0, 4),
    "png with damaged checksum": GOOD_PNG[:29] + b"\0\0\0\0" + GOOD_PNG[33:],
    "png with damaged stream": GOOD_PNG[:50] + bytes(40) + GOOD_PNG[90:],
    "png of no known kind": png(2, 2, kind=5),
    "png without pixels": png(2, 2),
    "gif header only": GOOD["gif"][:13],
    "gif without a frame": b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0, 0, 0) + b";",
    "bmp that is text": b"BM is the start of this text, not of a bitmap",
    "tiff with a directory far away": b"II*\0" + struct.pack("<I", 2**31),
    "tiff with an endless directory": b"II*\0" + struct.pack("<IH", 8, 65535),
    "riff that is no webp": b"RIFF\x24\0\0\0WAVEfmt ",
    "webp without content": b"RIFF\x24\0\0\0WEBPVP8 ",
    "another format": b"P6 2 2 255\n" + bytes(12),  # Pillow reads PPM, but this is not among the formats
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n",
    "icon": encode(Image.new("RGB", (16, 16)), "ICO"),
    **{f"half a {kind}": data[: len(data) // 2] for kind, data in GOOD.items()},
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_broken_files_have_a_named_error(data, tmp_path):
    path = tmp_path / "broken.jpg"
    path.write_bytes(data)
    for source in (path, io.BytesIO(data)):
        with pytest.raises(UnreadableImage, match=r"broken\.jpg: \w"):
            decode(source, name=str(path))


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(UnreadableImage, match=r"missing\.png: there is no such file"):
        decode(tmp_path / "missing.png")
    with pytest.raises(UnreadableImage, match="it is a directory"):
        decode(tmp_path)
    with pytest.raises(UnreadableImage, match="null"):
        decode("a\0b.png")
    (tmp_path / "file.png").write_bytes(b"x")
    with pytest.raises(UnreadableImage, match=r"file\.png/x\.png: not a directory"):
        decode(tmp_path / "file.png" / "x.png")
    with pytest.raises(UnreadableImage, match="not int"):
        decode(5)
    with pytest.raises(UnreadableImage, match="binary mode"):
        decode(io.StringIO("text"))


def test_permission_denied_is_named(tmp_path, monkeypatch):
    path = tmp_path / "secret.png"
    path.write_bytes(GOOD_PNG)

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(UnreadableImage, match=r"secret\.png: permission denied"):
        decode(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe.png").st_mode)
    with pytest.raises(UnreadableImage, match="not a regular file"):
        decode(tmp_path / "pipe.png")


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep"), zlib.error("bad"), IndexError(), KeyError(1)])
def test_whatever_a_decoder_raises_comes_out_named(error, monkeypatch):
    def fail(_self):
        raise error

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", fail)
    with pytest.raises(UnreadableImage, match=r"x\.png: \w"):
        decode(GOOD_PNG, name="x.png")


def test_interrupt_is_not_swallowed(monkeypatch):
    def interrupt(_self):
        raise KeyboardInterrupt

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", interrupt)
    with pytest.raises(KeyboardInterrupt):
        decode(GOOD_PNG)


class TestPixelLimit:
    """32 × 24 images (768 pixels), in every format, against limits around that."""

    @pytest.fixture(autouse=True)
    def _no_warnings(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield

    @pytest.mark.parametrize("data", GOOD.values(), ids=GOOD.keys())
    @pytest.mark.parametrize("pillow_limit", [767, 383, 10])  # Pillow alone: warns, raises, raises
    def test_pillows_limit_is_read_at_call_time(self, data, pillow_limit, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pillow_limit)
        with pytest.raises(ImageTooLarge, match=r"MAX_IMAGE_PIXELS"):
            decode(data)
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 768)
        assert decode(data).size == (32, 24)
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
        assert decode(data).size == (32, 24)

    @pytest.mark.parametrize("data", GOOD.values(), ids=GOOD.keys())
    def test_lower_limit_of_the_call(self, data):
        with pytest.raises(ImageTooLarge, match=r"big has 32 × 24 = 768 pixels; the limit is 767.*max_pixels="):
            decode(data, name="big", max_pixels=767)
        assert decode(data, max_pixels=768).size == (32, 24)

    @pytest.mark.parametrize("pillow_limit", [767, 10])
    @pytest.mark.parametrize("kind", ["jpeg", "png", "bmp"])
    def test_higher_limit_of_the_call(self, kind, pillow_limit, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pillow_limit)
        assert decode(GOOD[kind], max_pixels=768).size == (32, 24)

    @pytest.mark.parametrize("pillow_limit", [767, 10])
    @pytest.mark.parametrize("kind", ["gif", "tiff", "lzw", "webp"])
    def test_higher_limit_where_pillow_insists(self, kind, pillow_limit, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pillow_limit)
        with pytest.raises(ImageTooLarge, match=r"raise PIL\.Image\.MAX_IMAGE_PIXELS"):
            decode(GOOD[kind], max_pixels=768)

    @pytest.mark.parametrize(("screen", "frame"), [((4, 4), (30000, 30000)), ((30000, 30000), (30000, 30000))])
    def test_gif_frame_larger_than_its_screen(self, screen, frame):
        with pytest.raises(ImageTooLarge, match="30000 × 30000"):
            decode(gif(screen, frame))

    @pytest.mark.parametrize("width", [9500, 60000])  # over the limit; over twice the limit
    def test_bombs_are_refused_before_pixels_are_read(self, width, monkeypatch):
        monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", lambda _self: pytest.fail("decoded"))
        with pytest.raises(ImageTooLarge, match=f"{width} × 9500"):
            decode(png(width, 9500))

    def test_limits_of_two_threads_do_not_meet(self):
        results = {}

        def work(limit):
            results[limit] = []
            for _ in range(50):
                try:
                    results[limit].append(decode(GOOD_PNG, max_pixels=limit).size)
                except ImageTooLarge:
                    results[limit].append(None)

        threads = [threading.Thread(target=work, args=(limit,)) for limit in (767, 768)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {767: [None] * 50, 768: [(32, 24)] * 50}

    @pytest.mark.parametrize("limit", [0, -1, 1.5, True, "many"])
    def test_senseless_limits(self, limit):
        with pytest.raises(OptionError, match="max_pixels="):
            decode(GOOD_PNG, max_pixels=limit)


def decode_or_image_error(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            image = decode(data, name="fuzz", max_pixels=100_000)
        except ImageError as error:
            message = str(error)
        else:
            assert image.mode == "RGB"
            assert image.width * image.height <= 100_000
            return
    assert "fuzz" in message


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([b"", *(data[:12] for data in GOOD.values())]), st.binary(max_size=200))
def test_random_bytes_give_an_image_or_an_image_error(start, rest):
    decode_or_image_error(start + rest)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_truncated_files_give_an_image_or_an_image_error(kind, data):
    cut = data.draw(st.integers(0, len(GOOD[kind]) - 1))
    decode_or_image_error(GOOD[kind][:cut])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_flipped_bits_give_an_image_or_an_image_error(kind, data):
    damaged = bytearray(GOOD[kind])
    # Headers are where damage does most, so half of the flips go there.
    places = st.integers(0, min(120, len(damaged) - 1)) | st.integers(0, len(damaged) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=6)):
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    decode_or_image_error(bytes(damaged))
