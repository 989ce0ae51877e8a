#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Never harm the host: shim/ and cupti/ call nothing that allocates from the host's heap, prints, ends
# the process, takes the GIL or blocks on a lock; nor does format/, but for the part that
# only our own programs have. Read from the objects, so that no macro hides a call.
# Exceptions are in scripts/lint-hookpath.allow, each with its reason.
banned='malloc|calloc|realloc|reallocarray|free|posix_memalign|aligned_alloc|strdup|strndup|asprintf|vasprintf|getline
|printf|fprintf|vprintf|vfprintf|dprintf|puts|fputs|putchar|fopen|fopen64|fdopen|fclose|fread|fwrite|fflush|perror
|__printf_chk|__fprintf_chk|__vfprintf_chk|__dprintf_chk|abort|exit|_exit|_Exit|quick_exit|__assert_fail|raise|system|popen|fork
|PyGILState_Ensure|PyGILState_Release|pthread_mutex_lock|pthread_rwlock_rdlock|pthread_rwlock_wrlock
|pthread_cond_wait|sem_wait|pthread_join|sleep|usleep|nanosleep|setenv|putenv|unsetenv|qsort|opendir|getpwuid|syslog'
banned=$(tr -d '\n' <<<"$banned")
allow=scripts/lint-hookpath.allow
rc=0
for o in $(find build/obj/shim build/obj/cupti build/obj/format -name '*.o' 2>/dev/null | grep -vE "format/reader_(memory|ahead)" | sort); do
	[ -e "$o" ] || continue
	src=${o#build/obj/}
	src=${src%.o}.c
	[ -e "$src" ] || continue
	for name in $(nm -u "$o" | awk '{ print $2 }' | sed 's/@.*//' | grep -xE "$banned"); do
		grep -q "^$src $name " "$allow" ||
			{ echo "$src calls $name (an exception needs a line with its reason in $allow)"; rc=1; }
	done
done
grep -rnE 'PyGILState_(Ensure|Release)|Py_AddPendingCall' --include='*.[ch]' --include='*.def' shim cupti 2>/dev/null | grep -vE '^[^:]*:[0-9]*:[[:space:]]*(/?\*|//)' &&
	{ echo 'the GIL is never taken'; rc=1; }
while read -r src name _; do
	case $src in '#'*|'') continue ;; esac
	o=build/obj/${src%.c}.o
	[ ! -e "$o" ] || nm -u "$o" | grep -qE " $name(@.*)?$" || { echo "$allow: $src does not call $name (any more)"; rc=1; }
done <"$allow"
exit $rc
