"""The page in a real browser: what is clicked is asked, and what is answered is shown."""

import json
from pathlib import Path

import pytest

import suffice
from suffice.explorer.reading import pack, unpack
from tests.browser import PHONE, WIDE, Watched, chromium
from tests.explorer.conftest import listening


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def link(explorer):
    with listening(explorer) as address:
        yield address


@pytest.fixture(scope="module")
def study_link(study_explorer):
    with listening(study_explorer) as address:
        yield address


@pytest.fixture(scope="module")
def crossed_link(crossed_explorer):
    with listening(crossed_explorer) as address:
        yield address


@pytest.fixture
def visit(browser):
    """Open a page, and see to it at the end that nothing went wrong and nothing was asked of the world."""
    opened = []

    def go(link, state="", **options):
        root = link.split("?")[0]
        watched = Watched(browser, allowed=(root, "data:", "blob:"), **{"viewport": WIDE, **options})
        opened.append(watched)
        watched.page.set_default_timeout(60_000)
        watched.page.goto(link)
        watched.page.wait_for_selector("[data-ready]")
        if state:
            watched.page.evaluate("text => { location.hash = text; }", state)
        return watched.page

    yield go
    for watched in opened:
        # A refused upload is an answer of 400; Vega-Lite warns of what charts leave to it.
        said = [one for one in watched.said if "warning: WARN" not in one and "status of 400" not in one]
        assert said == []
        assert watched.asked == []
        watched.context.close()


def answered(page, cells):
    """Wait until the models have answered about these cells of a 7×7 grid; what the page says of each."""
    page.wait_for_selector(f'[data-answered="{pack(cells, 7)}"]')
    return {
        row.get_attribute("data-model"): row.get_attribute("aria-label") for row in page.query_selector_all(".model")
    }


