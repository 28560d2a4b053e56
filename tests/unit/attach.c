// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// test: smoke
/* Probe sites, section names of BPF programs, refused declarations. */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/maps.h"
#include "kernel/embedded.h"
#include "kernel/link.h"
#include "util/section.h"
#include "util/test_switch.h"

TEST(parses_section_names)
{
	struct section s;
	unsigned int group;

	REQUIRE(!section__parse(&s, "span+all/libcudart.so:cudaA,cudaB;cudaC"));
	CHECK(s.kind == SECTION_SPAN && !s.on_demand);
	CHECK_TEXT(s.option, "all");
	CHECK_TEXT(s.library, "libcudart.so");
	CHECK(section__has(&s, "cudaA", &group) && !group);
	CHECK(section__has(&s, "cudaB", &group) && !group);
	CHECK(section__has(&s, "cudaC", &group) && group == 1);
	CHECK(!section__has(&s, "cudaD", &group));
	REQUIRE(!section__parse(&s, "?tp_btf/sched_waking"));
	CHECK(s.kind == SECTION_TRACEPOINT && s.on_demand);
	CHECK_TEXT(s.rest, "sched_waking");
	REQUIRE(!section__parse(&s, "site/wait"));
	CHECK(s.kind == SECTION_SITE);
	REQUIRE(!section__parse(&s, "placed/libtorch_cpu.so:_ZN2at4_ops*4callE*"));
	CHECK(s.kind == SECTION_PLACED);
	CHECK_TEXT(s.library, "libtorch_cpu.so");
	CHECK(section__parse(&s, "placed/libtorch_cpu.so") < 0);
	CHECK(section__parse(&s, "span/libcudart.so") < 0);
	CHECK(section__parse(&s, "entry/:f") < 0);
	CHECK(section__parse(&s, "span/lib.so:") < 0);
}

