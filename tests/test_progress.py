"""Progress: what is estimated, what is shown and where, and that nobody hears of it unasked."""

import io
import sys
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

import suffice
from suffice import progress as module
from suffice.attribution import from_function
from suffice.attribution.method import find_method, list_methods
from suffice.metrics.sanity import sanity_check
from suffice.progress import Meter, Stage, asked, plan, reporting, stage
from suffice.report import explain_images
from suffice.study import Study
from suffice.testing import AnyOf, WeightedSum


@pytest.fixture
def seen(monkeypatch):
    """Texts that are shown, a look at every question."""
    texts = []
    shown = SimpleNamespace(texts=texts, meters=[])

    def keep(meter, last):
        shown.meters.append(meter)
        texts.append(f"{meter.what}: {meter.text}")

    class _Shown:
        def __enter__(self):
            return keep

        def __exit__(self, *_):
            texts.append("closed")

    monkeypatch.setattr(module, "_display", lambda console: _Shown())
    monkeypatch.setattr(module, "OFTEN", 0.0)
    return shown


@pytest.fixture(scope="module")
def smooth():
    oracle = WeightedSum({5: 1.0, 6: 1.0}, threshold=1.0, grid=4, link="smooth")
    return oracle.classifier(32), torch.stack([oracle.image(32)] * 3)


# What is estimated


def test_the_whole_is_known_at_first_from_the_method_then_from_finished_images():
    part = Stage(units=4, each=100)
    assert part.whole == 400
    part.asked = 60
    assert part.whole == 400
    part.asked = 90
    part.finish(1)  # fewer than announced
    assert part.whole == pytest.approx(360)
    part.asked = 120  # a question more does not change what an image takes
    assert part.whole == pytest.approx(360)
    part.finish(4)
    assert part.whole == part.asked == 120


def test_an_announcement_that_was_exceeded_is_not_believed_any_more():
    part = Stage(units=2, each=1, asked=3)
    assert part.whole is None
    part.finish(1)
    assert part.whole == pytest.approx(6)


def test_the_quick_images_of_a_search_say_little_about_the_slow_ones():
    part = Stage(units=3, steady=False)
    assert part.whole is None
    part.asked = 200
    part.finish(2)
    assert part.whole == pytest.approx(300)
    part.asked = 600  # the third takes long, and may go on for as long again
    assert part.whole == pytest.approx(900)


def test_time_left_comes_with_the_first_questions_where_their_number_is_known():
    now = iter([0.0, *torch.arange(1, 100).tolist()])
    meter = Meter("Explaining", lambda *_: None, clock=lambda: next(now))
    meter.stages["rise"] = meter.current = Stage(units=10, each=60)
    meter.ask(10)
    assert meter.text == "10/~600 questions · 10/s · 0:59 left · 0/10 images"
    meter.stages["unknown"] = Stage(units=10)
    meter.ask(10)
    assert meter.text == "20 questions · 10/s · rise of 0/10 images", "a rate, and no time that nobody knows"


def test_the_rate_is_that_of_the_last_seconds():
    time = SimpleNamespace(now=0.0)
    meter = Meter("Explaining", lambda *_: None, clock=lambda: time.now)
    meter.stages["rise"] = meter.current = Stage(units=1)
    for speed in (100, 10):
        for _ in range(60):
            time.now += 1
            meter.ask(speed)
    assert meter.rate == pytest.approx(10)


def test_looks_are_at_most_ten_a_second():
    time, looks = SimpleNamespace(now=0.0), []
    meter = Meter("Explaining", lambda meter, last: looks.append(time.now), clock=lambda: time.now)
    meter.stages["rise"] = meter.current = Stage(units=1)
    for _ in range(5000):
        time.now += 0.001
        meter.ask(1)
    assert 40 <= len(looks) <= 50
    assert meter.asked == 5000


def test_stages_that_were_planned_go_on_and_those_inside_are_parts(seen):
    with reporting(True, "Scoring"):
        plan("rise", 4, each=10)
        plan("gradient", 4, each=1)
        for _ in range(2):
            with stage("rise", 2), stage("another name", 2, each=5) as finished:
                asked(20)
                finished(2)
        meter = seen.meters[-1]
        assert list(meter.stages) == ["rise", "gradient"]
        assert (meter.stages["rise"].finished, meter.stages["rise"].asked) == (4, 40)
        assert meter.whole == 44
    assert seen.texts[-1] == "closed"


