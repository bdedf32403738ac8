"""Tables and figures, made from raw counts alone."""
