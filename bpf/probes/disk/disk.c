// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The disk family's host side: threads that exist already when tracing begins or
 * when their process becomes a runtime, and the kernel's event of major page
 * faults, which is a perf event a CPU.
 */
#include "record/family.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool begun;
static u32 last_runtime;

/* The descriptor is the attachment: it ends with sonde. */
static int watch_faults(int program, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		.sample_period = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) && !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return 0;
	close(fd);
	return -errno;
}

static void begin(struct session *s)
{
	int program = session__program_fd(s, "disk_faulted");

	if (begun)
		return;
	begun = true;
	session__run_iter(s, "disk_begin");
	/* a CPU that is off has no event */
	for (int cpu = 0; program >= 0 && cpu < libbpf_num_possible_cpus(); cpu++)
		watch_faults(program, cpu);
}

/* The same processes are followed as by family sched. */
static bool is_runtime(struct elf *elf, const char *path)
{
	const struct family_host *sched = family_host__find("sched");

	return sched && sched->is_runtime(elf, path);
}

/* A process's threads exist already when it maps a runtime, and are followed from there on. */
static void on_mapped(struct session *s, struct elf *elf, const struct mapping *m)
{
	begin(s);
	if (m->pid == last_runtime || session__option(s, "disk", "all"))
		return;
	last_runtime = m->pid;
	session__run_iter(s, "disk_begin");
}

static void on_tick(struct session *s, u64 now)
{
	begin(s);
	/* the same pid may exec, or be another process by now */
	last_runtime = 0;
}

FAMILY_HOST(disk) = {
	.name = "disk",
	.is_runtime = is_runtime,
	.mapped = on_mapped,
	.tick = on_tick,
};
