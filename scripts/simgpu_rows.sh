#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints simgpu/api/simgpu_rows.def, rows of the simulated device that are made from the libraries' own headers (`make simgpu-rows`).
# Of each library below every function that its headers declare and that no other table of simgpu/ names gets the row of the
# library. Usage: scripts/simgpu_rows.sh "CC FLAGS"
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=$1
export LC_ALL=C
known=$(ls simgpu/*/*.def | grep -v simgpu_rows | xargs grep -hoE '^(IMPL|STUB|WORK|DENY|TWIN)\(\w+' | sed 's/.*(//' | sort -u)

functions() { # header, what its functions return, how their names begin: the names
	printf '#define NVML_NO_UNVERSIONED_FUNC_DEFS\n#include <%s>\n' "$1" | $compiler -E -P -x c - 2>/dev/null | tr '\n' ' ' |
		sed 's/[;{}]/\n/g' | grep -oE "^ *(extern )?(__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\) *)*($2) +([A-Z_]+ +)?$3\w* *\(" |
		grep -oE '\w+ *\($' | tr -d ' ('
}

rows() { # row, grep's option and pattern for its names, then header, result, prefix...
	local row=$1 option=$2 pattern=$3 names=''
	shift 3
	while [ $# -gt 0 ]; do
		names+=$(functions "$1" "$2" "$3" || true)$'\n'
		shift 3
	done
	sort -u <<<"$names" | grep . | grep "$option" "$pattern" | comm -23 - <(echo "$known") | sed "s/.*/${row%NAME*}&${row#*NAME}/" |
		awk 'line && length(line " " $0) > 120 { print line; line = "" } { line = line ? line " " $0 : $0 } END { print line }'
}

echo '/* SPDX-License-Identifier: Apache-2.0 */'
echo '/* Made by `make simgpu-rows` from the pinned headers: functions without a row of their own. */'
blas='void|cublasStatus|cublasStatus_t|float|double|int|cuComplex|cuDoubleComplex'
# NVML: what is not written out is refused. Mathematics: it takes the time that its name says and returns 0,
# unless it asks for the size of a buffer, which is refused: the caller would read a size that nobody wrote.
rows 'DENY(NAME, 3)' -E . nvml.h nvmlReturn_t nvml
rows 'WORK(NAME)' -E . cublas_v2.h cublasStatus_t cublas cublasXt.h cublasStatus_t cublas cublas.h "$blas" cublas
solver=(cusolverDn.h cusolverStatus_t cusolver cusolverSp.h cusolverStatus_t cusolver cusolverRf.h cusolverStatus_t cusolver
	cusolverSp_LOWLEVEL_PREVIEW.h cusolverStatus_t cusolver)
rows 'WORK(NAME)' -vE 'Logger|_bufferSize' "${solver[@]}"
rows 'DENY(NAME, 9)' -E _bufferSize "${solver[@]}"
rows 'WORK(NAME)' -vE '_bufferSize|^cusparseXgebsr2csr$' cusparse.h cusparseStatus_t cusparse
rows 'DENY(NAME, 10)' -E '_bufferSize$' cusparse.h cusparseStatus_t cusparse
