// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The arguments of rows of the host in Kineto's form: of operators and ranges, with the shapes of tensors (events
 * torch_shape), and of CUDA's calls; and the names and orders of processes and threads.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export/chrome.h"
#include "model/view.h"
#include "output/json_writer.h"
#include "probes/torch/torch.h"
#include "util/array.h"
#include "util/path.h"

/* Calls with shapes that have not ended yet. A hostile trace may have more: then all are forgotten. */
#define SHAPED_CALLS_MAX (1u << 14)

/* Arguments, and tensors of all arguments, of one call. Further ones are not written. */
#define ARGUMENTS_MAX 32
#define TENSORS_MAX   64
#define SIZES_MAX     6

struct shaped_key {
	u64 start;
	u64 tid;
};

struct shaped_tensor {
	u8 argument, element, dimensions, type;
	u64 sizes[SIZES_MAX], strides[SIZES_MAX];
};

enum shape_part { SHAPE_TYPES, SHAPE_SIZES, SHAPE_STRIDES };

struct shaped_call {
	u32 n;
	struct shaped_tensor tensors[TENSORS_MAX]; /* by argument and element */
};

void chrome_kineto__init(struct chrome *c)
{
	map__init(&c->shapes, sizeof(struct shaped_key), sizeof(struct shaped_call));
}

void chrome_kineto__free(struct chrome *c)
{
	map__free(&c->shapes);
	kineto_ids__free(&c->ids);
}

static bool precedes(const struct shaped_tensor *a, const struct shaped_tensor *b)
{
	return a->argument < b->argument || (a->argument == b->argument && a->element < b->element);
}

int chrome_kineto__add_shape(struct export *e, const struct view *v)
{
	static const char *const sizes[] = { "size_0", "size_1", "size_2", "size_3", "size_4", "size_5" };
	static const char *const strides[] = { "stride_0", "stride_1", "stride_2", "stride_3", "stride_4", "stride_5" };
	struct chrome *c = e->data;
	struct shaped_key key = { (u64)view__get(v, "call_start"), (u64)view__get(v, "tid") };
	struct shaped_tensor t = {
		.argument = (u8)view__get(v, "argument"),
		.element = (u8)view__get(v, "element"),
		.dimensions = (u8)view__get(v, "dimensions"),
		.type = (u8)view__get(v, "type"),
	};
	struct shaped_call *call;
	u32 i;

	/* results are no inputs */
	if (t.argument >= ARGUMENTS_MAX)
		return 0;
	if (c->shapes.n == SHAPED_CALLS_MAX)
		map__free(&c->shapes);
	call = map__get(&c->shapes, &key);
	if (!call)
		return -ENOMEM;
	if (call->n == TENSORS_MAX)
		return 0;
	for (i = 0; i < t.dimensions && i < SIZES_MAX; i++) {
		t.sizes[i] = (u64)view__get(v, sizes[i]);
		t.strides[i] = (u64)view__get(v, strides[i]);
	}
	for (i = call->n++; i && precedes(&t, &call->tensors[i - 1]); i--)
		call->tensors[i] = call->tensors[i - 1];
	call->tensors[i] = t;
	return 0;
}

/* Returns C++'s name of the type, as torch.profiler has it. */
static const char *type_name(u8 type)
{
	static const char *const names[] = {
		[TORCH_UINT8] = "unsigned char",
		[TORCH_INT8] = "signed char",
		[TORCH_INT16] = "short int",
		[TORCH_INT32] = "int",
		[TORCH_INT64] = "long int",
		[TORCH_FLOAT16] = "c10::Half",
		[TORCH_FLOAT32] = "float",
		[TORCH_FLOAT64] = "double",
		[TORCH_COMPLEX32] = "c10::complex<c10::Half>",
		[TORCH_COMPLEX64] = "c10::complex<float>",
		[TORCH_COMPLEX128] = "c10::complex<double>",
		[TORCH_BOOL] = "bool",
		[TORCH_BFLOAT16] = "c10::BFloat16",
	};

	return type < ARRAY_LEN(names) && names[type] ? names[type] : "";
}

static void put_numbers(FILE *out, const struct shaped_tensor *t, enum shape_part part)
{
	const u64 *numbers = part == SHAPE_STRIDES ? t->strides : t->sizes;

	putc('[', out);
	for (u32 i = 0; i < t->dimensions && i < SIZES_MAX; i++)
		fprintf(out, i ? ",%llu" : "%llu", numbers[i]);
	putc(']', out);
}

