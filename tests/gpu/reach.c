// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which of libcuda's exported functions does a program reach that has libcudart linked in? Uprobes on libcuda see the
 * program if, and only if, it comes through these. Without eBPF, ptrace or a debugger: a breakpoint (int3) is put at
 * each of libcuda's exports, in this process; its handler takes it out again and lets the call go on. So each export
 * reports once for each call of the runtime, and nothing has to be stepped over.
 *
 * Written to standard output, a line of JSON for each call of the runtime: {"call": .., "result": .., "reached": [..]};
 * and what cuGetProcAddress, by which libcudart finds the driver, answers: an export, or something else.
 */
#define _GNU_SOURCE
#include "kernels.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORTS_MAX 4096
#define INT3	    0xcc

/* libcudart's, after cuda_runtime_api.h of CUDA 11.8 to 13; what is not in each is weak */
typedef int cudaError_t;
typedef struct {
	unsigned int x, y, z;
} dim3;
cudaError_t cudaFree(void *address);
cudaError_t cudaMalloc(void **address, size_t bytes);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, void *stream);
cudaError_t cudaStreamCreate(void **stream);
cudaError_t cudaStreamSynchronize(void *stream);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaEventCreate(void **event);
cudaError_t cudaEventRecord(void *event, void *stream);
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **parameters, size_t shared,
			     void *stream);
__attribute__((weak)) cudaError_t cudaLibraryLoadData(void **library, const void *code, void *jit, void **jit_values,
						      unsigned int n_jit, void *options, void **values, unsigned int n);
__attribute__((weak)) cudaError_t cudaLibraryGetKernel(void **kernel, void *library, const char *name);

struct export
{
	const char *name;
	uint8_t *at;
	uint8_t was;
	volatile bool reached;
};

static struct export exports[EXPORTS_MAX];
static int n_exports;

static int by_address(const void *a, const void *b)
{
	const struct export *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* How many symbols a library has, by its hash table of GNU's kind. */
static uint32_t count_symbols(const uint32_t *gnu)
{
	uint32_t buckets = gnu[0], offset = gnu[1], last = 0;
	const uint32_t *bucket = gnu + 4 + gnu[2] * 2, *chain = bucket + buckets;

	for (uint32_t i = 0; i < buckets; i++)
		last = bucket[i] > last ? bucket[i] : last;
	if (last < offset)
		return offset;
	while (!(chain[last - offset] & 1))
		last++;
	return last + 1;
}

static void find_exports(const struct link_map *map)
{
	const ElfW(Sym) *symbols = NULL;
	const uint32_t *gnu = NULL;
	const char *strings = NULL;
	uint32_t n;

	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			symbols = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_STRTAB)
			strings = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_GNU_HASH)
			gnu = (const void *)d->d_un.d_ptr;
	}
	if (!symbols || !strings || !gnu)
		return;
	n = count_symbols(gnu);
	for (uint32_t i = 0; i < n && n_exports < EXPORTS_MAX; i++) {
		const ElfW(Sym) *s = &symbols[i];
		const char *name = strings + s->st_name;

		if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || !s->st_shndx || strncmp(name, "cu", 2))
			continue;
		exports[n_exports].name = name;
		exports[n_exports].at = (uint8_t *)map->l_addr + s->st_value;
		exports[n_exports++].was = *((uint8_t *)map->l_addr + s->st_value);
	}
	qsort(exports, n_exports, sizeof(*exports), by_address);
}

