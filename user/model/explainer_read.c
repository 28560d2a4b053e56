// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fills each thread's lists of spans from the families' events. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/explainer.h"
#include "model/osrt_files.h"
#include "model/syscalls.h"
#include "output/text.h"

struct explainer_thread *explainer_sources__thread(const struct explainer_sources *s, u32 pid, u32 tid)
{
	struct thread_key key = { pid, tid };

	return map__find(&s->threads, &key);
}

/* The thread of a row, NULL: it was not added. */
static struct explainer_thread *thread_of(const struct explainer_sources *s, const struct view *v,
					  const struct common_fields *f)
{
	return explainer_sources__thread(s, (u32)view__s64(v, f->pid), (u32)view__s64(v, f->tid));
}

static u32 kind_of_call(const char *name)
{
	if (text__has_item(" read pread64 readv preadv preadv2 recvfrom recvmsg recvmmsg ", ' ', name))
		return EXPLAINER_READS;
	if (text__has_item(" poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 ", ' ', name))
		return EXPLAINER_POLLS;
	return text__has_item(" write pwrite64 writev pwritev pwritev2 sendto sendmsg sendmmsg sendfile splice ", ' ',
			      name) ?
		       EXPLAINER_WRITES :
		       0;
}

static u32 call_text(const struct explainer_sources *s, u32 pid, const char *name, u32 number)
{
	const struct osrt_file *file = number ? osrt_files__find(s->files, pid, number) : NULL;
	char text[320];

	snprintf(text, sizeof(text), "%s%s%s", name, file ? " of " : "",
		 file ? osrt_files__name(s->files, file->number) : "");
	return texts__number(&s->gaps->texts, text);
}

static int on_calls(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), nr, file);
	struct common_fields f = common_fields__of(rows__event(rows));
	const struct explainer_sources *s = arg;
	struct explainer_thread *t;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		const char *name = syscalls__known_name(nr, view__s64(&v, nr));
		struct listed_span span = { .from = (u64)view__s64(&v, f.start), .to = (u64)view__s64(&v, f.time) };

		t = thread_of(s, &v, &f);
		if (!t || !name)
			continue;
		span.kind = kind_of_call(name);
		if (!span.kind)
			continue;
		span.detail = call_text(s, (u32)view__s64(&v, f.pid), name, (u32)view__s64(&v, file));
		err = span.detail ? span_list__add(&t->lists[EXPLAINER_CALLS], &span) : -ENOMEM;
	}
	return err;
}

/* PyTorch's DataLoader waits for its workers in queues, pipes or threads, as configured: the stack identifies it. */
static bool is_loader(const struct explainer_sources *s, u32 stack)
{
	static const char loader[] = "torch/utils/data/dataloader.py";
	const struct stack_frame *f;

	for (u32 at = stack; (f = stacks__frame(s->stacks, at)) != NULL; at = f->caller) {
		size_t len = strlen(f->file);

		if (len >= sizeof(loader) - 1 && !strcmp(f->file + len - (sizeof(loader) - 1), loader))
			return true;
	}
	return false;
}

u32 explainer_sources__function(const struct explainer_sources *s, u32 stack, u32 *kind)
{
	u32 top = stacks__top_user(s->stacks, stack);
	const struct stack_frame *f = stacks__frame(s->stacks, top);
	char name[STACK_LABEL];

	*kind = 0;
	if (!f)
		return 0;
	*kind = (f->kind == FRAME_PYTHON ? EXPLAINER_PYTHON : 0) | (is_loader(s, stack) ? EXPLAINER_LOADER : 0);
	return texts__number(&s->gaps->texts, stacks__function(s->stacks, top, name, sizeof(name)));
}

static int on_samples(const struct rows *rows, void *arg)
{
	FIELDS_OF(rows__event(rows), stack, period);
	struct common_fields f = common_fields__of(rows__event(rows));
	const struct explainer_sources *s = arg;
	struct explainer_thread *t;
	int err = 0;

	ROWS_WHILE(!err, v, rows) {
		struct listed_span span = { .to = (u64)view__s64(&v, f.time) };
		u64 ns = (u64)view__s64(&v, period);

		t = thread_of(s, &v, &f);
		if (!t)
			continue;
		span.from = span.to > ns ? span.to - ns : 0;
		span.detail = explainer_sources__function(s, (u32)view__s64(&v, stack), &span.kind);
		err = span_list__add(&t->lists[EXPLAINER_SAMPLES], &span);
	}
	return err;
}

int explainer_sources__read(struct explainer_sources *s)
{
	struct query all = *s->args;
	int err;

	all.tids.n = 0;
	for (u32 i = 0; i < s->threads.n; i++)
		for (u32 k = 0; k < EXPLAINER_SOURCES; k++)
			((struct explainer_thread *)map__value(&s->threads, i))->lists[k].n = 0;
	err = query__read_kind(&all, "syscall", on_calls, s);
	if (!err)
		err = query__read_kind(&all, "sample_cpu", on_samples, s);
	for (u32 i = 0; i < s->threads.n; i++)
		for (u32 k = 0; k < EXPLAINER_SOURCES; k++)
			span_list__sort(&((struct explainer_thread *)map__value(&s->threads, i))->lists[k]);
	return err;
}
