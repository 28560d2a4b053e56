// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * load_each [-a] [-o] [-n] [OBJECT]: loads every BPF program of the object inside sonde, or of OBJECT, by itself.
 *
 *	-a	all together, as a recording does: prints one line with the result and the ms it took
 *	-o	with every option of every family on, which makes programs larger
 *	-n	without session links, as on kernels before 6.13, and with -p: a second link probes the returns
 *
 * Prints a line for each program, with tabs between the columns
 *
 *	program family result instructions processed ms total_states peak_states
 *
 * where result is "ok", "refused ERRNO", or "absent" for a tracepoint that this kernel has not. The verifier's last
 * 1,500 bytes follow a refused one in lines that begin with "| "; the last line, "# ...", has the sums. Exit status: 0
 * all were loaded, 1 some were refused, 2 nothing could be tried.
 *
 * libbpf gives up at the first program that is refused. So the call through which it reaches the kernel, syscall(3), is
 * replaced here: a refused program gets a descriptor of no use, and libbpf goes on to the next one with the same maps.
 */
#include "core/maps.h"
#include "kernel/embedded.h"
#include "kernel/features.h"
#include "kernel/link.h"
#include "sonde.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STATS_BYTES (64 << 10)
#define LOG_BYTES   (128 << 20) /* before 6.4 the verifier does not drop the beginning of a log: it must fit */
#define TAIL_BYTES  1500

static struct bpf_object *object; /* whose programs are tried one by one; NULL: calls go through as they are */
static struct probes probes;
static struct {
	u32 ok, refused, absent;
	u64 instructions, processed, largest;
	double ms;
} sum;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static long pass_on(long number, long a, long b, long c, long d, long e, long f)
{
	static long (*next)(long, ...);

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, a, b, c, d, e, f);
}

/* The whole name of the program that is being loaded: the kernel gets 15 characters of it. */
static const char *name_of(const union bpf_attr *attr)
{
	const struct bpf_func_info *info = (const void *)(uintptr_t)attr->func_info;
	const struct btf *btf = bpf_object__btf(object);
	const struct btf_type *func = info ? btf__type_by_id(btf, info->type_id) : NULL;

	return func ? btf__name_by_offset(btf, func->name_off) : attr->prog_name;
}

