"""Complete jobs on files: read, fit, score, write. Every command of the command line is one call of this package.

All options are checked, and the place of the output is reserved, before any file is read. Nothing is printed: a call
returns its results, and what the user should know is raised as a `CrowdWarning`.

options           `ExportOptions` and `FeatureOptions`: how to read an export, how to read features
gold_labels       labels of known items, from a table and from the export itself
outputs           reserve a place for files, write them all or none
aggregation       `aggregate`: one label per item and a quality report for each worker
comparison        all aggregators on the same annotations: scores, and the items on which their labels differ
agreement_report  `measure_agreement`: inter-annotator agreement, overall and by class, pair and item
conversion        `convert`: any export as a table of item, worker and label
inspection        `inspect_export`: what an export contains, without fitting anything
model_training    `train`: a classifier from annotations and features, as a folder
prediction        `predict`: class probabilities of new features
evaluation        `evaluate`: a trained classifier compared with ground truth
simulation        `simulate`: a simulated crowd as files; `demonstrate`: one with a comparison of all aggregators
"""

from manyhands.workflows.aggregation import AggregationRun, aggregate
from manyhands.workflows.agreement_report import AgreementRun, measure_agreement
from manyhands.workflows.conversion import ConversionRun, convert
from manyhands.workflows.evaluation import EvaluationRun, evaluate
from manyhands.workflows.inspection import inspect_export
from manyhands.workflows.model_training import TrainingRun, train
from manyhands.workflows.options import ExportOptions, FeatureOptions
from manyhands.workflows.prediction import PredictionRun, predict
from manyhands.workflows.simulation import DemonstrationRun, SimulationRun, demonstrate, simulate

__all__ = [
    "AggregationRun",
    "AgreementRun",
    "ConversionRun",
    "DemonstrationRun",
    "EvaluationRun",
    "ExportOptions",
    "FeatureOptions",
    "PredictionRun",
    "SimulationRun",
    "TrainingRun",
    "aggregate",
    "convert",
    "demonstrate",
    "evaluate",
    "inspect_export",
    "measure_agreement",
    "predict",
    "simulate",
    "train",
]
