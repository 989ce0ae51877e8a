#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The core (build/libgpumemtrace_core.so) has no process, socket, signal, terminal, clock or environment in it, prints nothing and
# never ends its host. Read from the objects that the linker took for it, so that no macro hides a call. Exceptions are in
# scripts/lint-core.allow, each with its reason. It exports what gpumemtrace.h declares, and nothing else.
banned='fork|vfork|clone|exec[lv]p?e?|execvpe|fexecve|posix_spawnp?|popen|pclose|system|wait|waitpid|wait[34]|waitid|kill|killpg|getpid|getppid
|prctl|ptrace|daemon|setsid|dlopen|dlsym
|socket|socketpair|connect|bind|listen|accept4?|send|sendto|sendmsg|recv|recvfrom|recvmsg|getaddrinfo|pipe2?|poll|select
|signal|sigaction|sigprocmask|pthread_sigmask|pthread_create|raise|alarm|setitimer
|isatty|ioctl|tcgetattr|tcsetattr|ttyname|time|clock|clock_gettime|gettimeofday|nanosleep|usleep|sleep|localtime(_r)?
|getenv|secure_getenv|setenv|unsetenv|putenv|environ|setlocale
|exit|_exit|_Exit|quick_exit|abort|atexit|__assert_fail|stdin|stdout|stderr|printf|vprintf|puts|putchar|perror|open_memstream'
banned=$(tr -d '\n' <<<"$banned")
lib=build/libgpumemtrace_core.so allow=scripts/lint-core.allow header=viewer/ask/gpumemtrace.h rc=0
[ -e $lib.map ] || { echo "$lib is not built"; exit 1; }

objects=$(grep -oE 'parts\.a\([a-z0-9_]+\.o\)' $lib.map | sort -u | sed 's/.*(\(.*\))/\1/')
[ "$(wc -l <<<"$objects")" -gt 100 ] || { echo "$lib.map names too few objects"; rc=1; }
used=$({ for o in $objects; do find build/obj/format build/obj/viewer -name "$o"; done; ls build/obj/viewer/ask/library*.o; } | xargs nm -A -u |
	sed -nE 's/^build\/obj\/(.*)\.o: +U ([^@]*).*/\1.c \2/p' | grep -E " ($banned)\$" | sort -u |
	while read -r file function; do [ ! -e "$file" ] || echo "$file $function"; done) # objects of files that were moved stay in build/
allowed=$(grep -v '^#' $allow | awk '{ print $1, $2 }' | sort -u)
comm -23 <(echo "$used") <(echo "$allowed") | sed "s|$| is called in the core: ask viewer/base/machine.h for it (an exception needs a line with its reason in $allow)|" | grep . && rc=1
comm -13 <(echo "$used") <(echo "$allowed") | sed "s|^|$allow: not called (any more): |" | grep . && rc=1

exported=$(nm -D --defined-only $lib | awk '{ print $3 }' | sort -u)
declared=$(grep -oE '\bgpumemtrace_[a-z_]+(\(|\[\])' $header | tr -d '([]' | sort -u)
diff <(echo "$declared") <(echo "$exported") >/dev/null ||
	{ echo "$lib exports other names than $header declares:"; diff <(echo "$declared") <(echo "$exported"); rc=1; }
exit $rc