/* An argument with several tensors is a list of tensors; one without is no tensor, or was not recorded. */
static void put_argument(FILE *out, const struct shaped_tensor *t, u32 n, enum shape_part part)
{
	if (part == SHAPE_TYPES) {
		fprintf(out, "\"%s\"", n > 1 ? "TensorList" : n ? type_name(t->type) : "");
	} else if (n == 1) {
		put_numbers(out, t, part);
	} else {
		putc('[', out);
		for (u32 i = 0; i < n; i++) {
			fputs(i ? "," : "", out);
			put_numbers(out, &t[i], part);
		}
		putc(']', out);
	}
}

static void put_list(FILE *out, const char *name, const struct shaped_call *call, enum shape_part part)
{
	u32 last = call->tensors[call->n - 1].argument;

	fprintf(out, ",\"%s\":[", name);
	for (u32 argument = 0, at = 0, n; argument <= last; argument++, at += n) {
		for (n = 0; at + n < call->n && call->tensors[at + n].argument == argument; n++)
			;
		fputs(argument ? "," : "", out);
		put_argument(out, &call->tensors[at], n, part);
	}
	putc(']', out);
}

static void put_shapes(struct export *e, const struct kineto_row *row)
{
	struct chrome *c = e->data;
	struct shaped_key key = { row->start, row->tid };
	const struct shaped_call *call = map__find(&c->shapes, &key);

	if (!call)
		return;
	put_list(e->out, "Input type", call, SHAPE_TYPES);
	put_list(e->out, "Input Dims", call, SHAPE_SIZES);
	/* traces of older versions have none */
	if (schema_event__field(schema__event(trace__schema(e->trace), "torch_shape"), "stride_0"))
		put_list(e->out, "Input Strides", call, SHAPE_STRIDES);
	map__remove(&c->shapes, &key);
}

u64 chrome_kineto__next_index(struct chrome *c)
{
	return c->ids.n_ops + c->others++;
}

void chrome_kineto__put_ids(struct export *e, u32 number)
{
	u64 index = number ? number - 1 : chrome_kineto__next_index(e->data);

	fprintf(e->out, "\"External id\":%llu,\"Record function id\":0,\"Ev Idx\":%llu", index + 1, index);
}

void chrome_kineto__put_args(struct export *e, const struct view *v, const struct kineto_row *row)
{
	const struct chrome *c = e->data;
	u32 around;

	fputs("\"args\":{", e->out);
	if (row->is_cuda) {
		around = kineto_ids__around(&c->ids, row->tid, row->start);
		if (around)
			fprintf(e->out, "\"External id\":%u", around);
		if (row->launch)
			fprintf(e->out, "%s\"correlation\":%u", around ? "," : "", row->launch->correlation);
	} else {
		chrome_kineto__put_ids(e, kineto_ids__number(&c->ids, row->tid, row->start, row->end));
		chrome_torch__put_args(e, v);
		put_shapes(e, row);
	}
	fputs("}}", e->out);
}

/*
 * CUPTI names the outermost call, also if it is of a libcudart that is linked into a library, of which uprobes see only
 * the inner call of libcuda. Programs that read the file look for the names without "per-thread default stream".
 */
const char *chrome_kineto__title(const struct kineto_row *row, const char *title, char *buf, size_t size)
{
	const char *name = row->launch && row->launch->function ? row->launch->function : title;
	size_t len = strlen(name);

	len -= path__ends_with(name, "_ptsz") || path__ends_with(name, "_ptds") ? 5 : 0;
	snprintf(buf, size, "%.*s", (int)len, name);
	return buf;
}

static void put_index(struct export *e, const char *what, u32 pid, u32 tid, u64 index)
{
	chrome__next_event(e);
	fprintf(e->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"sort_index\":%llu}}", what,
		pid, tid, index);
}

void chrome_kineto__put_process(struct export *e, u32 pid)
{
	chrome__next_event(e);
	fprintf(e->out, "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%u,\"tid\":0,\"args\":{\"labels\":\"CPU\"}}",
		chrome__number(pid));
	put_index(e, "process_sort_index", chrome__number(pid), 0, chrome__number(pid));
}

void chrome_kineto__put_thread(struct export *e, u32 pid, u32 tid)
{
	put_index(e, "thread_sort_index", chrome__number(pid), chrome__number(tid), chrome__number(tid));
}

void chrome_kineto__put_stream(struct export *e, u32 gpu, u32 tid)
{
	put_index(e, "process_sort_index", gpu, 0, GPUS_FIRST_INDEX + gpu);
	put_index(e, "thread_sort_index", gpu, tid, tid);
}
