/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own format: one profile of bytes with all classes (the class is the outermost
 * frame), then one for each class. `shared` has every frame once.
 */
#include "../base/emit_json.h"
#include "../../format/version.h"
#include "export_stacks.h"

struct speedscope {
	struct export *x;
	FILE *f;
	struct stack_sums sums;
	struct map ids; /* hash of a frame -> its index */
	uint32_t frames;
	uint32_t classes[CATEGORIES]; /* 1 + index of the class's frame; 0 = not written yet */
};

static void frame_begin(struct speedscope *s, const char *name)
{
	fprintf(s->f, "%s{\"name\":", s->frames++ ? ",\n" : "\n");
	emit_json_string(s->f, name, strlen(name));
}

static uint32_t frame_index(struct speedscope *s, const struct frame *f)
{
	char unnamed[256];
	const char *name = export_frame_name(f, unnamed, sizeof(unnamed));
	uint32_t at = map_number(&s->ids, export_frame_key(f, name), s->frames);

	if (at < s->frames)
		return at;
	frame_begin(s, name);
	if (f->file[0]) {
		fputs(",\"file\":", s->f);
		emit_json_string(s->f, f->file, strlen(f->file));
	}
	if (f->line)
		fprintf(s->f, ",\"line\":%u", f->line);
	fputc('}', s->f);
	return at;
}

static uint32_t class_index(struct speedscope *s, unsigned category)
{
	if (!s->classes[category]) {
		frame_begin(s, categories[category].words);
		fputc('}', s->f);
		s->classes[category] = s->frames;
	}
	return s->classes[category] - 1;
}

static void write_frames(struct speedscope *s)
{
	FOR_EACH (const struct stack_sum, sum, s->sums.items, s->sums.count) {
		class_index(s, sum->category);
		for (size_t k = stack_sum_frames(sum, s->x); k-- > 0;)
			frame_index(s, &s->x->timeline.stacks.frames[k]);
	}
}

/* Writes the indices of a stack's frames, outermost first. */
static void write_sample(struct speedscope *s, const struct stack_sum *sum)
{
	fprintf(s->f, "[%u", class_index(s, sum->category));
	for (size_t k = stack_sum_frames(sum, s->x); k-- > 0;)
		fprintf(s->f, ",%u", frame_index(s, &s->x->timeline.stacks.frames[k]));
	fputc(']', s->f);
}

/* category: -1 = all classes */
static void write_profile(struct speedscope *s, const char *name, int category)
{
	uint64_t sum = 0;
	char *weights;
	size_t len;
	FILE *f = need_stream(&weights, &len);
	const char *before = "";

	fputs("{\"type\":\"sampled\",\"name\":", s->f);
	emit_json_string(s->f, name, strlen(name));
	fputs(",\"unit\":\"bytes\",\"startValue\":0,\"samples\":[", s->f);
	FOR_EACH (const struct stack_sum, one, s->sums.items, s->sums.count) {
		if (category >= 0 && one->category != (unsigned)category)
			continue;
		fprintf(s->f, "%s\n", before);
		write_sample(s, one);
		fprintf(f, "%s%" PRIu64, before, one->bytes);
		sum += one->bytes;
		before = ",";
	}
	fclose(f);
	fprintf(s->f, "],\"weights\":[%s],\"endValue\":%" PRIu64 "}", weights, sum);
	free(weights);
}

static void write_all(struct speedscope *s)
{
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"gpumemtrace " GMT_TOOL_VERSION "\",\"name\":",
	      s->f);
	emit_json_string(s->f, s->x->file, strlen(s->x->file));
	fputs(",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[", s->f);
	write_frames(s);
	fputs("]},\n\"profiles\":[\n", s->f);
	write_profile(s, "all classes", -1);
	for (unsigned c = 0; c < CATEGORIES; c++)
		if (s->classes[c]) {
			fputs(",\n", s->f);
			write_profile(s, categories[c].words, (int)c);
		}
	fputs("]}\n", s->f);
}

int export_speedscope(struct export *x)
{
	struct speedscope s = { .x = x, .f = x->f };
	int rc = stack_sums_take(&s.sums, x);

	if (!rc)
		write_all(&s);
	map_free(&s.ids);
	map_items_free(&s.sums);
	return rc;
}
