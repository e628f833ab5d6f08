"""Hypothesis strategies of observations."""

from hypothesis import strategies as st

from cagepool.search.strategy import Observation

ORDER_NUMBERS = st.integers(0, 119)
HISTORIES = st.dictionaries(
    ORDER_NUMBERS,
    st.builds(Observation, st.floats(-300, -1), st.floats(0.1, 5), st.booleans()),
    min_size=2,
    max_size=12,
)
