"""What the library says was probably not meant, as a warning of Python."""

__all__ = ["ModelWarning"]


class ModelWarning(UserWarning):
    """Something in the text of a model that was probably not meant: a definition that nobody uses, a comparison that always holds."""
