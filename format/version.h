/* SPDX-License-Identifier: Apache-2.0 */
/* Version of this program, for people and for the headers of what it writes. */
#ifndef GMT_TOOL_VERSION
#define GMT_TOOL_VERSION "0.2.0"
#endif
