"""ICED: its parts in the order of the paper, the paper's settings and ours, and crowds with hardly anything in them."""

import numpy as np
import pytest
import torch

from manyhands import ICED, Annotations, DawidSkene, load_model
from manyhands.classifiers.iced import iced
from manyhands.classifiers.iced import rounds as iced_rounds
from manyhands.classifiers.iced.posterior_state import hard
from manyhands.exceptions import ParameterError
from manyhands.features import as_rows
from manyhands.nn.batches import Batch
from manyhands.testing import classifier_checks
from manyhands.testing.small_crowds import features_of, with_silence
from manyhands.testing.training_invariances import _assert_same_fit, _killed_at_checkpoint
from small_iced import FAST, imbalanced, published, rounds_of

pytestmark = pytest.mark.usefixtures("one_thread")

PROMISES = (
    "held_out_labels_teach_nothing",
    "a_killed_fit_goes_on_with_the_same_result",
    "a_silent_worker_changes_nothing",
    "thin_crowds_are_survived",
    "gold_teaches",
    "copies_answer_the_same",
    "sparse_rows_are_dense_rows",
)


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("settings", [{}, {"decoder": "latent", "candidates": "all", "size": "balance", "em": "hard"}])
def test_the_published_method_keeps_the_promises(settings, promise):
    """Those of all classifiers that synthetic items could break; `tests/test_every_method.py` has the defaults."""
    dict(classifier_checks())[promise](ICED.as_published(pretrain_epochs=2, warm_up_epochs=1, **settings))


def test_as_published_is_the_papers():
    """Synthetic items, a uniform prior, no features in the inference; what else is given stands."""
    model = ICED.as_published(delta="paper", soft=True)
    assert (model.synthesis, model.prior, model.features_in_inference) == (True, "uniform", False)
    assert model.size == iced._AS_PUBLISHED["size"] == "fixed"  # said, so that our default may change
    assert (model.balanced_loss, model.shrinkage, model.delta, model.soft) == (False, 0.0, "paper", True)
    assert model.get_params().keys() == ICED().get_params().keys()


# The warm-up


@pytest.mark.parametrize(
    ("warm_up", "lessons"), [("grouped", [[2], [1], [0]]), ("top", [[0, 1, 2]]), ("all", [[0, 1, 2, 3]]), (None, [])]
)
def test_lessons_go_from_less_to_more_certain(warm_up, lessons, monkeypatch):
    """Seven workers, items with 0 to 3 dissenters: the fourth group is in no lesson but that of all items."""
    dissent = np.repeat([0, 1, 2, 3], 6)
    label = (np.arange(7)[None] < dissent[:, None]).astype(int)
    votes = Annotations.from_matrix(label)
    trained = []
    train = iced_rounds.TrainingContext.train

    def noted(self, step, *arguments, batches=None, name="training", **others):
        if name.startswith("warm-up"):
            trained.append((sorted(set(dissent[batches.items].tolist())), others["max_epochs"]))
        return train(self, step, *arguments, batches=batches, name=name, **others)

    monkeypatch.setattr(iced_rounds.TrainingContext, "train", noted)
    model = published(warm_up=warm_up).fit(features_of(dissent % 3), votes)
    assert [groups for groups, _ in trained] == lessons
    assert {epochs for _, epochs in trained} <= ({2} if warm_up == "grouped" else {6})
    n_epochs = sum("warm_up" in epoch for epoch in model.history_)
    assert n_epochs == (0 if warm_up is None else 6)
    if warm_up == "top":
        assert {epoch["warm_up_items"] for epoch in model.history_ if "warm_up" in epoch} == {18.0}


