/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads call frame information for one address and keeps only what a walk by stack pointer and rbp
 * needs: the canonical frame address (CFA) and the rules of rbp and of the return address.
 * Everything else (expressions, a CFA by another register, signal frames, forms that no compiler
 * for x86-64 writes) gives CFI_UNKNOWN: the caller then unwinds in another way, so no guess is made
 * here. Application threads, any lock held; loads only, each within the entry that is read.
 */
#include "cfi.h"

#include "../base/os.h"

#include <string.h>

#define REG_BP	 6
#define REG_SP	 7
#define REG_RA	 16
#define REGS	 3
#define REMEMBER 4

#define DW_OP_deref 0x06
#define DW_OP_breg6 0x76 /* rbp */

#define POINTER_RELATIVE 0x10
#define POINTER_OMITTED	 0xff
#define TABLE_SDATA4	 0x3b /* relative to the header, signed, 4 bytes */

struct bytes {
	const uint8_t *p, *end;
	bool bad;
};

/* A register's rule, as DWARF has them; EXPRESSION_OF_BP: at rbp + offset. */
enum where { SAME_VALUE, OFFSET, EXPRESSION_OF_BP, UNDEFINED, OTHER };

struct place {
	enum where where;
	int64_t offset;
};

enum cfa_by { BY_REGISTER, BY_LOAD, BY_OTHER };

struct row {
	enum cfa_by by;
	uint64_t reg;
	int64_t offset;
	struct place bp, ra;
};

struct program {
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointers; /* encoding */
	bool has_data, signal;
	struct bytes initial;
};

struct machine {
	const struct program *program;
	uintptr_t at, target;
	struct row now, first, kept[REMEMBER];
	unsigned kept_count;
	bool over, bad;
};

static uint64_t take(struct bytes *b, unsigned size)
{
	uint64_t value = 0;

	if ((size_t)(b->end - b->p) < size) {
		b->bad = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&value, b->p, size);
	b->p += size;
	return value;
}

static uint64_t take_leb(struct bytes *b, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)take(b, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= ~0ULL << shift;
	return value;
}

static struct bytes take_bytes(struct bytes *b, uint64_t size)
{
	struct bytes part = { b->p, b->p, false };

	if (size > (uint64_t)(b->end - b->p)) {
		b->bad = true;
		return part;
	}
	b->p += size;
	part.end = b->p;
	return part;
}

/* sizes: bytes by the encoding's low four bits; negative = signed, 0 = not supported. */
static uint64_t take_pointer(struct bytes *b, uint8_t encoding, bool relative_too)
{
	static const int8_t sizes[16] = {
		[0] = 8, [2] = 2, [3] = 4, [4] = 8, [10] = -2, [11] = -4, [12] = -8
	};
	uintptr_t here = (uintptr_t)b->p;
	int size = sizes[encoding & 15];
	uint64_t value = take(b, (unsigned)(size < 0 ? -size : size));

	if (size == 0 || (encoding & 0xf0 & ~POINTER_RELATIVE))
		b->bad = true;
	if (size == -2)
		value = (uint64_t)(int16_t)value;
	if (size == -4)
		value = (uint64_t)(int32_t)value;
	return relative_too && encoding & POINTER_RELATIVE ? value + here : value;
}

/* ---- instructions ---- */

/* Instructions, under DWARF's own names. Three more have their opcode in the upper two bits and an
 * operand in the lower six. */
enum {
	DW_CFA_nop = 0x00,
	DW_CFA_set_loc = 0x01,
	DW_CFA_advance_loc1 = 0x02,
	DW_CFA_advance_loc2 = 0x03,
	DW_CFA_advance_loc4 = 0x04,
	DW_CFA_offset_extended = 0x05,
	DW_CFA_restore_extended = 0x06,
	DW_CFA_undefined = 0x07,
	DW_CFA_same_value = 0x08,
	DW_CFA_register = 0x09,
	DW_CFA_remember_state = 0x0a,
	DW_CFA_restore_state = 0x0b,
	DW_CFA_def_cfa = 0x0c,
	DW_CFA_def_cfa_register = 0x0d,
	DW_CFA_def_cfa_offset = 0x0e,
	DW_CFA_def_cfa_expression = 0x0f,
	DW_CFA_expression = 0x10,
	DW_CFA_offset_extended_sf = 0x11,
	DW_CFA_def_cfa_sf = 0x12,
	DW_CFA_def_cfa_offset_sf = 0x13,
	DW_CFA_val_offset = 0x14,
	DW_CFA_val_offset_sf = 0x15,
	DW_CFA_val_expression = 0x16,
	DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
};

