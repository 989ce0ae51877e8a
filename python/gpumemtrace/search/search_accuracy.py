# SPDX-License-Identifier: Apache-2.0
"""How near published figures of real cards come: tests/cards/page.py writes this file."""
RUNS = 7
MEDIAN = "0.22 %"
