#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where packages come from is the user's own setting: no file names a registry or passes an index, and
# nothing is fetched by hand. (The lists of pins hold names and versions only.)
git grep -nIiE '(pypi|pythonhosted|deb\.debian|archive\.ubuntu|files\.download|developer\.download|registry\.npmjs|crates)\.(org|com|io)|--(extra-)?index-url|(^|[^a-z-])(wget|curl) ' \
	-- . ':!scripts/lint-hosts.sh' ':!LICENSE' && exit 1
exit 0
