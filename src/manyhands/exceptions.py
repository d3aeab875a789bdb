"""Everything manyhands may raise or warn of.

ManyhandsError
├── AnnotationError       the table of labels cannot be used            (also a ValueError)
├── AlignmentError        two things do not describe the same items     (also a ValueError)
├── ParameterError        a constructor parameter has no meaning        (also a ValueError)
├── NotFittedError        results were asked for before `fit`           (also an AttributeError)
├── OutputExistsError     a file would be replaced without consent      (also a FileExistsError)
├── DownloadError         a file could not be fetched whole             (also an OSError)
├── TrainingError         a training went nowhere or is another one     (also an ArithmeticError)
├── LimitError            a job or a file is larger than is allowed     (also a MemoryError)
└── MissingExtraError     an optional part is not installed             (also an ImportError)

CrowdWarning              the result is valid, but the crowd limits what it can mean
"""


class ManyhandsError(Exception):
    """Base of all errors that manyhands raises on purpose; `except ManyhandsError` catches them all."""


class AnnotationError(ManyhandsError, ValueError):
    """The table of labels cannot be used; the message says which row and what to do."""


class AlignmentError(ManyhandsError, ValueError):
    """Two inputs that must describe the same items do not."""


class ParameterError(ManyhandsError, ValueError):
    """A constructor parameter is outside what it can mean."""


class NotFittedError(ManyhandsError, ValueError, AttributeError):
    """Results were asked for before `fit`."""


class OutputExistsError(ManyhandsError, FileExistsError):
    """A file is in the way and nobody said it may be replaced."""


class DownloadError(ManyhandsError, OSError):
    """A file could not be fetched, or what came is not what was published; nothing was kept."""


class TrainingError(ManyhandsError, ArithmeticError):
    """A training diverged, or its checkpoint belongs to another one; the message says what to change."""


class LimitError(ManyhandsError, MemoryError):
    """A job or a file is larger than it may be; nothing was started."""


class MissingExtraError(ManyhandsError, ImportError):
    """An optional part of manyhands is not installed; the message names the extra."""


class CrowdWarning(UserWarning):
    """The result is valid, but the crowd that gave the labels limits what it can mean."""
