"""Opens real reports in Chromium, and lets no test pass in which the page complained or asked for anything."""

from __future__ import annotations

import importlib.util
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from hotbed.findings.case import Case
from hotbed.findings.looking import examine
from hotbed.reporting.html.document import document
from hotbed.reporting.html.page import page as html_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from hotbed.trace import Trace

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here need playwright and Debian's chromium; what is missing is said."""
    missing = [
        name
        for name, there in (("playwright", importlib.util.find_spec("playwright")), ("chromium", CHROMIUM))
        if not there
    ]
    for item in items:
        if "/browser/" not in str(item.path):
            continue
        item.add_marker(pytest.mark.browser)
        if missing:
            item.add_marker(
                pytest.mark.skip(reason=f"{' and '.join(missing)} is missing: run `make browser-test`")
            )


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests. It runs as root in CI, which its sandbox refuses."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """`show(trace, **options)` writes the report, opens it and waits until it says that it is ready."""
    complaints: list[str] = []
    opened: list[Any] = []

    def open_report(trace: Trace, *, name: str = "run.hbt", scheme: str = "light", **options: Any) -> Page:
        path = tmp_path / "report.html"
        case = Case(trace)
        findings = examine([case], ["peak", "fragmentation"]) if len(trace.events) else []
        path.write_text(html_page(document(case, findings, name, **options)))
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-state=ready]", timeout=30_000)
        return page

    yield open_report
    for context in opened:
        context.close()
    assert complaints == []