TEST(knows_a_library_by_the_start_of_its_file_name)
{
	struct section s;

	REQUIRE(!section__parse(&s, "span/libcudart.so:f"));
	CHECK(section__matches_library(&s, "/usr/lib/libcudart.so.13.0.96"));
	CHECK(section__matches_library(&s, "libcudart.so"));
	CHECK(!section__matches_library(&s, "/opt/libcudart.so/other.so"));
	CHECK(!section__matches_library(&s, "/usr/lib/xlibcudart.so"));
	/* the driver's files: a library named by version, a link named by soname, and copies for containers */
	REQUIRE(!section__parse(&s, "span/libcuda.so:cuLaunchKernel"));
	CHECK(section__matches_library(&s, "/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
	CHECK(section__matches_library(&s, "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01"));
	CHECK(section__matches_library(&s, "/usr/local/cuda/compat/libcuda.so.580.65.06 (deleted)"));
	CHECK(!section__matches_library(&s, "/usr/local/cuda/lib64/libcudart.so.13"));
	CHECK(!section__matches_library(&s, "/usr/lib/x86_64-linux-gnu/libcudadebugger.so.1"));
}

TEST(lists_functions)
{
	const char *list = "a,b;;c,";
	char name[8], all[32] = "";

	while (section__next_function(&list, name, sizeof(name)))
		strcat(strcat(all, name), " ");
	CHECK_TEXT(all, "a b c ");
}

TEST(refuses_return_probes_of_functions_that_may_unwind)
{
	CHECK(section__refuses_returns("span/libtorch.so:_ZN2at4_ops3add4callERKNS_6TensorE"));
	CHECK(section__refuses_returns("span/libtorch.so:fine,_ZN1aE"));
	CHECK(section__refuses_returns("span/libc.so.6:read"));
	CHECK(section__refuses_returns("span/libpthread.so.0:pthread_cond_timedwait"));
	CHECK(!section__refuses_returns("span/libcudart.so:cudaMalloc"));
	CHECK(!section__refuses_returns("entry/libtorch.so:_ZN1aE"));
	CHECK(!section__refuses_returns("placed/libtorch.so:_ZN1aE"));
	CHECK(!section__refuses_returns("placed/libc.so.6:read"));
	CHECK(!section__refuses_returns("site/wait"));
}

TEST(opens_the_embedded_object)
{
	struct embedded e = {};
	char err[512] = "";
	u16 number;

	if (!CHECK(!embedded__open(&e, err, sizeof(err))))
		printf("# %s\n", err);
	CHECK(schema__event(e.schema, "cuda_copy") && schema__event(e.schema, "meta_loss"));
	REQUIRE(e.probes.n_programs > 0);
	for (u32 i = 0; i < e.probes.n_programs; i++)
		CHECK(e.probes.programs[i].family);
	number = probes__add(&e.probes, &e.probes.programs[0], "f", 0);
	CHECK(number == 1);
	CHECK(probes__add(&e.probes, &e.probes.programs[0], "g", 0) == 2);
	CHECK(probes__add(&e.probes, &e.probes.programs[0], "f", 0) == 1);
	CHECK(!probes__number(&e.probes, &e.probes.programs[1], "f"));
	CHECK(probes__add(&e.probes, &e.probes.programs[1], "f", 0) == 3);
	embedded__close(&e);
}

/* The number of sites that an owner gets for functions that no other owner has. */
static u32 take_numbers(struct probes *p, u32 owner, u32 most)
{
	char name[64];
	u32 n = 0;

	do {
		snprintf(name, sizeof(name), "f%u_%u", owner, n);
	} while (n < most && probes__add(p, &p->programs[0], name, owner) && ++n);
	return n;
}

TEST(leaves_sites_to_other_owners)
{
	struct embedded e = {};
	char err[512] = "";
	u32 first, second;

	REQUIRE(!embedded__open(&e, err, sizeof(err)));
	first = take_numbers(&e.probes, 1000, MAX_PROBES);
	CHECK(first == MAX_PROBES * 3 / 8);
	CHECK(probes__add(&e.probes, &e.probes.programs[0], "f1000_0", 1000));
	CHECK(probes__add(&e.probes, &e.probes.programs[0], "f1000_0", 1001));
	second = take_numbers(&e.probes, 1001, MAX_PROBES);
	CHECK(second == (MAX_PROBES * 3 / 4 - first) / 2);
	CHECK(!probes__add(&e.probes, &e.probes.programs[0], "g", 1000));
	CHECK(probes__add(&e.probes, &e.probes.programs[0], "g", 1002));
	/* root gets all that are left */
	CHECK(take_numbers(&e.probes, 0, MAX_PROBES) == MAX_PROBES - 1 - first - second - 1);
	embedded__close(&e);
}

TEST(reads_the_schema_without_opening_the_object)
{
	struct embedded e = {};
	struct schema *s = NULL;
	char err[512] = "";

	REQUIRE(!embedded__open(&e, err, sizeof(err)));
	REQUIRE(!embedded__schema(&s, err, sizeof(err)));
	CHECK(s->n_events == e.schema->n_events && s->n_families == e.schema->n_families);
	CHECK(schema_event__field(schema__event(s, "syscall"), "nr")->values);
	schema__free(s);
	embedded__close(&e);
}

TEST(reads_test_switches)
{
	setenv("SONDE_TEST", "no-multi,no-gil-pattern", 1);
	CHECK(test_switch__is_set("no-multi") && test_switch__is_set("no-gil-pattern"));
	CHECK(!test_switch__is_set("no-session") && !test_switch__is_set("no") && !test_switch__is_set("gil"));
	unsetenv("SONDE_TEST");
	CHECK(!test_switch__is_set("no-multi"));
}

/* Shared with the kernel, which must find it while it holds a process's mmap lock */
TEST(reads_sites_into_the_page_cache_before_it_links)
{
	const char *dir = getenv("TMPDIR") ?: "/tmp";
	u64 offset = 4096 * 200, cookie = 0;
	struct link_sites sites = { .offsets = &offset, .cookies = &cookie, .n = 1 };
	unsigned char there = 1;
	char path[256];
	void *map;

	snprintf(path, sizeof(path), "%s/sites-XXXXXX", dir);
	sites.fd = mkstemp(path);
	REQUIRE(sites.fd >= 0);
	unlink(path);
	for (u32 i = 0; i < 256; i++)
		REQUIRE(pwrite(sites.fd, "x", 1, (off_t)i * 4096) == 1);
	map = mmap(NULL, 256 * 4096, PROT_READ, MAP_SHARED, sites.fd, 0);
	REQUIRE(map != MAP_FAILED);
	fsync(sites.fd);
	posix_fadvise(sites.fd, 0, 0, POSIX_FADV_DONTNEED);
	REQUIRE(!mincore((char *)map + offset, 4096, &there));
	if (there & 1)
		SKIP("this file system keeps all in memory");
	CHECK(link__create_multi(-1, ATTACH_TYPE_UPROBE_MULTI, &sites) < 0);
	REQUIRE(!mincore((char *)map + offset, 4096, &there));
	CHECK(there & 1);
	munmap(map, 256 * 4096);
	close(sites.fd);
}

TEST_MAIN()
