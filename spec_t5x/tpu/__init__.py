"""The loop for TPUs: compiled by their compiler, timed by a roofline."""
