"""What builds the manual: hooks of MkDocs and the generated page of the command line."""
