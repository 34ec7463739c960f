"""The report in a browser: nothing is asked of the network, and everything that can be clicked works."""

import pytest

from tests.browser import PHONE, WIDE, Watched


@pytest.fixture(scope="module")
def page_file(report, tmp_path_factory):
    return report.save(tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.fixture
def opened(browser, page_file):
    """Opens the page as it is asked to."""
    made = []

    def open_page(**options):
        watched = Watched(browser, **{"viewport": WIDE, **options})
        made.append(watched)
        watched.page.goto(page_file)
        return watched

    yield open_page
    for watched in made:
        assert_quiet(watched)
        watched.context.close()


@pytest.fixture(scope="module")
def drawn(browser, page_file):
    """The page with all its figures, for tests that leave it as it was."""
    watched = Watched(browser, viewport=WIDE)
    watched.page.goto(page_file)
    watched.figures = watched.page.evaluate("sufficeDrawAll()")
    yield watched
    watched.context.close()


@pytest.fixture
def page(drawn):
    yield drawn.page
    assert_quiet(drawn)


def assert_quiet(watched):
    """Nothing was asked of the network, and nothing went wrong."""
    assert watched.asked == []
    assert [line for line in watched.said if line.startswith("error:")] == []


def test_every_figure_is_there(page, drawn, report):
    charts = [figure for figure in report.figures if figure.spec is not None]
    assert drawn.figures == len(charts)
    assert page.locator("[data-chart] svg.marks").count() == len(charts)
    assert page.locator("figure .drawing > svg").count() == len(report.figures) - len(charts)
    for figure in report.figures:
        assert page.locator(f'[id="figure-{figure.name}"]').count() == 1


def test_hovering_shows_values(page):
    chart = page.locator('[data-chart="summary-mses"]')
    mark = chart.locator(".mark-symbol path").first
    mark.scroll_into_view_if_needed()
    mark.hover()
    shown = page.locator("#vg-tooltip-element.visible")
    shown.wait_for()
    assert "model-0" in shown.inner_text()


def column(table, number):
    return table.locator("tbody tr").evaluate_all(f"rows => rows.map(row => row.cells[{number}].dataset.value)")


def test_tables_sort_by_a_click_and_by_keys(opened):
    page = opened().page
    table = page.locator("#enough-evidence table")
    heading = table.locator("thead th").nth(1)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    falling = [float(value) for value in column(table, 1)]
    assert falling == sorted(falling, reverse=True)
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert [float(value) for value in column(table, 1)] == sorted(falling)


def test_tables_copy_as_csv_and_latex(page):
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.copied = t; }}})"
    )
    table = page.locator("#enough-evidence")
    table.locator("[data-copy=csv]").click()
    lines = page.evaluate("copied").splitlines()
    assert lines[0].split(",")[:2] == ["Model", "Cells of an MSE"]
    assert lines[1].startswith("model-00,")
    assert float(lines[1].split(",")[1]) > 0
    table.locator("[data-copy=latex]").click()
    text = page.evaluate("copied")
    assert text.startswith("\\begin{tabular}{lrrrrr}")
    assert "\\%" in text
    assert page.locator(".status").inner_text() == "LaTeX copied"


def test_long_tables_unfold(opened):
    page = opened().page
    table = page.locator("#models-methods-scores")  # 21 rows
    visible = table.locator("tbody tr:visible")
    before = visible.count()
    table.locator("[data-open]").click()
    assert visible.count() > before


def test_a_number_shows_its_query(page):
    page.locator("#enough-evidence td.traced .value").first.click()
    dialog = page.locator("#traced")
    assert "avg(mean_size)" in dialog.locator("pre").inner_text()
    assert "model = 'model-00'" in dialog.locator("pre").inner_text()
    assert "evidence" in dialog.locator(".made").inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()


def test_pictures_enlarge_and_arrows_go_on(page):
    tile = page.locator("button.tile").first
    tile.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#enlarged")
    assert dialog.locator(".picture svg, .picture img").bounding_box()["width"] > 300
    first = dialog.locator("h2").inner_text()
    page.keyboard.press("ArrowRight")
    assert dialog.locator("h2").inner_text() != first
    page.keyboard.press("ArrowLeft")
    assert dialog.locator("h2").inner_text() == first
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert tile.evaluate("tile => tile === document.activeElement")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(opened, scheme):
    watched = opened(viewport=PHONE, color_scheme=scheme)
    watched.page.evaluate("sufficeDrawAll()")
    for details in watched.page.locator("details").all()[:4]:
        details.evaluate("details => { details.open = true; }")
    assert watched.overflow <= 0


def test_light_and_dark_follow_the_system_and_the_switch(opened):
    page = opened(color_scheme="dark").page
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    assert dark == "rgb(20, 24, 29)"
    page.evaluate("sufficeDrawAll()")
    label = "getComputedStyle(document.querySelector('.role-axis-label text')).fill"
    on_dark = page.evaluate(label)
    page.get_by_role("button", name="Show the page in light colors").click()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.evaluate("sufficeDrawAll()")
    assert page.evaluate(label) != on_dark


def test_contents_lead_to_every_section(page):
    links = page.locator("nav.contents a")
    for number in range(links.count()):
        target = links.nth(number).get_attribute("href")
        assert page.locator(f"main section{target}").count() == 1


def test_it_prints(opened, tmp_path):
    page = opened(color_scheme="dark").page
    page.evaluate("sufficeDrawAll()")
    assert page.pdf(path=tmp_path / "report.pdf", format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav.contents").is_visible()
    # Chromium repeats headings of tables on the next page only where they have no boxes of their own inside.
    assert page.evaluate("getComputedStyle(document.querySelector('thead button')).display") == "contents"
    assert page.locator("#models-methods-scores .paper").inner_text() == "The first 14 of 21 rows; the file has all."
    assert not page.locator("#gallery .screen").is_visible()
    assert page.locator("details.how pre:visible").count() == 0


def test_paper_is_light_though_the_page_is_dark(opened):
    page = opened(color_scheme="dark").page
    page.evaluate("sufficeDrawAll()")
    fills = (
        "[...document.querySelectorAll('.drawing svg [data-fill]')].map(e => [e.dataset.fill, e.getAttribute('fill')])"
    )
    charts = "[...document.querySelectorAll('.chart .role-axis-grid line')].map(e => e.getAttribute('stroke'))"
    dark, lines = page.evaluate(fills), page.evaluate(charts)
    assert any(first != shown for first, shown in dark)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(first == shown for first, shown in page.evaluate(fills))
    page.evaluate("sufficeDrawAll()")
    assert set(page.evaluate(charts)) != set(lines)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.evaluate("sufficeDrawAll()")
    assert page.evaluate(fills) == dark
    assert page.evaluate(charts) == lines
