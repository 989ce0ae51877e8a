/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that Linux has and WASI lacks. The compiler includes this file before each source of
 * the module, so that no source has to know about it; stand_ins.c has the functions.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Output is not a terminal, so it has no width. */
#define TIOCGWINSZ 0x5413
struct winsize {
	unsigned short ws_row, ws_col;
};

/* Nothing sends signals to the module. */
#define SA_RESETHAND 0
struct sigaction {
	void (*sa_handler)(int);
	int sa_flags;
};
int sigaction(int number, const struct sigaction *action, struct sigaction *old);
int kill(pid_t pid, int number);

#define M_MMAP_THRESHOLD 0
int mallopt(int parameter, int value);
char *mkdtemp(char *path);
void qsort_r(void *rows, size_t count, size_t each,
	     int (*compare)(const void *, const void *, void *), void *ctx);

/* The assembler of WebAssembly wants every symbol's kind and size. */
#define ASSET_FILE(name, path)                                                                  \
	__asm__(".section .rodata." #name                                                       \
		",\"\",@\n" ASSET_SYMBOL("asset_" #name) ".incbin \"" path "\"\n" ASSET_SYMBOL( \
			"asset_end_" #name) ".byte 0\n"                                         \
					    ".size asset_" #name ", .-asset_" #name             \
					    "\n.size asset_end_" #name ", 1\n.text\n");         \
	extern const char asset_##name[], asset_end_##name[]
#define ASSET_SYMBOL(name) ".globl " name "\n.type " name ",@object\n" name ":\n"
