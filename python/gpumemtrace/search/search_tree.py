# SPDX-License-Identifier: Apache-2.0
"""The worktree in which commits are measured, in a folder of the search's own; the user's tree is only read. The program's command at
another commit: files of the repository are taken from that commit, under the name that they had then. Files in the user's tree that are in
no commit (an interpreter, data) are used where they are. Submodules come from the user's own clones, without the network."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import List, Optional

from .._answer import Sentence
from .search_git import Git

GITLINK = "160000 commit "
DEPTH = 8


@dataclass
class Tree:
    git: Git
    top: str  # the user's tree
    prefix: str  # our path in it
    cwd: str
    path: str  # of the worktree
    good: str  # ids of both ends
    bad: str

    def make(self) -> None:
        self.git.must("no worktree can be made", self.top, "worktree", "add", "--detach", "--quiet", self.path, self.bad)

    def remove(self) -> None:
        self.git.does(self.top, "worktree", "remove", "--force", self.path)
        self.git.does(self.top, "worktree", "prune")

    def check_out(self, commit: str) -> None:
        head = self.git.must("git", self.path, "rev-parse", "HEAD")
        if head != commit and not self.git.does(self.path, "checkout", "--force", "--quiet", "--detach", commit):
            raise Sentence(f"git cannot check out {commit[:12]}")
        self.fill_submodules(self.top, self.path, 0)  # without one of them the program fails, and the commit is skipped

    def enter(self) -> None:
        """The folder that the user was in may not be there yet."""
        try:
            os.chdir(f"{self.path}/{self.prefix}")
        except OSError:
            os.chdir(self.path)

    # ---- submodules ----

    def fill_submodules(self, source: str, tree: str, depth: int) -> bool:
        """One that the user does not have stays empty, as in the user's tree; so does a commit of it that was never fetched."""
        if depth > DEPTH:
            return True
        for line in (self.git.ask(tree, "ls-tree", "-r", "HEAD") or "").splitlines():
            head, tab, path = line.partition("\t")
            if not head.startswith(GITLINK) or not tab or not has_repository(f"{source}/{path}"):
                continue
            inside = f"{source}/{path}", f"{tree}/{path}"
            if not self.fill(*inside, head[len(GITLINK):]) or not self.fill_submodules(*inside, depth + 1):
                return False
        return True

    def fill(self, source: str, tree: str, commit: str) -> bool:
        return (has_repository(tree) or self.git.does(source, "clone", "--quiet", "--shared", "--no-checkout", source, tree)) and self.git.does(
            tree, "checkout", "--force", "--quiet", "--detach", commit)

    # ---- the command ----

    def has(self, commit: str, path: str) -> bool:
        return self.git.does(self.top, "cat-file", "-e", f"{commit}:{path}")

    def renamed(self, before: str, after: str, path: str) -> Optional[str]:
        """Lines are R100, the old and the new name, with tabs between."""
        lines = self.git.ask(self.top, "diff", "-M", "--diff-filter=R", "--name-status", "--no-color", before, after) or ""
        return next((words[2] for words in (line.split("\t") for line in lines.splitlines()) if len(words) > 2 and words[1] == path), None)

    def within(self, word: str) -> Optional[str]:
        """The path within the repository of an argument; None: it is no path there."""
        if word.startswith("/"):
            if not word.startswith(self.top + "/"):
                return None
            path = word[len(self.top) + 1:]
        else:
            while word.startswith("./"):
                word = word[2:]
            path = self.prefix + word
        return path if path and "../" not in path else None

    def tracked(self, commit: str, end: str, word: str, path: str) -> str:
        """A word that names a file of the repository, as it was at that commit."""
        if self.has(commit, path):
            return f"{self.path}/{path}" if word.startswith("/") else word
        now = self.renamed(end, commit, path)
        return f"{self.path}/{now}" if now else word

    def translate(self, commit: str, word: str, first: bool) -> str:
        # A program by its name alone is looked for in PATH; options are no paths.
        path = None if not word or word.startswith("-") or (first and "/" not in word) else self.within(word)
        if path is None:
            return word
        for end in (self.bad, self.good):
            if self.has(end, path):
                return self.tracked(commit, end, word, path)
        here = f"{self.cwd}/{word}"
        return here if not word.startswith("/") and os.path.lexists(here) else word

    def command(self, commit: str, command: List[str]) -> List[str]:
        return [self.translate(commit, word, not i) for i, word in enumerate(command)]

    def is_outside(self, word: str) -> bool:
        """Is it a file, and in neither of the two commits? Those of commits differ from commit to commit."""
        if not word or word.startswith("-") or not os.path.lexists(word):
            return False
        path = self.within(word)
        return path is None or not (self.has(self.bad, path) or self.has(self.good, path))


def has_repository(folder: str) -> bool:
    return os.path.exists(f"{folder}/.git")
