// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes a finding as a sentence, from its fields only. */
#include <stdio.h>
#include <string.h>

#include "findings/classify.h"
#include "model/demangle.h"
#include "model/lock_kind.h"
#include "output/table.h"
#include "output/text.h"

/* The phrase around the figures: "waited 83% of 5.1 s for the disk" */
static const struct kind {
	const char *key, *before, *after;
	double weight;
} kinds[FINDING_KINDS] = {
	[FINDING_COMPUTE] = { "compute", "ran on a CPU", "", 1 },
	[FINDING_GIL] = { "gil", "waited", " for the GIL", 1 },
	[FINDING_LOCK] = { "lock", "waited", " for a lock", 1 },
	[FINDING_FILE_LOCK] = { "file-lock", "waited", " for a file lock", 1 },
	[FINDING_DISK] = { "disk", "waited", " for the disk", 1 },
	[FINDING_MEMORY] = { "memory", "waited", " for the kernel to reclaim or compact memory", 1 },
	[FINDING_QUOTA] = { "cpu-quota", "waited", " for a CPU: it was throttled by its CPU quota", 1 },
	[FINDING_CPU] = { "cpu", "waited", " for a CPU while other threads ran", 0.7 },
	[FINDING_AFFINITY] = { "affinity", "waited", " for the only CPU that it ran on", 1.1 },
	[FINDING_PEER] = { "peer", "waited", " for another process or machine", 0.9 },
	[FINDING_SLEEP] = { "sleep", "slept", "", 0.06 },
	[FINDING_CHILD] = { "child", "waited", " for a child process", 0.3 },
	[FINDING_RESULT] = { "result", "waited", " for another thread's or process's result", 0.3 },
	[FINDING_QUEUE] = { "queue", "waited", " for a queue", 0.9 },
	[FINDING_LOADER] = { "data-loader", "waited", " for batches of its DataLoader", 1 },
	[FINDING_SEMAPHORE] = { "semaphore", "waited", " for a semaphore (for example of a connection pool)", 1 },
	[FINDING_BARRIER] = { "barrier", "waited", " for other threads at a barrier", 0.3 },
	[FINDING_CONDITION] = { "condition", "waited", " for a condition or an event", 0.1 },
	[FINDING_GC] = { "gc", "collected garbage in", "", 1.3 },
	[FINDING_IMPORT] = { "import", "imported modules in", "", 1.3 },
	[FINDING_STRAGGLER] = { "straggler", "made the other ranks wait for", "", 1.3 },
	[FINDING_STEP] = { "slow-steps", "lost", " to slow steps of training", 1.1 },
	[FINDING_OVERHEAD] = { "small-operators", "spent", " between small operators of PyTorch", 0.8 },
	[FINDING_TENSOR_COPIES] = { "tensor-copies", "spent", " copying tensors or reading their values", 0.9 },
	[FINDING_COMPILE] = { "compile", "spent", " compiling with torch.compile", 1.3 },
	[FINDING_GPU_WAIT] = { "gpu-wait", "waited", " for a GPU", 0.9 },
	[FINDING_NCCL] = { "nccl", "waited", " in NCCL", 0.9 },
	[FINDING_LIBRARY] = { "library", "waited", " in a library", 0.9 },
	[FINDING_CALL] = { "syscall", "waited", " in a system call", 0.8 },
	[FINDING_BLOCKED] = { "blocked", "waited uninterruptibly", " (for example for a disk)", 0.8 },
	[FINDING_ASLEEP] = { "asleep", "waited", " for an unknown reason", 0.02 },
	[FINDING_IDLE] = { "idle", "was idle", "", 0.001 },
	[FINDING_GPU_IDLE] = { "gpu-idle", "had an idle GPU in", "", 1 },
	[FINDING_GPU_ENDED] = { "gpu-ended", "had a GPU without work in", "", 1 },
	[FINDING_GPU_KERNEL] = { "gpu-kernel", "ran a kernel on GPUs in", "", 1 },
	[FINDING_COPIES] = { "copies", "requested small copies in", "", 1 },
	[FINDING_CALLS] = { "calls", "was in calls of a library in", "", 0.4 },
	[FINDING_STUCK] = { "stuck", "was in a call that had not returned", "", 1 },
	[FINDING_ERRORS] = { "errors", "got errors from calls", "", 0 },
	[FINDING_RESENT] = { "resent", "retransmitted segments", "", 0 },
	[FINDING_FAULTS] = { "page-faults", "had page faults", "", 0 },
	[FINDING_GROWTH] = { "memory-growth", "left memory allocated in each step", "", 0 },
	[FINDING_UNRECORDED] = { "unrecorded", "did something that was not recorded", "", 0 },
};

const char *finding_kind__key(enum finding_kind kind)
{
	return kinds[kind].key;
}

