"""The scheduler batches, splits prompts, and preempts the last to come when the cache is full."""

from teller.lab.testbed.scheduler import Request, Row, Scheduler, rows
from teller.lab.testbed.settings import Service
from teller.lab.testbed.tokenizer import WORDS, Tokenizer

SMALL = Service(kv_blocks=9, block_tokens=4, token_limit=8, batch_limit=4)


def request(name: str, prompt: int, output: int = 3) -> Request:
    return Request(name, prompt, output, list(range(prompt)), lambda _: None)


def step(scheduler: Scheduler) -> list[Row]:
    """Do one step with 7 as each sampled token."""
    chosen, plan = scheduler.schedule()
    scheduler.update(chosen, [7] * len(chosen), 1.0)
    return list(rows(plan))


def test_a_long_prompt_is_read_in_chunks_within_the_budget() -> None:
    scheduler = Scheduler(SMALL)
    scheduler.waiting.append(request("a", 13))
    read = [step(scheduler) for _ in range(3)]
    assert [[row.new for row in one] for one in read] == [[8], [5], [1]]
    assert [one[0].context for one in read] == [8, 13, 14]
    assert [one[0].decodes for one in read] == [False, False, True]
    assert read[2][0].tokens == [7]


def test_decodes_stand_behind_prefills_in_a_plan() -> None:
    scheduler = Scheduler(SMALL)
    scheduler.waiting.append(request("a", 2))
    step(scheduler)
    scheduler.waiting.append(request("b", 5))
    assert [(row.new, row.decodes) for row in step(scheduler)] == [(5, False), (1, True)]


def test_the_last_to_come_is_preempted_and_begins_again() -> None:
    scheduler = Scheduler(SMALL)  # 8 blocks of 4 tokens
    first, second = request("a", 15, output=9), request("b", 15, output=9)
    scheduler.waiting.extend([first, second])
    while not scheduler.preemptions:
        step(scheduler)
    assert (first.preemptions, second.preemptions) == (0, 1)
    assert scheduler.running == [first]
    assert second.computed == 0
    assert not second.blocks
    while scheduler.running or scheduler.waiting:
        step(scheduler)
    assert len(second.tokens) == 15 + 9
    assert sorted(scheduler.free) == list(range(1, 9))


def test_tokens_give_the_text_back_and_are_fewer_than_bytes() -> None:
    tokenizer, text = Tokenizer(), " ".join(WORDS) + " Grüße\n"
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert len(tokens) < len(text) / 2
