"""`/v1`: tasks, events, the past, the feed and the machines over HTTP, for programs."""
