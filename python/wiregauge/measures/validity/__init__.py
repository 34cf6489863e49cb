"""Is a run fit to be believed? A check per question, judged before any limit, from what the instrument reported."""