def test_what_is_planned_is_known_when_its_stage_begins(seen):
    with reporting(True, "Running"):
        plan("maps", 4)
        plan("evidence", 3)
        meter = module._active.get()
        with stage("maps", 2, each=10):
            assert meter.stages["maps"].whole == 40
        with stage("evidence", 3), stage("some images", 3, steady=False):
            assert not meter.stages["evidence"].steady


def test_several_methods_have_a_time_left_from_the_first_one_on(seen, tmp_path):
    """What a method asks is known as soon as the model is there, and what it asks of the next model, too."""
    methods = [{"name": "rise", "masks": 20}, {"name": "occlusion", "window": 14, "stride": 14}]
    chosen = {"maps": {"kind": "attribution", "methods": methods}}
    study = Study("several", "scenes:test[:2]", ["zoo/resnet", "zoo/deit"], chosen, {"batch": 8})
    with reporting(True, "Running"):
        study.run(tmp_path / "run", device="cpu")
    assert "/~152 questions" in seen.texts[0]  # 20 masks, 16 windows and twice the whole image; two images, two models
    assert " left · maps/rise of zoo/resnet of 0/2 images" in seen.texts[1]


def test_names_with_brackets_are_shown_as_they_are():
    console = Console(force_terminal=True, file=io.StringIO(), width=100)
    with reporting(True, "my [/study]", console), stage("rise", 1):
        asked(3)
    assert "my [/study]" in console.file.getvalue()


def test_without_a_report_nothing_is_counted():
    with stage("rise", 3) as finished:
        asked(5)
        finished(3)
    plan("rise", 3)
    assert module._active.get() is None


# Whoever asks for it sees it


def test_a_search_shows_its_questions_from_the_start(seen):
    oracle = AnyOf([(5,), (1, 2)], grid=4)
    net, images = oracle.classifier(32), torch.stack([oracle.image(32)] * 3)
    found = suffice.find_evidence(net, images, targets=1, grid=4, baseline="black", batch_size=8, progress=True)
    assert seen.texts[0].startswith("Searching: ")
    assert "0/3 images" in seen.texts[0]
    assert "left" not in seen.texts[0]
    meter = seen.meters[-1]
    assert meter.asked == found.counters.forwards
    assert meter.stages["evidence"].finished == 3
    assert meter.text.startswith(f"{meter.asked:,}/{meter.asked:,} questions")


def test_maps_show_a_time_left_before_the_first_image_is_finished(seen, smooth):
    net, images = smooth
    suffice.attribute(net, images, "rise", masks=50, batch_size=4, progress=True)
    first = next(text for text in seen.texts if " left" in text)
    assert "/~153 questions" in first  # 50 masks and the whole image, three times
    assert "0/3 images" in first
    assert seen.meters[-1].stages["rise"].finished == 3


def test_predictions_metrics_tables_checks_and_figures_report_too(seen, smooth):
    net, images = smooth
    net.predict(images, progress=True)
    maps = suffice.attribute(net, images, "gradient")
    suffice.measure(net, images, maps, ["insertion", "deletion"], progress=True)
    suffice.metrics.score_table([net], images, ["gradient", "occlusion"], ["insertion"], progress=True)
    explain_images(net, images, ["gradient"], ["@1", "@2"], score=True, progress=True)
    module_with_weights = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 32), torch.nn.Flatten())
    other = suffice.Classifier(module_with_weights, size=32, mean=(0.5,) * 3, std=(0.5,) * 3)
    sanity_check(other, images, ["gradient"], progress=True)
    assert seen.texts.count("closed") == 5
    for meter in {id(meter): meter for meter in seen.meters}.values():
        assert all(part.finished == part.units for part in meter.stages.values()), meter.what
        assert meter.whole == meter.asked
    assert {meter.what for meter in seen.meters} == {"Predicting", "Measuring", "Scoring", "Explaining"}


