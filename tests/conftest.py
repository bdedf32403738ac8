"""Fixtures of several test modules."""

import jax
import pytest
import toy_paper_data
from jax.experimental.compilation_cache import compilation_cache as jax_cache


@pytest.fixture(scope="session")
def paper_data_dir(tmp_path_factory):
  """A folder with one example in each split of each of the papers' data."""
  seqio = pytest.importorskip("seqio")
  data_dir = tmp_path_factory.mktemp("tfds")
  toy_paper_data.write(data_dir)
  seqio.set_tfds_data_dir_override(str(data_dir))
  yield data_dir
  seqio.set_tfds_data_dir_override(None)


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
  """Frees a module's compiled programs: together they take gigabytes."""
  yield
  jax.clear_caches()


@pytest.fixture(scope="session")
def compilation_cache(tmp_path_factory):
  """Directory of compiled programs."""
  return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def quick_compilation(compilation_cache):
  """Compiles fast and nothing twice, in this process and its children."""
  settings = {
      "jax_compilation_cache_dir": str(compilation_cache),
      "jax_persistent_cache_min_compile_time_secs": 0,
      # Compiled programs run a few times: time goes into making them.
      "jax_disable_most_optimizations": True,
  }
  before = {name: jax.config.values[name] for name in settings}
  with pytest.MonkeyPatch.context() as environment:
    for name, value in settings.items():
      environment.setenv(name.upper(), str(value))
      jax.config.update(name, value)
    jax_cache.reset_cache()
    yield
  for name, value in before.items():
    jax.config.update(name, value)
  jax_cache.reset_cache()
