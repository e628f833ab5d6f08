"""The games in other libraries' terms; each module needs its library."""
