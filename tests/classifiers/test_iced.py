"""ICED: its parts in the order of the paper, the published settings, and `ICED.plus()`."""

import numpy as np
import pytest
import torch

from manyhands import ICED, Annotations, DawidSkene, load_model
from manyhands.classifiers import iced
from manyhands.classifiers.iced import Certainty, Synthesis, TruthInference, WarmUp, WarmUpTraining, one_hot
from manyhands.exceptions import ParameterError
from manyhands.features import as_rows
from manyhands.nn.batches import Batch
from manyhands.testing import classifier_checks
from manyhands.testing.crowds import features_of, with_unlabelled
from manyhands.testing.learners import assert_same_fit, interrupted_at_checkpoint
from small_iced import imbalanced, loops_of, plus, published

pytestmark = pytest.mark.usefixtures("one_thread")

# The other value of each switch, and what else synthetic items could break.
OTHERS = {"synthesis__decoder": "latent", "synthesis__candidates": "agree", "synthesis__size": "balance"}
OTHERS |= {"inference__em": "soft", "inference__prior": "uniform-start", "synthesis__first_labels": "vote"}
OTHERS |= {"warm_up__stratified": True, "warm_up__batch_size": 4}

PROMISES = (
    "held_out_labels_are_not_used_for_training",
    "resumed_fit_equals_uninterrupted_fit",
    "workers_without_labels_change_nothing",
    "degenerate_crowds_give_finite_results",
    "classifier_uses_gold",
    "copies_predict_the_same",
    "sparse_features_equal_dense_features",
)


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("settings", [{}, OTHERS])
def test_the_published_method_keeps_the_promises(settings, promise):
    """Those of all classifiers that synthetic items could break."""
    dict(classifier_checks())[promise](ICED().set_params(synthesis__pretrain_epochs=2, warm_up__epochs=1, **settings))


def test_plus_takes_changes():
    """Of parameters and of single options; what else `plus` sets stands."""
    model = ICED.plus(inference__shrinkage=1.0, embedding_size=8, synthesis=Synthesis(size="repeat"))
    assert model.inference == TruthInference("estimated", "soft", shrinkage=1.0, use_features=True)
    assert model.certainty == Certainty(epsilon=0.01, smoothing=0.5) and model.stable_rounds is None
    assert (model.embedding_size, model.balanced_loss, model.soft_targets, model.patience) == (8, True, True, 20)
    assert model.synthesis.size == "repeat" and ICED.plus().synthesis is None
    with pytest.raises(ParameterError, match=r"no parameter 'embeding_size'\. Did you mean 'embedding_size'"):
        ICED.plus(embeding_size=8)


# The warm-up


@pytest.mark.parametrize(
    ("kind", "stages"), [("grouped", [[2], [1], [0]]), ("top", [[0, 1, 2]]), ("all", [[0, 1, 2, 3]]), (None, [])]
)
def test_stages_go_from_less_to_more_certain(kind, stages, monkeypatch):
    """Seven workers, items with 0 to 3 dissenters: the fourth group is in no stage but that of all items."""
    dissent = np.repeat([0, 1, 2, 3], 6)
    label = (np.arange(7)[None] < dissent[:, None]).astype(int)
    votes = Annotations.from_matrix(label)
    trained = []
    train = iced.TrainingContext.train

    def noted(self, step, *arguments, batches=None, name="training", **others):
        if name.startswith("warm-up"):
            trained.append((sorted(set(dissent[batches.items].tolist())), others["max_epochs"]))
        return train(self, step, *arguments, batches=batches, name=name, **others)

    monkeypatch.setattr(iced.TrainingContext, "train", noted)
    model = published(warm_up=kind and WarmUp(kind, epochs=2)).fit(features_of(dissent % 3), votes)
    assert [groups for groups, _ in trained] == stages
    assert {epochs for _, epochs in trained} <= ({2} if kind == "grouped" else {6})
    n_epochs = sum("warm_up" in epoch for epoch in model.history_)
    assert n_epochs == (0 if kind is None else 6)
    if kind == "top":
        assert {epoch["warm_up_items"] for epoch in model.history_ if "warm_up" in epoch} == {18.0}


