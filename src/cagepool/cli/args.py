"""How flags are read."""

import tyro

FLAGS = (tyro.conf.FlagCreatePairsOff,)
