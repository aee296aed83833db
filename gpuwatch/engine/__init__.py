"""The session that launches, the worker process that hosts it, and the frames it gives."""
