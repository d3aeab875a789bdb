"""Complete jobs on files: read, fit, score, write. Every command of the command line is one call of this package.

All options are checked, and the place of the output is reserved, before any file is read. Nothing is printed: a call
returns its results, and what the user should know is raised as a `CrowdWarning`.

options           `ExportOptions` and `FeatureOptions`: how to read an export, how to read features
gold_labels       labels of known items, from a table and from the export itself
outputs           reserve a place for files, write them all or none
aggregation       `aggregate`: one label per item and a quality report for each worker
aggregation_runs  its results: `AggregationRun`, and `ShardedRun` of a run on shards
routes            whether a job runs in memory, in memory on shards, or out of core
memory_choice     the memory that a job needs, compared with what it may have
sharded_aggregation  `aggregate` on shards: the same steps in memory and out of core
labels_on_shards  the labels of such a run: read into memory, or coded into the cache
step_times        seconds and peak memory of its steps
comparison        all aggregators on the same annotations: scores, and the items on which their labels differ
asking            `ask`: items to ask an expert about, as a table to fill in
answered_fit      a fit with an expert's answers: which method, gold, and the block "trust" of summary.json
agreement_report  `measure_agreement`: inter-annotator agreement, overall and by class, pair and item
conversion        `convert`: any export as a table of item, worker and label
inspection        `inspect_export`: what an export contains, without fitting anything
questions         `describe_questions`, `aggregate_questions`: exports with several questions
model_training    `train`: a classifier from annotations and features, as a folder
prediction        `predict`: class probabilities of new features
evaluation        `evaluate`: a trained classifier compared with ground truth
simulation        `simulate`: a simulated crowd as files; `demonstrate`: one with a comparison of all aggregators
reporting         `report`: an HTML page with labels, workers and what to do next
report_pages      the page of a fitted method, and the key of its pseudonyms
report_changes    `report_change`: what changed between two reports; `inspect_page`: the data of one
diagnosis         `diagnose`: what is installed, compiled and found, and what to do

Names are imported on first use, so that `diagnosis` loads where a required library is missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyhands.workflows.aggregation import aggregate as aggregate
    from manyhands.workflows.aggregation_runs import AggregationRun as AggregationRun
    from manyhands.workflows.aggregation_runs import ShardedRun as ShardedRun
    from manyhands.workflows.agreement_report import AgreementRun as AgreementRun
    from manyhands.workflows.agreement_report import measure_agreement as measure_agreement
    from manyhands.workflows.asking import AskRun as AskRun
    from manyhands.workflows.asking import Questionnaire as Questionnaire
    from manyhands.workflows.asking import ask as ask
    from manyhands.workflows.conversion import ConversionRun as ConversionRun
    from manyhands.workflows.conversion import convert as convert
    from manyhands.workflows.diagnosis import Diagnosis as Diagnosis
    from manyhands.workflows.diagnosis import diagnose as diagnose
    from manyhands.workflows.evaluation import EvaluationRun as EvaluationRun
    from manyhands.workflows.evaluation import evaluate as evaluate
    from manyhands.workflows.finding import Finding as Finding
    from manyhands.workflows.inspection import inspect_export as inspect_export
    from manyhands.workflows.model_training import TrainingRun as TrainingRun
    from manyhands.workflows.model_training import train as train
    from manyhands.workflows.options import ExportOptions as ExportOptions
    from manyhands.workflows.options import FeatureOptions as FeatureOptions
    from manyhands.workflows.prediction import PredictionRun as PredictionRun
    from manyhands.workflows.prediction import predict as predict
    from manyhands.workflows.questions import QuestionRuns as QuestionRuns
    from manyhands.workflows.questions import aggregate_questions as aggregate_questions
    from manyhands.workflows.questions import describe_questions as describe_questions
    from manyhands.workflows.replacement import ReplacementRun as ReplacementRun
    from manyhands.workflows.replacement import assess_replacement as assess_replacement
    from manyhands.workflows.report_changes import inspect_page as inspect_page
    from manyhands.workflows.report_changes import is_page as is_page
    from manyhands.workflows.report_changes import report_change as report_change
    from manyhands.workflows.reporting import KEY as KEY
    from manyhands.workflows.reporting import ReportRun as ReportRun
    from manyhands.workflows.reporting import report as report
    from manyhands.workflows.simulation import DemonstrationRun as DemonstrationRun
    from manyhands.workflows.simulation import SimulationRun as SimulationRun
    from manyhands.workflows.simulation import demonstrate as demonstrate
    from manyhands.workflows.simulation import simulate as simulate
    from manyhands.workflows.worker_groups import KindOptions as KindOptions

_HOMES = {  # public name -> module of this package
    "AggregationRun": "aggregation_runs",
    "AgreementRun": "agreement_report",
    "AskRun": "asking",
    "ConversionRun": "conversion",
    "DemonstrationRun": "simulation",
    "Diagnosis": "diagnosis",
    "EvaluationRun": "evaluation",
    "ExportOptions": "options",
    "FeatureOptions": "options",
    "Finding": "finding",
    "KindOptions": "worker_groups",
    "PredictionRun": "prediction",
    "QuestionRuns": "questions",
    "Questionnaire": "asking",
    "KEY": "reporting",
    "ReplacementRun": "replacement",
    "ReportRun": "reporting",
    "ShardedRun": "aggregation_runs",
    "SimulationRun": "simulation",
    "TrainingRun": "model_training",
    "aggregate": "aggregation",
    "aggregate_questions": "questions",
    "ask": "asking",
    "assess_replacement": "replacement",
    "convert": "conversion",
    "demonstrate": "simulation",
    "describe_questions": "questions",
    "diagnose": "diagnosis",
    "evaluate": "evaluation",
    "inspect_export": "inspection",
    "inspect_page": "report_changes",
    "is_page": "report_changes",
    "measure_agreement": "agreement_report",
    "predict": "prediction",
    "report": "reporting",
    "report_change": "report_changes",
    "simulate": "simulation",
    "train": "model_training",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'manyhands.workflows' has no attribute {name!r}")
    return getattr(import_module(f"manyhands.workflows.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
