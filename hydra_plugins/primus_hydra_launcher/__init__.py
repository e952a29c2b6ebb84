"""`hydra/launcher=local`: all points of a sweep are planned first, then run from their folders."""
