"""The questions in SQL of docs/study.md, asked about a small study."""

import re
import statistics
from dataclasses import fields
from pathlib import Path

import duckdb
import pytest
from PIL import Image

import suffice
from suffice.plugins import provided
from suffice.study import Study
from suffice.study.asked import read_file
from suffice.study.choices import Contrast, HowToRun, ImageChoice, ModelChoice
from suffice.study.measurement import GROUP

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/study.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sql\n(.*?)^```", PAGE, flags=re.M | re.S)
VIEWS, QUERIES = BLOCKS[0], BLOCKS[1:]
MODELS = ["zoo/vgg", "zoo/resnet", "zoo/deit", "zoo/swin"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The study of the page with fewer models, of scenes that are small files: some clear, some too dim, one broken."""
    base = tmp_path_factory.mktemp("queries")
    scenes = suffice.open_images("scenes:test[:6]")
    for number, scene in enumerate(scenes):
        file = base / "pictures" / str(scene.label) / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        picture = scene.decode()
        # Hardly anything is left of some, so that models differ.
        (picture if number < 3 else picture.resize((6, 6)).resize(picture.size, Image.Resampling.NEAREST)).save(file)
    (base / "pictures" / str(scenes[0].label) / "broken.png").write_bytes(b"no picture")
    asked, _ = read_file(ROOT / "studies/quick.toml")
    plain = {**asked.to_dict(), "images": "pictures", "models": MODELS, "base": base}
    Study(**plain).run(base / "runs/quick", device="cpu")
    return base


@pytest.fixture
def database(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with duckdb.connect() as connection:
        connection.execute(VIEWS)
        yield connection


def rows(database, query):
    answer = database.sql(query)
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.fetchall()]


def query_with(words):
    return next(query for query in QUERIES if words in query)


def test_the_page_shows_the_file_and_ten_questions():
    assert f"```toml\n{(ROOT / 'studies/quick.toml').read_text('utf-8')}```" in PAGE
    assert len(QUERIES) >= 10


def test_the_page_names_every_key_and_kind():
    for table, choices in (
        ("images", ImageChoice),
        ("models", ModelChoice),
        ("run", HowToRun),
        ("contrasts", Contrast),
    ):
        for key in fields(choices):
            assert f"`{table}.{key.name}`" in PAGE
    for kind in provided(GROUP):
        assert f"| `{kind}` |" in PAGE


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_every_question_has_an_answer(database, query):
    found = rows(database, query)
    assert found
    assert all(value is not None for row in found for value in row.values())


def test_names_of_models_are_decoded(database):
    assert [row["model"] for row in rows(database, "SELECT DISTINCT model FROM said ORDER BY model")] == sorted(MODELS)


def table(folder, name):
    return [row for row in Study.open(folder / "runs/quick").table(name).to_pylist() if not row["error"]]


def test_transformers_that_agree(database, folder):
    said = {}
    for row in table(folder, "said"):
        kind = row["family"].endswith("transformer")
        said.setdefault(row["image"], {True: set(), False: set()})[kind].add(row["label"])
    expected = {image: one for image, one in said.items() if len(one[True]) == 1 and len(one[False]) > 1}
    found = rows(database, query_with("transformers_say"))
    assert {row["image"] for row in found} == set(expected)
    assert {row["image"]: set(row["others_say"]) for row in found} == {i: one[False] for i, one in expected.items()}
    assert {row["image"]: {row["transformers_say"]} for row in found} == {i: one[True] for i, one in expected.items()}


def test_largest_of_a_class(database, folder):
    largest = {}
    for row in table(folder, "evidence"):
        largest[row["label"]] = max([largest.get(row["label"], 0), *row["sizes"]])
    found = rows(database, query_with("arg_max"))
    assert {row["label"]: row["cells"] for row in found} == {label: size for label, size in largest.items() if size}


def test_means_and_standard_errors(database, folder):
    counts = {}
    for row in table(folder, "evidence"):
        counts.setdefault(row["family"], {}).setdefault(row["image"], []).append(row["mses"])
    for row in rows(database, query_with("standard_error")):
        each = [statistics.mean(values) for values in counts[row["family"]].values()]
        assert row["images"] == len(each) == 6
        assert row["mean"] == pytest.approx(statistics.mean(each))
        assert row["standard_error"] == pytest.approx(statistics.stdev(each) / len(each) ** 0.5)


def test_methods_in_order(database, folder):
    for row in rows(database, query_with("rank()")):
        own = [r for r in table(folder, "scores") if (r["model"], r["method"]) == (row["model"], row["method"])]
        values = [r["insertion"] for r in own]
        assert row["insertion"] == pytest.approx(statistics.mean(values))
        assert row["place"] in (1, 2)


def test_what_could_not_be_read(database):
    (found,) = rows(database, query_with("count(*) AS rows"))
    assert found["image"].endswith("broken.png")
    assert found["rows"] == 4 * 6
    assert len(found["measurements"]) == 6


def test_shared_sets(database, folder):
    found = {}
    for row in table(folder, "evidence"):
        found.setdefault(row["model"], set()).update((row["image"], tuple(cells)) for cells in row["mse_cells"])
    for row in rows(database, query_with("AS shared")):
        one, other = found[row["one"]], found[row["other"]]
        assert row["shared"] == len(one & other)
        assert row["share"] == pytest.approx(len(one & other) / len(one | other))
