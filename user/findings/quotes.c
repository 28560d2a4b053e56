// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "findings/quotes.h"

#include "model/source_lines.h"

static void quote(struct finding_code *code, const struct source_lines *lines)
{
	code->source = source_lines__text(lines, code->file, code->line);
}

int quotes__add(struct finding *list, u32 n, struct trace *t)
{
	struct source_lines lines;
	int err = source_lines__load(&lines, t);

	for (u32 i = 0; !err && i < n; i++) {
		quote(&list[i].code, &lines);
		quote(&list[i].counterpart.code, &lines);
		quote(&list[i].counterpart.activity_code, &lines);
	}
	source_lines__free(&lines);
	return err;
}
