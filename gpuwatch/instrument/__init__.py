"""Weaving: what a probe position means, probe code to PTX, map layout for a launch."""
