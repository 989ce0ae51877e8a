#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One word for one thing (docs/glossary.md): words that were tried and are not the field's do not come back into
# what people read: sentences that programs print, pages, the manual, documents.
exec python3 - <<'END'
import glob
import re
import sys

INSTEAD = {r"told": "known, recorded", r"heirs?": "what replaced it", r"stems?": "name", r"in vain": "unused", r"nobody'?s?": "no recorded allocation",
           r"strangers?": "other", r"speaks? of": "is about", r"walk(s|ed) back": "backward ran", r"last piece": "last allocation",
           r"no word of": "no tags of", r"NOWHERE": "DW_CFA_undefined", r"in no one piece": "fragmented", r"what has a graph": "saved for backward",
           r"answered for": "simulated", r"set free": "freed, unfrozen", r"made again": "recomputed, written again", r"may not": "might not, cannot",
           r"(is|are) to be": "should be", r"worked out": "computed", r"(holds?|held) against": "compared with", r"rests? on": "depends on",
           r"what makes": "the cause", r"what (is|are|was|were|lay) there": "the contents", r"what (it|they) ha(s|ve)": "its contents",
           r"stands? (there|beside|behind)": "is"}
WORDS = re.compile(r"\b(" + "|".join(INSTEAD) + r")\b")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`)', re.S)
SOURCES = [f for top in ("viewer", "shim", "cupti", "format", "simgpu") for end in ("c", "h", "def", "js")
           for f in glob.glob(f"{top}/**/*.{end}", recursive=True)]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *glob.glob("docs/*.md"), *glob.glob("docs/man/*.md")]


def sentences(path):
    """Line and text of what is read by people: literals with a space in a source, all of a document but its code."""
    text = open(path).read()
    if path.endswith(".md"):
        yield from enumerate(re.sub(r"```.*?```|`[^`\n]*`", lambda m: "\n" * m[0].count("\n"), text, flags=re.S).split("\n"), 1)
        return
    for m in COMMENT.finditer(text):
        if m[1] and " " in m[1]:
            yield text.count("\n", 0, m.start()) + 1, m[1]


def instead(word):
    return next(better for pattern, better in INSTEAD.items() if re.fullmatch(pattern, word))


bad = [f"{path}:{line}: \"{m[0]}\": say {instead(m[0])}" for path in SOURCES + DOCUMENTS for line, text in sentences(path)
       for m in WORDS.finditer(text)]
print("\n".join(bad), end="\n" * bool(bad))
sys.exit(bool(bad))
END
