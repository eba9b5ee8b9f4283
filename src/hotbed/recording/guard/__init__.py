"""hotbed.guard: watches, in the program's own process, what empties caches, what leaks, and why memory ran out."""
