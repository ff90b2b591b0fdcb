"""Puts what `make dist` has staged into the wheel, for the machines that $JOBBOARD_WHEEL names."""

import os
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STAGE = Path(__file__).resolve().parents[2] / "target" / "stage"


class Hook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        files = [STAGE / name for name in ("libjobboard.so", "jobboard-console", "NOTICES")]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['JOBBOARD_WHEEL']}"
        build_data["force_include"].update(
            {str(file): f"jobboard_server/{file.name}" for file in files if file.exists()}
        )
