"""The status page and the API: what the table of views holds, for people and for programs."""
