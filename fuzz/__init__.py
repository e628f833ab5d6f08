"""Fuzzing: random input, valid and invalid, that must never crash, hang or raise a surprise.

`make fuzz MINUTES=10` runs all harnesses under ASan and UBSan; CONTRIBUTING.md has the rest.
"""
