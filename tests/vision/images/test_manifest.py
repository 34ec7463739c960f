import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from suffice.errors import ImageError, ManifestError
from suffice.vision.images import open_images
from suffice.vision.images.listing import with_boxes


def write(path, text, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.fixture
def csv(tmp_path):
    return lambda text, **options: write(tmp_path / "list.csv", text, **options)


@pytest.fixture
def jsonl(tmp_path):
    return lambda text, **options: write(tmp_path / "list.jsonl", text, **options)


def test_csv_in_its_own_order(csv, tmp_path):
    for i, name in enumerate(["b.png", "sub/a.png"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (2, 2), (i, i, i)).save(tmp_path / name)
    images = open_images(csv('path,label,boxes\nb.png,7,"[1, 2, 3, 4.5]"\n\nsub/a.png,cat,"[[0,0,1,1],[1,1,2,2]]"\n'))
    assert images.names == ["b.png", "sub/a.png"]
    assert images.labels == [7, "cat"]
    assert images.boxes == [((1, 2, 3, 4.5),), ((0, 0, 1, 1), (1, 1, 2, 2))]
    assert [picture.decode().getpixel((0, 0)) for picture in images] == [(0, 0, 0), (1, 1, 1)]
    assert open_images(tmp_path / "list.csv", labels=None).labels == [None, None]


def test_jsonl_means_the_same(jsonl):
    rows = [
        {"path": "b.png", "label": 7, "boxes": [1, 2, 3, 4.5]},
        {"path": "a.png", "label": "cat", "boxes": [[0, 0, 1, 1]], "extra": {}},
        {"path": "c.png", "label": "12", "boxes": "[[0, 0, 1, 1]]"},
        {"path": "d.png", "label": None, "boxes": []},
        {"path": "e.png"},
    ]
    images = open_images(jsonl("\n".join(json.dumps(row) for row in rows) + "\n\n"))
    assert images.names == ["b.png", "a.png", "c.png", "d.png", "e.png"]
    assert images.labels == [7, "cat", 12, None, None]
    assert images.boxes == [((1, 2, 3, 4.5),), ((0, 0, 1, 1),), ((0, 0, 1, 1),), (), None]


@pytest.mark.parametrize("column", ["path", "file", "filename", "image"])
def test_names_of_the_path_column(csv, column):
    assert open_images(csv(f"id,{column}\n1,a.png\n")).names == ["a.png"]


@pytest.mark.parametrize("column", ["label", "class_index", "class", "wnid"])
def test_names_of_the_label_column(csv, column):
    assert open_images(csv(f"path,{column},other\na.png,n01440764,5\n")).labels == ["n01440764"]


def test_first_known_column_wins(csv):
    images = open_images(csv("wnid,image,class_index,file,boxes_xyxy\nn01,x.png,3,y.png,\n"))
    assert (images.names, images.labels, images.boxes) == (["y.png"], [3], [None])


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("3", 3),
        ("-3", -3),
        (" 3 ", 3),
        ("003", 3),
        ("3.0", "3.0"),
        ("1_000", "1_000"),
        ("", None),
        ("9" * 30, "9" * 30),
    ],
)
def test_labels_are_integers_where_they_look_like_one(csv, text, label):
    assert open_images(csv(f"path,label\na.png,{text}\n")).labels == [label]


def test_byte_order_mark_windows_lines_quotes_and_umlauts(csv):
    images = open_images(csv('\ufeffpath,label\r\n"a,b.png","x ""y"""\r\nü.png,ä\r\n'))
    assert images.names == ["a,b.png", "ü.png"]
    assert images.labels == ['x "y"', "ä"]


def test_jsonl_with_byte_order_mark(jsonl):
    assert open_images(jsonl('\ufeff{"path": "a.png"}\n')).names == ["a.png"]


