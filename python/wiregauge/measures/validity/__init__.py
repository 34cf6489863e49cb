"""Checks whether a run can be believed, before any limit is judged, from the reports of the instrument."""
