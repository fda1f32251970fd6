"""The files of a broker's log directories: what it would start from. No record is ever read."""
