"""`hydra/sweeper=grid`: the points of `sweep.grid`, `sweep.zip` and `sweep.points` with those of the command line."""
