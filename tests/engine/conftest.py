"""Makes synthesized traces and made-up maps importable."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / folder) for folder in ("trace", "tui", "analysis")]
