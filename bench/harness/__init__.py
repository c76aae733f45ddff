# SPDX-License-Identifier: MIT
"""The benchmark harness behind run.py."""
