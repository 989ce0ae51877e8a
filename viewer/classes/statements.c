/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about a tensor from the text of the statement that makes it. The text is in the recording;
 * a recording without source has no such facts.
 */
#include "../base/ending.h"
#include "rules.h"

/* Finds the part in the line where it is not the end of a longer word: "nn.Buffer(" has "Buffer(",
 * "ReplayBuffer(" does not. NULL = not found. */
static const char *find_part(const char *line, const char *part)
{
	for (const char *s = line; (s = strstr(s, part)); s++)
		if (s == line || !word_has(*s) || !word_has(s[-1]))
			return s;
	return NULL;
}

/* Length of the text before the first '=' of the statement, without blanks at its end. */
static size_t target_of(const char *text)
{
	const char *end = strchr(text, '=');
	size_t n = end && end[1] != '=' ? (size_t)(end - text) : 0;

	while (n && text[n - 1] == ' ')
		n--;
	return n;
}

/* Tables of angles and masks are cached too, but are no keys or values. */
static bool names_cache(const char *s, size_t n)
{
	return words_in(s, n, ONE_OF("cache", "past")) &&
	       !words_in(s, n, ONE_OF("cos", "sin", "rope", "freq", "mask", "pos"));
}

/* "inv_freq", "freqs_cis", "cos_cached": part of the name between underscores. */
static bool names_table(const char *s, size_t n)
{
	for (size_t i = 0, end; i < n; i = end + 1) {
		for (end = i; end < n && word_has(s[end]) && s[end] != '_';)
			end++;
		if (words_equal(s + i, end - i, ONE_OF("freq", "freqs", "cos", "sin", "mask")))
			return true;
	}
	return false;
}

/* "torch.empty_like(buffer, ...)", "buf.to(device)": a module's buffer is made anew. */
static bool remakes_buffer(const char *text)
{
	static const char *const parts[] = { "_like(buffer,", "_like(buffer)", "_like(buf,",
					     "_like(buf)",    "buffer.to(",    "buf.to(",
					     "buffer.cuda(",  "buf.cuda(",     "buffer.clone(",
					     "buf.clone(" };

	return ANY_OF(x, parts, sizeof(parts) / sizeof(parts[0]),
		      *x[0] == '_' ? strstr(text, *x) : find_part(text, *x));
}

/* "grad", "grads", "flat_grad", "gradients", but not names that are only related to them. */
static bool is_gradient(const char *word, size_t n)
{
	const char *at = memmem(word, n, "grad", 4);
	const char *behind = at ? at + 4 : NULL;

	if (!at || (at > word && at[-1] != '_') || (n > 5 && !memcmp(word, "clip_", 5)))
		return false;
	if (words_equal(word, n,
			ONE_OF("no_grad", "enable_grad", "zero_grad", "requires_grad",
			       "requires_grad_", "grad_fn", "retain_grad", "grad_norm")))
		return false;
	return behind == word + n || *behind == 's' || *behind == '_' ||
	       !strncmp(behind, "ient", 4);
}

static bool mentions_gradients(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t start = i;

		while (i < n && word_has(s[i]))
			i++;
		if (is_gradient(s + start, i - start))
			return true;
	}
	return false;
}

/* "self.grad_partitions = ...", but not values computed from gradients: "grad_avg". */
static bool names_gradients(const char *s, size_t n)
{
	return mentions_gradients(s, n) &&
	       !words_in(s, n, ONE_OF("avg", "norm", "mean", "sq", "mom", "ema"));
}

/* "bucket.buffer = ...", but not state that an optimizer keeps in buckets: "bucket.exp_avg". */
static bool names_bucket(const char *s, size_t n)
{
	return words_in(s, n, ONE_OF("bucket")) &&
	       !words_in(s, n,
			 ONE_OF("avg", "mom", "ema", "sq", "param", "weight", "master", "state"));
}

/* "p.grad = ...", "p.main_grad = ...", "self.cache_k = ..." */
static uint32_t places_of_target(const char *t)
{
	size_t n = target_of(t);
	bool is_data = words_in(t, n, ONE_OF(".data"));
	uint32_t found = 0;

	if (n > 5 && !memcmp(t + n - 4, "grad", 4) && (t[n - 5] == '.' || t[n - 5] == '_'))
		found |= PLACE_GRAD;
	if (names_gradients(t, n))
		found |= PLACE_NAMED_GRAD;
	if (names_bucket(t, n))
		found |= PLACE_BUCKET;
	if (n > 5 && !memcmp(t, "self.", 5) && !is_data)
		found |= PLACE_ATTRIBUTE;
	if (n && !is_data && names_cache(t, n))
		found |= PLACE_CACHE;
	if (names_table(t, n))
		found |= PLACE_TABLE;
	return found;
}

/* prefix="momentum1", register_buffer("exp_avg", ...): not "momentum", a setting of other modules.
 */
static bool has_state_literal(const char *text)
{
	for (const char *at = text; (at = strpbrk(at, "'\"")); at++)
		if (!strncmp(at + 1, "exp_avg", 7) || !strncmp(at + 1, "momentum_buffer", 15) ||
		    (!strncmp(at + 1, "momentum", 8) && at[9] >= '0' && at[9] <= '9'))
			return true;
	return false;
}

uint32_t statement_places(const char *text)
{
	uint32_t found = places_of_target(text) | PLACE_READ;

	if (has_state_literal(text))
		found |= PLACE_STATE;
	if (mentions_gradients(text, strlen(text)))
		found |= PLACE_OF_GRAD;
	if (find_part(text, "requires_grad=True") ||
	    (find_part(text, "requires_grad_(") && !find_part(text, "requires_grad_(False")))
		found |= PLACE_LEAF;
	if (find_part(text, "Parameter("))
		found |= PLACE_PARAMETER | PLACE_LEAF;
	if (find_part(text, "register_buffer(") || find_part(text, "Buffer(") ||
	    find_part(text, "_buffers[") || remakes_buffer(text))
		found |= PLACE_BUFFER;
	if (strstr(text, " += ") || strstr(text, "add_("))
		found |= PLACE_SUM;
	return found;
}