def test_root(tmp_path):
    save = tmp_path / "images/a.png"
    save.parent.mkdir()
    Image.new("RGB", (2, 2)).save(save)
    manifest = write(tmp_path / "lists/list.csv", "path\na.png\n")
    assert open_images(manifest, root=tmp_path / "images")[0].decode().size == (2, 2)
    assert open_images([manifest], root=str(tmp_path / "images"))[0].decode().size == (2, 2)
    up = write(tmp_path / "lists/up.csv", f"path\n../images/a.png\n{save}\nx/../images/a.png\n")
    with pytest.raises(ManifestError, match=r"up\.csv, line 2: '../images/a\.png' points outside .*lists.*root="):
        open_images(up)
    inside = write(tmp_path / "up.csv", f"path\nimages/a.png\n{save}\nx/../images/a.png\n")
    assert len({picture.id for picture in open_images(inside)}) == 1


@pytest.mark.parametrize("path", ["../a.png", "/etc/a.png", "x/../../a.png", ".", "x/..", "..", "../imagesx/a.png"])
def test_paths_stay_in_their_folder(tmp_path, path):
    manifest = write(tmp_path / "images/list.csv", f"path\n{path}\n")
    with pytest.raises(ManifestError, match=r"line 2.*outside"):
        open_images(manifest)


CSV_MISTAKES = {
    "": "lists no image",
    "path,label\n": "lists no image",
    "name,label\na.png,1\n": r"line 1: no column holds the path; the columns are name, label",
    "path,label\na.png,1\nb.png\n": r"line 3: 1 fields, but the header has 2",
    "path,boxes\na.png,[1,2,3,4]\n": r"line 2: 5 fields.*quotes",
    "path,label\n,1\n": r"line 2: the path is ''",
    'path\n"a.png\n': r"line 2: not valid CSV",
    'path,boxes\na.png,"[1,2,3]"\n': r"line 2: the box \[1, 2, 3\] is not 4 numbers",
    'path,boxes\na.png,"[[1,2,3,""x""]]"\n': "is not 4 numbers",
    'path,boxes\na.png,"[[1,2,3,true]]"\n': "is not 4 numbers",
    'path,boxes\na.png,"[[1,2,3,NaN]]"\n': "is not 4 numbers",
    'path,boxes\na.png,"[[1,2,3,Infinity]]"\n': "is not 4 numbers",
    'path,boxes\na.png,"[[5,2,3,4]]"\n': "ends before it begins",
    'path,boxes\na.png,"[[1,2,3,4], 5]"\n': "the box 5 is not",
    f'path,boxes\na.png,"[[1,2,3,1{"0" * 400}]]"\n': "too large",
    'path,boxes\na.png,"{}"\n': r"line 2: the boxes are \{\}",
    'path,boxes\na.png,"[1,"\n': r"line 2, boxes: not valid JSON",
}


@pytest.mark.parametrize("text", CSV_MISTAKES)
def test_csv_mistakes_name_file_and_line(csv, text):
    with pytest.raises(ManifestError, match=CSV_MISTAKES[text]) as caught:
        open_images(csv(text))
    assert "list.csv" in str(caught.value)


JSONL_MISTAKES = {
    "": "lists no image",
    '{"path": "a.png"}\n{"path": \n': "line 2: not valid JSON",
    '["a.png"]\n': "line 1: expected an object",
    '{"name": "a.png"}\n': "line 1: no column holds the path",
    '{"path": 5}\n': "line 1: the path is 5",
    '{"path": null}\n': "line 1: the path is None",
    '{"path": "a.png", "label": 1.5}\n': "line 1: the label is 1.5",
    '{"path": "a.png", "label": true}\n': "line 1: the label is True",
    '{"path": "a.png", "label": [1]}\n': "line 1: the label is",
    '{"path": "a.png", "boxes": 5}\n': "line 1: the boxes are 5",
    '{"path": "../a.png"}\n': "line 1: '../a.png' points outside",
    "[" * 100_000 + "\n": "line 1: not valid JSON",
}


@pytest.mark.parametrize("text", JSONL_MISTAKES, ids=range(len(JSONL_MISTAKES)))
def test_jsonl_mistakes_name_file_and_line(jsonl, text):
    with pytest.raises(ManifestError, match=JSONL_MISTAKES[text]) as caught:
        open_images(jsonl(text))
    assert "list.jsonl" in str(caught.value)


