"""What the marks of a recorder say about a trace: its steps, and what each allocation was for."""
