"""The class of Python warnings for parts of a model that were probably not meant."""

__all__ = ["ModelWarning"]


class ModelWarning(UserWarning):
    """A warning about a part of a model's text that was probably not meant: an unused definition, a comparison that is always true."""
