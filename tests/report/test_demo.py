"""The built-in study: whole, smaller, and run by several processes."""

import os
import sys
import textwrap

import pytest

from suffice.errors import StudyError
from suffice.report import demo
from suffice.report.demo import demo_study, run_on_all_cores
from suffice.study import Study
from suffice.vision import list_models
from tests.forks import CONTEXT


def test_the_study_is_about_all_networks_and_names_its_questions():
    asked = demo_study().asked
    assert [model.name for model in asked.models] == ["zoo/*"]
    known = list_models("zoo/*")
    assert all({one.of, one.against} <= set(known) and one.question for one in asked.contrasts)
    assert len(asked.contrasts) >= 8


def test_a_smaller_one_has_what_is_about_its_networks():
    asked = demo_study(images=3, networks=["convnext-3", "zoo/convnext-3-bn"]).asked
    assert asked.images.source == "scenes:test[:3]"
    assert [(one.of, one.against) for one in asked.contrasts] == [("zoo/convnext-3-bn", "zoo/convnext-3")]
    assert set(asked.tables) == {"predictions", "evidence", "maps", "scores", "cross-test", "activations"}


class Forked:
    """A command as ``subprocess.Popen`` starts it, in a process that need not import everything anew."""

    def __init__(self, command, *, env, said, **_):
        assert command[:3] == [sys.executable, "-m", "suffice"]
        self.said = said
        self.process = CONTEXT.Process(target=run_command, args=(command[3:], env, said))
        self.process.start()

    def poll(self):
        return self.process.exitcode

    def communicate(self):
        self.process.join()
        return None, self.said.read_text(encoding="utf-8")


def run_command(arguments, environment, said):
    from suffice.cli.app import main

    os.environ.update(environment)
    sys.argv = ["suffice", *arguments]
    with open(os.devnull, "w") as sys.stdout, said.open("w", encoding="utf-8") as sys.stderr:
        main()


def test_a_study_that_cannot_be_run_says_why(tmp_path):
    study = Study("none", "scenes:test[:4]", ["zoo/nothing"], {"said": {"kind": "predictions"}})
    with pytest.raises(StudyError, match=r"models.0.name: The zoo has no network 'nothing'"):
        run_on_all_cores(study, tmp_path, processes=1)


def test_processes_share_the_work_and_what_failed_is_said(tmp_path, monkeypatch):
    """A network that takes one image at a time, and no more, cannot be searched; what it says of images is there."""
    (tmp_path / "shy.py").write_text(
        textwrap.dedent(
            """
            import suffice
            import torch


            class Shy(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inside = suffice.load("zoo/resnet", device="cpu").module

                def forward(self, x):
                    if len(x) > 2:
                        raise ValueError("so many at once!")
                    return self.inside(x)


            def make():
                return suffice.load("zoo/resnet", device="cpu").with_module(Shy())
            """
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    files = (tmp_path / f"said-{number}.txt" for number in range(2))
    monkeypatch.setattr(demo.subprocess, "Popen", lambda command, **given: Forked(command, said=next(files), **given))
    evidence = {"kind": "evidence", "grid": 2, "max_mses": 2}
    study = Study("shy", "scenes:test[:2]", ["shy:make"], {"said": {"kind": "predictions"}, "evidence": evidence})
    heard, seen = [], []
    done = run_on_all_cores(
        study, tmp_path / "out", processes=2, on_progress=lambda *some: seen.append(some), on_trouble=heard.append
    )
    assert next(files, None) is None
    assert all(total == 2 and 0 <= count <= 2 for count, total in seen)
    assert done.table("said")["error"].null_count == 2
    assert len(heard) == 1
    assert "1 of 2 parts of the study failed" in heard[0]
    assert "so many at once!" in heard[0]
    assert "--retry-failed" in heard[0]
    assert "1 part of it failed" in done.report(figures=[], each=0).page.studied.lead
