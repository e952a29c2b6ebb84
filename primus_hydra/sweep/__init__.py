"""Sweeps: expand, compose and judge all points, run their folders, several at once, and stop what is not worth it."""