char *finding_kind__phrase(enum finding_kind kind, char *buf, size_t size)
{
	const char *before = kinds[kind].before;
	size_t len = strlen(before);

	/* text before a share, as in "collected garbage in 20% of 5 s" */
	if (len > 3 && !strcmp(before + len - 3, " in"))
		len -= 3;
	snprintf(buf, size, "%.*s%s", (int)len, before, kinds[kind].after);
	return buf;
}

double finding_kind__weight(enum finding_kind kind)
{
	return kinds[kind].weight;
}

static void fill_python(struct finding_code *code, const struct stack_frame *f)
{
	const char *file = f->file;
	size_t len = strlen(file);

	/* the end of a long path is stored, because it is more specific than the beginning */
	if (len >= sizeof(code->file))
		file += len - sizeof(code->file) + 1;
	while (file != f->file && (*file & 0xc0) == 0x80)
		file++;
	snprintf(code->function, sizeof(code->function), "%s", f->name);
	snprintf(code->file, sizeof(code->file), "%s", file);
	code->line = f->line;
}

void finding_code__fill_caller(struct finding_code *code, const struct stacks *stacks, u32 stack)
{
	u32 user = stack_parts__of(stacks, stack).user;
	const struct stack_frame *f = stacks__frame(stacks, user), *caller = f;

	while (caller && caller->code == f->code)
		caller = stacks__frame(stacks, caller->caller);
	if (caller && stack_frame__is_users(caller))
		fill_python(code, caller);
}

/* Writes "srv::handle (srv)": the demangled name of a C++ function, and its library. */
static void fill_native(char *buf, size_t size, const struct stacks *stacks, u32 frame)
{
	const struct stack_frame *f = stacks__frame(stacks, frame);
	struct stack_frame named;
	char name[STACK_LABEL];

	if (!f)
		return;
	named = *f;
	if (*f->name)
		named.name = demangle__short(f->name, name, sizeof(name));
	stack_frame__function(&named, buf, size);
}

void finding_code__fill(struct finding_code *code, const struct stacks *stacks, u32 stack)
{
	struct stack_parts parts = stack_parts__of(stacks, stack);
	const struct stack_frame *f = stacks__frame(stacks, parts.user ? parts.user : parts.python);
	u32 native = parts.called ? parts.called : parts.native;

	/* without Python frames, names the program's own function rather than one of the C library */
	if (!f && lock_kind__code(stacks, stack))
		native = lock_kind__code(stacks, stack);
	if (f)
		fill_python(code, f);
	fill_native(code->native, sizeof(code->native), stacks, native);
}

void finding_code__add(struct text_buffer *s, const char *before, const struct finding_code *c)
{
	const char *file = strrchr(c->file, '/');

	file = file ? file + 1 : c->file;
	if (*c->function && *file && c->line)
		text__add(s, "%s%s (%s:%u)", before, c->function, file, c->line);
	else if (*c->function)
		text__add(s, *file ? "%s%s (%s)" : "%s%s", before, c->function, file);
	else if (*c->native)
		text__add(s, "%s%s", before, c->native);
}

void finding_code__write(const struct finding_code *code, const char *before, const char *text, char *buf, size_t size)
{
	struct text_buffer s = { .buf = buf, .size = size };

	text__add(&s, "%s", text);
	finding_code__add(&s, before, code);
}

static void add_subject(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	char label[96], service[96];

	names__label(q->names, label, sizeof(label), f->pid, q->tids.n ? q->tids.list[0] : 0);
	names__service(q->names, service, sizeof(service), f->pid);
	if (f->processes > 1)
		text__add(s, "%s and %u other process%s ", label, f->processes - 1, f->processes == 2 ? "" : "es");
	else
		text__add(s, *service ? "%s (%s) " : "%s ", label, service);
	if (f->threads > f->processes)
		text__add(s, "(%u threads) ", f->threads);
}

static void add_share(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	const struct kind *k = &kinds[f->kind];
	u32 threads = f->threads ? f->threads : 1;
	/* the time of one short-lived thread means little, so the sum of all is printed */
	bool brief = threads > 1 && f->wall_ns / threads < query__duration(q) / 10;
	char wall[TEXT_NUMBER];

	text__ns(wall, sizeof(wall), brief ? f->wall_ns : f->wall_ns / threads);
	if (f->ran_ns && (f->kind == FINDING_COMPUTE || f->kind == FINDING_CPU))
		text__add(s, "needed a CPU for %.0f%% of %s%s and had one for %.0f%%",
			  table__percent(f->lost_ns, f->wall_ns), wall, brief ? " in all" : "",
			  table__percent(f->ran_ns, f->wall_ns));
	else
		text__add(s, "%s %.0f%% of %s%s%s", k->before, table__percent(f->lost_ns, f->wall_ns), wall,
			  brief ? " in all" : "", k->after);
}

/* Returns the adverb for a share of the lost time. */
static const char *mostly(double percent)
{
	return percent >= 90 ? "" : percent >= 50 ? "mostly " : "most often ";
}

