"""Libraries of the tests of packages lie apart from .venv: `scripts/dist-tests` installs them."""

import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "target" / "tools"
sys.path += map(str, (TOOLS / "dist-tests").glob("lib/python*/site-packages"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "packaging"))
