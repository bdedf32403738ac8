"""Packaging; `scripts/setup_env.sh` installs the versions that were tested."""

import setuptools

_TEST = ["beartype", "hypothesis", "pyink", "pytest", "pytest-xdist", "ruff"]

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
        "test": _TEST,
        "tpu": ["jax[tpu]"],
    },
)
