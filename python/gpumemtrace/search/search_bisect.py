# SPDX-License-Identifier: Apache-2.0
"""The commit that raised or lowered the peak of a program. Both ends are measured, then each commit that git's own bisect selects, in a
separate worktree. A commit is bad if its peak is above the limit or it runs out of memory. A commit whose program fails for another reason
is skipped. If only the older end is bad, git looks for the first good commit instead. At the end the commit found and its parent are
compared as `diff` does. An interrupt ends the current run; the worktree is removed all the same."""
from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Tuple

from .._answer import CHECK, OK, USAGE, Answer, Interrupted, Sentence, apart, in_units
from .search_git import Git
from .search_runs import Runs, folder_of, interrupt
from .search_tree import Tree
from .search_trial import FAILED, REFUSED, Card, Plan, Trial, fingerprint_of, hashed

MOST_SKIPPED = 50
BRIEF = 12  # characters of a commit's id
FOUND, UNDECIDED = "is the first bad commit", "could be any of:"


@dataclass
class Limit:
    """Of the peak of a good commit: bytes, or bytes or a share above that of an end."""
    value: float
    percent: bool
    absolute: bool

    def above(self, trial: Trial) -> int:
        if self.absolute:
            return int(self.value)
        peak = trial.number("peak_bytes")
        return peak + int(self.value / 100 * peak if self.percent else self.value)


@dataclass
class Found:
    commit: str
    parent: str
    old: Trial
    new: Trial
    skipped: List[str]