enum operand { NONE, ULEB, SLEB, BYTE1, BYTE2, BYTE4, POINTER, BLOCK };
enum effect {
	BAD,
	NOTHING,
	ADVANCE,
	SET_LOC,
	SET_RULE,
	RESTORE,
	REMEMBER_STATE,
	RESTORE_STATE,
	DEF_CFA,
	DEF_CFA_REGISTER,
	DEF_CFA_OFFSET,
	DEF_CFA_EXPRESSION,
	SET_EXPRESSION,
};

#define SCALED	 1 /* the last operand counts data units */
#define NEGATIVE 2

static const struct instruction {
	uint8_t first, second, effect, where, flags;
} instructions[64] = {
	[DW_CFA_nop] = { NONE, NONE, NOTHING, 0, 0 },
	[DW_CFA_set_loc] = { POINTER, NONE, SET_LOC, 0, 0 },
	[DW_CFA_advance_loc1] = { BYTE1, NONE, ADVANCE, 0, 0 },
	[DW_CFA_advance_loc2] = { BYTE2, NONE, ADVANCE, 0, 0 },
	[DW_CFA_advance_loc4] = { BYTE4, NONE, ADVANCE, 0, 0 },
	[DW_CFA_offset_extended] = { ULEB, ULEB, SET_RULE, OFFSET, SCALED },
	[DW_CFA_restore_extended] = { ULEB, NONE, RESTORE, 0, 0 },
	[DW_CFA_undefined] = { ULEB, NONE, SET_RULE, UNDEFINED, 0 },
	[DW_CFA_same_value] = { ULEB, NONE, SET_RULE, SAME_VALUE, 0 },
	[DW_CFA_register] = { ULEB, ULEB, SET_RULE, OTHER, 0 },
	[DW_CFA_remember_state] = { NONE, NONE, REMEMBER_STATE, 0, 0 },
	[DW_CFA_restore_state] = { NONE, NONE, RESTORE_STATE, 0, 0 },
	[DW_CFA_def_cfa] = { ULEB, ULEB, DEF_CFA, 0, 0 },
	[DW_CFA_def_cfa_register] = { ULEB, NONE, DEF_CFA_REGISTER, 0, 0 },
	[DW_CFA_def_cfa_offset] = { ULEB, NONE, DEF_CFA_OFFSET, 0, 0 },
	[DW_CFA_def_cfa_expression] = { BLOCK, NONE, DEF_CFA_EXPRESSION, 0, 0 },
	[DW_CFA_expression] = { ULEB, BLOCK, SET_EXPRESSION, 0, 0 },
	[DW_CFA_offset_extended_sf] = { ULEB, SLEB, SET_RULE, OFFSET, SCALED },
	[DW_CFA_def_cfa_sf] = { ULEB, SLEB, DEF_CFA, 0, SCALED },
	[DW_CFA_def_cfa_offset_sf] = { SLEB, NONE, DEF_CFA_OFFSET, 0, SCALED },
	[DW_CFA_val_offset] = { ULEB, ULEB, SET_RULE, OTHER, 0 },
	[DW_CFA_val_offset_sf] = { ULEB, SLEB, SET_RULE, OTHER, 0 },
	[DW_CFA_val_expression] = { ULEB, BLOCK, SET_RULE, OTHER, 0 },
	[DW_CFA_GNU_args_size] = { ULEB, NONE, NOTHING, 0, 0 },
	[DW_CFA_GNU_negative_offset_extended] = { ULEB, ULEB, SET_RULE, OFFSET, SCALED | NEGATIVE },
};

static uint64_t take_operand(struct machine *m, struct bytes *code, enum operand kind,
			     struct bytes *block)
{
	switch (kind) {
	case ULEB:
	case SLEB:
		return take_leb(code, kind == SLEB);
	case BYTE1:
	case BYTE2:
	case BYTE4:
		return take(code, 1u << (kind - BYTE1));
	case POINTER:
		return take_pointer(code, m->program->pointers, true);
	case BLOCK:
		*block = take_bytes(code, take_leb(code, false));
		return 0;
	default:
		return 0;
	}
}

static void set_rule(struct row *row, uint64_t reg, struct place to)
{
	if (reg == REG_BP)
		row->bp = to;
	else if (reg == REG_RA)
		row->ra = to;
}

