#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# page.sh MODULE >PAGE: the viewer as one file; a line {{NAME}} of viewer.html stands for a part.
set -euo pipefail

part() {
	case $1 in
	'{{style}}') cat viewer/page/assets/page.css browser/viewer.css ;;
	'{{worker}}') cat browser/wasi.js browser/worker.js ;;
	'{{module}}') gzip -9nc "$2" | base64 -w0 && echo ;;
	'{{script}}') cat browser/viewer.js ;;
	*) printf '%s\n' "$1" ;;
	esac
}

while IFS= read -r line; do
	part "$line" "$1"
done <browser/viewer.html
