# SPDX-License-Identifier: Apache-2.0
"""Settings of the environment, made where the program is started."""


def set_before(change, noted, say):
    noted()
