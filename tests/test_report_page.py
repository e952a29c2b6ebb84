"""report.html as people meet it: opened from disk in Chromium, without a network."""

import os
import random
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from primus_hydra.report.model import Report, Run
from primus_hydra.report.page import render_page, write_page
from primus_hydra.report.points import read_points
from tests.report_runs import make_report, make_run, metrics_line

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
HOSTILE = """</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1"> "onload=alert(1) """
HOSTILE += """'onfocus='alert(1) {{7*7}} {% raw %} ${7*7} <!-- ]]> \u2028\u2029 &lt;b&gt; javascript:alert(1)"""
FIGURES = ["scores", "memory", "heat-map", "front", "step-times", "losses"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        reason = "Chromium is missing; install it: apt-get update && apt-get install -y chromium"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Seen:
    """What a page did that it must not do."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def refuse(self, dialog: Dialog) -> None:
        """A dialog that nobody answers stops the page for good."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()


@contextmanager
def opened(browser: Browser, file: Path, **options: Any) -> Iterator[tuple[Page, Seen]]:
    """The page, drawn; afterwards it must have asked for nothing but itself, and complained about nothing."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page, seen = context.new_page(), Seen()
    page.on("console", lambda message: seen.console.append(message.text))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("dialog", seen.refuse)
    page.goto(file.as_uri())
    page.wait_for_function("[...document.querySelectorAll('.chart')].every((each) => each.querySelector('svg'))")
    yield page, seen
    requests = [url for url in seen.requests if url != file.as_uri()]
    assert (seen.console, requests, seen.errors, seen.dialogs) == ([], [], [], [])
    context.close()


def _write_steps(file: Path, seconds: float, steps: int = 40, nan_from: int | None = None) -> tuple[Path, ...]:
    noise = random.Random(file.name)
    lines = [
        metrics_line(
            step,
            (20.0 if step == 0 else seconds) * noise.uniform(0.99, 1.01),
            float("nan")
            if nan_from is not None and step >= nan_from
            else 3 + 8 / (1 + step / 9) + noise.uniform(0, 0.1),
        )
        for step in range(steps)
    ]
    file.write_text("".join(lines), encoding="utf-8")
    return (file,)


def make_sweep(folder: Path) -> Report:
    """Two policies by two precisions by two kernels, some of them without a result."""
    runs: list[Run] = []
    for number, (policy, quantization, attention) in enumerate(
        (policy, quantization, attention)
        for policy in ("full", "minimal")
        for quantization in ('""', "nanoo_fp8")
        for attention in ("dot_product", "cudnn_flash_te")
    ):
        overrides = (f"remat_policy={policy}", f"quantization={quantization}", f"attention={attention}")
        name = f"{number:04d}"
        changes: dict[str, Any] = {
            "overrides": ("model=llama3_8B", *overrides),
            "differs": " ".join(overrides),
            "composed": {"remat_policy": policy, "quantization": quantization.strip('"'), "attention": attention},
            "environment": {"NCCL_DEBUG": "WARN", "XLA_FLAGS": "--xla_gpu_autotune_level=4"},
            "versions": {"jax": "0.12.1"},
            "command": f"python -m primus_hydra --config-dir /sweeps/one/{name} --config-name replay",
            "peak_device_memory_gib": 80.0 + 10 * number,
            "step_files": _write_steps(folder / f"{name}.jsonl", 1.0, nan_from=30 if number == 5 else None),
        }
        if number == 5:
            changes |= {"state": "failed", "failure": "not_finite_loss", "reason": "The loss is not finite at step 30."}
        if number == 6:
            changes |= {"state": "invalid", "reason": "It is illegal.", "result": {}, "step_files": ()}
        runs.append(make_run(name, 1000.0 + 150 * number, **changes))
    return make_report(*runs)


@pytest.fixture(scope="module")
def sweep_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a small sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    write_page(make_sweep(folder), folder / "report.html")
    return folder / "report.html"


def _ranks(page: Page) -> list[str]:
    return page.locator("#points tbody tr:visible td:first-child").all_inner_texts()


def _color(page: Page, selector: str, name: str = "color") -> str:
    return str(page.locator(selector).first.evaluate(f"(each) => getComputedStyle(each)['{name}']"))


def test_the_page_opens_from_disk_and_draws_every_chart(browser: Browser, sweep_page: Path) -> None:
    with opened(browser, sweep_page) as (page, _):
        assert page.locator("figure").evaluate_all("(all) => all.map((each) => each.id)") == FIGURES
        for name in FIGURES:
            assert page.locator(f"#{name} svg [class*='mark-'] path, #{name} svg [class*='mark-'] text").count() > 1
        assert "minimal · nanoo_fp8 · cudnn_flash_te" in page.locator("h1").inner_text()
        assert page.locator("#heat-map svg").count() == 2
        text = page.locator("main").inner_text()
        for needed in ("The loss is not finite at step 30.", "It is illegal.", "xla_gpu_autotune_level", "0.12.1"):
            assert needed in text


def test_a_click_and_a_key_on_a_heading_sort_and_what_is_unknown_stays_last(browser: Browser, sweep_page: Path) -> None:
    with opened(browser, sweep_page) as (page, _):
        assert _ranks(page) == ["1", "2", "3", "4", "5", "6", "", ""]
        heading = page.get_by_role("button", name="tokens/s/device", exact=True)
        heading.click()
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
        heading.press("Enter")
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
        assert _ranks(page) == ["6", "5", "4", "3", "2", "1", "", ""]
        page.get_by_role("button", name="rank", exact=True).press("Space")
        assert _ranks(page) == ["1", "2", "3", "4", "5", "6", "", ""]


def test_text_and_states_filter_the_table(browser: Browser, sweep_page: Path) -> None:
    with opened(browser, sweep_page) as (page, _):
        page.get_by_label("Show points that contain").fill("NANOO minimal")
        assert page.locator("#filter-count").inner_text() == "2 of 8 points"
        page.get_by_role("checkbox", name="invalid").uncheck()
        assert page.locator("#filter-count").inner_text() == "1 of 8 points"
        page.get_by_label("Show points that contain").fill("")
        assert page.locator("#filter-count").inner_text() == "7 of 8 points"
        page.emulate_media(media="print")
        assert page.get_by_text("A filter hides 1 of 8 points.").is_visible()


def test_a_point_opens_to_its_folder_and_a_command_that_can_be_copied(browser: Browser, sweep_page: Path) -> None:
    with opened(browser, sweep_page) as (page, _):
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        row = page.locator("#points tbody tr").first
        assert not row.get_by_role("button", name="Copy").is_visible()
        row.locator("summary").press("Enter")
        assert "/sweeps/one/0007" in row.inner_text()
        row.get_by_role("button", name="Copy").click()
        assert row.get_by_role("button", name="Copied").is_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "python -m primus_hydra --config-dir /sweeps/one/0007 --config-name replay"


def test_a_browser_that_refuses_the_clipboard_selects_the_command(browser: Browser, sweep_page: Path) -> None:
    with opened(browser, sweep_page) as (page, _):
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')) }")
        page.locator("header .copy").click()
        assert page.get_by_role("button", name="Selected").is_visible()
        assert "replay" in page.evaluate("getSelection().toString()")


def test_hovering_tells_the_figures_and_a_name_in_the_legend_singles_out_its_curve(
    browser: Browser, sweep_page: Path
) -> None:
    with opened(browser, sweep_page) as (page, _):
        page.locator("#scores .mark-symbol path").first.hover()
        tooltip = page.locator("#vg-tooltip-element.visible")
        tooltip.wait_for()
        assert "2,050" in tooltip.inner_text()
        curve = page.locator("#losses .mark-line path").nth(2)
        assert curve.get_attribute("opacity") in (None, "1")
        page.locator("#losses .role-legend-label text").first.click()
        page.wait_for_function(
            "document.querySelectorAll('#losses .mark-line path')[2].getAttribute('opacity') === '0.1'"
        )


def test_dark_readers_get_a_dark_page_and_dark_charts(browser: Browser, sweep_page: Path) -> None:
    looks = {}
    for scheme in ("light", "dark"):
        with opened(browser, sweep_page, color_scheme=scheme) as (page, _):
            looks[scheme] = (
                _color(page, "body", "backgroundColor"),
                _color(page, "body"),
                _color(page, "#scores .role-mark text", "fill"),
                _color(page, "#heat-map .mark-rect path", "fill"),
            )
    assert all(light != dark for light, dark in zip(looks["light"], looks["dark"], strict=True))
    assert looks["light"][1] == looks["light"][2]
    assert looks["dark"][1] == looks["dark"][2]


def test_a_dark_page_is_printed_light_without_its_controls_and_nothing_is_cut_off(
    browser: Browser, sweep_page: Path, tmp_path: Path
) -> None:
    with opened(browser, sweep_page, color_scheme="dark") as (page, _):
        page.emulate_media(media="print", color_scheme="dark")
        assert _color(page, "body", "backgroundColor") == "rgb(255, 255, 255)"
        assert _color(page, "#scores .role-mark text", "fill") == _color(page, "body")
        assert not page.locator(".filter").is_visible()
        assert not page.locator(".copy").first.is_visible()
        assert page.locator("#losses svg").is_visible()
        page.set_viewport_size({"width": 1000, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 1000
        page.emulate_media(media="screen")
        page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_a_telephone_shows_the_page_without_scrolling_sideways(browser: Browser, sweep_page: Path) -> None:
    with opened(browser, sweep_page, viewport={"width": 400, "height": 800}) as (page, _):
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        widths = page.locator("figure svg").evaluate_all(
            "(all) => all.map((each) => each.getBoundingClientRect().right)"
        )
        assert max(widths) <= 400


def _hostile_report() -> Report:
    texts: dict[str, Any] = {
        "differs": HOSTILE,
        "command": HOSTILE,
        "sweep": HOSTILE,
        "folder": Path("/x") / HOSTILE.replace("/", "|"),
    }
    tables: dict[str, Any] = {
        "environment": {HOSTILE: HOSTILE},
        "versions": {HOSTILE: HOSTILE},
        "composed": {HOSTILE: HOSTILE},
    }
    first = make_run("0" + HOSTILE, 2000, overrides=(f"a.b={HOSTILE}", f"c={HOSTILE}"), **texts, **tables)
    second = make_run("1" + HOSTILE, 1000, overrides=("a.b=1", "c=2"), **texts, composed={HOSTILE: "other"})
    third = make_run("2", state="failed", failure=HOSTILE, reason=HOSTILE, result={}, **texts)
    return make_report(first, second, third)


def test_no_text_of_a_run_can_execute(browser: Browser, tmp_path: Path) -> None:
    write_page(_hostile_report(), tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as (page, _):
        page.locator("details").evaluate_all("(all) => all.forEach((each) => each.open = true)")
        page.locator("#scores .mark-symbol path").first.hover()
        page.locator("#vg-tooltip-element.visible").wait_for()
        for heading in page.locator("thead button").all():
            heading.click()
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert page.locator("main img, main script, [onload], [onerror], [onfocus]").count() == 0
        assert "{{7*7}}" in page.locator(".failure").inner_text()
        assert "49" not in page.locator(".failure").inner_text()
        assert "<script>window.hacked=1</script>" in page.locator("#points details").first.inner_text()


def test_the_policy_stops_what_the_escaping_might_miss(browser: Browser, sweep_page: Path, tmp_path: Path) -> None:
    smuggled = "<script>window.hacked=1</script><img src='https://example.com/x' onerror='window.hacked=1'>"
    text = sweep_page.read_text(encoding="utf-8").replace("<header>", f"<header>{smuggled}")
    (tmp_path / "smuggled.html").write_text(text, encoding="utf-8")
    context = browser.new_context()
    page, refused, requests = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: refused.append(message.text))
    page.on("requestfinished", lambda request: requests.append(request.url))
    page.goto((tmp_path / "smuggled.html").as_uri())
    page.wait_for_selector("#losses svg")
    assert page.evaluate("window.hacked") is None
    assert [url for url in requests if not url.startswith("file:")] == []
    assert len([text for text in refused if "Content Security Policy" in text]) >= 2
    context.close()


def test_the_page_names_no_address_and_asks_for_no_file(sweep_page: Path) -> None:
    text = re.sub(r"<script.*?</script>", "", sweep_page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert re.findall(r"https?:|//\w|\bsrc=|<link|@import|url\(", text) == []
    assert "default-src &#39;none&#39;" in text
    assert "unsafe" not in text


@pytest.mark.parametrize(
    "runs",
    [
        (),
        (make_run("a", state="invalid", reason="It is illegal.", result={}),),
        (make_run("a", state="running", result={}),),
        (make_run("a", peak_device_memory_gib=None, peak_host_memory_gib=None),),
        (make_run("a", state="foreign"),),
    ],
    ids=["nothing", "invalid", "running", "one point", "foreign"],
)
def test_a_report_of_little_is_a_whole_page(browser: Browser, tmp_path: Path, runs: tuple[Run, ...]) -> None:
    write_page(make_report(*runs), tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as (page, _):
        assert page.locator("h1").inner_text()
        assert page.get_by_text("There is no heat map").is_visible()


def test_repeats_ties_and_problems_are_told(browser: Browser, tmp_path: Path) -> None:
    runs = [make_run("a", 1000), make_run("a", 1010, repeat=2), make_run("b", 1005)]
    report = make_report(*runs)
    report = Report(
        folders=report.folders,
        objective=report.objective,
        rows=report.rows,
        runs=report.runs,
        problems=("/x holds no run folders.",),
    )
    write_page(report, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as (page, _):
        assert page.locator("h1").inner_text() == "2 points share the first place"
        assert page.locator(".ties li").all_inner_texts() == ["a", "b"]
        assert page.locator(".problem").inner_text() == "/x holds no run folders."
        assert "2 of 2 runs" in page.locator("#points").inner_text()


def test_a_path_that_is_no_text_is_written_all_the_same(tmp_path: Path) -> None:
    write_page(make_report(make_run("a", folder=Path(os.fsdecode(b"/x/\xff")))), tmp_path / "report.html")
    assert "/x/\\xff" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old", encoding="utf-8")
    write_page(make_report(make_run("a")), tmp_path / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError):
        write_page(make_report(make_run("a")), tmp_path / "missing" / "report.html")


@pytest.mark.slow
def test_a_thousand_points_make_a_page_that_opens(browser: Browser, tmp_path: Path) -> None:
    steps = _write_steps(tmp_path / "metrics.jsonl", 1.0, steps=500)
    runs = [
        make_run(
            f"{number:04d}-learning_rate={number}",
            1000.0 + number,
            overrides=(f"learning_rate={number}", f"remat_policy={('full', 'minimal')[number % 2]}"),
            composed={"learning_rate": number},
            command=f"python -m primus_hydra --config-dir '/sweeps/one/{number:04d}' --config-name replay",
            peak_device_memory_gib=50.0 + number % 97,
            step_files=steps,
        )
        for number in range(1000)
    ]
    report, file = make_report(*runs), tmp_path / "report.html"
    write_page(report, file)
    assert file.stat().st_size < 4_000_000
    began = time.monotonic()
    with opened(browser, file) as (page, _):
        page.get_by_label("Show points that contain").fill("learning_rate=999")
        assert page.locator("#filter-count").inner_text() == "1 of 1000 points"
        assert time.monotonic() - began < 30


def test_rendering_is_the_same_but_for_its_time(tmp_path: Path) -> None:
    report = make_report(make_run("a"), make_run("b", 500))
    pages = [re.sub(r"at [\d:\- ]+ UTC", "", render_page(report, read_points(report), {})) for _ in range(2)]
    assert pages[0] == pages[1]
