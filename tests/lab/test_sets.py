"""The sets of simulated runs: nothing of one is in another, and each run is what its hash says."""

from itertools import combinations

import numpy as np

from teller.lab import sets
from teller.lab.sets import ROOM, Member
from teller.lab.simulator import causes, draw
from teller.lab.simulator.draw import Wanted
from teller.lab.simulator.produce import digest, recorded, truth_of
from teller.lab.simulator.simulate import simulate

JUDGED = ("train", "variety", "validation", "test", "small")


def first_members(name: str, roots: int) -> list[Member]:
    """Give the members of the first roots of a set."""
    found: list[Member] = []
    for member in sets.members(name):
        if member.root_seed >= sets.law(name).first_seed + roots:
            break
        found.append(member)
    return found


def test_no_root_seed_can_be_in_two_sets() -> None:
    for one, two in combinations(map(sets.law, sets.set_names()), 2):
        assert abs(one.first_seed - two.first_seed) >= ROOM > max(one.roots, two.roots)


def test_all_relatives_of_a_root_are_in_its_set() -> None:
    for name in JUDGED:
        law = sets.law(name)
        for member in first_members(name, 40):
            assert law.first_seed <= member.root_seed < law.first_seed + law.roots
            assert member.order.seed == member.root_seed


def test_no_run_has_the_name_of_another() -> None:
    names = [m.name for name in JUDGED for m in first_members(name, 40)]
    assert len(names) == len(set(names))


def test_causes_are_drawn_by_the_law_and_need_nothing_that_a_scene_lacks() -> None:
    kinds = [m.order.kinds for m in first_members("validation", 120) if not m.order.twin]
    none = np.mean([not k for k in kinds])
    assert abs(none - sets.law("validation").causes[0]) < 0.12
    assert {k for ks in kinds for k in ks} <= set(causes.specs())
    assert all(sum(causes.spec(k).ends for k in ks) <= 1 for ks in kinds)


def test_few_roots_have_prefill_apart_from_decode_and_all_others_any_layout() -> None:
    layouts = [m.order.wanted.layout for m in first_members("validation", 60)]
    apart = [one for one in layouts if one is not None]
    assert 0 < len(apart) < 0.1 * len(layouts)
    assert all(0 < one.prefill < one.dp for one in apart)


def test_runs_of_the_small_set_are_what_their_hashes_say() -> None:
    told = sets.hashes()["small"]
    members = list(sets.members("small"))
    assert {m.name for m in members} == set(told)
    member = members[-1]
    run = simulate(member.order)
    recording = recorded(member.order, run)
    found = digest(run, recording, truth_of(member.order, run, recording, member.root_seed))
    assert found == told[member.name]


def test_a_replay_is_no_member_and_a_twin_tells_of_no_cause() -> None:
    twins = [m for m in first_members("train", 60) if m.order.twin]
    assert twins
    for member in twins[:2]:
        run = simulate(member.order)
        truth = truth_of(member.order, run, recorded(member.order, run), member.root_seed)
        assert truth.episodes == ()
        assert truth.twin_of in {m.name for m in first_members("train", 60)}


def test_every_cause_can_be_drawn_for_every_scene_that_fits_it() -> None:
    for seed in range(60):
        scene = draw.scene(seed, Wanted(steps=40, largest=32))
        for kind, spec in causes.specs().items():
            if causes.fits(spec, scene):
                random = np.random.default_rng([seed, 5])
                cause = causes.drawn(kind, scene, 40, 0, random)
                assert 0 <= cause.first <= cause.last <= 40
                assert causes.culprit(cause, scene).kind == spec.culprit
