#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints simgpu/api/simgpu_rows.def, rows of the simulated device that are made from the libraries' own headers (`make simgpu-rows`).
# Of each library below every function that its headers declare and that no other table of simgpu/ names gets the row of the
# library. Usage: scripts/simgpu_rows.sh "CC FLAGS"
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=$1
export LC_ALL=C
known=$(ls simgpu/*/*.def | grep -v simgpu_rows | xargs grep -hoE '\b(IMPL|STUB|WORK|DENY|TWIN)\(\w+' | sed 's/.*(//' | sort -u)

# How many words the arguments take: numbers with a point are passed elsewhere, unless by their address.
words='{
	if (!match($0, begin "[A-Za-z0-9_]* *\\("))
		next
	name = substr($0, RSTART, RLENGTH - 1)
	gsub(/ /, "", name)
	depth = 1; n = 0; argument = ""
	for (i = RSTART + RLENGTH; depth && i <= length($0); i++) {
		c = substr($0, i, 1)
		depth += (c == "(") - (c == ")")
		if ((c == "," && depth == 1) || !depth) {
			n += argument !~ /^ *(void)? *$/ && (argument ~ /[*[]/ || argument !~ /(^|[^A-Za-z])(float|double|cu(Double)?Complex)([^A-Za-z]|$)/)
			argument = ""
		} else
			argument = argument c
	}
	print name, n
}'

functions() { # header, what its functions return, how their names begin: the names, and the words of the arguments
	printf '#define NVML_NO_UNVERSIONED_FUNC_DEFS\n#include <%s>\n' "$1" | $compiler -E -P -x c - 2>/dev/null | tr '\n' ' ' |
		sed 's/[;{}]/\n/g' | grep -E "^ *(extern )?(__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\) *)*($2) +([A-Z_]+ +)?$3\w* *\(" |
		awk -v begin="$3" "$words"
}

rows() { # row, grep's option and pattern for its names, then header, result, prefix...
	local row=$1 option=$2 pattern=$3 names=''
	shift 3
	while [ $# -gt 0 ]; do
		names+=$(functions "$1" "$2" "$3" || true)$'\n'
		shift 3
	done
	sort -u -k1,1 <<<"$names" | grep . | grep "$option" "$pattern" | join -v1 - <(echo "$known") |
		awk -v row="$row" '{ said = row; sub("NAME", $1, said); sub("WORDS", $2, said); print said }' |
		awk 'line && length(line " " $0) > 120 { print line; line = "" } { line = line ? line " " $0 : $0 } END { print line }'
}

echo '/* SPDX-License-Identifier: Apache-2.0 */'
echo '/* Made by `make simgpu-rows` from the pinned headers: functions without a row of their own. */'
blas='void|cublasStatus|cublasStatus_t|float|double|int|cuComplex|cuDoubleComplex'
# NVML: what is not written out is refused. Mathematics: it takes the time that its name says and returns 0,
# unless it asks for the size of a buffer, which is refused: the caller would read a size that nobody wrote.
rows 'DENY(NAME, 3)' -E . nvml.h nvmlReturn_t nvml
rows 'WORK(NAME, WORDS)' -E . cublas_v2.h cublasStatus_t cublas cublasXt.h cublasStatus_t cublas cublas.h "$blas" cublas
solver=(cusolverDn.h cusolverStatus_t cusolver cusolverSp.h cusolverStatus_t cusolver cusolverRf.h cusolverStatus_t cusolver
	cusolverSp_LOWLEVEL_PREVIEW.h cusolverStatus_t cusolver)
rows 'WORK(NAME, WORDS)' -vE 'Logger|_bufferSize' "${solver[@]}"
rows 'DENY(NAME, 9)' -E _bufferSize "${solver[@]}"
rows 'WORK(NAME, WORDS)' -vE '_bufferSize|^cusparseXgebsr2csr ' cusparse.h cusparseStatus_t cusparse
rows 'DENY(NAME, 10)' -E '_bufferSize ' cusparse.h cusparseStatus_t cusparse
