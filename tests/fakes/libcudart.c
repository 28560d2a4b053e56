// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stands for libcudart where a test needs to know what a call does: succeed,
 * take its time, never return, jump out, call another. Signatures as in
 * cuda_runtime_api.h. A file name that begins with libcudart.so is all that
 * makes sonde probe it.
 */
#include <stdint.h>
#include <time.h>
#include <unistd.h>

typedef void *handle;

int cudaMalloc(void **address, size_t bytes)
{
	*address = (void *)(uintptr_t)(0x7000000 + bytes);
	return 0;
}

int cudaProfilerStart(void)
{
	return 0;
}

int cudaProfilerStop(void)
{
	return 0;
}

int cudaStreamCreate(handle *stream)
{
	*stream = (handle)0x5151;
	return 0;
}

int cudaMemPoolCreate(handle *pool, const void *props)
{
	*pool = (handle)0x9393;
	return 0;
}

int cudaGraphInstantiate(handle *exec, handle graph, unsigned long long flags)
{
	*exec = (handle)0x9292;
	return 0;
}

int cudaStreamEndCapture(handle stream, handle *graph)
{
	*graph = (handle)0x9191;
	return 0;
}

int cudaEventElapsedTime(float *ms, handle start, handle end)
{
	*ms = 1.5f;
	return 0;
}

/* Takes 3 ms or more. */
int cudaDeviceSynchronize(void)
{
	struct timespec t = { .tv_nsec = 3000000 };

	nanosleep(&t, NULL);
	return 0;
}

/* Never returns. */
int cudaEventSynchronize(handle event)
{
	for (;;)
		pause();
}

int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, handle stream)
{
	return 1;
}

int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind)
{
	return 2;
}

int cudaMemset(void *dst, int value, size_t bytes)
{
	return 3;
}

struct dim3 {
	unsigned int x, y, z;
};

int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t shared,
		     handle stream)
{
	return 4;
}

int cudaGraphLaunch(handle exec, handle stream)
{
	return 0;
}

int cudaGetLastError(void)
{
	return 5;
}

int cudaEventRecord(handle event, handle stream)
{
	return 6;
}

/* Calls another traced function. */
int cudaEventRecordWithFlags(handle event, handle stream, unsigned int flags)
{
	return cudaEventRecord(event, (handle)0x5151) + 1;
}

int cudaFree(void *address)
{
	return 17;
}

/* Jumps to another traced function, which returns to this one's caller. */
int cudaFreeHost(void *address)
{
	return cudaFree(address);
}

/* Runs the host's code: it may come back, call in again, or jump out. */
int cudaLaunchHostFunc(handle stream, void (*fn)(void *), void *data)
{
	fn(data);
	return 0;
}

/*
 * The upper half of the register that holds an int is not defined. And for the
 * benchmark: one function of each kind of entry, that does next to nothing.
 */
__asm__(".text\n"
	".globl cudaStreamQuery, cudaStreamDestroy, cudaStreamSynchronize\n"
	".type cudaStreamQuery, @function\n"
	".type cudaStreamDestroy, @function\n"
	".type cudaStreamSynchronize, @function\n"
	".p2align 4\n"
	"cudaStreamQuery:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	movabs $0x1234567800000258, %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size cudaStreamQuery, . - cudaStreamQuery\n"
	".p2align 4\n"
	"cudaStreamDestroy:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	movabs $0xffffffff00000190, %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size cudaStreamDestroy, . - cudaStreamDestroy\n"
	".p2align 4\n"
	"cudaStreamSynchronize:\n"
	"	endbr64\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	xor %eax, %eax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size cudaStreamSynchronize, . - cudaStreamSynchronize\n");
