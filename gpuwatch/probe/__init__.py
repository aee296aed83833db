"""Probes: what to record, where, into which map."""
