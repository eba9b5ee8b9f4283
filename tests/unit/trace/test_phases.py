"""How marks of the recorder become set-up, steps and evaluation."""

from __future__ import annotations

from hotbed.trace.marking.phases import Moment, phases


def cut(text: str, *, learns: bool = True, training: int = 1) -> list[tuple[str, int, int]]:
    """Phases of marks like "backward 3, round 5"; the trace has 100 events, set-up ends at `training`."""
    moments = []
    for part in filter(None, text.split(", ")):
        kind, place = part.rsplit(" ", 1)
        moments.append(Moment("stepped" if kind == "round" else kind, int(place), 0, kind == "round"))
    marks = phases(
        moments, learns, Moment("training", training, 0), Moment("end", 100, 0), Moment("begin", 0, 0)
    )
    return [(mark.phase, mark.first_event, mark.end_event) for mark in marks]


def test_steps_end_with_their_round_and_begin_with_the_one_before() -> None:
    assert cut("backward 5, round 10, backward 15, round 20") == [
        ("setup", 0, 1),
        ("train", 1, 10),
        ("train", 10, 20),
    ]


def test_evaluation_between_steps_stands_apart_and_what_precedes_it_belongs_to_the_step() -> None:
    assert cut("round 10, eval 12, forward end 18, train 20, backward 25, round 30") == [
        ("setup", 0, 1),
        ("train", 1, 12),
        ("eval", 12, 20),
        ("train", 20, 30),
    ]


def test_evaluation_may_end_without_a_word() -> None:
    assert cut("round 10, eval 12, forward end 18, backward 25, round 30")[2] == ("eval", 12, 18)


def test_a_module_in_eval_mode_within_a_training_step_is_no_evaluation() -> None:
    assert cut("round 10, eval 12, backward 25, round 30") == [
        ("setup", 0, 1),
        ("train", 1, 10),
        ("train", 10, 30),
    ]


def test_evaluation_before_training_ends_set_up() -> None:
    assert cut("eval 3, forward end 8, train 9, backward 15, round 20") == [
        ("setup", 0, 3),
        ("eval", 3, 9),
        ("train", 9, 20),
    ]


def test_evaluation_after_the_last_step_goes_on_to_the_end() -> None:
    assert cut("round 10, eval 12, forward end 18") == [("setup", 0, 1), ("train", 1, 12), ("eval", 12, 100)]


def test_a_step_that_was_under_way_at_the_end_is_there() -> None:
    assert cut("round 10, backward 15")[-1] == ("train", 10, 100)


def test_a_program_without_training_evaluates_from_its_first_forward() -> None:
    assert cut("", learns=False, training=7) == [("setup", 0, 7), ("eval", 7, 100)]


def test_a_program_that_fails_in_its_first_forward_was_training() -> None:
    assert cut("", training=7) == [("setup", 0, 7), ("train", 7, 100)]
