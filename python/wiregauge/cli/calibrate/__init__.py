"""`calibrate`: the instrument measures itself, a command for each thing it can measure."""
