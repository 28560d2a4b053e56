// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel/loader.h"

#include "kernel/kernel_btf.h"
#include "sonde.skel.h"
#include "util/array.h"
#include "util/path.h"
#include "util/test_switch.h"
#include "util/timing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
/* Before Linux 6.4 the verifier drops the end of a log that does not fit, and the end has the reason. */
#define LOG_BYTES (16 << 20)

/* A program that libbpf was about to load. */
struct pending {
	struct program *program;
	struct bpf_insn *insns;
	size_t n;
	enum bpf_prog_type type;
	struct bpf_prog_load_opts opts;
	int fd; /* descriptor or negative errno */
	u64 ns; /* of CPU time */
};

/* libbpf's callbacks get no argument of the caller's, so a process does one load at a time. */
static struct load {
	struct probes *probes; /* NULL: libbpf loads by itself */
	struct pending *list;
	u32 n, next;
} load;

static struct program *program_of(const struct bpf_program *prog)
{
	for (u32 i = 0; load.probes && i < load.probes->n_programs; i++)
		if (load.probes->programs[i].prog == prog)
			return &load.probes->programs[i];
	return NULL;
}

/*
 * For a program of type tracing libbpf reads all types of the kernel to find its attach target. kernel_btf.c already
 * knows the target, so libbpf is given another type.
 */
static enum bpf_prog_type type_of(const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);

	return path__begins_with(section, "tp_btf/") || path__begins_with(section, "fexit/") ||
			       path__begins_with(section, "iter") ?
		       BPF_PROG_TYPE_TRACING :
		       bpf_program__type(prog);
}

/* Does what libbpf does for the kinds of sections that it knows itself. */
static int prepare_options(const struct bpf_program *prog, struct bpf_prog_load_opts *opts)
{
	const char *section = bpf_program__section_name(prog), *name = strchr(section, '/');

	name = name ? name + 1 : "";
	if (path__begins_with(section, "tp_btf/"))
		opts->attach_btf_id = kernel_btf__tracepoint(name);
	else if (path__begins_with(section, "fexit/"))
		opts->attach_btf_id = kernel_btf__function(name);
	else if (path__begins_with(section, "iter"))
		opts->attach_btf_id = kernel_btf__iterator(name);
	if (path__begins_with(section, "iter.s/") || !strcmp(section, "syscall"))
		opts->prog_flags |= BPF_F_SLEEPABLE;
	return 0;
}

/* Replaces the program that libbpf loads by a stand-in: without types, line info and attach target. */
static int stand_in(struct bpf_program *prog, struct bpf_prog_load_opts *opts)
{
	static struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	opts->prog_btf_fd = opts->func_info_cnt = opts->line_info_cnt = 0;
	opts->func_info = opts->line_info = NULL;
	opts->attach_btf_id = opts->prog_flags = 0;
	opts->expected_attach_type = 0;
	return bpf_program__set_type(prog, BPF_PROG_TYPE_SOCKET_FILTER) ?:
		       bpf_program__set_insns(prog, insns, ARRAY_LEN(insns));
}

static int on_prepare(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	struct program *program = program_of(prog);
	struct pending *p;
	int ret = prepare_options(prog, opts);

	if (ret)
		return ret;
	if (!program)
		return bpf_program__set_type(prog, type_of(prog));
	p = &load.list[load.n];
	*p = (struct pending){
		.program = program,
		.n = bpf_program__insn_cnt(prog),
		.type = type_of(prog),
		.opts = *opts,
	};
	/* libbpf frees this array after its own load; only functions of modules need it */
	p->opts.fd_array = NULL;
	p->insns = malloc(p->n * sizeof(*p->insns));
	if (!p->insns)
		return -ENOMEM;
	memcpy(p->insns, bpf_program__insns(prog), p->n * sizeof(*p->insns));
	load.n++;
	return stand_in(prog, opts);
}