def test_gold_joins_the_most_certain_and_takes_no_group_away(monkeypatch):
    """Whether anybody labelled it or not, and whatever was said of it."""
    dissent = np.repeat([0, 1, 2, 3], 6)
    votes = with_silence(Annotations.from_matrix((np.arange(7)[None] < dissent[:, None]).astype(int)))
    found, lessons = [], iced_rounds.WarmUp.lessons
    monkeypatch.setattr(iced_rounds.WarmUp, "lessons", lambda self: found.extend(lessons(self)) or [])
    published().fit(features_of(np.append(dissent, 0) % 3), votes, gold={20: 0, 8: 0, "silent item": 1})
    expected = [[*range(12, 18)], [6, 7, *range(9, 12)], [*range(6), 8, 20, 24]]
    assert [lesson.tolist() for lesson in found] == expected


def test_no_rounds_are_the_warm_up_alone():
    """Table 3: the network has learnt the vote, and Dawid-Skene has spoken once."""
    X, votes, truth = imbalanced()
    model = published(max_epochs=0, warm_up="all", warm_up_epochs=8).fit(X, votes)
    assert not any("loss" in epoch for epoch in model.history_)
    assert np.mean(model.predict(X) == truth) > 0.9
    np.testing.assert_array_equal(model.posterior_first_, model.posterior_)
    assert not np.shares_memory(model.posterior_first_, model.posterior_)


# The rounds


def test_every_round_is_told_in_the_history():
    """The autoencoder, the warm-up, then rounds with the share of labels that stay and what is believed of classes."""
    X, votes, _ = imbalanced((40, 8, 8))
    model = published().fit(X, votes)
    kinds = [next(k for k in ("reconstruction", "warm_up", "loss") if k in epoch) for epoch in model.history_]
    assert kinds == ["reconstruction"] * 2 + ["warm_up"] * (len(kinds) - 5) + ["loss"] * 3
    for epoch in model.history_[-3:]:
        assert 0 <= epoch["agreement"] <= 1 and epoch["n_synthetic"] > 0
        assert sum(epoch[f"prior {k}"] for k in range(3)) == pytest.approx(1)
    assert model.history_[1]["reconstruction"] < model.history_[0]["reconstruction"]


def test_results_beside_the_house_s():
    """Dawid-Skene on the original labels is `DawidSkene`; certainties and synthetic items have their shapes."""
    X, votes, _ = imbalanced()
    for prior in ("uniform", "estimated"):
        model = published(prior=prior).fit(X, votes)
        expected = DawidSkene(prior=prior).fit(votes).posterior_
        np.testing.assert_allclose(model.posterior_original_, expected, atol=1e-6)
    assert model.certainty_.shape == (48,) and model.posterior_first_.shape == (48, 2)
    assert model.n_synthetic_.tolist()[0] == 0 and model.n_synthetic_[1] > 0
    np.testing.assert_allclose(model.class_prior_, model.posterior_.mean(axis=0))
    assert ICED(**FAST).fit(X, votes).n_synthetic_.tolist() == [0, 0]


def test_fixed_and_balanced_sizes(monkeypatch):
    """In the first round both fill up to the largest class of the vote; with good labels the classes are then even."""
    X, votes, _ = imbalanced((60, 12, 6), n_workers=7, error=0.1)
    for size in ("fixed", "balance"):
        seen = rounds_of(monkeypatch)
        published(size=size, max_epochs=1).fit(X, votes)
        assert len(seen[-1].points) == (60 - 12) + (60 - 6)
        sizes = seen[-1].target.sum(0).numpy()
        assert sizes.min() > 0.7 * sizes.max()  # by inferred labels, of real and synthetic items together


def test_synthetic_items_are_of_the_class_of_their_candidates(monkeypatch):
    """Their inferred classes are those of the items between which they lie, where classes are apart."""
    X, votes, _ = imbalanced((40, 8, 4), n_workers=7, error=0.05)
    seen = rounds_of(monkeypatch)
    model = published(max_epochs=1).fit(X, votes)
    made = seen[0].target[len(X) :].argmax(1).numpy()
    assert np.bincount(made, minlength=3).tolist() == [0, 32, 36]
    assert model.n_synthetic_.tolist() == [0, 32, 36]


