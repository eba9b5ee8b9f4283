"""hotbed.fit: what memory a program needs, found by running it on a phantom GPU."""
