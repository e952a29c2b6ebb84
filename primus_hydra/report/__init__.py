"""From run folders to figures and tables. Reads folders only: finished, running and broken ones."""