def click_cell(page, cell, grid=7):
    box = page.locator(".bench canvas.board").bounding_box()
    step = box["width"] / grid
    page.mouse.click(box["x"] + (cell % grid + 0.5) * step, box["y"] + (cell // grid + 0.5) * step)


def test_hiding_cells_shows_what_the_probe_says(visit, link):
    page = visit(link)
    hidden = [8, 24, 25]
    for cell in hidden:
        click_cell(page, cell)
    shown = [cell for cell in range(49) if cell not in hidden]
    said = answered(page, shown)
    for name in ("zoo/resnet", "zoo/deit"):
        probe = suffice.Probe(suffice.load(name), suffice.open_images("scenes:test[:1]"))
        ratio = float(probe.ask(0, probe.grid.from_cells([shown]))[0] / probe.whole[0])
        percent = int(said[name].split(": ")[1].split(" %")[0].strip("<>"))
        assert abs(percent - 100 * ratio) <= 1.01
        assert ("not enough" in said[name]) == (ratio < 0.9)
    click_cell(page, 24)
    answered(page, sorted([*shown, 24]))
    page.keyboard.press("z")
    answered(page, shown)
    page.keyboard.press("Shift+Z")
    answered(page, sorted([*shown, 24]))


def test_a_drag_paints_and_keys_do_all_of_it(visit, link):
    page = visit(link)
    box = page.locator(".bench canvas.board").bounding_box()
    step = box["width"] / 7
    page.mouse.move(box["x"] + 0.5 * step, box["y"] + 0.5 * step)
    page.mouse.down()
    page.mouse.move(box["x"] + 6.5 * step, box["y"] + 0.5 * step, steps=3)
    page.mouse.up()
    answered(page, range(7, 49))
    page.locator(".bench canvas.board").focus()
    page.keyboard.press("n")
    answered(page, [])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowDown")
    cells = unpack(page.evaluate("location.hash.match(/cells=([^&]*)/)?.[1] || ''") or "", 7)
    page.wait_for_timeout(300)
    cells = unpack(page.evaluate("location.hash.match(/cells=([^&]*)/)[1]"), 7)
    assert len(cells) == 2
    assert cells[1] - cells[0] == 7
    page.keyboard.press("a")
    answered(page, range(49))
    page.keyboard.press("n")
    answered(page, [])
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Control+a")  # is the browser's
    page.keyboard.press("i")
    answered(page, range(49))


def test_the_link_is_the_state(visit, link):
    state = f"image=3&model=oracle&baseline=black&target=1&cells={pack((17, 24), 7)}"
    page = visit(link, state)
    said = answered(page, (17, 24))
    assert "enough" in said["oracle"]
    assert "not enough" not in said["oracle"]
    assert page.locator('.model[aria-checked="true"]').get_attribute("data-model") == "oracle"
    page.click("text=Next explanation")
    page.wait_for_selector("text=Explanation 1 of 2")
    answered(page, (30,))
    page.wait_for_function("cells => location.hash.includes(cells)", arg=pack((30,), 7))  # it is written a little later
    page.evaluate("location.hash = location.hash + '&tab=nowhere'")
    answered(page, (30,))
    assert page.locator('nav [aria-selected="true"]').inner_text() == "Bench"
    page.reload()
    answered(page, (30,))


def test_the_smallest_set_is_found_and_needless_cells_go(visit, link):
    page = visit(link, f"image=3&model=oracle&baseline=black&target=1&cells={pack((1, 17, 24, 40), 7)}")
    answered(page, (1, 17, 24, 40))
    page.click("text=Remove needless")
    answered(page, (17, 24))
    page.click("text=Undo")
    answered(page, (1, 17, 24, 40))
    page.click("text=None")
    answered(page, ())
    page.click("text=Find smallest set")
    answered(page, (30,))


def test_the_bench_is_saved(visit, link):
    page = visit(link, f"cells={pack((1, 2, 3), 7)}")
    answered(page, (1, 2, 3))
    for kind in ("SVG", "PNG"):
        page.click("summary:has-text('Share')")
        with page.expect_download() as got:
            page.click(f"text=Save {kind}")
        content = Path(got.value.path()).read_bytes()
        assert content.startswith(b"<svg" if kind == "SVG" else b"\x89PNG")


def test_evidence_leads_back_to_the_bench(visit, link):
    page = visit(link, "tab=evidence&image=3&model=oracle&baseline=black&target=1")
    page.click('[aria-label="Search the evidence of oracle"]')
    page.wait_for_selector(".graph svg")
    assert page.locator(".mse").count() == 2
    page.click('[aria-label="Larger"]')
    page.click('[aria-label="Fit"] , .evidence >> text=Fit')
    page.locator('.graph .node[aria-label^="P17 ∧ P24"]').click()
    answered(page, (17, 24))
    assert page.locator('nav [aria-selected="true"]').inner_text() == "Bench"


def test_maps_with_a_threshold_and_curves(visit, link):
    page = visit(link, "tab=maps&model=zoo/resnet&method=grad-cam")
    page.click(".maps >> text=Compute")
    page.wait_for_selector(".curves")
    assert page.locator(".curves").get_attribute("aria-label").startswith("Insertion 0.")
    box = page.locator(".curves").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    assert page.locator(".maps output").inner_text() != "top 10 %"
    page.locator('input[aria-label^="Share of the image"]').fill("10")
    page.evaluate("location.hash = location.hash + '&baseline=black'")  # over which these are other curves
    page.wait_for_selector("text=over the baseline black are not there yet")
    assert page.locator(".curves").count() == 0
    page.click("text=Put on the bench")
    page.wait_for_selector("text=5 of 49 cells shown")


def test_an_own_image_is_dropped_in(visit, link, tmp_path):
    from PIL import Image

    file = tmp_path / "own <b>image.png"
    Image.radial_gradient("L").convert("RGB").save(file)
    page = visit(link)
    page.set_input_files('input[type="file"]', file)
    page.wait_for_selector('[data-image^="u"][aria-selected="true"]')
    assert page.locator('[data-image^="u"]').get_attribute("title") == "own <b>image.png"
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    page.set_input_files('input[type="file"]', broken)
    page.wait_for_selector(".toast.bad >> text=Cannot read broken.png")


def test_what_cannot_be_shown_is_not_the_image_before(visit, link):
    page = visit(link, "image=u0")
    page.wait_for_selector(".toast.bad >> text=There is no image 'u0'")
    size = "() => document.querySelector('.bench canvas.board').toDataURL().length"
    page.wait_for_function(f"{size} < 20000")  # that of the grid alone
    page.evaluate("() => { location.hash = 'image=1'; }")
    page.wait_for_function(f"{size} > 25000")


def test_what_is_not_enough_does_not_read_as_if_it_were(visit, link):
    said = visit(link).evaluate("""import("./models.js").then(({ Models }) => [0.8996, 0.9004, 0.891].map((ratio) =>
        Models.prototype.percent.call({ hello: { enough: 0.9 } }, { ratio, enough: ratio >= 0.9 })))""")
    assert said == ["89.9 %", "90 %", "89 %"]


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(WIDE, "light", id="wide-light"),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(WIDE, "dark", id="wide-dark", marks=pytest.mark.slow),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.slow),
    ],
)
def test_any_width_and_any_light(visit, link, scheme, size):
    page = visit(link, "cells=AAACAwAAAA", viewport=size, color_scheme=scheme)
    answered(page, (17, 24, 25))
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    ground = page.evaluate("getComputedStyle(document.querySelector('.suffice')).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]
    page.click(".theme")
    page.click(".theme")
    assert page.evaluate("getComputedStyle(document.querySelector('.suffice')).backgroundColor") == "rgb(20, 24, 29)"
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, select, input, canvas')].filter(e => e.offsetParent && "
        "!(e.getAttribute('aria-label') || e.ariaLabel || e.textContent || e.title || "
        "e.labels?.length)).map(e => e.outerHTML)"
    )
    assert nameless == []