int loader__register(void)
{
	static const struct {
		/* NULL: any section that libbpf does not know is a uprobe, whose links sonde makes */
		const char *section;
		enum bpf_prog_type type;
		enum bpf_attach_type attach;
	} kinds[] = {
		/* the type that type_of() replaces */
		{ "tp_btf+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_RAW_TP },
		{ "fexit+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_FEXIT },
		{ "iter+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_ITER },
		{ "iter.s+", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_ITER },
		{ "perf_event", BPF_PROG_TYPE_PERF_EVENT, 0 },
		{ "clock+", BPF_PROG_TYPE_PERF_EVENT, 0 },
		{ "syscall", BPF_PROG_TYPE_SYSCALL, 0 },
		{ NULL, BPF_PROG_TYPE_KPROBE, 0 },
	};
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = on_prepare);
	static bool registered;

	for (u32 i = 0; !registered && i < ARRAY_LEN(kinds); i++)
		if (libbpf_register_prog_handler(kinds[i].section, kinds[i].type, kinds[i].attach, &opts) < 0)
			return -EINVAL;
	registered = true;
	return 0;
}

/* SONDE_TEST=refuse:NAME: replaces the first instruction by a read above the stack, which every verifier refuses. */
static void spoil(struct pending *p)
{
	if (!test_switch__matches("refuse", p->program->name))
		return;
	/* an instruction of two slots */
	if (p->insns[0].code == (BPF_LD | BPF_IMM | BPF_DW))
		p->insns[1] = (struct bpf_insn){ .code = BPF_JMP | BPF_JA };
	p->insns[0] = (struct bpf_insn){
		.code = BPF_LDX | BPF_MEM | BPF_DW,
		.dst_reg = BPF_REG_0,
		.src_reg = BPF_REG_10,
		.off = 8,
	};
}

static int load_one(struct pending *p, char *log, u32 size)
{
	struct bpf_prog_load_opts opts = p->opts;
	int fd;

	opts.log_level = log ? 1 : 0;
	opts.log_buf = log;
	opts.log_size = size;
	fd = bpf_prog_load(p->type, bpf_program__name(p->program->prog), "Dual BSD/GPL", p->insns, p->n, &opts);
	return fd < 0 ? -errno : fd;
}

/* The last line of the verifier's log that is not a statistic has the reason. */
static char *last_reason(char *log)
{
	char *end = log + strlen(log), *line;

	while (end > log) {
		while (end > log && end[-1] == '\n')
			*--end = '\0';
		for (line = end; line > log && line[-1] != '\n'; line--)
			;
		if (*line && strncmp(line, "processed ", 10) && strncmp(line, "verification time", 17) &&
		    strncmp(line, "stack depth", 11) && strncmp(line, "mark_precise", 12))
			return strdup(line);
		end = line;
	}
	return NULL;
}

static void find_reason(struct pending *p)
{
	char *log = malloc(LOG_BYTES);
	int fd;

	if (log) {
		*log = '\0';
		fd = load_one(p, log, LOG_BYTES);
		/* it was refused for lack of memory, which is available now */
		if (fd >= 0)
			p->fd = fd;
		else
			p->program->refusal = last_reason(log);
	}
	free(log);
}

static void *load_some(void *arg)
{
	u32 i;

	while ((i = __atomic_fetch_add(&load.next, 1, __ATOMIC_RELAXED)) < load.n) {
		struct pending *p = &load.list[i];
		u64 start = timing__clock(CLOCK_THREAD_CPUTIME_ID);

		spoil(p);
		p->fd = load_one(p, NULL, 0);
		p->ns = timing__clock(CLOCK_THREAD_CPUTIME_ID) - start;
		if (p->fd < 0)
			find_reason(p);
	}
	return NULL;
}

/* The longest first, so that no CPU has a long one left at the end. */
static int compare_sizes(const void *a, const void *b)
{
	const struct pending *p = a, *q = b;

	return p->n < q->n ? 1 : p->n > q->n ? -1 : 0;
}

static u32 cpus_allowed(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (u32)CPU_COUNT(&set);
}

/* Loads all programs, a thread on each CPU. */
static void load_all(void)
{
	u32 started = 0, n = cpus_allowed();
	pthread_t threads[THREADS_MAX];

	for (u32 i = 1; i < n && i < THREADS_MAX && i < load.n; i++)
		started += !pthread_create(&threads[started], NULL, load_some, NULL);
	load_some(NULL);
	for (u32 i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

static void print_times(void)
{
	for (u32 i = 0; test_switch__is_set("timing") && i < load.n; i++)
		fprintf(stderr, "timing: program %-32s %6zu insns %8.1f ms\n", load.list[i].program->name,
			load.list[i].n, load.list[i].ns / 1e6);
}

/* Replaces the descriptor of the stand-in in the object by the program's own. */
static void put_in_place(struct pending *p)
{
	if (p->fd >= 0 && dup3(p->fd, bpf_program__fd(p->program->prog), O_CLOEXEC) < 0) {
		close(p->fd);
		p->fd = -errno;
	} else if (p->fd >= 0) {
		close(p->fd);
	}
	if (p->fd < 0) {
		p->program->load_error = p->fd;
		p->program->enabled = false;
	}
}

/*
 * The programs' variables are memory that libbpf shares with the kernel, writable. Child processes of this one do not
 * inherit the mapping: a parser that a file has compromised could otherwise stop programs and corrupt ids.
 */
static void hide_variables(const struct bpf_object *obj)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size;
	const void *variables;
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
	{
		if (!bpf_map__is_internal(map) || bpf_map__map_flags(map) & BPF_F_RDONLY_PROG)
			continue;
		variables = bpf_map__initial_value(map, &size);
		if (variables)
			madvise((void *)variables, (size + page - 1) / page * page, MADV_DONTFORK);
	}
}

static void forget(void)
{
	for (u32 i = 0; i < load.n; i++)
		free(load.list[i].insns);
	free(load.list);
	load = (struct load){};
}

int loader__load(struct sonde_bpf *skel, struct probes *probes)
{
	int ret;

	load = (struct load){ .probes = probes };
	load.list = calloc(probes->n_programs, sizeof(*load.list));
	if (!load.list)
		return -ENOMEM;
	kernel_btf__free_types();
	ret = sonde_bpf__load(skel);
	timing__step("maps, relocation");
	if (!ret) {
		hide_variables(skel->obj);
		qsort(load.list, load.n, sizeof(*load.list), compare_sizes);
		load_all();
		timing__step("verifier");
		print_times();
		for (u32 i = 0; i < load.n; i++)
			put_in_place(&load.list[i]);
	}
	forget();
	return ret;
}