def test_skipped_images_are_no_reason_to_wait(seen, smooth, tmp_path):
    net, images = smooth
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    good = tmp_path / "a.png"
    suffice.draw.as_image(images[0]).save(good)
    suffice.attribute(net, [good, bad], "gradient", on_error="skip", progress=True)
    assert seen.meters[-1].stages["gradient"].finished == 2


def test_nothing_is_printed_unasked(smooth, capsys):
    net, images = smooth
    suffice.attribute(net, images, "occlusion")
    suffice.find_evidence(net, images[:1], targets=1, grid=4)
    assert capsys.readouterr() == ("", "")


def test_an_error_and_ctrl_c_close_the_report(seen, smooth):
    net, images = smooth

    def stopped(model, inputs, targets):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        suffice.attribute(net, images, from_function(stopped, "stopped"), progress=True)
    assert seen.texts[-1] == "closed"
    assert module._active.get() is None


# Where it is shown


def test_ctrl_c_leaves_the_terminal_as_it_was(smooth):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with pytest.raises(KeyboardInterrupt), reporting(True, "Explaining", console):  # noqa: PT012
        suffice.attribute(smooth[0], smooth[1], "occlusion")
        raise KeyboardInterrupt
    written = screen.getvalue()
    assert "questions" in written
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l"), "the cursor is back"


def test_the_time_left_is_there_on_a_narrow_terminal_too():
    screen, now = io.StringIO(), iter(range(9))
    with module._display(Console(file=screen, force_terminal=True, width=80)) as show:
        meter = Meter("Explaining", show, clock=lambda: next(now))
        meter.stages |= {"integrated-gradients": Stage(300, each=50), "insertion, deletion": Stage(300, each=103)}
        meter.current = meter.stages["insertion, deletion"]
        meter.ask(1200)
    assert "1,200/~45,900 questions · 1,200/s · 0:37 left" in screen.getvalue()


def test_a_log_gets_plain_lines(smooth, capsys):
    suffice.attribute(smooth[0], smooth[1], "occlusion", window=16, stride=8, progress=True)
    printed = capsys.readouterr().err
    assert printed.splitlines()[-1].startswith("Explaining: 30/30 questions")
    assert "\x1b" not in printed
    assert "\r" not in printed


def test_a_notebook_updates_one_line(smooth, monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda first, display_id: handle)
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setattr(module, "import_module", {"IPython.display": display}.__getitem__)
    suffice.attribute(smooth[0], smooth[1], "occlusion", window=16, stride=8, progress=True)
    assert "<progress value='1.000'>" in shown[-1]
    assert "30/30 questions" in shown[-1]


# What methods and metrics say of themselves


@pytest.mark.parametrize("name", ["gradient", "smoothgrad", "integrated-gradients", "rise", "occlusion"])
def test_methods_know_how_many_questions_they_ask(smooth, name):
    net, images = smooth
    runner = suffice.Runner(net)
    suffice.attribute(net, images, name, runner=runner)
    assert runner.counters.forwards == len(images) * find_method(name).questions_of(net, {})


def test_methods_that_look_inside_a_transformer_know_it_too():
    net = suffice.load("zoo/deit", device="cpu")
    images = suffice.open_images("scenes:test[:2]")
    for name in list_methods(net=net):
        method = find_method(name)
        few = {"masks": 20, "samples": 20, "grid": 3, "steps": 4}
        options = {option: value for option, value in few.items() if option in method.options}
        known = method.questions_of(net, options)
        if known is not None:
            runner = suffice.Runner(net)
            suffice.attribute(net, images, method, runner=runner, **options)
            each = runner.counters.forwards / len(images)
            # Equal sets of tokens are asked about once.
            assert each <= known <= (each + 20 if name == "tis" else 1.02 * each), name


@pytest.mark.parametrize("metric", ["insertion", "deletion", "ins-del", "pos", "morf"])
def test_metrics_know_about_how_many_questions_they_ask(smooth, metric):
    net, images = smooth
    maps, runner = suffice.attribute(net, images, "occlusion"), suffice.Runner(net)
    suffice.measure(net, images, maps, metric, runner=runner)
    known = suffice.metrics.find_metric(metric).questions_of(net, {})
    assert runner.counters.forwards / len(images) == pytest.approx(known, abs=3)  # what is known is asked once
