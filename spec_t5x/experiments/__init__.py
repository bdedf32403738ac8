"""Experiments: what is measured, cell by cell, and what is kept of it."""
