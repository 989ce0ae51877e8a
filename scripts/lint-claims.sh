#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counts, versions and machines in documents are those of the tables.
exec python3 scripts/lint_claims.py
