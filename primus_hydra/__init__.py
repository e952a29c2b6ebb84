"""Hydra-composed MaxText experiments for AMD GPUs: compose, prove, export, train."""

__version__ = "0.1.0"
