// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The time line as the page's script reads it. */
#include <errno.h>
#include <stdlib.h>

#include "export/html_timeline.h"
#include "output/html.h"

/* A line with the rank and the sum of its process, by which threads are ordered */
struct entry {
	const struct timeline_key *key;
	const struct timeline_line *line;
	u32 rank;
	u64 process_ns;
};

static int compare(u64 a, u64 b)
{
	return (a > b) - (a < b);
}

static int by_busy(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = compare(x->rank, y->rank);

	if (!order)
		order = compare(y->line->busy_ns, x->line->busy_ns);
	return order ? order : compare(x->key->tid, y->key->tid);
}

static int by_process(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = compare(x->rank, y->rank);

	if (!order)
		order = compare(y->process_ns, x->process_ns);
	if (!order)
		order = compare(x->key->pid, y->key->pid);
	/* its GPUs first */
	if (!order)
		order = compare(y->key->is_gpu, x->key->is_gpu);
	return order ? order : by_busy(a, b);
}

static u32 rank_of(const struct html_timeline *t, const struct query *q, u32 pid)
{
	u32 i = 0;

	while (i < t->n_first && t->first[i] != names__number(q->names, pid))
		i++;
	return i;
}

static void add_sums(struct entry *list, u32 n)
{
	struct map sums; /* u32 pid -> u64 ns */

	map__init(&sums, sizeof(u32), sizeof(u64));
	for (u32 i = 0; i < n; i++) {
		u64 *sum = map__get(&sums, &list[i].key->pid);

		if (sum)
			*sum += list[i].line->busy_ns;
	}
	for (u32 i = 0; i < n; i++) {
		const u64 *sum = map__find(&sums, &list[i].key->pid);

		list[i].process_ns = sum ? *sum : 0;
	}
	map__free(&sums);
}

/* The busiest threads, process by process. *n: how many; NULL: no memory. */
static struct entry *order(const struct html_timeline *t, const struct query *q, u32 *n)
{
	struct entry *list = calloc(t->lines.n + 1, sizeof(*list));

	*n = 0;
	if (!list)
		return NULL;
	for (u32 i = 0; i < t->lines.n; i++) {
		const struct timeline_key *key = map__key(&t->lines, i);

		list[i] = (struct entry){ key, map__value(&t->lines, i), rank_of(t, q, key->pid), 0 };
	}
	qsort(list, t->lines.n, sizeof(*list), by_busy);
	*n = t->lines.n < timeline_threads_max ? t->lines.n : timeline_threads_max;
	add_sums(list, *n);
	qsort(list, *n, sizeof(*list), by_process);
	return list;
}

/* Numbers of names in the page, from 1 in order of their first use */
struct numbers {
	struct map by_what; /* u32 -> u32 number */
	struct page_stacks stacks;
	FILE *out;
};

static u32 number_of(struct numbers *n, u32 what)
{
	u32 *known = map__get(&n->by_what, &what);

	if (known && !*known)
		*known = n->by_what.n;
	return known ? *known : 0;
}

/* The share of a run's only kind in a cell; -1: the run has several, or is not beside the cell. */
static float share_of(const struct timeline_run *run, const struct timeline_run *cell)
{
	if (run->what == WHAT_MIXED || (run->cell + run->n != cell->cell && cell->cell + 1 != run->cell))
		return -1;
	for (u32 i = 0; i < FINDING_COLOURS; i++)
		if (run->shares[i] > 0)
			return cell->shares[i];
	return -1;
}

/*
 * Where one call or wait follows another within a cell, the cell is the one's that has more of it: its length is what
 * times are rounded to. NULL: the cell has something else, too.
 */
static const struct timeline_run *neighbour_of(const struct timeline_line *l, u32 i)
{
	const struct timeline_run *cell = &l->runs[i], *best = NULL;
	float sum = 0, found = 0, most = 0;

	if (cell->n != 1)
		return NULL;
	for (u32 k = 0; k < FINDING_COLOURS; k++)
		sum += cell->shares[k];
	for (u32 k = i ? i - 1 : i + 1; k <= i + 1 && k < l->n; k += 2) {
		float share = share_of(&l->runs[k], cell);

		found += share > 0 ? share : 0;
		if (share > most) {
			most = share;
			best = &l->runs[k];
		}
	}
	return found > sum - 0.02f ? best : NULL;
}

static s64 value_of(struct numbers *n, const struct timeline_line *l, u32 i)
{
	const struct timeline_run *run = neighbour_of(l, i);
	s64 shares = 0;
	float sum = 0;

	run = run ? run : &l->runs[i];
	for (u32 k = 0; k < FINDING_COLOURS; k++)
		sum += run->shares[k];
	/* a call's name is worth more than the rest of the cell, in which the thread's state is not known */
	if (run->what != WHAT_MIXED && sum > 0.5f)
		return number_of(n, run->what);
	for (u32 k = 0; k < FINDING_COLOURS; k++)
		shares |= (s64)(run->shares[k] * 7 + 0.5f > 7 ? 7 : run->shares[k] * 7 + 0.5f) << 3 * k;
	return -shares;
}

