# SPDX-License-Identifier: Apache-2.0
"""Public repositories at a pinned commit, in the user's cache as the environments are. GPUMEMTRACE_CARD_SOURCES=FOLDER names a folder of
clones (FOLDER/litgpt, ...), which are then read in place of GitHub."""
import os
import shutil
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("GPUMEMTRACE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpumemtrace")


class Missing(Exception):
    """One sentence."""


def git(*words):
    done = subprocess.run(["git", *words], capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"git {words[-2]} {words[-1]}: {done.stderr.strip()} (GPUMEMTRACE_CARD_SOURCES names a folder of clones)")


def fetch(repository, commit, folder):
    """The files of a commit, without its history, its tests, notebooks and logs."""
    clones = os.environ.get("GPUMEMTRACE_CARD_SOURCES")
    clone = Path(clones) / repository.split("/")[1] if clones else folder.with_suffix(".git")
    if not clones:
        git("init", "-q", "--bare", str(clone))
        git("-C", str(clone), "fetch", "-q", "--depth", "1", f"https://github.com/{repository}", commit)
    packed = subprocess.Popen(["git", "-C", str(clone), "archive", commit, ".", ":(exclude)tests", ":(exclude)*.ipynb", ":(exclude)*.log"], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(folder)], stdin=packed.stdout, check=True)
    if packed.wait():
        raise Missing(f"no commit {commit} in {clone}")
    if not clones:
        shutil.rmtree(clone)


def at(repository, commit):
    """The folder that has these files, fetched at the first call."""
    folder = CACHE / "cards" / f"{repository.replace('/', '-')}-{commit[:12]}"
    if not folder.exists():
        new = folder.with_name(folder.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        fetch(repository, commit, new)
        new.rename(folder)
    return folder
