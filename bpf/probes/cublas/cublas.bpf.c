// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Records calls of cuBLAS. One program serves all functions with sizes: cublas_forms.bpf.h has a table of their
 * parameters. cublas_api.h and cublasLt.h have the declarations.
 */
#include "core/args.h"
#include "cublas.h"
#include "cublas_forms.bpf.h"
#include "probes/cudnn/cudnn.h"

/* cuDNN uses cuBLASLt for some of its operations. */
#define WITHIN_CUBLAS (FAMILY_BIT(EVENT_FAMILY(ID_cublas_call)) | FAMILY_BIT(EVENT_FAMILY(ID_cudnn_call)))

/* By the letter in a function's name: S, D, C, Z, H, none, T, F */
static const volatile u8 letter_types[WIDE] = { CUBLAS_R_32F,  CUBLAS_R_64F, CUBLAS_C_32F,
						CUBLAS_C_64F,  CUBLAS_R_16F, 0,
						CUBLAS_R_16BF, CUBLAS_R_16F };
static const volatile u8 letter_compute[WIDE] = { CUBLAS_32F, CUBLAS_64F, CUBLAS_32F, CUBLAS_64F,
						  CUBLAS_16F, 0,	  CUBLAS_32F, CUBLAS_32F };

#define FORMS_MAX 32 /* a power of two, so that a mask bounds the number of a form */
static const volatile struct form forms[FORMS_MAX] = { FORMS(FORM_ENTRY) };

/*
 * The start of a cublasLtMatrixLayoutOpaque_t and of a cublasLtMatmulDescOpaque_t. cublasLt.h has only their sizes;
 * the members are those of CUDA 11.11 to 13.1, whose libraries tests/probes/cublas/test_real.py compares.
 */
struct lt_layout {
	u32 type, order;
	u64 rows, columns, leading;
	u32 batch, mode;
};

struct lt_desc {
	u64 version;
	u32 compute, scale, pointer_mode, transa, transb;
};

static __always_inline struct lt_layout lt_layout__read(u64 where)
{
	struct lt_layout l = {};

	bpf_probe_read_user(&l, sizeof(l), (const void *)where);
	return l;
}

/*
 * cublasLtMatmul(handle, desc, alpha, A, layout of A, B, layout of B, beta, C, layout of C, D, layout of D, ..). If the
 * sizes of the matrices do not agree, a descriptor is not as assumed: then no size is recorded.
 */
__weak __noinline int cublas__read_lt(struct cublas_call *e, u64 desc_at, u64 a_at, u64 b_at, u64 d_at)
{
	struct lt_desc desc = {};
	struct lt_layout l = lt_layout__read(d_at);
	u64 m = l.rows, n = l.columns, k;

	if (!e)
		return 0;
	bpf_probe_read_user(&desc, sizeof(desc), (const void *)desc_at);
	e->compute = desc.compute;
	e->transa = desc.transa;
	e->transb = desc.transb;
	e->c_type = l.type;
	e->batch = l.batch;
	l = lt_layout__read(a_at);
	e->a_type = l.type;
	k = desc.transa ? l.rows : l.columns;
	if ((desc.transa ? l.columns : l.rows) != m)
		return 0;
	l = lt_layout__read(b_at);
	e->b_type = l.type;
	if ((desc.transb ? l.columns : l.rows) != k || (desc.transb ? l.rows : l.columns) != n)
		return 0;
	e->m = m;
	e->n = n;
	e->k = k;
	return 0;
}

/* What the numbers of a form lead to: the arguments in registers, then constants. */
struct slots {
	u64 v[SLOTS];
	u64 sp;
};

/*
 * An argument, or a constant of the form. Of functions that do not end in _64, sizes have 32 bits: the upper half of a
 * register, or of the number on the stack, is undefined. A global function, which the verifier checks once.
 */
