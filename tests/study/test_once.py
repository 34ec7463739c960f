"""What a study does but once: it loads a model, hashes an image, and decodes it for each measurement."""

from collections import Counter

import pytest

from suffice.perturb import Runner
from suffice.study import Study
from suffice.study.ahead import DecodedAhead
from suffice.vision.images.sources import FileSource
from tests.study import small
from tests.study.small import MEASURE, SUM, small_study, write_pictures

MODELS = ["tests.study.test_once:any_of", SUM]
loaded = Counter()


def any_of(**options):
    loaded["any"] += 1
    return small.any_of(**options)


@pytest.fixture
def pictures(tmp_path):
    loaded.clear()
    return write_pictures(tmp_path / "pictures", 10)


@pytest.fixture
def reads(monkeypatch):
    """How often each file was decoded, and hashed."""
    counts = Counter()
    for name in ("read", "fingerprint"):
        original = getattr(FileSource, name)

        def counting(self, name=name, original=original):
            counts[name] += 1
            return original(self)

        monkeypatch.setattr(FileSource, name, counting)
    return counts


@pytest.mark.parametrize("models", [MODELS[:1], MODELS])
def test_a_model_is_loaded_to_look_at_it_and_stays_if_it_is_the_only_one(tmp_path, pictures, models):
    small_study(pictures, models=models).run(tmp_path / "run", device="cpu")
    assert loaded["any"] == len(models)


def test_the_model_stays_where_a_study_goes_on(tmp_path, pictures):
    study = small_study(pictures, models=MODELS[:1])
    study.run(tmp_path / "run", only="said", device="cpu")
    loaded.clear()
    study.run(tmp_path / "run", device="cpu")
    assert loaded["any"] == 1


def test_an_estimate_takes_the_model_of_the_plan(pictures):
    small_study(pictures, models=MODELS[:1]).dry_run(device="cpu")
    assert loaded["any"] == 1


def test_images_are_hashed_once_and_decoded_once_a_measurement(tmp_path, pictures, reads):
    study = small_study(pictures).run(tmp_path / "run", device="cpu")
    assert reads == {"fingerprint": 10, "read": 10 * len(MEASURE) * 2}
    assert study.status().finished


def test_images_of_the_next_shard_are_decoded_meanwhile(tmp_path, pictures, monkeypatch):
    seen = []

    def begun(images):
        seen.append([name.rpartition("/")[2] for name in images.names])
        return DecodedAhead(images)

    monkeypatch.setattr("suffice.study.local.DecodedAhead", begun)
    study = Study("one", str(pictures), MODELS[:1], {"said": {"kind": "predictions"}}, {"block": 4})
    study.run(tmp_path / "run", device="cpu")
    names = [f"{number:03d}.png" for number in range(10)]
    assert seen == [names[4:8], names[8:]]


def test_a_search_that_is_confirmed_keeps_its_second_runner(tmp_path, pictures, monkeypatch):
    prepared, original = [], Runner._prepare

    def counting(self):
        prepared.append(self.precision)
        original(self)

    monkeypatch.setattr(Runner, "_prepare", counting)
    study = Study(
        "one", str(pictures), MODELS[:1], {"evidence": MEASURE["evidence"]}, {"block": 4, "precision": "bf16"}
    )
    study.run(tmp_path / "run", device="cpu")
    assert sorted(prepared) == ["bf16", "ieee"]
