# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package."""


class Error(Exception):
    """What went wrong, in the tool's own sentence.

    sentence: what, where, what to do
    exit_code: the tool's: 1 a check failed, 2 wrong use, 3 a file that cannot be read or written
    """

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.exit_code = exit_code
