/* SPDX-License-Identifier: Apache-2.0 */
#include "lake_assets.h"

/* The bytes of a file at build time, in this object. */
#define ASSET(name, path)                                                              \
	__asm__(".section .rodata\n"                                                   \
		".global lake_asset_" #name "\n.global lake_asset_end_" #name          \
		"\nlake_asset_" #name ":\n.incbin \"" path "\"\nlake_asset_end_" #name \
		":\n.byte 0\n.previous\n")

ASSET(views, "viewer/lake/views.sql");
ASSET(engine, "viewer/lake/engine.py");
