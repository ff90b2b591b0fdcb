"""Why no server can be had."""


class CannotServe(ValueError):
    """One sentence: what is wrong, and what to do about it. Nothing has been lost."""
