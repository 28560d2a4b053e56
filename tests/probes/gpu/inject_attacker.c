// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program with a forged C library, whose functions sonde calls:
 *
 *	inject_attacker path FILE	no library can be loaded, and memfd_create() returns a descriptor of FILE that
 *					is opened with O_PATH
 *	inject_attacker file FILE	the same with FILE opened for reading and writing
 *	inject_attacker memfd		the same with a memfd that stays empty when it is written to
 *	inject_attacker handle		dlopen() reports success without loading a library
 *
 * Prints "ready", and ends with its standard input.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int handed;

static void *load_nothing(const char *path, int flags)
{
	return NULL;
}

static void *claim_handle(const char *path, int flags)
{
	return &handed;
}

static int hand_over(const char *name, unsigned int flags)
{
	return handed;
}

/* Replaces a function's start by a jump: mov $to, %rax; jmp *%rax */
static void replace(const char *name, void *to)
{
	uint8_t jump[] = { 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0 }, *at = dlsym(RTLD_DEFAULT, name);
	uintptr_t page = (uintptr_t)at & ~4095UL;

	memcpy(jump + 2, &to, sizeof(to));
	if (!at || mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		exit(2);
	memcpy(at, jump, sizeof(jump));
}

static int open_file(const char *kind, const char *path)
{
	if (!strcmp(kind, "memfd")) {
		int fd = memfd_create("libsonde-cupti.so", MFD_ALLOW_SEALING);

		if (ftruncate(fd, 4096) || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW))
			exit(2);
		return fd;
	}
	return open(path, !strcmp(kind, "path") ? O_PATH : O_RDWR);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	if (strcmp(kind, "handle")) {
		handed = open_file(kind, argc > 2 ? argv[2] : "");
		if (handed < 0)
			return 2;
		replace("memfd_create", hand_over);
	}
	replace("dlopen", !strcmp(kind, "handle") ? claim_handle : load_nothing);
	printf("ready\n");
	fflush(stdout);
	getchar();
	return 0;
}
