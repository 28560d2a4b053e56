// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Table NVTX_EVENTS: ranges and marks of NVTX, each domain once; and what Nsight shows as ranges of a domain, too: the
 * GIL ("GIL Trace"), NCCL's calls, PyTorch's operators.
 */
#include "export/nsight.h"

#include <errno.h>

#include "core/shim_nvtx.h"
#include "model/nvtx.h"

enum range_type { CATEGORY = 33, MARK = 34, PUSHED = 59, STARTED = 60, DOMAIN = 75 };

/* Domains that no program states. Those of NVTX have hashes as their ids. */
enum own_domain { DEFAULT_DOMAIN, GIL_DOMAIN, NCCL_DOMAIN, TORCH_DOMAIN };

static const struct nsight_table ranges = {
	"NVTX_EVENTS",
	"start! end eventType! rangeId category color text:t globalTid endGlobalTid textId domainId uint64Value int64Value "
	"doubleValue:r uint32Value int32Value floatValue:r jsonTextId jsonText:t binaryData:t eventId:p",
	"start,end,eventType,category,color,text,globalTid,endGlobalTid,domainId,uint64Value,int64Value,doubleValue,"
	"uint32Value,int32Value,floatValue",
};

struct range {
	enum range_type type;
	u64 end; /* 0: none */
	u64 domain; /* of a program's NVTX, or enum own_domain */
	const char *domain_name, *text;
	s64 category, color;
	s64 end_thread; /* 0: the same */
	s64 payload_kind, payload;
};

/* Returns the value of the column for a kind of payload. */
static struct nsight_value payload(const struct range *r, enum nvtx_payload_kind kind)
{
	bool is_double;
	double d;
	s64 n;

	if (r->payload_kind != kind || !nvtx__number(kind, (u64)r->payload, &is_double, &d, &n))
		return N_NONE;
	return is_double ? N_REAL(d) : N_NUMBER(n);
}

static int put_row(struct nsight *n, const struct nsight_event *e, const struct range *r, u32 domain)
{
	return NSIGHT_PUT(n, &ranges, N_TIME(e->start), r->end ? N_TIME(r->end) : N_NONE, N_NUMBER(r->type),
			  N_KNOWN(r->category), N_KNOWN(r->color), N_TEXT(r->text), N_THREAD(n, e->pid, e->tid),
			  N_KNOWN(r->end_thread), N_NUMBER(domain), payload(r, NVTX_UINT64), payload(r, NVTX_INT64),
			  payload(r, NVTX_DOUBLE), payload(r, NVTX_UINT32), payload(r, NVTX_INT32),
			  payload(r, NVTX_FLOAT));
}

/* Each domain of each process has a number of its own, because Nsight's reports group domains by it alone. */
static int put(struct nsight *n, const struct nsight_event *e, const struct range *r)
{
	struct nsight_domain key = { .domain = r->domain, .pid = e->pid };
	struct range domain = { .type = DOMAIN, .text = r->domain_name };
	u32 *number = r->domain ? map__get(&n->domains, &key) : NULL;
	int err = 0;

	if (r->domain && !number)
		return -ENOMEM;
	if (number && !*number) {
		*number = n->domains.n;
		err = put_row(n, e, &domain, *number);
	}
	return err ? err : put_row(n, e, r, number ? *number : 0);
}

/* name domain category payload color payload_kind kind end_ns_tid; marks have the first six, categories three */
static struct range range_of(const struct nsight *n, const struct nsight_event *e, enum range_type type)
{
	const struct names *names = n->s->e->names;

	return (struct range){
		.type = type,
		.domain = (u64)e->value[1],
		.domain_name = names__text(names, e->pid, (u64)e->value[1]),
		.text = names__text(names, e->pid, (u64)e->value[0]),
		.category = e->value[2],
		.payload = e->value[3],
		.color = e->value[4],
		.payload_kind = e->value[5],
	};
}

int nsight__put_range(struct nsight *n, const struct nsight_event *e)
{
	bool is_started = e->value[6] == NVTX_STARTED;
	struct range r = range_of(n, e, is_started ? STARTED : PUSHED);

	if (e->is_open)
		return put(n, e, &r);
	r.end = e->time;
	if (is_started)
		r.end_thread = nsight__thread(n, e->pid, names__thread_of(n->s->e->names, e->pid, (u32)e->value[7]));
	return put(n, e, &r);
}

int nsight__put_mark(struct nsight *n, const struct nsight_event *e)
{
	struct range r = range_of(n, e, MARK);

	return put(n, e, &r);
}

int nsight__put_category(struct nsight *n, const struct nsight_event *e)
{
	struct range r = range_of(n, e, CATEGORY);

	return put(n, e, &r);
}

static int put_own(struct nsight *n, const struct nsight_event *e, enum own_domain domain, const char *domain_name,
		   const char *text)
{
	struct range r = {
		.type = PUSHED,
		.end = e->is_open ? 0 : e->time,
		.domain = domain,
		.domain_name = domain_name,
		.text = text,
	};

	return put(n, e, &r);
}

int nsight__put_torch(struct nsight *n, const struct nsight_event *e)
{
	char buf[256];
	const char *name = names__torch(n->s->e->names, e->view, buf, sizeof(buf));

	return put_own(n, e, TORCH_DOMAIN, "PyTorch", name ? name : "[unknown]");
}

/* If the program's NVTX was recorded, NCCL's own ranges are there. */
int nsight__put_nccl(struct nsight *n, const struct nsight_event *e)
{
	if (!e->function || trace__has(n->s->e->trace, "nvtx_range"))
		return 0;
	return put_own(n, e, NCCL_DOMAIN, "NCCL", e->function);
}

int nsight__put_gil_wait(struct nsight *n, const struct nsight_event *e)
{
	return put_own(n, e, GIL_DOMAIN, "GIL Trace", "Waiting for GIL");
}

int nsight__put_gil_hold(struct nsight *n, const struct nsight_event *e)
{
	return put_own(n, e, GIL_DOMAIN, "GIL Trace", "Holding GIL");
}
