"""Command line. Exit codes are listed here, commands in `main`."""

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPT = 130  # 128 + SIGINT, as in shells
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE, as in shells
