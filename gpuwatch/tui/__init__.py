"""The live screen."""

import os

# Textual reads this when it is imported: how often at most it looks for something to paint, 60
# times a second by default. At 120 the answer to a key is painted 8 ms sooner.
os.environ.setdefault("TEXTUAL_FPS", "120")