def test_rows_of_a_study_lead_to_the_bench(visit, study_link):
    page = visit(study_link, "tab=study&table=evidence")
    page.wait_for_selector("tbody tr")
    assert page.locator("tbody tr").count() == 12
    page.select_option('[aria-label="Column to filter by"]', "model")
    page.select_option('[aria-label="Value"]', "zoo/deit")
    page.click("text=Add filter")
    page.wait_for_selector("text=Rows 1 to 6 of 6")
    page.click("th >> text=confidence")
    page.wait_for_selector('th[aria-sort="ascending"]')
    page.wait_for_timeout(300)
    state = page.evaluate("new URLSearchParams(location.hash.slice(1)).get('filters')")
    assert json.loads(state) == [{"column": "model", "by": "is", "value": "zoo/deit"}]
    page.select_option('[aria-label^="Column whose spread"]', "confidence")
    page.locator(".bin:not([disabled])").first.click()
    page.wait_for_selector(".chip >> nth=2")
    page.locator("tbody tr").first.click()
    page.wait_for_selector('.model[data-model="zoo/deit"][aria-checked="true"]')
    answered(page, range(49))


def test_figures_of_a_study(visit, study_link):
    page = visit(study_link, "tab=study&table=evidence")
    page.click(".study >> text=Figures")
    page.wait_for_selector("figure svg")
    assert page.locator("figure").count() >= 2


def click_mark(page, title, mark):
    """Click a mark of the figure with such a title; the filters that come of it, and the rows."""
    before = page.evaluate("location.hash")
    page.click(".study >> text=Figures")
    figure = page.locator("figure", has_text=title).first
    figure.locator("svg").wait_for()
    figure.scroll_into_view_if_needed()
    box = figure.locator(mark).first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("before => location.hash !== before && location.hash.includes('filters')", arg=before)
    filters = json.loads(page.evaluate("new URLSearchParams(location.hash.slice(1)).get('filters')"))
    return page.locator('select[aria-label="Table"]').input_value(), {one["column"]: one["value"] for one in filters}


def test_marks_of_charts_lead_to_the_images_behind_them(visit, crossed_link, crossed_explorer):
    page = visit(crossed_link, "tab=study&table=evidence")
    models = {"zoo/vgg", "zoo/resnet", "zoo/convnext"}
    table, filters = click_mark(page, "Cross-test by insertion: maps of one model", ".mark-rect path")
    assert table == "crossed"
    assert set(filters) == {"maps_of", "model"}
    assert set(filters.values()) <= models
    page.wait_for_selector("text=Rows 1 to 3 of 3")
    table, filters = click_mark(page, "Where models lie", ".mark-symbol path")
    assert (table, set(filters)) == ("crossed", {"model"})
    page.wait_for_selector("text=Rows 1 to 9 of 9")
    table, filters = click_mark(page, "Sizes of minimal sufficient", ".mark-symbol.role-mark path")
    assert (table, set(filters)) == ("evidence", {"model", "sizes"})
    evidence = crossed_explorer.study.study.table("evidence").to_pylist()
    having = [row for row in evidence if row["model"] == filters["model"] and int(filters["sizes"]) in row["sizes"]]
    page.wait_for_selector(f"text=Rows 1 to {len(having)} of {len(having)}" if having else "text=No row is like that.")
    page.locator("tbody tr").first.click()
    page.wait_for_selector(f'.model[data-model="{filters["model"]}"][aria-checked="true"]')
