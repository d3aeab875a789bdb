"""From a path to `Annotations`: the steps that do not depend on the annotation tool.

reading              `read_export` and `read_annotations`: all five steps, see `manyhands.io`
sources, archives    step 1: bytes from files, folders, zip, gzip, bz2 and standard input, within limits
documents            step 2: bytes as tables, JSON records or words; parsers: text, text_tables, workbooks, parquet
                     (with thrift and arrow_schema), json_files (with exact_json), frames
judgements           step 3 ends here: what every format gives; column_lookup, times, concatenation help the formats
question_selection   step 4: which question, and what to do with several choices
row_filtering        step 5: which rows count (text_encoding: text to codes); ledger: the account of all rows
truth, gold          tables of known labels (companion_tables: tables beside an export)
known_tables, numpy_files    CSV and NumPy files whose content is known by name; also used by `manyhands.datasets`
"""
