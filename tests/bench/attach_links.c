// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Attaches an empty BPF program to sites of a file in batches, for bench_attach:
 *
 *	attach_links FILE [SITES PAUSE_US] < OFFSETS	one per line, ended by an empty line
 *
 * SITES a link with a pause between them, else as sonde does it. Prints "attached MS", waits for a line, detaches,
 * prints "detached MS".
 */
#include "kernel/link.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int load_empty(u32 attach_type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "sonde_bench", "GPL", insns, 2, &opts);
}

int main(int argc, char **argv)
{
	u32 type = ATTACH_TYPE_UPROBE_SESSION;
	static u64 offsets[65536], cookies[65536];
	struct link_sites sites = {};
	u32 n = 0, portion, pause_us;
	static int links[65536];
	struct links *l = links__new();
	char line[64];
	int prog, n_links = 0;
	double start;

	if (argc < 2) {
		fprintf(stderr, "attach_links FILE [SITES PAUSE_US]\n");
		return 77; /* `make bench` runs this program without arguments */
	}
	portion = argc > 3 ? atoi(argv[2]) : LINK_SITES;
	pause_us = argc > 3 ? atoi(argv[3]) : LINK_WAIT_US;
	sites.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	prog = load_empty(type);
	while (n < 65536 && fgets(line, sizeof(line), stdin) && *line != '\n')
		offsets[n++] = strtoull(line, NULL, 0);
	if (sites.fd < 0 || prog < 0 || !n || !l)
		return 1;
	start = now_ms();
	for (u32 done = 0; done < n; done += sites.n) {
		if (done && pause_us)
			usleep(pause_us);
		sites.offsets = offsets + done;
		sites.cookies = cookies + done;
		sites.n = n - done < portion ? n - done : portion;
		links[n_links] = link__create_multi(prog, type, &sites);
		if (links[n_links] < 0 || links__keep(l, links[n_links])) {
			fprintf(stderr, "attach_links: %s\n", strerror(errno));
			return 1;
		}
		n_links++;
	}
	printf("attached %.1f\n", now_ms() - start);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	start = now_ms();
	while (links__close_some(l))
		;
	printf("detached %.1f\n", now_ms() - start);
	return 0;
}