/* Aliases lie side by side: all of them report. */
static int first_at(const uint8_t *at)
{
	int low = 0, high = n_exports;

	while (low < high) {
		int middle = (low + high) / 2;

		if (exports[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n_exports && exports[low].at == at ? low : -1;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint8_t *at = (uint8_t *)registers[REG_RIP] - 1;
	int i = first_at(at);

	if (i < 0) {
		static const char text[] = "a trap that is not ours\n";

		if (write(2, text, sizeof(text) - 1) < 0)
			_exit(6);
		_exit(6);
	}
	__atomic_store_n(at, exports[i].was, __ATOMIC_SEQ_CST);
	for (; i < n_exports && exports[i].at == at; i++)
		exports[i].reached = true;
	registers[REG_RIP] = (greg_t)at;
}

static bool make_writable(void)
{
	uintptr_t page = sysconf(_SC_PAGESIZE);

	for (int i = 0; i < n_exports; i++) {
		uintptr_t at = (uintptr_t)exports[i].at & ~(page - 1);

		if (mprotect((void *)at, page, PROT_READ | PROT_WRITE | PROT_EXEC))
			return false;
	}
	return true;
}

static void arm(void)
{
	for (int i = 0; i < n_exports; i++) {
		exports[i].reached = false;
		__atomic_store_n(exports[i].at, INT3, __ATOMIC_SEQ_CST);
	}
}

static void print_result(const char *call, int result)
{
	const char *comma = "";

	for (int i = 0; i < n_exports; i++)
		__atomic_store_n(exports[i].at, exports[i].was, __ATOMIC_SEQ_CST);
	printf("{\"call\": \"%s\", \"result\": %d, \"reached\": [", call, result);
	for (int i = 0; i < n_exports; i++) {
		if (!exports[i].reached)
			continue;
		printf("%s\"%s\"", comma, exports[i].name);
		comma = ", ";
	}
	printf("]}\n");
	fflush(stdout);
}

#define CALL(name, call)                     \
	do {                                 \
		int result_;                 \
		arm();                       \
		result_ = (call);            \
		print_result(name, result_); \
		if (result_)                 \
			return 3;            \
	} while (0)

/* As libcudart asks; `flags` 0: the default stream is the legacy one. */
static void tell_addresses(void *library)
{
	static const char *const names[] = { "cuLaunchKernel",	  "cuLaunchKernelEx", "cuMemcpyHtoDAsync",
					     "cuMemcpyDtoHAsync", "cuMemcpyAsync",    "cuMemsetD8Async",
					     "cuMemAlloc",	  "cuStreamCreate",   "cuStreamSynchronize",
					     "cuCtxSynchronize",  "cuEventRecord",    "cuGraphLaunch" };
	int (*v1)(const char *, void **, int, uint64_t) =
		(int (*)(const char *, void **, int, uint64_t))dlsym(library, "cuGetProcAddress");
	int (*v2)(const char *, void **, int, uint64_t, void *) =
		(int (*)(const char *, void **, int, uint64_t, void *))dlsym(library, "cuGetProcAddress_v2");

	for (size_t i = 0; (v1 || v2) && i < sizeof(names) / sizeof(names[0]); i++) {
		void *found = NULL;
		int r = v2 ? v2(names[i], &found, 12000, 0, NULL) : v1(names[i], &found, 11080, 0), at;

		at = r || !found ? -1 : first_at(found);
		printf("{\"asked\": \"%s\", \"result\": %d, \"is\": \"%s\"}\n", names[i], r,
		       at >= 0 ? exports[at].name :
		       found   ? "no export" :
				 "nothing");
	}
}

static int launch(void *stream)
{
	char text[8192];
	void *library, *kernel;

	if (!cudaLibraryLoadData || !cudaLibraryGetKernel) {
		printf("{\"note\": \"this libcudart can't load kernels as text: none was launched\"}\n");
		return 0;
	}
	snprintf(text, sizeof(text), "%s%s", kernel_targets[0], kernel_text);
	CALL("cudaLibraryLoadData", cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	CALL("cudaLibraryGetKernel", cudaLibraryGetKernel(&kernel, library, EMPTY));
	for (int i = 0; i < 2; i++)
		CALL("cudaLaunchKernel",
		     cudaLaunchKernel(kernel, (dim3){ 2, 1, 1 }, (dim3){ 64, 1, 1 }, NULL, 0, stream));
	CALL("cudaStreamSynchronize", cudaStreamSynchronize(stream));
	return 0;
}

static int use_runtime(void)
{
	static char host[65536];
	void *memory, *stream, *event;

	CALL("the first call", cudaFree(NULL));
	CALL("cudaStreamCreate", cudaStreamCreate(&stream));
	CALL("cudaEventCreate", cudaEventCreate(&event));
	CALL("cudaMalloc", cudaMalloc(&memory, sizeof(host)));
	for (int i = 0; i < 2; i++) {
		CALL("cudaMemcpy HtoD", cudaMemcpy(memory, host, sizeof(host), 1));
		CALL("cudaMemcpy DtoH", cudaMemcpy(host, memory, sizeof(host), 2));
		CALL("cudaMemcpyAsync HtoD", cudaMemcpyAsync(memory, host, sizeof(host), 1, stream));
		CALL("cudaMemcpyAsync DtoH", cudaMemcpyAsync(host, memory, sizeof(host), 2, stream));
		CALL("cudaMemsetAsync", cudaMemsetAsync(memory, i, sizeof(host), stream));
		CALL("cudaEventRecord", cudaEventRecord(event, stream));
		CALL("cudaStreamSynchronize", cudaStreamSynchronize(stream));
	}
	if (launch(stream))
		return 3;
	CALL("cudaDeviceSynchronize", cudaDeviceSynchronize());
	CALL("cudaFree", cudaFree(memory));
	return 0;
}

int main(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct link_map *map = NULL;
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map)) {
		fprintf(stderr, "%s\n", dlerror());
		return 4;
	}
	find_exports(map);
	printf("{\"exports\": %d, \"library\": \"%s\"}\n", n_exports, map->l_name);
	tell_addresses(library);
	if (!n_exports || !make_writable()) {
		fprintf(stderr, "libcuda's text can't be written: no breakpoints\n");
		return 5;
	}
	sigaction(SIGTRAP, &action, NULL);
	r = use_runtime();
	fflush(stdout);
	/* what a runtime does at the end is its own business, and may hang */
	_exit(r);
}
