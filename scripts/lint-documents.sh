#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# JSON has only members that viewer/answers/documents.def describes: commands write it by document.c and columns.c alone (pages
# and questions of Python have formats of their own). docs/json.md says the same.
rc=0
grep -nE '\bemit_(object|array|number|signed|decimal|flag|text|bytes)\(' viewer/{answers,oom,diff,ask,commands}/*.c 2>/dev/null |
	grep -vE '^viewer/(diff/diff_page|answers/(document|columns)\.c|commands/(ask_ranks|question|search_facts|lake_files)\.c|commands/cmd_html\.c.*"tracks"|ask/cmd_info\.c.*emit_bytes)' &&
	{ echo 'documents of commands are described in viewer/answers/documents.def'; rc=1; }
if [ -e scripts/json_page.py ]; then
	python3 scripts/json_page.py | cmp -s - docs/json.md || { echo 'docs/json.md: scripts/json_page.py >docs/json.md'; rc=1; }
	python3 scripts/python_documents.py | cmp -s - python/gpumemtrace/_documents.py ||
		{ echo 'python/gpumemtrace/_documents.py: scripts/python_documents.py >python/gpumemtrace/_documents.py'; rc=1; }
fi
exit $rc
