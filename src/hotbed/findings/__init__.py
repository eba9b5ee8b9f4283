"""Findings: what a trace shows, each with its size, the line at fault, the evidence and a fix."""
