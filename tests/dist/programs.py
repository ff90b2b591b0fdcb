"""README's programs in Python and TypeScript, and one in CommonJS: with the packages of `make dist` and
nothing of this tree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from documents import PACKAGE, README, ROOT, blocks

DIST = ROOT / "target" / "dist"
NODE = ROOT / "clients" / "typescript"
COMMON_JS = """
const { Board, Worker } = require('jobboard');
for (const part of ['testing', 'otel', 'nestjs', 'bull-board']) {
  if (!Object.keys(require(`jobboard/${part}`)).length) throw new Error(part);
}
(async () => {
  const board = new Board('required');
  board.handler('welcome', (to) => `Hello ${to}`);
  const id = await board.post('ann', { name: 'welcome' });
  await new Worker(board).run({ burst: true });
  console.log(await board.result(id));
})();
"""


class Programs:
    """A virtual environment with the wheel, and a folder with the npm package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        [wheel] = DIST.glob("jobboard-*-py3-none-any.whl")
        [package] = DIST.glob("jobboard-[0-9]*.tgz")
        run(folder, sys.executable, "-m", "venv", "venv")
        run(folder, "venv/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
        needs = json.loads((NODE / "package.json").read_text())["devDependencies"]
        (folder / "package.json").write_text('{"type": "module"}')
        run(folder, "npm", "install", "-s", "--no-audit", "--no-fund", package, f"zod@{needs['zod']}")
        for info, name in (("python", "app.py"), ("ts", "app.js")):
            [block] = [one for one in blocks(README) if one.info == info]
            (folder / name).write_text(block.text)
        (folder / "app.cjs").write_text(COMMON_JS)
        self.first = first_job(folder, package)

    def run(self, url: str) -> None:
        """Each posts a job, does it, and prints its result."""
        # What the parts for other frameworks need is not the package's to bring.
        frames = str(NODE / "node_modules")
        for words in (("venv/bin/python", "app.py"), ("node", "app.js"), ("node", "app.cjs")):
            assert run(self.folder, *words, JOBBOARD_URL=url, NODE_PATH=frames) == "Hello ann\n", words
        for name, output in (("app.js", "Hello ann\n"), ("shop.js", "work, order ID ITEM... or cancel ID\n")):
            assert run(self.first, "node", name, JOBBOARD_URL=url) == output, name


def first_job(folder: Path, package: Path) -> Path:
    """The folder in which the lines of the first job in TypeScript were run, as the guide has them, and the
    shop that the package brings was compiled.
    """
    guide = (ROOT / "docs/guides/first-job.md").read_text()
    mine = {one.info: one.text for one in blocks(guide) if one.heading == "In TypeScript"}
    setup = [mine["sh"], mine["json"]]
    readme = list(blocks((PACKAGE / "README.md").read_text()))
    assert setup == [one.text for one in readme if one.info in ("sh", "json")][:2], (
        "the package says the same"
    )
    (folder / "setup.sh").write_text(mine["sh"].replace("../jobboard-*.tgz", str(package)))
    run(folder, "sh", "-e", "setup.sh")
    first = folder / "mails"
    (first / "tsconfig.json").write_text(mine["json"])
    (first / "app.ts").write_text(mine["ts"])
    shop = first / "node_modules" / "jobboard" / "examples" / "shop.ts"
    (first / "shop.ts").write_text(shop.read_text())
    run(first, "npx", "tsc")
    return first


def run(folder: Path, *words: object, **variables: str) -> str:
    path = [str(word) if "/" not in str(word) else str(folder / str(word)) for word in words]
    environment = {**os.environ, **variables}
    environment.pop("NODE_OPTIONS", None)
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(path, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout
