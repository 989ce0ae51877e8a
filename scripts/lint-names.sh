#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Documents name only commands, options, settings, cards, targets, files and Python names that exist.
exec python3 scripts/lint_names.py