static u64 number_behind(const char *log, const char *word)
{
	const char *at = strstr(log, word);

	return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static void print_tail(const char *log)
{
	size_t len = strlen(log);
	const char *p = len > TAIL_BYTES ? log + len - TAIL_BYTES : log, *end;

	if (p != log && (end = strchr(p, '\n')))
		p = end + 1;
	for (; *p; p = *end ? end + 1 : end) {
		end = strchrnul(p, '\n');
		printf("| %.*s\n", (int)(end - p), p);
	}
}

static int load(union bpf_attr *attr, u32 size, u32 level, char *log, u32 bytes)
{
	int fd;

	attr->log_level = level;
	attr->log_buf = (uintptr_t)log;
	attr->log_size = bytes;
	log[0] = '\0';
	do
		fd = pass_on(__NR_bpf, BPF_PROG_LOAD, (long)attr, size, 0, 0, 0);
	while (fd < 0 && errno == EAGAIN);
	return fd < 0 ? -errno : fd;
}

static void print_refused(union bpf_attr *attr, u32 size)
{
	char *log = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd;

	if (log == MAP_FAILED)
		return;
	fd = load(attr, size, 1, log, LOG_BYTES);
	if (fd >= 0)
		close(fd);
	print_tail(log);
	munmap(log, LOG_BYTES);
}

static long load_program(const union bpf_attr *given, u32 size)
{
	static char log[STATS_BYTES];
	union bpf_attr attr = {};
	const struct program *p = probes__program(&probes, name_of(given));
	u64 processed;
	double ms;
	int fd;

	if (size > sizeof(attr))
		size = sizeof(attr);
	memcpy(&attr, given, size);
	ms = now_ms();
	fd = load(&attr, size, 4 /* BPF_LOG_STATS */, log, sizeof(log));
	ms = now_ms() - ms;
	processed = number_behind(log, "processed ");
	printf("%s\t%s\t%s%s\t%u\t%llu\t%.1f\t%llu\t%llu\n", p->name, p->family->name, fd < 0 ? "refused " : "ok",
	       fd < 0 ? strerrorname_np(-fd) : "", attr.insn_cnt, processed, ms, number_behind(log, "total_states "),
	       number_behind(log, "peak_states "));
	*(fd < 0 ? &sum.refused : &sum.ok) += 1;
	sum.instructions += attr.insn_cnt;
	sum.processed += processed;
	sum.ms += ms;
	if (processed > sum.largest)
		sum.largest = processed;
	if (fd >= 0)
		return fd;
	print_refused(&attr, size);
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* How libbpf reaches the kernel. The programs by which it tries the kernel's features have names of their own. */
long syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (object && number == __NR_bpf && a[0] == BPF_PROG_LOAD &&
	    probes__program(&probes, name_of((const union bpf_attr *)a[1])))
		return load_program((const union bpf_attr *)a[1], a[2]);
	return pass_on(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Calls set() with each variable of .rodata. */
static void each_constant(struct bpf_object *obj, void (*set)(const char *name, void *value, u32 size, u32 mode),
			  u32 mode)
{
	const struct btf *btf = bpf_object__btf(obj);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *sec = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_var_secinfo *v = sec ? btf_var_secinfos(sec) : NULL;
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	size_t len;
	char *data = map ? (char *)bpf_map__initial_value(map, &len) : NULL;

	for (u32 i = 0; data && v && i < btf_vlen(sec); i++, v++)
		if (v->offset + v->size <= len)
			set(btf__name_by_offset(btf, btf__type_by_id(btf, v->type)->name_off), data + v->offset,
			    v->size, mode);
}

#define RING_SIZE (256ULL << 10)

static void set_always(const char *name, void *value, u32 size, u32 mode)
{
	if (!strcmp(name, "ring_size"))
		*(u64 *)value = RING_SIZE;
	else if (!strcmp(name, "ring_mark"))
		*(u64 *)value = RING_SIZE / 8;
	else if (!strcmp(name, "span_mode"))
		*(u32 *)value = mode;
}

static void set_options(const char *name, void *value, u32 size, u32 mode)
{
	if (!strncmp(name, "option_", strlen("option_")) && size == sizeof(bool))
		*(bool *)value = true;
	/* filters, too, which are paid for in every family, and what --schedule sets */
	if (!strcmp(name, "filter_on") || !strcmp(name, "torch_counts_steps") || !strcmp(name, "torch_scheduled"))
		*(bool *)value = true;
}

static void set_attach_type(struct program *p, enum span_mode mode, bool multi)
{
	bool span = p->section.kind == SECTION_SPAN || p->section.kind == SECTION_CALLED;

	if (!span && p->section.kind != SECTION_ENTRY && p->section.kind != SECTION_PLACED &&
	    p->section.kind != SECTION_SITE)
		return;
	bpf_program__set_expected_attach_type(p->prog, span && mode == SPAN_SESSION ? ATTACH_TYPE_UPROBE_SESSION :
						       multi			    ? ATTACH_TYPE_UPROBE_MULTI :
										      0);
}

/* As the loader does for a recording. */
static void configure(struct bpf_object *obj, bool session, bool options)
{
	struct features f = {};
	enum span_mode mode;

	features__probe(&f);
	features__finish(&f);
	mode = session && f.session ? SPAN_SESSION : SPAN_PAIR;
	each_constant(obj, set_always, mode);
	if (options)
		each_constant(obj, set_options, mode);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, "rings"), libbpf_num_possible_cpus());
	bpf_map__set_value_size(bpf_object__find_map_by_name(obj, "rings"), RING_BYTES(RING_SIZE));
	for (u32 i = 0; i < probes.n_programs; i++) {
		struct program *p = &probes.programs[i];
		bool there = p->section.kind != SECTION_TRACEPOINT || features__tracepoint(p->section.rest);

		bpf_program__set_autoload(p->prog, there);
		set_attach_type(p, mode, f.multi);
		if (there)
			continue;
		sum.absent++;
		printf("%s\t%s\tabsent\t0\t0\t0.0\t0\t0\n", p->name, p->family->name);
	}
}

static struct bpf_object *open_object(const char *path)
{
	static struct embedded embedded;
	struct schema *schema = NULL;
	struct bpf_object *obj;
	char err[8192] = "";

	/* registers the sections too */
	if (embedded__open(&embedded, err, sizeof(err))) {
		fprintf(stderr, "load_each: %s\n", err);
		return NULL;
	}
	obj = path ? bpf_object__open_file(path, NULL) : embedded.skel->obj;
	if (!obj || schema__from_btf(&schema, bpf_object__btf(obj), err, sizeof(err)) ||
	    probes__init(&probes, obj, schema, err, sizeof(err))) {
		fprintf(stderr, "load_each: %s: %s\n%s", path ? path : "the embedded object",
			obj ? err : strerror(errno), embedded__log());
		return NULL;
	}
	return obj;
}

int main(int argc, char **argv)
{
	bool all = false, options = false, session = true;
	struct bpf_object *obj;
	double began;
	int opt, ret;

	while ((opt = getopt(argc, argv, "aon")) != -1) {
		all |= opt == 'a';
		options |= opt == 'o';
		session &= opt != 'n';
		if (opt == '?')
			return 2;
	}
	obj = open_object(argv[optind]);
	if (!obj)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	configure(obj, session, options);
	object = all ? NULL : obj;
	began = now_ms();
	ret = bpf_object__load(obj);
	object = NULL;
	if (all)
		printf("all\t-\t%s%s\t%u\t0\t%.1f\t0\t0\n", ret ? "refused " : "ok", ret ? strerrorname_np(-ret) : "",
		       probes.n_programs - sum.absent, now_ms() - began);
	else
		printf("# %u loaded, %u refused, %u absent; %llu instructions, %llu processed, %llu in the largest; %.0f ms\n",
		       sum.ok, sum.refused, sum.absent, sum.instructions, sum.processed, sum.largest, sum.ms);
	if (ret || (!all && !sum.ok && !sum.refused)) {
		print_tail(embedded__log());
		return all ? 1 : 2;
	}
	return sum.refused ? 1 : 0;
}
