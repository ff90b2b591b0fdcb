"""What is wrong with the links of a site: no such file, no such heading, loaded from another server."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        self.ids |= {has[name] for name in ("id", "name") if name in has}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        elif tag in ("img", "script", "source") and "src" in has:
            self.loads.append(has["src"])
        elif tag == "link" and has.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(has["href"])


def dead_links(site: Path) -> list[str]:
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            where = f"{path.relative_to(site)}: {link}"
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    dead.append(f"{where} is loaded from elsewhere")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or site.resolve() not in target.parents:
                dead.append(f"{where} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                dead.append(f"{where} leads to no heading")
    return dead
