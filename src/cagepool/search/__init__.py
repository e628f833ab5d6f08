"""Search for the workflow order whose policy defends best, among all 120 orders."""
