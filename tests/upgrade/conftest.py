"""These tests need the pretended next version: `make test-upgrade` makes it, and runs them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))
