"""Tests of the SeqIO tasks."""

import pytest

seqio = pytest.importorskip("seqio")

from spec_t5x import corpora, tasks, vocabulary  # noqa: E402

LENGTHS = {"inputs": 64, "targets": 32}


@pytest.fixture(scope="module")
def pieces():
  return vocabulary.Vocabulary()


@pytest.fixture(scope="module")
def paper_names():
  return tasks.register_papers(
      vocabulary.SHIPPED_PATH, extra_ids=0, name_prefix="test_"
  )


def first_example(name, split):
  task = seqio.get_mixture_or_task(name)
  dataset = task.get_dataset(
      {k: LENGTHS[k] for k in task.output_features}, split, shuffle=False
  )
  return next(dataset.as_numpy_iterator())


@pytest.mark.parametrize("corpus", corpora.PREFIXES)
def test_shipped_task_has_the_ids_of_our_own_vocabulary(pieces, corpus):
  """TensorFlow's tokenizer and the one used in training must agree."""
  tasks.register_shipped()
  task = seqio.get_mixture_or_task(f"spec_t5x_{corpus}")
  dataset = task.get_dataset(LENGTHS, "validation", shuffle=False)
  examples = list(dataset.as_numpy_iterator())
  pairs = corpora.load_pairs(corpus, "validation")
  num_reordered = 0
  for pair, example in zip(pairs, examples, strict=True):
    for name, text in (("inputs", pair.source), ("targets", pair.target)):
      ids = [*pieces.encode(text)[: LENGTHS[name] - 1], pieces.eos_id]
      # "...." is "..." "." to one and "." "..." to the other: equally likely.
      assert sorted(example[name].tolist()) == sorted(ids)
      num_reordered += example[name].tolist() != ids
  assert num_reordered <= 2


def test_english_has_targets_alone(pieces):
  tasks.register_shipped()
  example = first_example("spec_t5x_english", "test")
  assert "inputs" not in example
  text = corpora.load_pairs("english", "test")[0].target
  ids = [*pieces.encode(text)[: LENGTHS["targets"] - 1], pieces.eos_id]
  assert example["targets"].tolist() == ids


def test_shipped_task_is_shuffled_by_its_seed():
  tasks.register_shipped()
  task = seqio.get_mixture_or_task("spec_t5x_ende")

  def order(seed):
    dataset = task.get_dataset(LENGTHS, "test", shuffle=True, seed=seed)
    return [x["targets"].tolist() for x in dataset.as_numpy_iterator()]

  first = order(1)
  assert first == order(1)
  assert first != order(2)
  assert sorted(first) == sorted(order(2))


@pytest.mark.parametrize("split", corpora.SPLITS)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "test_wmt14_ende",
            {
                "inputs": "translate English to German: Click Save.",
                "targets": "Klicken Sie.",
            },
        ),
        (
            "test_cnn_dailymail",
            {"inputs": "summarize: It rains. A lot.", "targets": "Rain . It"},
        ),
        (
            "test_xsum",
            {"inputs": "summarize: It snows in May.", "targets": "Snow."},
        ),
        ("test_lm1b", {"targets": "It is late ."}),
    ],
)
def test_papers_tasks_read_tensorflow_datasets(
    pieces, paper_names, paper_data_dir, name, split, expected
):
  assert name in paper_names
  example = first_example(name, split)
  ids = {k: v.tolist() for k, v in example.items() if k in LENGTHS}
  assert all(row[-1] == pieces.eos_id for row in ids.values())
  assert {k: pieces.decode(row) for k, row in ids.items()} == expected


def test_translation_is_scored_by_bleu_and_summaries_by_rouge(paper_names):
  def scores(name):
    (metric_fn,) = seqio.get_mixture_or_task(name).metric_fns
    return metric_fn(targets=["a b c d e f"], predictions=["a b c d e"])

  # Five right words of six: the penalty is exp(1 - 6 / 5).
  assert scores("test_wmt14_ende") == {"bleu": pytest.approx(81.873, abs=1e-3)}
  for name in ("test_cnn_dailymail", "test_xsum"):
    assert scores(name).keys() == {"rouge1", "rouge2", "rougeL"}
  assert not seqio.get_mixture_or_task("test_lm1b").metric_fns


def test_texts_are_compared_without_line_breaks(paper_names):
  task = seqio.get_mixture_or_task("test_cnn_dailymail")
  assert task.postprocess_fn("Rain .\nIt ", is_target=True) == "Rain . It"


def test_registering_again_is_harmless():
  names = ("spec_t5x_ende", "spec_t5x_summ", "spec_t5x_english")
  assert tasks.register_shipped() == names
  assert tasks.register_shipped() == names


def test_another_vocabulary_needs_another_name(tmp_path):
  tasks.register_shipped()
  copy = tmp_path / "spiece.model"
  copy.write_bytes(vocabulary.SHIPPED_PATH.read_bytes())
  with pytest.raises(ValueError, match="Choose another `name_prefix`"):
    tasks.register_shipped(copy)
  names = tasks.register_shipped(copy, name_prefix="copy_")
  assert names == ("copy_ende", "copy_summ", "copy_english")


@pytest.mark.parametrize(
    "register", [tasks.register_shipped, tasks.register_papers]
)
def test_missing_vocabulary_is_named(register, tmp_path):
  with pytest.raises(FileNotFoundError, match="`vocabulary_path` must be a"):
    register(tmp_path / "spiece.model")


@pytest.mark.parametrize("name", ["cnn_dailymail", "summ"])
def test_a_task_by_its_name(name):
  full_name = tasks.task(name, extra_ids=3, name_prefix="by_name_")
  assert full_name == f"by_name_{name}"
  feature = seqio.get_mixture_or_task(full_name).output_features["targets"]
  assert feature.vocabulary == seqio.SentencePieceVocabulary(
      str(vocabulary.SHIPPED_PATH), extra_ids=3
  )


def test_no_such_task():
  with pytest.raises(ValueError, match="`name` must be one of .* Got 'wmt'"):
    tasks.task("wmt")