def test_gold_joins_the_most_certain_and_takes_no_group_away(monkeypatch):
    """Whether it has labels or not, and whatever they are."""
    dissent = np.repeat([0, 1, 2, 3], 6)
    names = [f"item {i:02d}" for i in range(24)]
    votes = Annotations.from_matrix((np.arange(7)[None] < dissent[:, None]).astype(int), item_ids=names)
    votes = with_unlabelled(votes)
    found, stages = [], WarmUpTraining.stages
    monkeypatch.setattr(WarmUpTraining, "stages", lambda self: found.extend(stages(self)) or [])
    published().fit(features_of(np.append(dissent, 0) % 3), votes, gold={"item 20": 0, "item 08": 0, "silent item": 1})
    expected = [[*range(12, 18)], [6, 7, *range(9, 12)], [*range(6), 8, 20, 24]]
    assert [stage.tolist() for stage in found] == expected


def test_no_rounds_are_the_warm_up_alone():
    """Table 3: the network has learned the vote, and the truth was inferred once."""
    X, votes, truth = imbalanced()
    model = published(max_epochs=0, warm_up=WarmUp("all", epochs=8)).fit(X, votes)
    assert not any("loss" in epoch for epoch in model.history_)
    assert np.mean(model.predict(X) == truth) > 0.9
    np.testing.assert_array_equal(model.posterior_first_, model.posterior_)
    assert not np.shares_memory(model.posterior_first_, model.posterior_)


# The rounds


def test_the_history_has_every_round():
    """The autoencoder, the warm-up, then rounds with the share of unchanged labels and the class prior."""
    X, votes, _ = imbalanced((40, 8, 8))
    model = published().fit(X, votes)
    kinds = [next(k for k in ("reconstruction", "warm_up", "loss") if k in epoch) for epoch in model.history_]
    assert kinds == ["reconstruction"] * 2 + ["warm_up"] * (len(kinds) - 5) + ["loss"] * 3
    assert [epoch["round"] for epoch in model.history_[-3:]] == [1, 2, 3]
    for epoch in model.history_[-3:]:
        assert 0 <= epoch["agreement"] <= 1 and epoch["n_synthetic"] > 0
        assert sum(epoch[f"prior {k}"] for k in range(3)) == pytest.approx(1)
    assert model.history_[1]["reconstruction"] < model.history_[0]["reconstruction"]


def test_results_beside_dawid_skene():
    """Dawid-Skene on the original labels is `DawidSkene`; certainties and synthetic items have their shapes."""
    X, votes, _ = imbalanced()
    for prior in ("uniform", "estimated"):
        model = published(inference__prior=prior, inference__em="soft").fit(X, votes)
        expected = DawidSkene(prior=prior).fit(votes).posterior_
        np.testing.assert_allclose(model.posterior_original_, expected, atol=1e-6)
    assert model.certainty_.shape == (48,) and model.posterior_first_.shape == (48, 2)
    assert model.n_synthetic_.tolist()[0] == 0 and model.n_synthetic_[1] > 0
    np.testing.assert_allclose(model.class_prior_, model.posterior_.mean(axis=0))
    assert plus().fit(X, votes).n_synthetic_.tolist() == [0, 0]


def test_fixed_and_balanced_sizes(monkeypatch):
    """In the first round both reach the largest class of the vote; with good labels the classes are then balanced."""
    X, votes, _ = imbalanced((60, 12, 6), n_workers=7, error=0.1)
    for size in ("fixed", "balance"):
        seen = loops_of(monkeypatch)
        published(synthesis__size=size, synthesis__first_labels="vote", max_epochs=1).fit(X, votes)
        assert len(seen[-1].points) == (60 - 12) + (60 - 6)
        sizes = seen[-1].target.sum(0).numpy()
        assert sizes.min() > 0.7 * sizes.max()  # by inferred labels, of real and synthetic items together


def test_synthetic_items_are_of_the_class_of_their_candidates(monkeypatch):
    """Their inferred classes are those of the items between which they lie, where classes are apart."""
    X, votes, _ = imbalanced((40, 8, 4), n_workers=7, error=0.05)
    seen = loops_of(monkeypatch)
    model = published(max_epochs=1).fit(X, votes)
    made = seen[0].target[len(X) :].argmax(1).numpy()
    assert np.bincount(made, minlength=3).tolist() == [0, 32, 36]
    assert model.n_synthetic_.tolist() == [0, 32, 36]


