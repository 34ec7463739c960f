"""Where training images come from: the scenes, a folder with one sub-folder per class, or ``.npz`` files of JPEGs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from suffice.errors import ImageError, OptionError
from suffice.options import Count, check_options
from suffice.vision import Geometry, Images, Picture, open_images
from suffice.vision.images.sources import EncodedSource
from suffice.vision.stream import stream
from suffice.zoo.scenes.dataset import to_bytes
from suffice.zoo.training.data import Examples, TrainingData, mean_and_std

CHUNK = 2048  # scenes that are rendered at a time
HELD_OUT = 10  # without validation images, one in so many is held out
ON_CPU = {"train": 20_000, "validation": 2_000, "test": 2_000}  # scenes where there is no GPU

OnProgress = Callable[[int, int], None]


def open_data(
    source: str,
    *,
    validation: str | None = None,
    size: Count | None = None,
    images: Count | None = None,
    detail: Count = 1,
    device: str | torch.device = "cpu",
    on_progress: OnProgress | None = None,
) -> TrainingData:
    """Prepare training data, once for any number of runs.

    Args:
        source: ``"scenes"``; a folder with one sub-folder per class; or ``.npz`` files, separated by commas.
        validation: Another folder or other ``.npz`` files; default: every tenth image is held out.
        size: Height and width that images are brought to; default: 56 for scenes, 64 for the others.
        images: Use so many training images, evenly taken; default: all. Without a GPU there are 20,000 training scenes
            by default, and 2,000 each for validation and test instead of 10,000.
        detail: Training images are kept so many times as high and wide as networks see them, so that parts that a
            recipe enlarges (``zoom``) stay sharp. Not for scenes.
        device: Where the pixels go.
        on_progress: Called with (done, total) now and then.

    Returns:
        The data.

    Raises:
        OptionError: The choices do not fit together, or the pixels would not fit into memory.
        ImageError: Something cannot be read.
    """
    device = torch.device(device)
    check_options({"images": images, "size": size, "detail": detail}, open_data)
    if source == "scenes":
        if validation is not None:
            raise OptionError("The scenes have validation images of their own; leave validation= out.")
        if detail != 1:
            raise OptionError(f"detail= is {detail}; scenes are rendered at the one size that networks see.")
        return _scenes(size, images, device, on_progress)
    sources = [_pictures(source)] + ([_pictures(validation)] if validation is not None else [])
    return data_of_images(
        *sources, name=source, size=size or 64, images=images, detail=detail, device=device, on_progress=on_progress
    )


def _scenes(size: int | None, images: int | None, device: torch.device, on_progress: OnProgress | None) -> TrainingData:
    from suffice.zoo import scenes

    if size not in (None, scenes.SIZE):
        raise OptionError(f"size= is {size}; the scenes are {scenes.SIZE}×{scenes.SIZE}.")
    splits = dict(scenes.SPLITS)
    if device.type == "cpu":
        limits = ON_CPU | ({} if images is None else {"train": splits["train"][1]})
        splits = {name: (first, min(count, limits[name])) for name, (first, count) in splits.items()}
    return data_of_renderer(scenes.render_pixels, splits, scenes.CLASSES, scenes.SIZE, images, device, on_progress)


def data_of_renderer(
    render: Callable[..., tuple[Tensor, Tensor]],
    splits: Mapping[str, tuple[int, int]],
    classes: Iterable[str],
    size: int,
    images: int | None,
    device: torch.device,
    on_progress: OnProgress | None = None,
) -> TrainingData:
    """Data from a function that renders images by index.

    Args:
        render: ``render(index, seed, device)`` gives pixels float32 [B, 3, H, W] in [0, 1] and labels int64 [B].
        splits: First index and number of images of ``train``, ``validation`` and ``test``.
        classes: Names of the classes.
        size: Height and width.
        images: Render so many training images instead of all.
        device: Where to render, and where the pixels stay.
        on_progress: Called with (done, total).
    """
    wanted = dict(splits)
    first, count = wanted["train"]
    if images is not None and images > count:
        raise OptionError(f"images= is {images}; there are {count} training scenes.")
    wanted["train"] = (first, images or count)
    total = sum(count for _, count in wanted.values())
    check_memory(total, size, device)
    done = 0
    parts = {}
    for name, (first, count) in wanted.items():
        pixels = torch.empty((count, 3, size, size), dtype=torch.uint8, device=device)
        labels = torch.empty(count, dtype=torch.int64, device=device)
        for start in range(0, count, CHUNK):
            stop = min(start + CHUNK, count)
            index = torch.arange(first + start, first + stop, device=device)
            drawn, classes_drawn = render(index, 0, device)
            pixels[start:stop] = to_bytes(drawn)
            labels[start:stop] = classes_drawn
            done += stop - start
            if on_progress is not None:
                on_progress(done, total)
        parts[name] = Examples(pixels, labels)
    return TrainingData(
        parts["train"], parts["validation"], tuple(classes), name="scenes", test=parts["test"], photographs=False
    )


def data_of_images(
    training: Images,
    validation: Images | None = None,
    *,
    name: str = "images",
    size: int = 64,
    images: int | None = None,
    detail: int = 1,
    device: str | torch.device = "cpu",
    on_progress: OnProgress | None = None,
) -> TrainingData:
    """Data from labeled images: decoded once, short side brought to ``size``, center cropped.

    Args:
        training: Training images, each with a label.
        validation: Validation images; default: every tenth of the others.
        name: What reports and errors call it.
        size: Height and width.
        images: Use so many training images, evenly taken.
        detail: Keep training images so many times as high and wide.
        device: Where the pixels go.
        on_progress: Called with (done, total).

    Returns:
        The data; classes are the labels of the training images in order, mean and std are theirs.

    Example:
        >>> pictures = open_images(torch.rand(20, 3, 8, 8), labels=["cat", "dog"] * 10)
        >>> data = data_of_images(pictures, size=8)
        >>> len(data.train), len(data.validation), data.classes
        (18, 2, ('cat', 'dog'))
    """
    device = torch.device(device)
    if validation is None:
        validation, training = _held_out(training)
    # Of all images, so that the classes do not depend on how many are used.
    names = sorted(set(_labels(training, name)), key=lambda label: (isinstance(label, str), label))
    known = {label: number for number, label in enumerate(names)}
    if images is not None:
        if images > len(training):
            raise OptionError(f"images= is {images}; {name} has {len(training)} training images.")
        # Evenly, because folders are sorted by class.
        training = training[[i * len(training) // images for i in range(images)]]
    total = len(training) + len(validation)
    check_memory(detail**2 * len(training) + len(validation), size, device)
    labels = [_labels(part, name) for part in (training, validation)]
    if strange := sorted({str(v) for v in labels[1] if v not in known}):
        raise OptionError(f"Validation classes that {name} has no training images of: {', '.join(strange[:5])}.")
    parts = []
    done = 0
    for pictures, part_labels, side in zip((training, validation), labels, (detail * size, size), strict=True):
        pixels = torch.empty((len(pictures), 3, side, side), dtype=torch.uint8, device=device)
        for batch in stream(pictures, Geometry((side, side)), batch_size=256):
            pixels[batch.index.to(device)] = to_bytes(batch.pixels).to(device)
            done += len(batch.index)
            if on_progress is not None:
                on_progress(done, total)
        parts.append(Examples(pixels, torch.tensor([known[v] for v in part_labels], device=device)))
    mean, std = mean_and_std(parts[0].pixels)
    return TrainingData(parts[0], parts[1], tuple(map(str, known)), mean, std, name, photographs=True)


def npz_images(path: str | Path) -> Images:
    """The images in an ``.npz`` file of JPEGs.

    Args:
        path: File with ``jpeg`` (all files after each other, uint8), ``offset`` [N + 1] (where each begins and the last
            ends), ``y`` [N] (class) and, if classes have names, ``wnid`` [K].

    Returns:
        The images; labels are names if there are any, else numbers.

    Raises:
        ImageError: The file cannot be read or is not of that kind.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            content = {key: file[key] for key in ("jpeg", "offset", "y", "wnid") if key in file.files}
            present = file.files
    except (OSError, ValueError, EOFError) as error:
        raise ImageError(f"Cannot read {path}: {error}.") from error
    except Exception as error:  # a broken archive: zipfile and zlib have classes of their own
        raise ImageError(f"Cannot read {path}: {type(error).__name__}: {error}.") from error
    if missing := [key for key in ("jpeg", "offset", "y") if key not in content]:
        raise ImageError(
            f"{path} has the keys {', '.join(present)}; {', '.join(missing)} missing. Expected jpeg (uint8), offset "
            "[N + 1] and y [N]."
        )
    offset, y = content["offset"].astype(np.int64), content["y"].astype(np.int64)
    jpeg = content["jpeg"]
    if len(offset) != len(y) + 1 or np.any(np.diff(offset) < 0) or offset[0] < 0 or offset[-1] > len(jpeg):
        raise ImageError(
            f"{path} has {len(y)} labels and {len(offset)} offsets up to {offset[-1] if len(offset) else 'none'} in "
            f"{len(jpeg)} bytes; expected one offset more than labels, rising, within the bytes."
        )
    names = content.get("wnid")
    if names is not None and len(y) and (y.min() < 0 or y.max() >= len(names)):
        raise ImageError(f"{path} has classes {y.min()} to {y.max()}, but names for {len(names)}.")
    stem = Path(path).name
    return Images(
        Picture(
            f"{stem}[{i}]",
            EncodedSource(jpeg[offset[i] : offset[i + 1]].tobytes(), f"{stem}[{i}]"),
            stored_label=int(y[i]) if names is None else str(names[y[i]]),
        )
        for i in range(len(y))
    )


