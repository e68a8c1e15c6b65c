"""Expert iteration: the agent's own network searches, and learns from what the search finds."""
