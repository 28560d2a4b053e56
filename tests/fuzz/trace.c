// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads any bytes as a trace: opens, reads, filters and verifies it. As checksums and zstd
 * would reject nearly every change, the same bytes are also read with correct checksums,
 * and as the content of one kind in a chunk. A file that opens is exported to every format.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "../unit/trace_support.h"
#include "fuzz.h"
#include "export/export.h"
#include "trace/format.h"

static int touch_rows(const struct rows *r, void *arg)
{
	const struct schema_event *e = rows__event(r);
	u64 *sum = arg;
	u32 i, j, len, k;

	for (i = 0; i < rows__count(r); i += 1 + i / 64)
		for (j = 0; j < e->n; j++) {
			const char *text = rows__text(r, &e->fields[j], i, &len);

			for (k = 0; k < len; k++)
				*sum += text[k];
			*sum += rows__u64(r, &e->fields[j], i);
			*sum += rows__double(r, &e->fields[j], i) > 1;
			schema_field__value_name(&e->fields[j], *sum);
		}
	return 0;
}

static void export_to(const struct exporter *x, void *arg)
{
	struct export e = *(struct export *)arg;
	const struct kind_summary *kinds;
	struct trace_filter filter = { 0 };
	const struct schema_event *one[2] = { 0 };
	u32 n;

	kinds = trace__kinds(e.trace, &n);
	if (x->one_kind && !n)
		return;
	if (x->one_kind) {
		e.event = one[0] = kinds[0].event;
		filter.kinds = one;
	}
	e.choice = x->check ? "1" : NULL;
	if (x->check && x->check(&e))
		return;
	e.path = x->needs_file ? ":memory:" : "x.zst";
	e.out = fopen("/dev/null", "w");
	if (!e.out)
		return;
	e.fd = fileno(e.out);
	if (export__run(&e, x, &filter) == -EINVAL)
		abort();
	fclose(e.out);
}

static void export_all(struct trace *t)
{
	struct trace_facts facts = { 0 };
	struct export e = { .trace = t, .facts = &facts };
	struct names *names = NULL;
	struct stacks *stacks = NULL;

	if (!trace_facts__load(&facts, t, "fuzz", 0, 0) && !names__create(&names, trace__schema(t)) &&
	    !names__load(names, t) && !stacks__load(&stacks, t)) {
		e.names = names;
		e.stacks = stacks;
		exporter__each(export_to, &e);
	}
	stacks__free(stacks);
	names__free(names);
	trace_facts__free(&facts);
}

static void read_trace(const u8 *data, size_t size)
{
	struct trace_filter some = { .from = 1, .to = ~0ULL / 2, .pids = { (const u32[]){ 1 }, 1 } },
			    late = { .from = 1500000, .to = 1600000 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64], err[256];
	struct trace *t;
	u64 sum = 0, faults;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!trace__open(&t, path, err, sizeof(err))) {
		trace__read(t, NULL, touch_rows, &sum);
		trace__read(t, &some, touch_rows, &sum);
		trace__read(t, &late, touch_rows, &sum);
		trace__verify(t, &faults, err, sizeof(err));
		sum += strlen(trace__string(t, 1));
		export_all(t);
		trace__close(t);
	}
	close(fd);
}

static void mend_chunk(u8 *frame, size_t left, u32 payload)
{
	u32 n = get32(frame + FRAME_HEADER + CHUNK_KINDS), i;
	u64 at = (u64)FRAME_HEADER + payload;
	u8 *entry;

	if (payload < CHUNK_ENTRIES + 8 || n != (payload - CHUNK_ENTRIES - 8) / KIND_ENTRY)
		return;
	for (i = 0; i < n; i++) {
		entry = frame + FRAME_HEADER + CHUNK_ENTRIES + i * KIND_ENTRY;
		if (get32(entry + KIND_COMPRESSED) > left - at)
			break;
		put64(entry + KIND_HASH, XXH64(frame + at, get32(entry + KIND_COMPRESSED), 0));
		at += get32(entry + KIND_COMPRESSED);
	}
	put64(frame + FRAME_HEADER + payload - 8, XXH64(frame + FRAME_HEADER, payload - 8, 0));
}

/* Corrects every checksum whose frame can be found. */
static void mend(u8 *data, size_t size)
{
	u8 *payload = data + FRAME_HEADER;
	size_t i;

	if (size < FRAME_HEADER + FILE_PAYLOAD)
		return;
	if (get32(payload + FILE_HEAD_SIZE) <= size - FRAME_HEADER - FILE_PAYLOAD)
		put64(payload + FILE_HEAD_HASH, XXH64(payload + FILE_PAYLOAD, get32(payload + FILE_HEAD_SIZE), 0));
	put64(payload + FILE_HASH, XXH64(payload, FILE_HASH, 0));
	for (i = FRAME_HEADER + FILE_PAYLOAD; i + 48 < size; i++) {
		u32 length = get32(data + i + 4), tag = get32(data + i + 8);

		if (get32(data + i) != FRAME_MAGIC || length > size - i - FRAME_HEADER)
			continue;
		if (tag == CHUNK_TAG)
			mend_chunk(data + i, size - i, length);
		if (tag == INDEX_TAG && length >= INDEX_FOOTER)
			put64(data + i + FRAME_HEADER + length - INDEX_FOOTER,
			      XXH64(data + i + FRAME_HEADER, length - INDEX_FOOTER, 0));
	}
}

/* A valid head, followed by a chunk with one kind, whose id, number of rows and content are the input. */
static void read_content(const u8 *data, size_t size)
{
	static const u16 ids[] = { ID_every, ID_note, ID_rare, ID_meta_string };
	static size_t len;
	static u8 *head;
	size_t bound = ZSTD_compressBound(size), frame;
	u8 *file, *chunk, *payload, *entry;

	if (!head)
		head = support_write(0, 0, false, &len);
	file = malloc(len + FRAME_HEADER + CHUNK_ENTRIES + KIND_ENTRY + 8 + bound);
	if (!file || !head || size < 3)
		goto out;
	memcpy(file, head, len);
	chunk = file + len;
	payload = chunk + FRAME_HEADER;
	entry = payload + CHUNK_ENTRIES;
	memset(chunk, 0, FRAME_HEADER + CHUNK_ENTRIES + KIND_ENTRY + 8);
	frame = ZSTD_compress(entry + KIND_ENTRY + 8, bound, data + 3, size - 3, -5);
	put32(chunk, FRAME_MAGIC);
	put32(chunk + 4, CHUNK_ENTRIES + KIND_ENTRY + 8);
	put32(payload, CHUNK_TAG);
	put32(payload + CHUNK_KINDS, 1);
	put64(payload + CHUNK_LAST, ~0ULL);
	put64(payload + CHUNK_BODY, frame);
	put16(entry + KIND_ID, ids[data[0] % 4]);
	put32(entry + KIND_ROWS, get16(data + 1) + 1);
	put32(entry + KIND_CONTENT, size - 3);
	put32(entry + KIND_COMPRESSED, frame);
	put64(entry + KIND_LAST, ~0ULL);
	mend_chunk(chunk, FRAME_HEADER + CHUNK_ENTRIES + KIND_ENTRY + 8 + frame, CHUNK_ENTRIES + KIND_ENTRY + 8);
	read_trace(file, len + FRAME_HEADER + CHUNK_ENTRIES + KIND_ENTRY + 8 + frame);
out:
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 *copy;

	read_trace(data, size);
	copy = malloc(size ? size : 1);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	mend(copy, size);
	read_trace(copy, size);
	free(copy);
	read_content(data, size);
	return 0;
}
