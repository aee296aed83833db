"""Watching unmodified programs: a library loaded into them, and the PTX of what they launch."""
