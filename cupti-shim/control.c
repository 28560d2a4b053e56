// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A tracer requests records by a probe on one of the functions below. For the probe the kernel increments the
 * semaphore that the tracer named with it (a uprobe's reference counter), in every process that the link applies to,
 * and decrements it when the link is closed, also if the tracer was killed. The functions themselves are never
 * called.
 *
 * A fork copies both: breakpoints of a link that does not apply to the child, and semaphores that this link has
 * incremented. When the link is closed, the kernel removes the breakpoints from the child, too, and decrements the
 * semaphores there; if the child had reset a semaphore to 0, that would fail and leave the breakpoint. And a count
 * that was copied can't be distinguished from the child's own. So the pages of both are excluded from a fork
 * (MADV_DONTFORK), and the child maps them again from the file, whereupon the kernel inserts what applies to the
 * child.
 */
#define _GNU_SOURCE
#include "shim.h"
#include "writers.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	   4096
#define OWN_FD_MIN 200

/* A page each, with nothing else in it; not in .bss, which is not in the file. */
#define TEXT_(x)		    #x
#define TEXT(x)			    TEXT_(x)
#define BEGIN(section, flags, page) ".pushsection " section ",\"" flags "\",@progbits\n.p2align 12\n" page ":\n"
#define END			    ".p2align 12\n.popsection\n"
#define LABEL(name, type)	    ".globl " name "\n.type " name ", @" type "\n" name ":\n"
#define CONTROL(up, low)                                                                           \
	LABEL("sonde_cupti_control_" #low, "function")                                             \
	".rept " TEXT(SHIM_SLOTS) "\nnop\nret\n.p2align 4\n.endr\n.size sonde_cupti_control_" #low \
				  ", . - sonde_cupti_control_" #low "\n"
#define SEMAPHORE(up, low)                                                              \
	LABEL("sonde_cupti_semaphore_" #low, "object")                                  \
	".rept " TEXT(SHIM_SLOTS) "\n.quad 0\n.endr\n.size sonde_cupti_semaphore_" #low \
				  ", . - sonde_cupti_semaphore_" #low "\n"
__asm__(BEGIN(".sonde_control", "ax", "sonde_control_page") SHIM_GROUPS(CONTROL) END);
__asm__(BEGIN(".sonde_semaphores", "aw", "sonde_semaphore_page") ".ascii \"" SHIM_SEMAPHORES
								 "\"\n.p2align 3\n" SHIM_GROUPS(SEMAPHORE) END);
_Static_assert(SHIM_CONTROL_BYTES == 16 && SHIM_SEMAPHORE_BYTES == 8, "as above");

/* The kernel's semaphores have 16 bits. */
struct semaphore {
	volatile uint16_t count;
	uint16_t pad[3];
};
#define SEMAPHORE_DECLARED(up, low) extern SHIM_EXPORT struct semaphore sonde_cupti_semaphore_##low[SHIM_SLOTS];
SHIM_GROUPS(SEMAPHORE_DECLARED)
extern char sonde_control_page[] __attribute__((visibility("hidden")));
extern char sonde_semaphore_page[] __attribute__((visibility("hidden")));

#define SEMAPHORE_ADDRESS(up, low) [SHIM_##up] = sonde_cupti_semaphore_##low,
static const struct semaphore *const semaphores[SHIM_GROUP_COUNT] = { SHIM_GROUPS(SEMAPHORE_ADDRESS) };

struct page {
	char *at;
	off_t offset; /* in the file */
	int protection;
};

static struct {
	char path[PATH_MAX];
	int fd; /* for a file without a name (a memfd of `sonde inject`); -1: it has a name */
	dev_t dev;
	ino_t ino;
	struct page pages[2];
	bool lost; /* in a child: the pages could not be mapped */
	uint16_t seen[SHIM_GROUP_COUNT][SHIM_SLOTS];
	struct control_changes changes;
} control = {
	.fd = -1,
	.pages = { { sonde_control_page, 0, PROT_READ | PROT_EXEC },
		   { sonde_semaphore_page, 0, PROT_READ | PROT_WRITE } },
};

/* The file offset of an address in a loaded object. */
static int find_offsets(struct dl_phdr_info *info, size_t size, void *arg)
{
	int found = 0, i, j;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		char *start = (char *)info->dlpi_addr + p->p_vaddr;

		for (j = 0; j < 2 && p->p_type == PT_LOAD; j++) {
			struct page *page = &control.pages[j];

			if (page->at < start || page->at + PAGE > start + p->p_filesz)
				continue;
			page->offset = p->p_offset + (page->at - start);
			found = 1;
		}
	}
	if (found)
		snprintf(control.path, sizeof(control.path), "%s", info->dlpi_name);
	return found;
}

static bool is_file(int fd)
{
	struct stat st;

	return file__status(fd, "", &st) && st.st_dev == control.dev && st.st_ino == control.ino;
}

void control__init(void)
{
	struct stat st;

	/* a page that can't be excluded is copied: a child that inherits a count then counts as a request */
	if (!dl_iterate_phdr(find_offsets, NULL) || sysconf(_SC_PAGESIZE) != PAGE ||
	    !file__status(AT_FDCWD, control.path, &st) || control.pages[0].offset % PAGE ||
	    control.pages[1].offset % PAGE) {
		control.path[0] = '\0';
		return;
	}
	control.dev = st.st_dev;
	control.ino = st.st_ino;
	/* the path uses a descriptor of the loader, which will close it */
	if (!strncmp(control.path, "/proc/", 6)) {
		int fd = open(control.path, O_RDONLY | O_CLOEXEC);

		/* a high number, for programs that rely on getting the next free one */
		control.fd = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD_MIN);
		if (control.fd < 0)
			control.fd = fd;
		else
			close(fd);
	}
	madvise(control.pages[0].at, PAGE, MADV_DONTFORK);
	madvise(control.pages[1].at, PAGE, MADV_DONTFORK);
}

/* This may run between fork and exec, so nothing here takes a lock. */
void control__after_fork(void)
{
	int fd, i;

	memset(control.seen, 0, sizeof(control.seen));
	if (!control.path[0])
		return;
	fd = control.fd >= 0 ? control.fd : open(control.path, O_RDONLY | O_CLOEXEC);
	/* replaced or closed since: no tracer can find the file, and so none can request records */
	control.lost = fd < 0 || !is_file(fd);
	for (i = 0; i < 2; i++) {
		struct page *p = &control.pages[i];

		if (control.lost)
			mmap(p->at, PAGE, p->protection, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
		else if (mmap(p->at, PAGE, p->protection, MAP_PRIVATE | MAP_FIXED, fd, p->offset) == MAP_FAILED)
			control.lost = true;
		else
			madvise(p->at, PAGE, MADV_DONTFORK);
	}
	if (fd >= 0 && fd != control.fd)
		close(fd);
}

uint32_t control__requested(struct control_changes *changes)
{
	uint32_t requested = 0;
	bool came = false, left = false;
	int i, slot;

	for (i = 0; i < SHIM_GROUP_COUNT && !control.lost; i++)
		for (slot = 0; slot < SHIM_SLOTS; slot++) {
			uint16_t now = semaphores[i][slot].count;

			if (now)
				requested |= 1U << i;
			came |= now > control.seen[i][slot];
			left |= now < control.seen[i][slot];
			control.seen[i][slot] = now;
		}
	control.changes.arrivals += came;
	control.changes.departures += left;
	*changes = control.changes;
	return requested;
}
