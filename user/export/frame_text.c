// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "export/frame_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/text.h"
#include "util/path.h"

char *frame_text__function(const struct call_function *f)
{
	const char *file = path__file_name(f->file);
	char *text = NULL, *clean;
	int len;

	if (f->kind == FRAME_KERNEL)
		len = asprintf(&text, "%s_[k]", f->name);
	else if (*file)
		len = asprintf(&text, "%s (%s)", f->name, file);
	else
		len = asprintf(&text, "%s", f->name);
	if (len < 0)
		return NULL;
	clean = text__clean(text, (size_t)len);
	free(text);
	return clean;
}
