"""Makes the site from the documents of the repository: target/site, or the folder `site` in another one.

    target/tools/site/bin/python website/build.py [FOLDER]

`make site` installs the generator, runs this, and looks for dead links.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from check import dead_links
from pages import FILES, ROOT, Nav, Site

HERE = Path(__file__).resolve().parent
FOLDER = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "target"
STAGE = FOLDER / "site-source"
TARGET = FOLDER / "site"


def stage(site: Site) -> dict[str, str]:
    """Writes all pages, and the files that they name; the pages."""
    pages = site.pages()
    shutil.rmtree(STAGE, ignore_errors=True)
    for page, text in pages.items():
        write(STAGE / "pages" / page, text)
    for name in sorted(site.files):
        place = STAGE / "pages" / FILES / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)
    shutil.copy(HERE / "extra.css", STAGE / "pages" / "extra.css")
    config = (HERE / "mkdocs.yml").read_text()
    config += f"docs_dir: {STAGE / 'pages'}\nsite_dir: {TARGET}\nnav:\n" + "".join(menu(site.nav(), 1))
    write(STAGE / "mkdocs.yml", config)
    return pages


def menu(entries: list[Nav], depth: int) -> list[str]:
    lines = []
    for entry in entries:
        head = "  " * depth + f'- "{entry.title}":'
        if isinstance(entry.to, str):
            lines.append(f"{head} {entry.to}\n")
        else:
            lines += [head + "\n", *menu(entry.to, depth + 1)]
    return lines


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> None:
    site = Site()
    pages = stage(site)
    words = ["build", "--quiet", "--strict", "--clean", "--config-file", str(STAGE / "mkdocs.yml")]
    # For slugs.py; and the generator's word about its successor is in requirements.in.
    environment = {**os.environ, "PYTHONPATH": str(HERE), "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([sys.executable, "-m", "mkdocs", *words], check=True, env=environment)
    for page, text in pages.items():
        write(TARGET / page, text)
    write(TARGET / "llms.txt", site.llms(pages))
    if dead := dead_links(TARGET):
        sys.exit("\n".join(dead))
    print(f"{TARGET / 'index.html'}: {len(pages)} pages")


if __name__ == "__main__":
    main()
