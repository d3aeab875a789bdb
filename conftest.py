"""What tests and the examples in the source share: without torch, what needs it is skipped and counted."""

import doctest
import sys
from importlib.util import find_spec

import pytest

from manyhands.exceptions import MissingExtraError

NO_TORCH = "torch is not installed: pip install 'manyhands[learn]' torch==2.13.0"
_SENTENCE = "needs torch, which is not installed"

# Without PyArrow, which comes with the extra `spark`, what runs on Spark's executors cannot be imported.
_ON_EXECUTORS = ("executors",)
collect_ignore = [] if find_spec("pyarrow") else [f"src/manyhands/spark/{name}.py" for name in _ON_EXECUTORS]
collect_ignore += [] if find_spec("pyspark") else ["tests/spark/executor_program.py"]

if find_spec("torch") is None:  # what needs it is skipped and counted; everything else must still pass

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(collector):
        """A file of tests that imports torch is skipped."""
        report = yield
        said = str(report.longrepr) if report.failed else ""
        if "No module named 'torch'" in said or _SENTENCE in said:
            report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {NO_TORCH}")
            for name, module in list(sys.modules.items()):  # pytest leaves it there, half imported
                if getattr(module, "__file__", None) == str(collector.path):
                    del sys.modules[name]
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        """A test that meets the absence of torch is skipped."""
        report = yield
        said = any(_SENTENCE in text for _, text in report.sections)  # by a command that the test ran
        if report.failed and call.excinfo is not None and (said or _lacks_torch(call.excinfo.value)):
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {NO_TORCH}")
        return report


def _lacks_torch(error):
    """Whether an error, or the one behind it, says that torch is not there."""
    if isinstance(error, doctest.UnexpectedException):
        error = error.exc_info[1]
    for one in (error, error.__cause__, error.__context__):
        missing = isinstance(one, ModuleNotFoundError) and one.name == "torch"
        if missing or (isinstance(one, MissingExtraError) and "needs torch" in str(one)):
            return True
    return any(_lacks_torch(failure) for failure in getattr(error, "failures", ()))
