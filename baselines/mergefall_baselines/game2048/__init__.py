"""Search players for 2048."""