def test_files_that_are_no_text(tmp_path, csv):
    with pytest.raises(ManifestError, match="not UTF-8"):
        open_images(csv("path\nü.png\n", encoding="latin-1"))
    with pytest.raises(ManifestError, match=r"missing\.csv: No such file"):
        open_images(tmp_path / "missing.csv")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["list.csv", "list.jsonl"]), st.binary(max_size=60), st.booleans())
def test_random_bytes_give_images_or_a_manifest_error(tmp_path_factory, name, data, headed):
    head = b"path,label,boxes\n" if name.endswith("csv") else b'{"path": "a"}\n'
    manifest = write(tmp_path_factory.getbasetemp() / "fuzz" / name, head * headed + data)
    try:
        images = open_images(manifest)
    except ManifestError as error:
        message = str(error)
    else:
        for picture in images:
            with pytest.raises(ImageError):
                picture.decode()
        return
    assert name in message


def test_masks(csv, tmp_path):
    Image.new("RGB", (4, 2)).save(tmp_path / "a.png")
    mask = Image.new("L", (4, 2))
    mask.putpixel((3, 0), 1)  # some files number their objects
    mask.save(tmp_path / "mask.png")
    images = open_images(csv("path,mask\na.png,mask.png\na.png,\n"))
    assert images[0].read_mask().tolist() == [[False, False, False, True], [False] * 4]
    assert images[1].read_mask is None
    with pytest.raises(ManifestError, match=r"line 2, mask: '\.\./mask\.png' points outside"):
        open_images(csv("path,mask\na.png,../mask.png\n"))
    with pytest.raises(ManifestError, match="line 2, mask: the path is 5"):
        open_images(write(tmp_path / "list.jsonl", '\n{"path": "a.png", "mask": 5}\n'))
    with pytest.raises(ImageError, match=r"Cannot read .*missing\.png"):
        open_images(csv("path,mask\na.png,missing.png\n"))[0].read_mask()


def test_boxes_that_are_given_hold_instead_of_masks(csv, tmp_path):
    images = open_images(csv("path,mask\na.png,mask.png\nb.png,mask.png\n"))
    boxed = with_boxes(images, write(tmp_path / "boxes.csv", 'path,boxes\na.png,"[0, 0, 4, 4]"\n'))
    assert boxed[0].read_mask is None
    assert boxed[1].read_mask is not None


def test_boxes_from_a_list_of_their_own(tmp_path, csv, jsonl):
    for name in ("a/one.png", "b/two.png", "b/three.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "photos" / name)
    images = open_images(tmp_path / "photos")  # a/one.png, b/three.png, b/two.png
    listed = csv('path,boxes\na/one.png,"[0, 0, 4, 4]"\nelsewhere/two.png,"[[1, 1, 2, 2], [3, 3, 4, 4]]"\n')
    boxed = with_boxes(images, listed)
    assert boxed.boxes == [((0, 0, 4, 4),), None, ((1, 1, 2, 2), (3, 3, 4, 4))]
    assert boxed.labels == images.labels
    twice = jsonl('{"path": "x/one.png", "boxes": [0, 0, 1, 1]}\n{"path": "y/one.png", "boxes": [0, 0, 2, 2]}\n')
    with pytest.raises(ManifestError, match="boxes of none of the images"):  # which of the two is not known
        with_boxes(images, twice)
    with pytest.raises(ManifestError, match=r"\.csv or \.jsonl"):
        with_boxes(images, tmp_path / "boxes.txt")
    with pytest.raises(ManifestError, match="No such file"):
        with_boxes(images, tmp_path / "missing.csv")
    (tmp_path / "latin.csv").write_bytes("path,boxes\nä.png,\n".encode("latin-1"))
    with pytest.raises(ManifestError, match=r"latin\.csv is not UTF-8 text"):
        with_boxes(images, tmp_path / "latin.csv")