__weak __noinline s64 cublas__argument(const struct slots *s, u32 slot, bool wide)
{
	u64 v;

	if (!s)
		return 0;
	v = s->v[slot & (SLOTS - 1)];
	if (slot >= ARGS_IN_REGISTERS && slot < ARGS_END)
		bpf_probe_read_user(&v, sizeof(v), (const void *)(s->sp + 8 * (slot - ARGS_IN_REGISTERS + 1)));
	return wide ? (s64)v : (s32)v;
}

struct mode_key {
	u64 handle;
	u64 pid;
};

/* The modes of handles: PyTorch sets one before each product. A handle that is evicted has no known mode. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct mode_key);
	__type(value, u32);
} cublas_modes SEC(".maps");

static __always_inline struct mode_key mode_key__of(u64 handle)
{
	return (struct mode_key){ handle, bpf_get_current_pid_tgid() >> 32 };
}

static __always_inline u32 mode__of(u64 handle)
{
	struct mode_key key = mode_key__of(handle);
	u32 *mode = bpf_map_lookup_elem(&cublas_modes, &key);

	return mode ? *mode : CUBLAS_MATH_UNKNOWN;
}

/* cublasSetMathMode(handle, mode) */
ENTRY(cublas_set_mode, "libcublas:cublasSetMathMode")
{
	struct mode_key key = mode_key__of(ARG1(ctx));
	u32 mode = ARG2(ctx) & 15;

	if (probe__is_selected(bpf_get_attach_cookie(ctx)))
		bpf_map_update_elem(&cublas_modes, &key, &mode, BPF_ANY);
	return 0;
}

/* cublasCreate(handle *): a new handle has the default mode, unless the environment of the process has another. */
static __always_inline void cublas_return(struct cublas_call *e)
{
	struct mode_key key;
	u32 mode = CUBLAS_MATH_DEFAULT;

	if (e->operation != CUBLAS_CREATE || e->call.ret)
		return;
	e->handle = args__out(&e->call, SPAN_OUT(e));
	key = mode_key__of(e->handle);
	bpf_map_update_elem(&cublas_modes, &key, &mode, BPF_ANY);
}

SPAN__PROGRAM(cublas_call, "span/libcublas:" FORMS(FORM_FUNCTIONS), cublas_call, cublas_return, WITHIN_CUBLAS,
	      SPAN__NOTHING)
{
	struct args a = args__read(ctx);
	const volatile struct form *f = &forms[group >> FORM_SHIFT & (FORMS_MAX - 1)];
	u32 letter = group & (WIDE - 1);
	bool wide = group & WIDE;
	struct slots s = { .sp = a.sp,
			   .v = {
				   a.a1,
				   a.a2,
				   a.a3,
				   a.a4,
				   a.a5,
				   a.a6,
				   [ONE & (SLOTS - 1)] = 1,
				   [LETTER_TYPE & (SLOTS - 1)] = letter_types[letter],
				   [LETTER_COMPUTE & (SLOTS - 1)] = letter_compute[letter],
			   } };

	SPAN_OUT(e) = a.a1;
	e->handle = f->operation == CUBLAS_CREATE ? 0 : a.a1;
	e->math_mode = mode__of(a.a1);
	e->operation = f->operation;
	e->m = cublas__argument(&s, f->m, wide);
	e->n = cublas__argument(&s, f->n, wide);
	e->k = cublas__argument(&s, f->k, wide);
	e->batch = cublas__argument(&s, f->batch, wide);
	e->transa = cublas__argument(&s, f->transa, false);
	e->transb = cublas__argument(&s, f->transb, false);
	e->side = cublas__argument(&s, f->side, false);
	e->a_type = cublas__argument(&s, f->a_type, false);
	e->b_type = cublas__argument(&s, f->b_type, false);
	e->c_type = cublas__argument(&s, f->c_type, false);
	e->compute = cublas__argument(&s, f->compute, false);
	if (e->operation == CUBLAS_LT_MATMUL)
		cublas__read_lt(e, a.a2, a.a5, cublas__argument(&s, 6, true), cublas__argument(&s, 11, true));
}
