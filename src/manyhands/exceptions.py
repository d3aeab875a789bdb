"""All errors and warnings of manyhands.

ManyhandsError
├── AnnotationError       the labels cannot be used                     (also a ValueError)
│   ├── SeveralChoicesError     answers have several choices, and it was not said how to take them
│   ├── UnknownColumnsError     the columns of items, workers or labels of a table are not known by their names
│   ├── SeveralQuestionsError   the export answers several questions, and none was chosen
│   └── UnorderedClassesError   an order of the classes is needed, and none is known
├── AlignmentError        two inputs do not describe the same items     (also a ValueError)
├── ParameterError        a parameter is out of its range               (also a ValueError)
├── NotFittedError        results were requested before `fit`           (also an AttributeError and, if it is loaded,
│                         scikit-learn's NotFittedError)
├── OutputExistsError     a file would be replaced without permission   (also a FileExistsError)
├── DownloadError         a download failed or is incomplete            (also an OSError)
├── TrainingError         training diverged, or a checkpoint is foreign (also an ArithmeticError)
├── LimitError            a job or a file is larger than allowed        (also a MemoryError)
└── MissingExtraError     an optional dependency is not installed       (also an ImportError)

CrowdWarning              the result is valid, but the labels limit its meaning, or an input could not be checked
"""

import sys
from collections.abc import Sequence
from functools import cache


class ManyhandsError(Exception):
    """Base class of all errors that manyhands raises on purpose; `except ManyhandsError` catches them all."""


class AnnotationError(ManyhandsError, ValueError):
    """The labels cannot be used; the message names the row and what to do."""


class SeveralQuestionsError(AnnotationError):
    """The export holds answers to several questions, and none was chosen.

    Parameters
    ----------
    message : str
        The sentence.
    questions : sequence of str, default=()
        Names of the questions.
    """

    def __init__(self, message: str, questions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.questions = tuple(questions)


class SeveralChoicesError(AnnotationError):
    """Answers to a question have several choices, and it was not said how they become labels.

    Parameters
    ----------
    message : str
        The sentence.
    question : str, default=""
        Name of the question.
    choices : sequence of str, default=()
        Its choices.
    """

    def __init__(self, message: str, question: str = "", choices: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.question = question
        self.choices = tuple(choices)


class UnknownColumnsError(AnnotationError):
    """The columns of items, workers or labels of a table are not known by their names.

    Parameters
    ----------
    message : str
        The sentence.
    columns : dict, default=None
        Parameters that would name all of them, with the columns that are probably meant; empty where one is not known.
    """

    def __init__(self, message: str, columns: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.columns = dict(columns or {})


class UnorderedClassesError(AnnotationError):
    """A method or metric needs an order of the classes, and none was given or is known."""


class AlignmentError(ManyhandsError, ValueError):
    """Two inputs that must describe the same items do not."""


class ParameterError(ManyhandsError, ValueError):
    """A parameter is out of its range."""


class NotFittedError(ManyhandsError, ValueError, AttributeError):
    """Results were requested before `fit`."""


def not_fitted_error(message: str) -> NotFittedError:
    """Make the error of a model that is not fitted; where scikit-learn is loaded, it is an error of scikit-learn too.

    `except sklearn.exceptions.NotFittedError` then catches it. scikit-learn is not imported for that: a program that
    names its error has loaded it.

    Parameters
    ----------
    message : str
        The sentence.

    Returns
    -------
    NotFittedError
        The error, to be raised.
    """
    loaded = sys.modules.get("sklearn.exceptions")
    return NotFittedError(message) if loaded is None else _of_both(loaded.NotFittedError)(message)


@cache
def _of_both(theirs: type[Exception]) -> type[NotFittedError]:
    """Return the class of errors that are both ours and scikit-learn's."""

    def as_pickle(error: NotFittedError) -> tuple[object, ...]:
        return not_fitted_error, error.args  # a class that is made here has no place to be loaded from

    bases = (NotFittedError, theirs)
    return type("NotFittedError", bases, {"__reduce__": as_pickle, "__doc__": NotFittedError.__doc__})


class OutputExistsError(ManyhandsError, FileExistsError):
    """A file exists already and may not be replaced."""


class DownloadError(ManyhandsError, OSError):
    """A file could not be downloaded, or its content is not what was published; nothing was kept."""


class TrainingError(ManyhandsError, ArithmeticError):
    """Training diverged, or its checkpoint belongs to another training; the message names what to change."""


class LimitError(ManyhandsError, MemoryError):
    """A job or a file is larger than allowed; nothing was started."""


class MissingExtraError(ManyhandsError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""


class CrowdWarning(UserWarning):
    """The result is valid, but the labels limit its meaning, or an input could not be checked."""