def test_a_refitted_decoder_follows_the_network(monkeypatch):
    """After some rounds it reconstructs the rows of X better than a frozen one; "latent" has none."""
    X, votes, _ = imbalanced()
    error = {}
    for kind in ("refit", "frozen", "latent"):
        seen = loops_of(monkeypatch)
        model = published(synthesis=Synthesis(decoder=kind, pretrain_epochs=20), max_epochs=8).fit(X, votes)
        if kind == "latent":
            assert seen[0].decoder is None and not any("reconstruction" in epoch for epoch in model.history_)
        else:
            with torch.no_grad():
                found = seen[0].decoder(seen[0].network.embed_and_classify(as_rows(X))[0]).numpy()
            error[kind] = np.square(found - X).mean()
    assert error["refit"] < 0.8 * error["frozen"]


def test_networks_of_images_and_with_batch_norm_synthesise_too():
    """Rows of any shape are decoded into rows of that shape; a single real row in a batch does not fail."""
    X, votes, _ = imbalanced()
    images = np.tile(X.reshape(-1, 1, 2, 2), (1, 1, 2, 2))
    for settings in (
        {"backbone": "convnet"},
        {"batch_norm": True},
        {"batch_norm": True, "synthesis__decoder": "latent"},
    ):
        model = published(max_epochs=1, batch_size=2, **settings).fit(images, votes)
        assert np.isfinite(model.predict_proba(images)).all()


@pytest.mark.parametrize("batch_norm", [False, True])
def test_a_real_row_alone_among_embeddings_is_left_out_for_batch_norm_only(batch_norm, monkeypatch):
    """Without a decoder the last layer reads embeddings, and the row would be normalised by itself."""
    X, votes, _ = imbalanced()
    seen = loops_of(monkeypatch)
    published(synthesis__decoder="latent", batch_norm=batch_norm, max_epochs=1).fit(X, votes)
    batch = Batch(np.array([3, 50, 51]), *[torch.zeros(0, dtype=torch.long)] * 3)
    logits, target = seen[0].logits_and_targets(batch)
    assert len(logits) == len(target) == (2 if batch_norm else 3)


def test_parameters_of_the_synthesis_matter():
    """Each of them changes the predictions."""
    X, votes, _ = imbalanced(error=0.3)
    plain = published().fit(X, votes).predict_proba(X)
    for change in (
        {"synthesis__delta": "paper"}, {"synthesis__delta": "smote"}, {"synthesis__delta_noise": 0.0},
        {"synthesis__n_neighbors": 1}, {"synthesis__candidates": "agree"}, {"synthesis__labels": "sample"},
        {"certainty__epsilon": 1.0}, {"synthesis__size": "fixed"}, {"synthesis": None},
    ):  # fmt: skip
        assert not np.array_equal(published(**change).fit(X, votes).predict_proba(X), plain), change


def test_a_prior_of_another_length_is_refused_before_any_training(monkeypatch):
    """Also where it would never be used."""
    X, votes, _ = imbalanced()
    monkeypatch.setattr(iced.TrainingContext, "epochs", lambda *a, **k: pytest.fail("it trains"))
    with pytest.raises(ParameterError, match="`prior` has 3 numbers, but there are 2 classes"):
        published(inference__prior=[0.2, 0.3, 0.5]).fit(X, votes)


# ICED.plus()


def test_the_balanced_loss_does_not_learn_the_class_shares():
    """On uninformative rows softmax(F) is uniform; without it, it is the class shares."""
    votes = Annotations.from_matrix(np.repeat([[0], [1]], [90, 10], axis=0).repeat(3, axis=1))
    X = np.ones((100, 2))
    settings = {"max_epochs": 20, "patience": None}
    balanced, plain = (plus(balanced_loss=b, **settings).fit(X, votes).predict_proba(X[:1])[0] for b in (True, False))
    assert abs(balanced[1] - 0.5) < 0.1 and plain[1] < 0.2


