"""From labelled run folders to a model that ships: `teller train`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from teller.errors import BadUsage, NothingUsable
from teller.ingest.run import Progress
from teller.learning import corpus
from teller.models.calibration import curve
from teller.models.measures import Judged, figures
from teller.models.samples.batch import batch
from teller.models.samples.labelled import Labelled
from teller.models.samples.labels import NEGATIVE, class_names
from teller.models.samples.sample import VERSION
from teller.models.samples.words import Words
from teller.models.scorer import Card

if TYPE_CHECKING:
    from teller.models.learn.config import Config

WORDS: Final = "words.npz"
CARD: Final = "card.json"
STATE: Final = "state.pt"  # of a training that goes on
NEEDED: Final = "training needs more packages: pip install 'teller-rca[learn]'"


def make(
    train: Sequence[Path],
    validation: Sequence[Path],
    out: Path,
    config: "Config",
    told: Progress,
    *,
    cache: Path,
    encoder: str = "",
    say: Callable[[str], None],
) -> Card:
    """Train on the runs below `train`, calibrate on those below `validation`, write the model.

    What is read of runs is kept below `cache`; a training that was cut off goes on where it was.
    Raises `NothingUsable` where no labelled run is found, `BadUsage` without the extra `learn`.
    """
    try:
        from teller.models.learn import export, scoring, training
    except ImportError as err:
        raise BadUsage(f"{NEEDED} ({err})") from err
    runs = runs_of(train, cache / "train", told, say)
    held = runs_of(validation, cache / "validation", told, say)
    apart(runs, held)
    out.mkdir(parents=True, exist_ok=True)
    words = _words([*runs, *held], cache, encoder)
    words.save(out / WORDS)
    told.start("training", config.epochs)

    def epoch(number: int, losses: dict[str, float]) -> None:
        told.step()
        say(f"epoch {number + 1}: " + ", ".join(f"{k} {v:.3f}" for k, v in losses.items()))

    net = training.train(runs, words, config, epoch, str(cache / STATE))
    told.done()
    example = runs[0].samples
    export.export(net, batch(example, words.of(example.texts.tolist())), out)
    card = _card(runs, [scoring.judged(net, one, words) for one in held], config)
    (out / CARD).write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=1))
    (cache / STATE).unlink(missing_ok=True)
    return card


def _card(runs: Sequence[Labelled], judged: Sequence[Judged], config: "Config") -> Card:
    """Say what a model is: what it learnt from, how it is calibrated, and how good it is."""
    return Card(
        version=VERSION, classes=list(class_names()), hidden=config.hidden,
        trained_on={"runs": len(runs), "roots": len({r.about.root_seed for r in runs})},
        config=msgspec.structs.asdict(config),
        curve=curve([j.chance[j.state == NEGATIVE] for j in judged]),
        measured={"validation": figures(judged)},
    )  # fmt: skip


def runs_of(
    folders: Sequence[Path], cache: Path, told: Progress, say: Callable[[str], None]
) -> list[Labelled]:
    """Read the labelled runs below some folders; one without a truth is left out."""
    found = sorted(
        t.with_name(t.name.removesuffix(".truth.json"))
        for folder in folders
        for t in folder.rglob("*.truth.json")
    )
    runs = [run for run in found if (run / "manifest.json").exists()]
    told.start("reading runs", len(runs))
    for failed in corpus.keep(runs, cache, told.step):
        say(failed)
    told.done()
    wanted = {run.name for run in runs}
    held = [one for one in corpus.kept(cache) if one.about.run in wanted or not runs]
    if not held:
        named = ", ".join(map(str, folders)) or "no folder"
        raise NothingUsable(
            f"{named}: no labelled run (a folder with manifest.json, NAME.truth.json beside it); "
            "teller simulate --set small -o DIR makes some"
        )
    return held


def apart(train: Sequence[Labelled], held: Sequence[Labelled]) -> None:
    """Refuse sets that share relatives: what is measured on them would be wrong."""
    both = {r.about.root_seed for r in train} & {r.about.root_seed for r in held}
    if both:
        raise BadUsage(
            f"{len(both)} families of runs are in both sets (root seed {min(both)}, …): a run and "
            "its relatives must stay on one side"
        )


def _words(runs: Sequence[Labelled], cache: Path, encoder: str) -> Words:
    """Give the vectors of all strings of the runs; encoding is kept, since it takes minutes."""
    from teller.models.learn import encoding

    kept = cache / WORDS
    known = Words.load(kept) if kept.exists() else None
    words = encoding.encoded(
        sorted({str(s) for r in runs for s in r.samples.texts}), known, encoder
    )  # fmt: skip
    words.save(kept)
    return words
