"""Drawings of a game: as text, as RGB frames, and as pictures of a scenario."""
