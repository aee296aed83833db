"""The live screen."""

import os

# Textual reads this when it is imported: how often at most it looks for something to paint, 60
# a second by default. At 120 a key's answer is painted 8 ms sooner; frames are not shown more often.
os.environ.setdefault("TEXTUAL_FPS", "120")
