"""Difficulty EM: logistic regression, worker abilities and item difficulty, estimated jointly.

    p(k | x) = softmax(x V + b)[k],   p(label = c | truth = c, w, i) = sigmoid(ability[w, c] d_i) with two classes,
    d_i = (q_i - 1/2)^2,   q_i = p(1 | x_i) (Adaptive) or the share of the votes on i (Fixed)

Near the decision boundary, or where votes are split, labels are pure chance; far from it a worker is as accurate as
their ability allows.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.difficulty.decision import decide
from manyhands.classifiers.difficulty.difficulty_scores import difficulty_log_likelihoods
from manyhands.classifiers.difficulty.regression_view import REGRESSION_CONSTRAINTS, learn_difficulty
from manyhands.classifiers.regression import module_proba
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.randomness import Seed
from manyhands.validation import Constraint


class DifficultyEM(CrowdClassifier):
    """Logistic regression with worker abilities, on items whose difficulty follows from the classifier (Adaptive).

    Items far from the decision boundary are easy, and errors there lower a worker's ability; near it labels are close
    to chance, and errors hardly count. `DifficultyEM()` is the paper's Algorithm 2; `DifficultyEM.plus()` estimates
    `floor`, so that difficulty counts for as much as the labels show.

    Use it where items differ in difficulty and features tell which are hard. No worker is modelled as worse than
    chance: where workers may be adversarial, use `Raykar`, which this method equals with ``difficulty="constant"`` and
    ``errors="free"`` otherwise. Items without labels and gold are not used. Features are standardised internally;
    `module_` takes them as given.

    Parameters
    ----------
    difficulty : {"classifier", "votes", "posterior", "constant"}, default="classifier"
        Source of the easiness d: the classifier's p(k | x), the vote shares, the posterior of the last iteration
        (self-reinforcing), or one value for all items. By votes, items without any get the mean easiness.
    prior : {"classifier", "votes"}, default="classifier"
        Class prior of an item in the E step: p(k | x) as in the paper's Algorithm 2, or its vote shares as in
        Algorithm 3.
    floor : float or None, default=0.0
        Easiness of the hardest items as a share of that of the easiest: 0 as in the paper (labels on the hardest items
        are pure chance), 1 where all items are equal; None is estimated.
    ability_update : {"auto", "mle", "map", "frozen"}, default="auto"
        M step of the abilities: maximum likelihood; maximum a posteriori with a Gaussian of `precision` around the
        initial values; or fixed at the initial values. "auto" is "frozen" with ``difficulty="votes"``, where the
        likelihood is bounded by `max_ability` only, and otherwise "mle".
    errors : {"uniform", "free"}, default="uniform"
        Distribution of wrong labels: equal over the other classes, or estimated for each worker.
    right : float, default=1.0
        Pseudo-count added to each worker's correct labels in every class, as if on the easiest items.
    wrong : float, default=0.5
        Pseudo-count added to each worker's wrong labels in every class.
    precision : float, default=1.0
        Precision of the Gaussian of ``ability_update="map"``.
    max_ability : float, default=100.0
        Upper bound of the abilities; the lower bound is 0.
    ridge : float or None, default=None
        L2 penalty: `ridge / 2` times the squared weights; intercepts are free. None is a tenth of the sum of the
        features' variances.
    standardise : bool, default=True
        Whether features are divided by their standard deviations; False is better where all have one unit, such as
        pixels, word counts or activations.
    newton_steps : int, default=1
        Maximal number of Newton steps of the regression in each M step; each is halved where it would overshoot.
    max_iter : int, default=200
        Maximal number of EM iterations.
    tol : float, default=1e-06
        Stop when the objective is estimated to be within this share of its optimum.
    n_init : int, default=1
        Number of starts: the first from the vote shares, the others random. Where the vote is wrong on most gold items
        beyond chance, a start from gold is added.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the random starts.
    difficulty_gradient : bool, default=True
        Whether the M step of the classifier takes into account that the easiness follows from p(k | x), as printed:
        the slope of the expected log-likelihood through the labels' probabilities too. False holds the easiness fixed
        in that step, as the authors' program does. Without effect unless ``difficulty="classifier"``.
    vote_smoothing : float, default=0.0
        Number of pseudo-votes on each item, spread evenly over the classes, where vote shares are used: 0 is the plain
        share of the paper, 1 is (n + 1/2) / (R + 1) with two classes. Items with a single label are as easy as
        unanimous ones with 0.
    accelerate : bool, default=False
        Whether EM is accelerated by extrapolation (SQUAREM), where its objective never decreases; the paper does not.
    threshold : float, default=0.5
        Two classes: the second class is predicted where its probability is at least this (the paper's xi). Any other
        value than 0.5 is refused with more classes.

    Attributes
    ----------
    ability_ : ndarray of shape (n_workers, n_classes)
        Ability of each worker in each class, at least 0.
    expertise_ : ndarray of shape (n_workers, n_classes)
        Probability of a correct label on the easiest items: with two classes, column 1 is sensitivity and column 0
        specificity.
    expertise_low_ : ndarray of shape (n_workers, n_classes)
        Lower end of the 95% interval of `expertise_`, conditional on everything else. Too narrow with
        ``difficulty="posterior"``, and with "votes" and "mle", where the labels determine the easiness too.
    expertise_high_ : ndarray of shape (n_workers, n_classes)
        Upper end of that interval.
    difficulty_ : ndarray of shape (n_items,)
        Difficulty from 0 to 1, where labels are pure chance; at most 1 - `floor_`.
    floor_ : float
        The floor in use.
    item_accuracy_ : ndarray of shape (n_items,)
        Expected share of correct labels of each item.
    objective_ : ndarray of shape (n_iterations,)
        Penalised log-likelihood after each iteration. It never decreases with "votes", with "constant", and with
        "classifier" and `difficulty_gradient`; otherwise it may, since the easiness changes after the step that took it
        as given (generalised EM).
    log_likelihood_ : ndarray of shape (n_iterations,)
        log p(labels | X) at the same points; both are in `history_`.
    ridge_ : float
        The penalty in use.
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per iteration.
    module_ : sklearn.linear_model.LogisticRegression
        The weights found, for features as they were given.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    Notes
    -----
    The paper has two classes and dense labels; this is its form for many classes and sparse labels.

    Where the print contradicts itself: the square of p - 1/2 is in both factors of the likelihood (without it, the
    probabilities of the two labels do not sum to 1); initial abilities have no logarithm of counts; gradients ascend.
    The Newton step of the classifier uses the exact slope through the easiness and the expected curvature (Fisher
    scoring), since the exact curvature may have the wrong sign, and is halved where the objective would decrease: so
    the printed gradient is stable. Abilities are at their optimum after each iteration, by Newton's method in place
    of gradient steps of unstated size. The paper has no priors: `right`, `wrong` and `ridge` keep estimates finite
    where a worker has no labels of a class, or where the classes can be separated.

    References
    ----------
    Data difficulty specified crowdsourcing (Adaptive and Fixed Difficulty EM).

    Examples
    --------
    >>> from manyhands import Annotations, DifficultyEM
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = DifficultyEM().fit([[0.0], [1.0], [0.0], [1.0]], votes)
    >>> model.predict([[0.1], [0.9]]).tolist()
    [0, 1]
    """

    _of_items: ClassVar[tuple[str, ...]] = (*CrowdClassifier._of_items, "difficulty_", "item_accuracy_")
    _constraints: ClassVar[dict[str, Constraint]] = REGRESSION_CONSTRAINTS

    def __init__(
        self,
        difficulty: str = "classifier",
        prior: str = "classifier",
        floor: float | None = 0.0,
        ability_update: str = "auto",
        errors: str = "uniform",
        right: float = 1.0,
        wrong: float = 0.5,
        precision: float = 1.0,
        max_ability: float = 100.0,
        ridge: float | None = None,
        standardise: bool = True,
        newton_steps: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Seed = None,
        *,
        difficulty_gradient: bool = True,
        vote_smoothing: float = 0.0,
        accelerate: bool = False,
        threshold: float = 0.5,
    ) -> None:
        self.difficulty = difficulty
        self.prior = prior
        self.floor = floor
        self.ability_update = ability_update
        self.errors = errors
        self.right = right
        self.wrong = wrong
        self.precision = precision
        self.max_ability = max_ability
        self.ridge = ridge
        self.standardise = standardise
        self.newton_steps = newton_steps
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.difficulty_gradient = difficulty_gradient
        self.vote_smoothing = vote_smoothing
        self.accelerate = accelerate
        self.threshold = threshold

    @classmethod
    def plus(cls, **changes: Any) -> Self:
        """Adaptive Difficulty EM with an estimated floor of the easiness, so that labels on hard items still count.

        The easiness is held fixed while the classifier is fitted, by up to five Newton steps in each iteration, vote
        shares have one pseudo-vote, and EM is accelerated where its objective never decreases.

        Parameters
        ----------
        **changes : object
            Constructor parameters that differ.

        Returns
        -------
        DifficultyEM
        """
        ours = cls(floor=None, newton_steps=5, difficulty_gradient=False, vote_smoothing=1.0, accelerate=True)
        return ours.set_params(**changes)

    def _trains_network(self) -> bool:
        return False

    def _learn(self, context: TrainingContext) -> FitResult:
        return learn_difficulty(self, context)

    def _proba(self, module: Any, rows: Rows) -> Array:
        return module_proba(module, rows)

    def _decide(self, proba: Array) -> npt.NDArray[np.intp]:
        return decide(proba, self.threshold)

    def _has_own_likelihood(self) -> bool:
        return True

    def _own_log_likelihoods(self, rows: Rows, proba: Array, annotations: Annotations, common: Array) -> Array:
        return difficulty_log_likelihoods(self, proba, annotations)
