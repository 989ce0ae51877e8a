/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables made from commands.def: the rows that fill each command's options, and the functions that
 * call it with them. Only questions.c and commands.c include it, each for its own commands.
 */

/* clang-format off */
#define COMMAND(c, ...) static const struct option_row options_of_##c[] = {
#define OPTION(c, ...) OPTION_ROW(struct c##_options, __VA_ARGS__),
#define ALSO(c, ...) OPTION(c, __VA_ARGS__)
#define END(c) { 0 } };
#include "commands.def"

#define COMMAND(c, ...) static const struct operand_row operands_of_##c[] = {
#define OPERAND(c, member, name, kind) { name, OPERAND_##kind, offsetof(struct c##_options, member) },
#define END(c) { 0 } };
#include "commands.def"

/* call_NAME casts the options to the command's own struct. */
#define WITH_RUN       out
#define WITH_RECORDING out, r
#define WITH_TIMELINE  out, t
#define WITH_MOMENT    out, t, mo
#define COMMAND(c, gets, ...) \
	static int call_##c(const void *o, GETS_##gets) { return run_##c(o, WITH_##gets); }
#define CHECK(c) static int call_check_##c(void *o) { return check_##c(o); }
#include "commands.def"

#define OFFSET(c, member)  offsetof(struct c##_options, member)
#define CALL_RUN(c)	   .run = call_##c
#define CALL_RECORDING(c)  .answer = call_##c
#define CALL_TIMELINE(c)   .of_device = call_##c, .device = OFFSET(c, device)
#define CALL_MOMENT(c)	   .of_moment = call_##c, .device = OFFSET(c, device), .at = OFFSET(c, at)
#define RECORDINGS_ALONE(c) .file = 0
#define RECORDINGS_ROWS(c) .file = OFFSET(c, file)
#define RECORDINGS_ONE(c)  .file = OFFSET(c, file)
#define RECORDINGS_FILES(c) \
	.file = OFFSET(c, file), .output = OFFSET(c, output), .format = OFFSET(c, to)
#define RECORDINGS_ALL(c)  .file = OFFSET(c, files)
#define RECORDINGS_PAIRS(c) .file = OFFSET(c, old), .other = OFFSET(c, new)
#define COMMAND(c, gets, of_many, group_, summary_, text_)                      \
	const struct command command_##c = {                                    \
		.name = #c, .group = COMMANDS_##group_,                         \
		.summary = (summary_), .text = text_,                           \
		.options = options_of_##c, .operands = operands_of_##c,         \
		.size = sizeof(struct c##_options), .ranks = COMMAND_##of_many, \
		CALL_##gets(c), RECORDINGS_##of_many(c),
#define CHECK(c)    .check = call_check_##c,
#define SET(c, ...) __VA_ARGS__,
#define END(c)	    };
#include "commands.def"
/* clang-format on */