def test_a_refitted_decoder_follows_the_network(monkeypatch):
    """After some rounds it finds the rows of X again, where one that stayed as it was does not; "latent" has none."""
    X, votes, _ = imbalanced()
    error = {}
    for kind in ("refit", "frozen", "latent"):
        seen = rounds_of(monkeypatch)
        model = published(decoder=kind, pretrain_epochs=20, max_epochs=8).fit(X, votes)
        if kind == "latent":
            assert seen[0].decoder is None and not any("reconstruction" in epoch for epoch in model.history_)
        else:
            with torch.no_grad():
                found = seen[0].decoder(seen[0].network.look(as_rows(X))[0]).numpy()
            error[kind] = np.square(found - X).mean()
    assert error["refit"] < 0.8 * error["frozen"]


def test_networks_of_images_and_with_batch_norm_synthesise_too():
    """Rows of any shape are decoded into rows of that shape; a real row alone in a batch is no harm."""
    X, votes, _ = imbalanced()
    images = np.tile(X.reshape(-1, 1, 2, 2), (1, 1, 2, 2))
    for settings in ({"backbone": "convnet"}, {"batch_norm": True}, {"batch_norm": True, "decoder": "latent"}):
        model = published(max_epochs=1, batch_size=2, **settings).fit(images, votes)
        assert np.isfinite(model.predict_proba(images)).all()


@pytest.mark.parametrize("batch_norm", [False, True])
def test_a_real_row_alone_among_embeddings_is_left_out_for_batch_norm_only(batch_norm, monkeypatch):
    """Without a decoder the last layer reads embeddings, and the row would be normalised by itself."""
    X, votes, _ = imbalanced()
    seen = rounds_of(monkeypatch)
    published(decoder="latent", batch_norm=batch_norm, max_epochs=1).fit(X, votes)
    batch = Batch(np.array([3, 50, 51]), *[torch.zeros(0, dtype=torch.long)] * 3)
    logits, target = seen[0].lesson(batch)
    assert len(logits) == len(target) == (2 if batch_norm else 3)


def test_parameters_of_the_synthesis_matter():
    """Each of them changes what is learnt."""
    X, votes, _ = imbalanced(error=0.3)
    plain = published().fit(X, votes).predict_proba(X)
    for change in (
        {"delta": "paper"}, {"delta": "smote"}, {"delta_noise": 0.0}, {"n_neighbors": 1}, {"candidates": "all"},
        {"synthetic_labels": "sample"}, {"certainty_floor": 1.0}, {"size": "repeat"}, {"synthesis": False},
    ):  # fmt: skip
        assert not np.array_equal(published(**change).fit(X, votes).predict_proba(X), plain), change


def test_a_prior_of_another_length_is_refused_before_any_training(monkeypatch):
    """Also where nothing would ever ask for it."""
    X, votes, _ = imbalanced()
    monkeypatch.setattr(iced_rounds.TrainingContext, "train", lambda *a, **k: pytest.fail("it trains"))
    with pytest.raises(ParameterError, match="'prior' has 3 numbers, but there are 2 classes"):
        published(prior=[0.2, 0.3, 0.5]).fit(X, votes)


# What is ours


def test_the_balanced_loss_learns_what_the_shares_leave():
    """Of rows that say nothing, softmax(F) says that the classes are equal; without it, that they are as frequent."""
    votes = Annotations.from_matrix(np.repeat([[0], [1]], [90, 10], axis=0).repeat(3, axis=1))
    X = np.ones((100, 2))
    settings = FAST | {"max_epochs": 20, "patience": None}
    balanced, plain = (ICED(balanced_loss=b, **settings).fit(X, votes).predict_proba(X[:1])[0] for b in (True, False))
    assert abs(balanced[1] - 0.5) < 0.1 and plain[1] < 0.2


