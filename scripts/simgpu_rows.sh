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

rows() { # row, what has none of those, then header, result, prefix...
	local row=$1 but=$2 names=''
	shift 2
	while [ $# -gt 0 ]; do
		names+=$(functions "$1" "$2" "$3" || true)$'\n'
		shift 3
	done
	sort -u <<<"$names" | grep -vE "^$|$but" | comm -23 - <(echo "$known") | sed "s/.*/${row%NAME*}&${row#*NAME}/" |
		awk 'line && length(line " " $0) > 120 { print line; line = "" } { line = line ? line " " $0 : $0 } END { print line }'
}

echo '/* SPDX-License-Identifier: Apache-2.0 */'
echo '/* Made by `make simgpu-rows` from the pinned headers: functions without a row of their own. */'
blas='void|cublasStatus|cublasStatus_t|float|double|int|cuComplex|cuDoubleComplex'
# NVML: what is not written out is refused. Mathematics: it takes the time that its name says and returns 0;
# what asks for a size is never made here, as its answer must be.
rows 'DENY(NAME, 3)' '^-$' nvml.h nvmlReturn_t nvml
rows 'WORK(NAME)' '^-$' cublas_v2.h cublasStatus_t cublas cublasXt.h cublasStatus_t cublas cublas.h "$blas" cublas
rows 'WORK(NAME)' 'Logger|_bufferSize' cusolverDn.h cusolverStatus_t cusolver cusolverSp.h cusolverStatus_t cusolver \
	cusolverRf.h cusolverStatus_t cusolver
rows 'WORK(NAME)' '_bufferSize|^cusparseXgebsr2csr$' cusparse.h cusparseStatus_t cusparse
