"""Inside the user's process: allocator history, steps, categories, values. Standard library and the torch already there."""
