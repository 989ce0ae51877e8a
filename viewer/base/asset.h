/* SPDX-License-Identifier: Apache-2.0 */
/* Embeds a file in the program at build time. A zero byte follows its end. */
#pragma once

#ifndef ASSET_FILE /* browser/system.h defines its own, for another assembler */
#define ASSET_FILE(name, path)                                                        \
	__asm__(".section .rodata\n.global asset_" #name "\n.global asset_end_" #name \
		"\nasset_" #name ":\n.incbin \"" path "\"\nasset_end_" #name          \
		":\n.byte 0\n.previous\n");                                           \
	extern const char asset_##name[], asset_end_##name[]
#endif
