"""Names of files that every file system takes."""

import re
from dataclasses import replace

import pytest

from suffice.report.names import figure_folder, safe_name
from tests.evidence.made import make_evidence


@pytest.mark.parametrize(
    "text", ["scenes:test[3]", 'a/b\\c*?"<>|', "", "...", "-", "con\n\t", "名前 é", "x" * 300, "😀" * 90]
)
def test_names_are_safe(text):
    name = safe_name(text)
    assert re.fullmatch(r"[\w.-]+", name)
    assert not name.startswith(".")
    assert len(name.encode()) <= 240


def test_images_of_one_name_have_folders_of_their_own():
    made = make_evidence({(0,): 0.9}, [(0,)], 3)
    names = ["a/cat.jpg", "b/cat.jpg", "c\\cat.png"]
    folders = [figure_folder(replace(made, name=name, image_id=f"{i}" * 32)) for i, name in enumerate(names)]
    assert folders == ["cat-00000000", "cat-11111111", "cat-22222222"]
    assert figure_folder(replace(made, name="cat[2].jpg", index=2)) == "cat-2-00002"
    assert figure_folder(replace(made, name="[2].jpg", index=2)) == "2-00002"  # no option of a shell
