"""Which workflow order defends best: a search over all 120 of them."""