/* Whether the expression is `rbp + offset`, with `load` the word stored there. No other is read. */
static bool reads_bp(struct bytes block, bool load, int64_t *offset)
{
	if (take(&block, 1) != DW_OP_breg6)
		return false;
	*offset = (int64_t)take_leb(&block, true);
	if (load && take(&block, 1) != DW_OP_deref)
		return false;
	return !block.bad && block.p == block.end;
}

static void advance(struct machine *m, uintptr_t to)
{
	m->over = to > m->target;
	m->at = to;
}

static void restore(struct machine *m, uint64_t reg)
{
	set_rule(&m->now, reg, reg == REG_BP ? m->first.bp : m->first.ra);
}

static void remember_or_restore(struct machine *m, bool keep)
{
	if (keep && m->kept_count < REMEMBER)
		m->kept[m->kept_count++] = m->now;
	else if (!keep && m->kept_count > 0)
		m->now = m->kept[--m->kept_count];
	else
		m->bad = true;
}

static void set_cfa(struct row *row, enum effect effect, uint64_t a, int64_t b)
{
	row->by = effect == DEF_CFA || row->by == BY_REGISTER ? BY_REGISTER : BY_OTHER;
	if (effect != DEF_CFA_OFFSET)
		row->reg = a;
	if (effect != DEF_CFA_REGISTER)
		row->offset = b;
}

static void apply(struct machine *m, const struct instruction *i, uint64_t a, int64_t b,
		  struct bytes block)
{
	struct place to = { (enum where)i->where, b };

	switch ((int)i->effect) {
	case NOTHING:
		return;
	case ADVANCE:
		return advance(m, m->at + a * m->program->code_align);
	case SET_LOC:
		return advance(m, a);
	case RESTORE:
		return restore(m, a);
	case REMEMBER_STATE:
	case RESTORE_STATE:
		return remember_or_restore(m, i->effect == REMEMBER_STATE);
	case DEF_CFA:
	case DEF_CFA_REGISTER:
	case DEF_CFA_OFFSET:
		return set_cfa(&m->now, (enum effect)i->effect, a, b);
	case DEF_CFA_EXPRESSION:
		m->now.by = reads_bp(block, true, &m->now.offset) ? BY_LOAD : BY_OTHER;
		return;
	case SET_EXPRESSION:
		to.where = reads_bp(block, false, &to.offset) ? EXPRESSION_OF_BP : OTHER;
		return set_rule(&m->now, a, to);
	case SET_RULE:
		return set_rule(&m->now, a, to);
	default:
		m->bad = true;
	}
}

/* If the first byte holds an operand, the table's row for the long form is used. */
static void one_instruction(struct machine *m, struct bytes *code)
{
	uint8_t op = (uint8_t)take(code, 1);
	const uint8_t long_form[4] = { 0, DW_CFA_advance_loc1, DW_CFA_offset_extended,
				       DW_CFA_restore_extended };
	const struct instruction *i = &instructions[op >> 6 ? long_form[op >> 6] : op];
	struct bytes block = { NULL, NULL, false };
	uint64_t a = op >> 6 ? op & 63u : take_operand(m, code, (enum operand)i->first, &block);
	int64_t b = (int64_t)take_operand(m, code, (enum operand)i->second, &block);

	if (i->effect == DEF_CFA_OFFSET)
		b = (int64_t)a;
	if (i->flags & SCALED)
		b *= i->flags & NEGATIVE ? -m->program->data_align : m->program->data_align;
	apply(m, i, a, b, block);
}

static void run(struct machine *m, struct bytes code)
{
	while (code.p < code.end && !m->over && !m->bad) {
		one_instruction(m, &code);
		m->bad |= code.bad;
	}
}

/* ---- entries ---- */

/* The bytes of the entry at `at`, after its length. */
static struct bytes entry_at(const struct cfi_table *t, uintptr_t at)
{
	struct bytes b = { NULL, NULL, true };
	uint32_t length;

	if (at < t->start || at + 4 > t->end)
		return b;
	memcpy(&length, (const void *)at, 4);
	if (length == 0 || length > t->end - at - 4)
		return b; /* 0xffffffff, the long form, is never within the object */
	return (struct bytes){ (const uint8_t *)at + 4, (const uint8_t *)at + 4 + length, false };
}