@dataclass
class Bisect:
    plan: Plan
    card: Card
    answer: Answer
    git: Git
    tree: Tree
    limit: Limit
    names: Tuple[str, str]  # of the good and the bad end, as given
    fingerprint: str = ""
    limit_bytes: int = 0
    lowered: bool = False  # the peak of the bad end is the lower one
    measured: List[str] = field(default_factory=list)

    # ---- a commit ----

    def measure(self, commit: str) -> Trial:
        """Runs that commit, or reads its result."""
        if commit not in self.measured:
            self.measured.append(commit)
        fingerprint = fingerprint_of([self.fingerprint.encode(), commit.encode()])
        trial = Trial(self.plan, self.card, (), commit[:BRIEF], fingerprint)
        if trial.read():
            return trial
        self.tree.check_out(commit)
        environment = {**self.plan.environment, "PYTHONDONTWRITEBYTECODE": "1"}
        trial.plan = replace(self.plan, command=self.tree.command(commit, self.plan.command), environment=environment)
        Runs(trial.plan, self.answer, 1, self.tree.enter).run([trial])
        return trial

    def measure_end(self, name: str, commit: str) -> Trial:
        trial = self.measure(commit)
        if trial.verdict == FAILED:
            raise Sentence(f"{name}: {trial.failed()}, {trial.failure()}")
        return trial

    def is_bad(self, trial: Trial) -> bool:
        return trial.verdict == REFUSED or trial.number("peak_bytes") > self.limit_bytes

    def state_of(self, trial: Trial) -> str:
        """As git knows it."""
        return "skip" if trial.verdict == FAILED else "bad" if self.is_bad(trial) != self.lowered else "good"

    # ---- the search ----

    def find_limit(self, good: Trial, bad: Trial) -> None:
        """It is above the older end, or above the newer end if that is the lower one."""
        self.limit_bytes = above_good = self.limit.above(good)
        if not self.is_bad(good) and self.is_bad(bad):
            return
        self.limit_bytes = self.limit.above(bad)
        self.lowered = self.is_bad(good) and not self.is_bad(bad)
        if not self.lowered:
            self.limit_bytes = above_good
            raise self.nothing_to_find(good, bad)

    def nothing_to_find(self, good: Trial, bad: Trial) -> Sentence:
        both_bad = self.is_bad(good)
        trial = good if both_bad else bad
        peak, limit = trial.number("peak_bytes"), self.limit_bytes
        if both_bad:
            return Sentence(f"{self.names[1]} is bad, but {self.names[0]} is not good either: its peak is {apart(peak, limit)}"
                            f"{out_of_memory(trial)}, and the limit is {apart(limit, peak)}", CHECK)
        return Sentence(f"{self.names[1]} is not bad: its peak is {apart(peak, limit)}, and up to {apart(limit, peak)} are good; "
                        "there is nothing to find", CHECK)

    def bisect(self) -> None:
        """Until git names a commit, or those that could not be told apart."""
        said = self.git.must("git bisect", self.tree.path, "bisect", "start", self.tree.bad, self.tree.good)
        while FOUND not in said:
            state = self.state_of(self.measure(self.git.must("git", self.tree.path, "rev-parse", "HEAD")))
            done = self.git.run(self.tree.path, "bisect", state)
            said = f"{done.text}\n{done.errors}"
            if interrupt.came:
                raise Interrupted
            if UNDECIDED in said:
                return
            if done.code:
                raise Sentence(f"git bisect ended with exit code {done.code}: {' '.join(said.split())}")

    def found(self) -> Found:
        commit = self.git.ask(self.tree.path, "rev-parse", "refs/bisect/bad")
        if not commit:
            raise Sentence("git bisect named no commit")
        # Commits that git could not distinguish from the one that it names, because they were skipped.
        listed = self.git.ask(self.tree.path, "rev-list", "refs/bisect/bad", "--not", "--glob=refs/bisect/good-*") or ""
        parent = self.git.ask(self.tree.top, "rev-parse", "--verify", "--quiet", f"{commit}^1") or self.tree.good
        measured = list(self.measured)
        new, old = self.measure(commit), self.measure(parent)
        if old.verdict == FAILED:
            old = self.measure(self.tree.good)
        self.measured = measured
        return Found(commit, parent, old, new, [c for c in listed.split() if c != commit][:MOST_SKIPPED])

    def search(self) -> Found:
        self.fingerprint = fingerprint_of([
            hashed(self.plan, self.card, (), [w for w in self.plan.command if self.tree.is_outside(w)]).encode(), os.fsencode(self.tree.prefix)])
        self.tree.make()
        bad = self.measure_end(self.names[1], self.tree.bad)
        good = self.measure_end(self.names[0], self.tree.good)
        self.measured.reverse()
        self.find_limit(good, bad)
        self.bisect()
        return self.found()

    # ---- the answer ----

    def show(self, commit: str, what: str) -> str:
        return self.git.ask(self.tree.top, "show", "-s", f"--format={what}", commit) or ""

    def row(self, commit: str) -> Dict[str, Any]:
        trial = self.measure(commit)
        failed = trial.verdict == FAILED
        return {"commit": commit, "subject": self.show(commit, "%s"), "verdict": "skipped" if failed else "bad" if self.is_bad(trial) else "good",
                "peak_bytes": 0 if failed else trial.number("peak_bytes")}

    def document(self, found: Found) -> Dict[str, Any]:
        return {"commit": found.commit, "parent": found.parent, "peak_old": found.old.number("peak_bytes"), "peak_new": found.new.number("peak_bytes"),
                "subject": self.show(found.commit, "%s"), "author": self.show(found.commit, "%an"), "limit_bytes": self.limit_bytes,
                "skipped": found.skipped, "measured": [self.row(c) for c in list(self.measured)]}

    def print(self, found: Found, document: Dict[str, Any]) -> None:
        old, new, answer = document["peak_old"], document["peak_new"], self.answer
        answer.title(f"{found.commit[:BRIEF]} {'lowered' if self.lowered else 'raised'} the peak from {apart(old, new)}{out_of_memory(found.old)} to "
                     f"{apart(new, old)}{out_of_memory(found.new)}")
        answer.line(f"{document['subject']} ({document['author']})")
        for commit in found.skipped:
            answer.line(f"It may also be {commit[:BRIEF]}, which could not be measured")
        answer.line()
        answer.table([("commit", 2, -12), ("verdict", 2, -7), ("peak", 1, 10), ("", 2, -20)],
                     [[r["commit"][:BRIEF], r["verdict"], in_units(r["peak_bytes"]), r["subject"]] for r in document["measured"]])
        answer.line()
        compared = subprocess.run([self.plan.tool, "diff", found.old.path(".gmt"), found.new.path(".gmt")], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in os.fsdecode(compared.stdout).rstrip("\n").split("\n"):
            answer.line(line)


def out_of_memory(trial: Trial) -> str:
    return " (out of memory)" if trial.verdict == REFUSED else ""


def commit_of(git: Git, name: str) -> str:
    commit = git.ask(None, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if interrupt.came:
        raise Interrupted
    if commit is None or not re.fullmatch("[0-9a-f]+", commit):
        raise Sentence(f"{name} is no commit of this repository", USAGE)
    return commit


def bisect(plan: Plan, card: Card, options: Mapping[str, Any], answer: Answer) -> int:
    git = Git({**plan.environment, "LC_ALL": "C"})
    top, prefix = (git.must("git", None, "rev-parse", what) for what in ("--show-toplevel", "--show-prefix"))
    good, bad = (commit_of(git, options[end]) for end in ("good", "bad"))
    if good == bad:
        raise Sentence(f"{options['good']} and {options['bad']} are the same commit", USAGE)
    with folder_of(options["folder"], "bisect", plan.environment) as folder:
        plan.folder = os.path.realpath(folder)  # git runs in another one
        tree = Tree(git, top, prefix, os.getcwd(), f"{plan.folder}/tree.{os.getpid()}", good, bad)
        limit = Limit(float(options["limit"]), options["percent"], options["absolute"])
        b = Bisect(plan, card, answer, git, tree, limit, (options["good"], options["bad"]))
        try:
            found = b.search()
            document = b.document(found)
            answer.document(document)
            b.print(found, document)
        finally:
            tree.remove()
    return OK
