"""Everything that knows MaxText. Only `child` imports it; the rest reads its installed files."""
