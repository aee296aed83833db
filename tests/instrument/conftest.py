"""Makes random programs and the reference interpreter importable."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / "device"), str(TESTS / "reference")]