/* Runs that look the same are one, and those that show nothing none. */
static void write_runs(struct numbers *n, const struct timeline_line *l)
{
	u32 until = 0, first = 0, end = 0;
	const char *comma = "";
	s64 value = 0, next;

	putc('[', n->out);
	for (u32 i = 0; i <= l->n; i++) {
		next = i < l->n ? value_of(n, l, i) : 0;
		if (next && next == value && l->runs[i].cell == end) {
			end += l->runs[i].n;
			continue;
		}
		if (value) {
			fprintf(n->out, "%s%u,%u,%lld", comma, first - until, end - first, value);
			comma = ",";
			until = end;
		}
		value = next;
		if (next) {
			first = l->runs[i].cell;
			end = first + l->runs[i].n;
		}
	}
	putc(']', n->out);
}

static void write_thread(struct numbers *n, const struct entry *e, const struct query *q)
{
	const char *thread = names__comm(q->names, e->key->pid, e->key->tid);
	const char *process = NAMES_TITLE(q->names, e->key->pid, 0);
	u32 tid = e->key->tid;
	char gpu[32];

	snprintf(gpu, sizeof(gpu), "GPU %u", tid);
	fprintf(n->out, "[%u,%lld,", names__number(q->names, e->key->pid),
		e->key->is_gpu ? -1 : (s64)names__number(q->names, tid));
	html__put_json(n->out, process ? process : "");
	putc(',', n->out);
	html__put_json(n->out, e->key->is_gpu ? gpu : thread ? thread : "");
	fprintf(n->out, ",%llu,%llu,%llu,", e->line->busy_ns, e->line->known_ns, e->line->width);
	write_runs(n, e->line);
	putc(']', n->out);
}

/* The stack of an interval, and the thread that ended the wait or held what was waited for */
static void write_details(const struct query *q, struct numbers *n, const struct what *what)
{
	char by[96];

	if (!what || (!what->stack && !what->caused_by.tid))
		return;
	fprintf(n->out, ",%u,", page_stacks__number(&n->stacks, what->stack));
	html__put_json(n->out, what->caused_by.tid ? names__label(q->names, by, sizeof(by), what->caused_by.pid,
								  what->caused_by.tid) :
						     "");
	fprintf(n->out, ",%u", page_stacks__number(&n->stacks, what->caused_by_stack));
}

static void write_name(const struct html_timeline *t, const struct query *q, struct numbers *n, u32 number)
{
	const struct what *what = whats__get(&t->whats, number);
	const char *name = NULL;
	u32 colour = COLOUR_RUN;

	if (number == WHAT_GPU_BUSY) {
		name = "busy: a kernel, copy or set ran";
	} else if (number == WHAT_GPU_IDLE) {
		name = "idle: no kernel, copy or set ran";
		colour = COLOUR_IDLE;
	} else if (t->findings && what) {
		name = activity__name(findings__activity(t->findings), what->reason);
		colour = what->colour;
	}
	putc('[', n->out);
	html__put_json(n->out, name ? name : "");
	fprintf(n->out, ",%u", colour);
	write_details(q, n, what);
	putc(']', n->out);
}

static void write_phrases(FILE *out)
{
	fputs("\"phrases\":[", out);
	for (enum finding_colour i = 0; i < FINDING_COLOURS; i++) {
		fputs(i ? "," : "", out);
		html__put_json(out, finding_colour__text(i)->phrase);
	}
	fputs("],", out);
}

static void write_names(const struct html_timeline *t, const struct query *q, struct numbers *n)
{
	fputs("],\"names\":[", n->out);
	for (u32 i = 0; i < n->by_what.n; i++) {
		if (i)
			fputs(i % 16 ? "," : ",\n", n->out);
		write_name(t, q, n, *(const u32 *)map__key(&n->by_what, i));
	}
	fputs("],", n->out);
}

int html_timeline__write(const struct html_timeline *t, const struct query *q, FILE *out)
{
	struct numbers numbers = { .out = out };
	u32 n;
	struct entry *list = order(t, q, &n);

	if (!list)
		return -ENOMEM;
	map__init(&numbers.by_what, sizeof(u32), sizeof(u32));
	page_stacks__init(&numbers.stacks, t->findings ? findings__input(t->findings)->stacks : NULL);
	fprintf(out, "{\"from\":%lld,\"to\":%lld,\"left_out\":%u,", (s64)(t->from - q->start), (s64)(t->to - q->start),
		t->lines.n - n);
	write_phrases(out);
	fputs("\"threads\":[", out);
	for (u32 i = 0; i < n; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_thread(&numbers, &list[i], q);
	}
	write_names(t, q, &numbers);
	page_stacks__write(&numbers.stacks, out);
	putc('}', out);
	page_stacks__free(&numbers.stacks);
	map__free(&numbers.by_what);
	free(list);
	return 0;
}
