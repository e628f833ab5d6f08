"""Names of the tables in the folder of a search."""

from cagepool.evaluate.overview import SEARCH

DECISIONS = SEARCH
ORDERS = "orders.csv"
UPDATES = "updates.csv"