def test_score_is_about_the_world_the_labels_are_from(tmp_path):
    """Of rows that say nothing a balanced loss foretells as well as a plain one; also as a copy from a folder."""
    votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [0, 0, 0], [1, 1, 1]], [15, 75, 10], axis=0))
    X = np.ones((100, 2))
    settings = FAST | {"max_epochs": 30, "patience": None}
    balanced, plain = (ICED(balanced_loss=b, **settings).fit(X, votes) for b in (True, False))
    assert balanced.score(X, votes) == pytest.approx(plain.score(X, votes), abs=0.005)
    balanced.save(tmp_path / "model")
    assert load_model(tmp_path / "model").score(X, votes) == balanced.score(X, votes)
    balanced.log_shift_ = np.zeros(2)
    assert balanced.score(X, votes) < plain.score(X, votes) - 0.1


def test_a_shift_that_does_not_fit_is_refused(tmp_path):
    """When the folder is read."""
    X, votes, _ = imbalanced()
    model = ICED(**FAST).fit(X, votes)
    model.log_shift_ = np.zeros(3)
    model.save(tmp_path / "model")
    with pytest.raises(ParameterError, match="log_shift_ is float64 of shape"):
        load_model(tmp_path / "model")


def test_features_speak_for_items_on_which_workers_are_split():
    """Items with one vote for each class are settled by what the network says of them; without, by nothing."""
    X, votes, truth = imbalanced((30, 30), n_workers=2, error=0.0)
    label = np.stack([truth, truth], axis=1)
    label[:6, 1] = 1 - truth[:6]
    votes = Annotations.from_matrix(label)
    settings = FAST | {"max_epochs": 15, "patience": None}
    with_features = ICED(**settings).fit(X, votes).posterior_[np.arange(6), truth[:6]]
    assert with_features.min() > 0.9
    without = ICED(features_in_inference=False, **settings).fit(X, votes).posterior_[np.arange(6), truth[:6]]
    assert without.min() < 0.6


def test_soft_targets_are_the_posterior(monkeypatch):
    """And hard ones its largest class."""
    X, votes, _ = imbalanced(error=0.35)
    for soft in (True, False):
        seen = rounds_of(monkeypatch)
        ICED(**(FAST | {"soft": soft, "max_epochs": 1, "patience": None})).fit(X, votes)
        posterior = seen[-1].belief.posterior.numpy()
        expected = posterior if soft else hard(posterior)
        np.testing.assert_allclose(seen[-1].target.numpy(), expected, atol=1e-6)


def test_an_untaught_network_is_not_asked(monkeypatch):
    """Without a warm-up, the first inference hears the labels alone."""
    X, votes, _ = imbalanced(error=0.3)
    model = ICED(**(FAST | {"warm_up": None, "max_epochs": 1, "patience": None, "shrinkage": 0.0})).fit(X, votes)
    np.testing.assert_allclose(model.posterior_first_, DawidSkene().fit(votes).posterior_, atol=1e-6)


def test_held_out_labels_are_part_of_what_is_reported():
    """`posterior_original_` and `posterior_first_` are of all labels, so that they compare with `posterior_`."""
    X, votes, _ = imbalanced(error=0.3)
    model = published(patience=10, validation=0.4, synthesis=False).fit(X, votes)
    expected = DawidSkene(prior="uniform").fit(votes).posterior_
    for name in ("posterior_original_", "posterior_first_", "posterior_"):
        np.testing.assert_allclose(getattr(model, name), expected, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"soft": True, "features_in_inference": True, "patience": 2}])
def test_a_fit_killed_among_its_rounds_goes_on_with_the_same_result(settings, tmp_path):
    """Decoder, its optimizer and what is believed are all kept, where many synthetic items are made."""
    X, votes, _ = imbalanced((40, 8, 4), error=0.3)
    settings = {"max_epochs": 4, "dropout": 0.3} | settings
    whole = published(**settings).fit(X, votes)
    assert whole.history_[-2]["n_synthetic"] > 20
    with _killed_at_checkpoint(len(whole.history_) - 1):
        published(checkpoint=tmp_path, **settings).fit(X, votes)
    resumed = published(checkpoint=tmp_path, **settings).fit(X, votes)
    _assert_same_fit(resumed, whole, X, "killed among its rounds")


# Hardly anything