def check_memory(images: int, size: int, device: torch.device) -> None:
    """Raise if the pixels of so many images would not fit on a device, with room for training beside them."""
    free = free_memory(device)
    needed = images * 3 * size * size
    if free is not None and needed > 0.8 * free:
        fitting = int(0.8 * free) // (3 * size * size)
        raise OptionError(
            f"{images:,} images of {size}×{size} need {needed / 1e9:.1f} GB on {device}, and {free / 1e9:.1f} GB are "
            f"free. Use fewer (images= or --images, up to {fitting:,}) or a smaller size."
        )


def free_memory(device: torch.device) -> int | None:
    """Free bytes on a device; None where there is no telling."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    meminfo = Path("/proc/meminfo")
    if device.type != "cpu" or not meminfo.is_file():
        return None
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
    return int(lines["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in lines else None


def _pictures(source: str) -> Images:
    files = [part.strip() for part in source.split(",")]
    if all(file.endswith(".npz") for file in files):
        return sum((npz_images(file) for file in files[1:]), npz_images(files[0]))
    if not Path(source).is_dir():
        raise OptionError(
            f"There is no folder {source!r}. Give scenes, a folder with one sub-folder per class, or .npz files "
            "separated by commas."
        )
    return open_images(source)


def _held_out(images: Images) -> tuple[Images, Images]:
    if len(images) < HELD_OUT:
        raise OptionError(
            f"There are {len(images)} images; to hold out every {HELD_OUT}th for validation takes at least {HELD_OUT}. "
            "Give validation images."
        )
    chosen = [i % HELD_OUT == HELD_OUT - 1 for i in range(len(images))]
    return images[chosen], images[[not c for c in chosen]]


def _labels(images: Images, name: str) -> list[Any]:
    labels = images.labels
    if None in labels:
        raise OptionError(
            f"{images.names[labels.index(None)]} in {name} has no label. Put the images of each class into a "
            "sub-folder of its own."
        )
    return labels
