"""Stories that one can play in a browser, one step at a time, as static files."""