def test_score_is_under_the_class_shares_of_the_items(tmp_path):
    """On uninformative rows a balanced loss scores as a plain one; also after saving and loading."""
    votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [0, 0, 0], [1, 1, 1]], [15, 75, 10], axis=0))
    X = np.ones((100, 2))
    settings = {"max_epochs": 30, "patience": None}
    balanced, plain = (plus(balanced_loss=b, **settings).fit(X, votes) for b in (True, False))
    assert balanced.score(X, votes) == pytest.approx(plain.score(X, votes), abs=0.005)
    balanced.save(tmp_path / "model")
    assert load_model(tmp_path / "model").score(X, votes) == balanced.score(X, votes)
    balanced.log_shift_ = np.zeros(2)
    assert balanced.score(X, votes) < plain.score(X, votes) - 0.1


def test_a_shift_that_does_not_fit_is_refused(tmp_path):
    """When the folder is read."""
    X, votes, _ = imbalanced()
    model = plus().fit(X, votes)
    model.log_shift_ = np.zeros(3)
    model.save(tmp_path / "model")
    with pytest.raises(ParameterError, match="log_shift_ is float64 of shape"):
        load_model(tmp_path / "model")


def test_features_decide_items_with_split_votes():
    """Items with one vote for each class get the class that the network predicts; without it, they stay undecided."""
    X, votes, truth = imbalanced((30, 30), n_workers=2, error=0.0)
    label = np.stack([truth, truth], axis=1)
    label[:6, 1] = 1 - truth[:6]
    votes = Annotations.from_matrix(label)
    settings = {"max_epochs": 15, "patience": None}
    with_features = plus(**settings).fit(X, votes).posterior_[np.arange(6), truth[:6]]
    assert with_features.min() > 0.9
    without = plus(inference__use_features=False, **settings).fit(X, votes).posterior_[np.arange(6), truth[:6]]
    assert without.min() < 0.6


def test_soft_targets_are_the_posterior(monkeypatch):
    """And hard ones its largest class."""
    X, votes, _ = imbalanced(error=0.35)
    for soft in (True, False):
        seen = loops_of(monkeypatch)
        plus(soft_targets=soft, max_epochs=1, patience=None).fit(X, votes)
        posterior = seen[-1].state.posterior.numpy()
        expected = posterior if soft else one_hot(posterior)
        np.testing.assert_allclose(seen[-1].target.numpy(), expected, atol=1e-6)


def test_an_untrained_network_is_not_used():
    """Without a warm-up, the first inference uses the labels alone."""
    X, votes, _ = imbalanced(error=0.3)
    model = plus(warm_up=None, max_epochs=1, patience=None, inference__shrinkage=0.0).fit(X, votes)
    np.testing.assert_allclose(model.posterior_first_, DawidSkene().fit(votes).posterior_, atol=1e-6)


def test_held_out_labels_are_part_of_what_is_reported():
    """`posterior_original_` and `posterior_first_` are of all labels, so that they compare with `posterior_`."""
    X, votes, _ = imbalanced(error=0.3)
    settings = {"inference__prior": "uniform", "inference__em": "soft", "synthesis": None}
    model = published(patience=10, validation=0.4, **settings).fit(X, votes)
    expected = DawidSkene(prior="uniform").fit(votes).posterior_
    for name in ("posterior_original_", "posterior_first_", "posterior_"):
        np.testing.assert_allclose(getattr(model, name), expected, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"soft_targets": True, "inference__use_features": True, "patience": 2}])
def test_a_fit_interrupted_in_its_rounds_resumes_with_the_same_result(settings, tmp_path):
    """Decoder, its optimizer and the posterior are in the checkpoint, where many synthetic items are made."""
    X, votes, _ = imbalanced((40, 8, 4), error=0.3)
    settings = {"max_epochs": 4, "dropout": 0.3} | settings
    whole = published(**settings).fit(X, votes)
    assert whole.history_[-2]["n_synthetic"] > 20
    with interrupted_at_checkpoint(len(whole.history_) - 1):
        published(checkpoint=tmp_path, **settings).fit(X, votes)
    resumed = published(checkpoint=tmp_path, **settings).fit(X, votes)
    assert_same_fit(resumed, whole, X, "killed among its rounds")
