/* SPDX-License-Identifier: Apache-2.0 */
#include "page_names.h"

#include "../base/emit.h"
#include "../base/ending.h"
#include "../recording/owner_words.h"
#include "../recording/symbols.h"

enum {
	TEXT_MAX = 600,		 /* bytes of one text */
	TEXT_LIMIT = 1000 << 10, /* bytes of all texts */
	NODE_LIMIT = 80000,
	DEPTH_MAX = 400, /* frames of one stack, the innermost */
	FRAME = 5	 /* numbers of a frame */
};

static const char left_out[] = "(left out)";

void names_init(struct names *n, struct redact *redact, double scale)
{
	*n = (struct names){ .redact = redact,
			     .frames.width = FRAME,
			     .node_limit = NODE_LIMIT * scale,
			     .text_limit = TEXT_LIMIT * scale };
	names_text(n, "", 0);
	names_text(n, left_out, sizeof(left_out) - 1);
	interned_put(&n->frames, (const uint32_t[FRAME]){ 0 });
	map_free(&n->frames.ids); /* frame 0 means none, so that no real frame may get it */
	*need_item(n->nodes, n->node_count, n->node_room) = (struct names_node){ 0 };
}

void names_free(struct names *n)
{
	for (size_t i = 0; i < n->text_count; i++)
		free(n->texts[i].s);
	free(n->texts);
	free(n->nodes);
	map_free(&n->text_ids);
	interned_free(&n->frames);
	map_free(&n->node_ids);
}

/* Bytes of a text in the page: an escaped character takes six. */
static size_t weight(const char *s, size_t len)
{
	size_t bytes = len;

	for (size_t i = 0; i < len; i++)
		if (s[i] < ' ' || s[i] == '<' || s[i] == 0x7f)
			bytes += 5;
	return bytes;
}

static uint32_t new_text(struct names *n, const char *s, size_t len, bool whole)
{
	struct names_text *t = need_item(n->texts, n->text_count, n->text_room);

	t->s = need_new(len + 4);
	memcpy(t->s, s, len);
	t->len = len;
	if (!whole) {
		memcpy(t->s + len, "...", 3);
		t->len += 3;
	}
	n->text_bytes += weight(t->s, t->len);
	if (!whole)
		n->cut_texts++;
	return n->text_count - 1;
}

uint32_t names_text(struct names *n, const char *s, size_t len)
{
	uint64_t hash = map_hash(len, s, len);
	size_t kept = len <= TEXT_MAX ? len : words_whole(s, TEXT_MAX);
	bool fresh, whole = kept == len;
	uint32_t *at;

	for (;; hash++) {
		const struct names_text *t;

		at = map_put(&n->text_ids, hash, &fresh);
		if (fresh)
			break;
		t = &n->texts[*at];
		if (t->len == kept + (whole ? 0 : 3) && !memcmp(t->s, s, kept))
			return *at;
	}
	if (n->text_count > 1 && n->text_bytes + weight(s, kept) > n->text_limit) {
		n->cut_texts++;
		map_remove(&n->text_ids, hash);
		return 1;
	}
	return *at = new_text(n, s, kept, whole);
}

uint32_t names_word(struct names *n, const char *s)
{
	return names_text(n, s, strlen(s));
}

uint32_t names_function(struct names *n, const char *function)
{
	char brief[256];

	return names_word(n, strstr(function, "::") ? demangle_brief(function, brief, sizeof(brief))
						    : function);
}

uint32_t names_path(struct names *n, const char *path)
{
	return names_word(n, n->redact ? redact_path(n->redact, path) : path);
}

void names_owner(struct names *n, struct emit *out, const struct owner *o)
{
	emit_number(out, "fn", names_function(n, o->function));
	emit_number(out, "file", names_path(n, o->file));
	emit_number(out, "line", o->line);
	emit_flag(out, "backward", o->backward);
}

static uint32_t bits_of(const struct frame *f)
{
	uint32_t bits = 0;

	if (!f->python)
		return 0;
	bits |= NAMES_PYTHON;
	if (ending_is(f->file, "torch/nn/modules/module.py"))
		bits |= NAMES_CALL;
	else if (owners_is_forward(f->function))
		bits |= NAMES_FORWARD;
	if (owners_is_plumbing(f->file))
		bits |= NAMES_PLUMBING;
	return bits;
}

static uint32_t add_frame(struct names *n, const struct frame *f)
{
	uint32_t function = names_word(n, f->function), file = names_path(n, f->file);
	const uint32_t row[FRAME] = { function, file, f->line,
				      names_path(n, f->python ? "" : f->module), bits_of(f) };

	return interned_put(&n->frames, row);
}

static uint32_t add_node(struct names *n, uint32_t caller, uint32_t frame)
{
	uint64_t key = (uint64_t)caller << 32 | frame;
	const uint32_t *known = map_get(&n->node_ids, key);

	if (known)
		return *known;
	if (n->node_count >= n->node_limit) {
		n->cut_nodes++;
		return caller;
	}
	*map_put(&n->node_ids, key, NULL) = n->node_count;
	*need_item(n->nodes, n->node_count, n->node_room) = (struct names_node){ caller, frame };
	return n->node_count - 1;
}

uint32_t names_stack(struct names *n, struct stacks *s, struct map *known, uint32_t id,
		     uint64_t seq)
{
	uint32_t node = 0, *at;
	bool fresh;

	if (!id)
		return 0;
	at = map_put(known, id, &fresh);
	if (!fresh)
		return *at;
	stacks_read(s, id, seq);
	for (size_t i = s->count < DEPTH_MAX ? s->count : DEPTH_MAX; i-- > 0;)
		node = add_node(n, node, add_frame(n, &s->frames[i]));
	*map_put(known, id, NULL) = node;
	return node;
}

static void emit_nodes(struct names *n, struct emit *out)
{
	struct bytes c = { 0 };

	for (size_t i = 1; i < n->node_count; i++)
		column_row(&c, i - n->nodes[i].caller, n->nodes[i].frame);
	column_emit(&c, out, "nodes");
}

void names_emit_texts(const struct names *n, struct emit *out)
{
	emit_array(out, "texts");
	for (size_t i = 0; i < n->text_count; i++)
		emit_bytes(out, NULL, n->texts[i].s, n->texts[i].len);
	emit_end(out);
	emit_number(out, "cut_texts", n->cut_texts);
}

void names_emit(struct names *n, struct emit *out)
{
	names_emit_texts(n, out);
	interned_emit(&n->frames, out, "frames");
	emit_nodes(n, out);
	emit_number(out, "cut_nodes", n->cut_nodes);
}
