"""Libraries of the tests of packages lie apart from .venv: `scripts/dist-tests` installs them.

programs     the two programs on README's first screen, as who has the packages runs them: programs.run(url)
"""

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "target" / "tools"
sys.path += map(str, (TOOLS / "dist-tests").glob("lib/python*/site-packages"))
sys.path += [str(Path(__file__).resolve().parents[2] / "packaging"), str(Path(__file__).resolve().parent)]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> object:
    from programs import Programs

    return Programs(tmp_path_factory.mktemp("programs"))
