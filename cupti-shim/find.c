// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds CUPTI. First among the libraries that the process has loaded: dlopen by a plain name misses pip's
 * libcupti.so.13, and a second CUPTI beside a loaded one would get no records. Then next to the loaded libcudart (a
 * toolkit, a wheel), then by its sonames. If the loader would search a folder relative to one that other users can
 * write to (an empty or relative entry of LD_LIBRARY_PATH), nothing is loaded that is not loaded yet: CUPTI's own
 * libraries are searched in the same way, and the process, which may be root's, did not choose the moment. The CUDA
 * version of libcudart is tried first, because a CUPTI that is newer than the driver does not work.
 */
#define _GNU_SOURCE
#include "libc.h"
#include "cupti.h"
#include "writers.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct loaded {
	char cupti[PATH_MAX], runtime[PATH_MAX];
	int major; /* of libcudart; 0: none is loaded */
	int driver;
};

/* The version number after "libcudart.so". */
static int number(const char *p)
{
	int n = 0;

	for (p += *p == '.'; *p >= '0' && *p <= '9' && n < 1000; p++)
		n = n * 10 + *p - '0';
	return n;
}

static int on_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = strrchr(info->dlpi_name, '/');
	struct loaded *l = arg;

	name = name ? name + 1 : info->dlpi_name;
	if (!strncmp(name, "libcuda.so", 10))
		l->driver = 1;
	if (!strncmp(name, "libcupti.so", 11))
		snprintf(l->cupti, sizeof(l->cupti), "%s", info->dlpi_name);
	if (!strncmp(name, "libcudart.so", 12)) {
		snprintf(l->runtime, sizeof(l->runtime), "%s", info->dlpi_name);
		l->major = number(name + 12);
	}
	return 0;
}

/* Loads a library and finds all required functions, or nothing. */
static int load(struct cupti *c, const char *path, int flags)
{
	c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	if (!c->library)
		return -ENOENT;
#define CUPTI_LOAD(required, ours, theirs, args)                 \
	*(void **)&c->ours = dlsym(c->library, "cupti" #theirs); \
	if (required && !c->ours) {                              \
		dlclose(c->library);                             \
		return -ENOEXEC;                                 \
	}
	CUPTI_FUNCTIONS(CUPTI_LOAD)
	return 0;
}

/*
 * In a wheel: nvidia/cuda_runtime/lib next to nvidia/cuda_cupti/lib (12), nvidia/cu13/lib for both; in a toolkit:
 * extras. The file must be writable only by the users who can write to the folder that libcudart was loaded from:
 * another user may have created "../extras" of a folder in /tmp.
 */
static int load_beside(struct cupti *c, const struct loaded *l)
{
	static const char *const places[] = { "%s/libcupti.so.%d%s", "%s/../../cuda_cupti/lib/libcupti.so.%d%s",
					      "%s/../extras/CUPTI/lib64/libcupti.so.%d%s" };
	char folder[PATH_MAX], path[PATH_MAX + 64], real[PATH_MAX];
	struct writers writers;
	int err = -ENOENT;
	size_t i;

	/* a relative path began in the current folder of that time */
	if (l->runtime[0] != '/')
		return -ENOENT;
	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(l->runtime, '/') - l->runtime), l->runtime);
	if (!realpath(*path ? path : "/", folder) || writers__of_folder(folder, &writers))
		return -EPERM;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		/* that of CUDA 11 is libcupti.so.11.8 */
		snprintf(path, sizeof(path), places[i], folder, l->major, l->major == 11 ? ".8" : "");
		if (!realpath(path, real))
			continue;
		if (path__is_open_to_others(real, &writers))
			err = -EPERM;
		else if (!load(c, real, 0))
			return 0;
	}
	return err;
}

static int load_by_name(struct cupti *c, int major)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8" };
	int i;

	for (i = 0; i < 3; i++)
		if ((!major || major == 13 - i) && !load(c, names[i], 0))
			return 0;
	return major ? -ENOENT : load(c, "libcupti.so", 0);
}

/* Is one of the folders unsafe that the loader searches, as they were when the program started? */
static int searches_others_folders(void)
{
	/* the user who set an absolute folder trusts its owners; a folder that any user can create is unsafe */
	static const struct writers absolute = { .any_but_all = 1 }, relative = { 0, (uid_t)-1, (gid_t)-1 };
	void *program = dlopen(NULL, RTLD_NOW | RTLD_NOLOAD);
	Dl_serinfo head, *info = NULL;
	int unsafe = 0;

	if (program && !dlinfo(program, RTLD_DI_SERINFOSIZE, &head))
		info = malloc(head.dls_size);
	if (info && !dlinfo(program, RTLD_DI_SERINFOSIZE, info) && !dlinfo(program, RTLD_DI_SERINFO, info))
		for (unsigned int i = 0; i < info->dls_cnt && !unsafe; i++)
			unsafe = path__is_open_to_others(info->dls_serpath[i].dls_name,
							 info->dls_serpath[i].dls_name[0] == '/' ? &absolute :
												   &relative);
	free(info);
	if (program)
		dlclose(program);
	return unsafe;
}

int cupti__find(struct cupti *c, char *why, size_t len)
{
	struct loaded l = { .major = 0 };
	int open_to_others;
	int err;

	dl_iterate_phdr(on_object, &l);
	if (!l.driver)
		return -EAGAIN;
	memset(c, 0, sizeof(*c));
	if (!l.cupti[0] && searches_others_folders()) {
		snprintf(
			why, len,
			"CUPTI is not loaded: LD_LIBRARY_PATH has an empty or relative folder, or one in /tmp, and other users can write to it; "
			"start the program with folders that only its user can write to");
		return -EPERM;
	}
	err = l.cupti[0] ? load(c, l.cupti, RTLD_NOLOAD) : load_beside(c, &l);
	open_to_others = err == -EPERM;
	if (err && !l.cupti[0])
		err = load_by_name(c, l.major);
	if (err && !l.cupti[0] && !l.major)
		err = load_by_name(c, 0);
	if (err == -ENOEXEC || l.cupti[0]) {
		if (err)
			snprintf(why, len, "%.200s lacks functions: CUPTI of CUDA 11.8 to 13 is needed", l.cupti);
	} else if (err && open_to_others) {
		snprintf(
			why, len,
			"CUPTI is not loaded: other users can write to the folder of %.150s or of the libcupti.so.%d near it",
			l.runtime, l.major);
	} else if (err) {
		snprintf(why, len,
			 l.major ? "no libcupti.so.%d was found: install CUPTI of that CUDA (pip: nvidia-cuda-cupti)" :
				   "no libcupti.so was found: install CUPTI (pip: nvidia-cuda-cupti)",
			 l.major);
	}
	if (!err && c->get_version(&c->version))
		c->version = 0;
	return err;
}