static void add_calls(struct text_buffer *s, const struct finding *f)
{
	char each[TEXT_NUMBER], times[TEXT_NUMBER];
	double percent = table__percent(f->call_ns, f->lost_ns);
	const char *of = *f->object ? " of " : "";

	if (!*f->call && !*f->object)
		return;
	if (f->kind == FINDING_LOCK && f->times)
		text__add(s, ": %s wait%s%s%s, %s%s", text__count(times, sizeof(times), f->times),
			  f->times == 1 ? "" : "s", *f->object ? " for " : "", f->object,
			  text__ns(each, sizeof(each), f->lost_ns / f->times), f->times == 1 ? "" : " each");
	else if (!*f->call && f->kind != FINDING_DISK)
		text__add(s, ": %s", f->object);
	else if (!*f->call)
		return;
	else if (percent < 50)
		text__add(s, ": most often in %s%s%s (%.0f%%), %s time%s of %s", f->call, of, f->object, percent,
			  text__count(times, sizeof(times), f->call_times), text__s(f->call_times),
			  text__ns(each, sizeof(each), f->call_ns / (f->call_times ? f->call_times : 1)));
	else if (f->call_times > 1)
		text__add(s, ": %s%s times in %s%s%s, %s each", mostly(percent),
			  text__count(times, sizeof(times), f->call_times), f->call, of, f->object,
			  text__ns(each, sizeof(each), f->call_ns / f->call_times));
	else
		text__add(s, ": %sin %s%s%s", mostly(percent), f->call, of, f->object);
}

static void add_counterpart(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	const struct finding_counterpart *by = &f->by;
	char label[64];
	bool has_code = *by->code.function || *by->code.native;

	if (!by->pid && !has_code && !*by->activity)
		return;
	if (by->cpus_percent) {
		text__add(s, "; %s had these CPUs for %.0f%% of the time",
			  names__label(q->names, label, sizeof(label), by->pid, 0), by->cpus_percent);
		return;
	}
	if (f->kind == FINDING_CPU || f->kind == FINDING_COMPUTE || f->kind == FINDING_AFFINITY) {
		text__add(s, "; %s preempted it most often (%.0f%% of the times)",
			  names__label(q->names, label, sizeof(label), by->pid, by->tid), by->percent);
		return;
	}
	if (by->is_end_of_chain) {
		text__add(s, "; in the end it waited for %s, which %s",
			  names__label(q->names, label, sizeof(label), by->pid, by->tid), by->activity);
		finding_code__add(s, " in ", &by->code);
		return;
	}
	text__add(s, "; %s%s by", by->percent ? mostly(by->percent) : "",
		  f->kind == FINDING_GIL || f->kind == FINDING_LOCK || f->kind == FINDING_FILE_LOCK ? "held" : "ended");
	finding_code__add(s, " ", &by->code);
	if (by->pid && (by->pid != f->pid || !has_code))
		text__add(s, "%s%s", has_code ? " of " : " ",
			  names__label(q->names, label, sizeof(label), by->pid, by->tid));
	if (by->percent && by->percent < 90)
		text__add(s, " (%.0f%%)", by->percent);
	if (*by->activity)
		text__add(s, ", which %s", by->activity);
}

/* Did it lack a CPU in other functions, too, for five points of the time or more? */
static bool is_partly_outside(const struct finding *f)
{
	return f->in_code_ns && table__percent(f->in_code_ns, f->wall_ns) + 5 <= table__percent(f->lost_ns, f->wall_ns);
}

/* Writes what the threads waited for, and which thread or process caused the wait. */
static void add_wait(struct text_buffer *s, const struct finding *f, const struct query *q)
{
	add_subject(s, f, q);
	add_share(s, f, q);
	finding_code__add(s, " in ", &f->code);
	add_calls(s, f);
	if (f->delay_ns >= f->lost_ns / 4 && f->delay_ns)
		text__add(s, "; for %.0f%% of this time the wait was over, but it had no CPU yet",
			  table__percent(f->delay_ns, f->lost_ns));
	if (f->ran_ns && f->kind != FINDING_COMPUTE && f->kind != FINDING_CPU)
		text__add(s, "; it ran for %.0f%% of the time", table__percent(f->ran_ns, f->wall_ns));
	if (is_partly_outside(f))
		text__add(s, "; for %.0f%% of the time in this function", table__percent(f->in_code_ns, f->wall_ns));
	if (*f->detail)
		text__add(s, "; %s", f->detail);
	add_counterpart(s, f, q);
}

void finding__write(struct finding *f, const struct query *q)
{
	struct text_buffer s = { .buf = f->text, .size = sizeof(f->text) };

	if (!finding__write_sentence(&s, f, q))
		add_wait(&s, f, q);
	if (f->confidence == FINDING_GUESSED)
		text__add(&s, " (a guess)");
	text__add(&s, ".");
	if (*f->advice)
		text__add(&s, " %s", f->advice);
}
