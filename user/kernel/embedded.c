// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/embedded.h"

#include "kernel/kernel_types.h"
#include "kernel/loader.h"
#include "sonde.skel.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libbpf has one log for the process, so this is one too */
static char libbpf_log[4096];

static int keep_log(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[1024];
	size_t used, n;

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	if (getenv("SONDE_DEBUG"))
		fputs(line, stderr);
	used = strlen(libbpf_log);
	n = strlen(line);
	/* what came last says why */
	if (used + n >= sizeof(libbpf_log)) {
		size_t cut = used + n + 1 - sizeof(libbpf_log);

		memmove(libbpf_log, libbpf_log + cut, used - cut + 1);
	}
	strcat(libbpf_log, line);
	return 0;
}

const char *embedded__log(void)
{
	return libbpf_log;
}

void embedded__clear_log(void)
{
	libbpf_log[0] = '\0';
}

int embedded__open(struct embedded *e, char *err, size_t len)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = kernel_types__path());
	int ret;

	embedded__clear_log();
	libbpf_set_print(keep_log);
	ret = loader__register();
	if (!ret) {
		e->skel = sonde_bpf__open_opts(&opts);
		ret = e->skel ? 0 : -errno;
	}
	if (ret) {
		snprintf(err, len, "cannot open the embedded BPF object: %s\n%s", strerror(-ret), libbpf_log);
		return ret;
	}
	ret = schema__from_btf(&e->schema, bpf_object__btf(e->skel->obj), err, len);
	if (!ret)
		ret = probes__init(&e->probes, e->skel->obj, e->schema, err, len);
	return ret;
}

void embedded__close(struct embedded *e)
{
	probes__free(&e->probes);
	schema__free(e->schema);
	sonde_bpf__destroy(e->skel);
	memset(e, 0, sizeof(*e));
}
