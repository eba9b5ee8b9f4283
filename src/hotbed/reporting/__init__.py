"""Results for people: each module turns one kind of result into text; nothing here computes one."""
