"""All tables, in the order of the page: to add one, add it here."""

from typing import Final

from teller.learning.evaluating import folds, promises, tables
from teller.learning.evaluating.work import Spec

_JUDGED: Final = ("train", "validation", "test")

SPECS: Final[tuple[Spec, ...]] = (
    Spec(
        "steps", "Abnormal iterations",
        "The threshold of each row is the one with the best F1 on validation; that of rules is "
        "none: what they say loudly is called. Horizontal and vertical are the positives by a "
        "cause between ranks (network, inside a node, hang) and by any other, each with all "
        "negatives. False alarms are the share of negatives that is called; behind ≤ stands the "
        "one-sided 95 % bound.",
        _JUDGED, tables.steps,
    ),
    Spec(
        "causes", "Who and what is to blame",
        "Of positive iterations, called or not. The object is right where its kind and the list "
        "of that kind are; macro F1 is over the classes that occur, macro+ over the operators "
        "that are to blame somewhere. The last column asks for object, class and first operator "
        "at once. Floors that name no class name no object.",
        _JUDGED, tables.causes,
    ),
    Spec(
        "priors", "Where faults are rare",
        "The same scores with negatives weighed so that 5 %, 1 % and 0.1 % of iterations are "
        "positive; AUPRC at the prior of the set stands before them.",
        _JUDGED, tables.priors,
    ),
    Spec(
        "severity", "By how much a cause costs",
        "Positives whose cause cost that share of the step, with all negatives.",
        _JUDGED, tables.severity,
    ),
    Spec(
        "classes", "By class",
        "Recall is at the threshold of validation; the others are of positives, called or not.",
        ("validation", "test"), tables.by_class,
    ),
    Spec(
        "inputs", "What the model looks at",
        "The model as it is, with a part of what it sees taken away or mixed up, without "
        "training it again.",
        ("validation", "test"), tables.inputs,
    ),
    Spec(
        "retrained", "What the model needs",
        "Networks of the same kind that are trained within the same short budget, each without a "
        "part; “trained again” has all of it and is what they are held against.",
        _JUDGED, folds.retrained, trains=True,
    ),
    Spec(
        "siblings", "Faults that were never seen",
        "A group of sibling classes is left out of training. Asked: whether its iterations are "
        "told from negatives, whether its operators are, and whether doubt about the class (one "
        "less the largest chance) tells it from classes that were seen. “When seen” is the "
        "network of the same budget that learnt from all.",
        _JUDGED, folds.siblings, trains=True,
    ),
    Spec(
        "engines", "Engines that were never seen",
        "Runs of one engine are left out of training, and asked for. “Seen” is the network of "
        "the same budget that learnt from all, on the same runs.",
        _JUDGED, folds.engines, trains=True,
    ),
    Spec(
        "transfer", "From simulated runs to real ones",
        "Rows as above, learnt from simulated runs with thresholds of the simulated validation "
        "set, asked of runs of the testbed.",
        ("train", "validation", "testbed"), tables.transfer,
    ),
    Spec(
        "calibration", "What is promised",
        "Thresholds from runs of the validation set, drawn fifty times, against the mean rate "
        "over the clean iterations of each test run. “Promised” is the share of draws in which "
        "so many runs can promise that rate.",
        ("validation", "test"), promises.calibration,
    ),
    Spec(
        "timing", "What scoring costs",
        "Without reading the run and without making its samples.",
        ("test",), promises.timing,
    ),
)  # fmt: skip
BY_NAME: Final = {s.name: s for s in SPECS}
