#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every command has a page of the manual with an example, and every page a command.
diff <(sed -n 's/^COMMAND(\([a-z]*\),.*/gpumemtrace-\1.1.md/p' viewer/ask/commands.def | sort) \
	<(ls docs/man 2>/dev/null | grep -v '^gpumemtrace\.1\.md$' | sort) || exit 1
! grep -L '^## EXAMPLE' $(ls docs/man/gpumemtrace-*.1.md 2>/dev/null) /dev/null | grep '\.md$'
