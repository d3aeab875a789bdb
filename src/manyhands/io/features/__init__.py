"""Features of items: from files to the arrays that a classifier is trained on.

feature_loading    `read_features`: rows of a file with their ids; `match`: which row belongs to which item
feature_arrays     .npy and .npz files, dense or sparse
feature_tables     columns of a table: numbers, lists of numbers, text
feature_choice     which columns are numbers or text, if the caller names none
export_features    fields of the items of an export
feature_pipeline   `FeaturePipeline`: which columns, which words and which scaling; learnt in training, saved with the
                   model and applied again in prediction
tfidf              text as TF-IDF vectors
model_folder       the folder of a trained model with its pipeline and a manifest of checksums
"""
