"""Complete jobs on files: read, fit, score, write. Every command of the command line is one call of this package.

All options are checked, and the place of the output is reserved, before any file is read. Nothing is printed: a call
returns its results, and what the user should know is raised as a `CrowdWarning`.

aggregate     one label per item and a quality report for each worker; all aggregators on the same annotations
out_of_core   the same for labels that do not fit into memory; which route a job takes, and the memory it needs
agree         inter-annotator agreement; whether a machine may replace the annotators (`alt_test`)
ask           items to ask an expert about, as a table to fill in
convert       any export as a table of item, worker and label; what an export contains; exports with several questions
train         a classifier from annotations and features, as a folder; its predictions; its accuracy on known items
report        an HTML page with labels, workers and what to do next; what changed between two pages
simulate      a simulated crowd as files; the demonstration
doctor        what is installed, compiled and found, and what to do
options       how to read an export and features; gold labels; names of workers; the order of classes; where files go
"""