/* The letters after "z". The operands of L and P are skipped. */
static void read_augmentation(struct program *out, const char *letters, struct bytes data)
{
	for (; *letters && !data.bad; letters++) {
		if (*letters == 'R')
			out->pointers = (uint8_t)take(&data, 1);
		else if (*letters == 'L')
			take(&data, 1);
		else if (*letters == 'P')
			take_pointer(&data, (uint8_t)take(&data, 1) & 0x0f, false);
		else if (*letters == 'S')
			out->signal = true;
		else
			data.bad = true;
	}
	out->initial.bad |= data.bad;
}

static bool read_common(struct program *out, struct bytes b)
{
	const char *letters;
	uint8_t version;

	*out = (struct program){ .pointers = 0 };
	if (take(&b, 4) != 0)
		return false;
	version = (uint8_t)take(&b, 1);
	letters = (const char *)b.p;
	while (take(&b, 1) && !b.bad)
		;
	out->code_align = take_leb(&b, false);
	out->data_align = (int64_t)take_leb(&b, true);
	if (b.bad || (version != 1 && version != 3) ||
	    (version == 1 ? take(&b, 1) : take_leb(&b, false)) != REG_RA)
		return false;
	if (*letters == 'z') {
		struct bytes data = take_bytes(&b, take_leb(&b, false));

		out->has_data = true;
		out->initial = b;
		read_augmentation(out, letters + 1, data);
		return !out->initial.bad;
	}
	out->initial = b;
	return *letters == '\0' && !b.bad;
}

static bool narrow(int64_t value, int64_t most)
{
	return value >= -most && value <= most;
}

static struct cfi_rule rule_of(const struct row *r)
{
	struct cfi_rule rule = { .how = CFI_UNKNOWN };
	bool load = r->by == BY_LOAD;

	if (r->ra.where == UNDEFINED)
		return (struct cfi_rule){ .how = CFI_OUTERMOST };
	if (r->by == BY_OTHER || (!load && r->reg != REG_SP && r->reg != REG_BP) ||
	    r->ra.where != OFFSET || r->ra.offset != -8 || !narrow(r->offset, INT32_MAX))
		return rule;
	if (r->bp.where == (load ? EXPRESSION_OF_BP : OFFSET) && narrow(r->bp.offset, INT16_MAX)) {
		rule.saved = 1;
		rule.bp = (int16_t)r->bp.offset;
	} else if (r->bp.where != SAME_VALUE) {
		return rule;
	}
	rule.end = (int32_t)r->offset;
	rule.how = load ? CFI_BP_LOAD : r->reg == REG_SP ? CFI_SP : CFI_BP;
	return rule;
}

/* The address of the FDE for pc, from the header's sorted table; 0 = none. */
static uintptr_t find_entry(const struct cfi_table *t, uintptr_t pc)
{
	const uint8_t *head = (const uint8_t *)t->header;
	uint32_t low = 0, high;
	int32_t pair[2];

	if (head[0] != 1 || head[1] == POINTER_OMITTED || (head[1] & 7) != 3 || head[2] != 3 ||
	    head[3] != TABLE_SDATA4)
		return 0;
	memcpy(&high, head + 8, 4);
	if (high > (t->end - t->header - 12) / 8)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(pair, head + 12 + 8 * (size_t)middle, 4);
		if (t->header + (uintptr_t)(intptr_t)pair[0] <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	memcpy(pair, head + 12 + 8 * (size_t)(low - 1), 8);
	return t->header + (uintptr_t)(intptr_t)pair[1];
}

struct cfi_rule cfi_rule(const struct cfi_table *t, uintptr_t pc)
{
	struct cfi_rule unknown = { .how = CFI_UNKNOWN };
	uintptr_t at = t->header ? find_entry(t, pc) : 0;
	struct bytes b = entry_at(t, at);
	struct program program;
	struct machine m = { .program = &program, .target = pc };
	uintptr_t common = (uintptr_t)b.p, size;

	common -= (uintptr_t)take(&b, 4);
	if (b.bad || !read_common(&program, entry_at(t, common)) || program.signal)
		return unknown;
	m.at = take_pointer(&b, program.pointers, true);
	size = take_pointer(&b, program.pointers, false);
	if (pc < m.at || pc - m.at >= size)
		return unknown;
	if (program.has_data)
		take_bytes(&b, take_leb(&b, false));
	m.now.ra.where = OTHER;
	m.now.by = BY_OTHER;
	run(&m, program.initial);
	m.first = m.now;
	if (m.over || b.bad)
		m.bad = true;
	run(&m, b);
	return m.bad ? unknown : rule_of(&m.now);
}
