// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Probe sites in hand-written code of both architectures and in this program's own functions. */
#include "test.h"

#include "site/place_private.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CODE_ADDR 0x1000

/* nothing is cached between runs */
static struct elf *elf;
static struct placer *placer;
static int elf_fd = -1;

/* A file that contains only this code, as one function. */
static bool open_code(const void *code, size_t len, bool shadow_stack)
{
	Elf64_Ehdr eh = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	Elf64_Phdr ph = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = sizeof(eh) + sizeof(ph),
		.p_vaddr = CODE_ADDR,
		.p_filesz = len,
		.p_memsz = len,
	};

	elf_fd = memfd_create("code", MFD_CLOEXEC);
	if (elf_fd < 0 || write(elf_fd, &eh, sizeof(eh)) != sizeof(eh) ||
	    write(elf_fd, &ph, sizeof(ph)) != sizeof(ph) || write(elf_fd, code, len) != (ssize_t)len ||
	    elf__open(&elf, elf_fd))
		return false;
	placer = placer__new(elf, shadow_stack);
	return placer;
}

static void close_code(void)
{
	placer__free(placer);
	elf__close(elf);
	close(elf_fd);
	placer = NULL;
	elf = NULL;
}

/* The site's offset from the entry, and whether a probe there is cheap. */
static int entry(const char *code, size_t len, bool shadow_stack, bool *cheap)
{
	struct place_site site = {};
	const char *why = NULL;

	if (!open_code(code, len, shadow_stack))
		return -1;
	placer__entry(placer, CODE_ADDR, len, &site, &why);
	*cheap = site.cost == PLACE_EMULATED;
	if (*cheap == !!why)
		return -2;
	close_code();
	return (int)(site.addr - CODE_ADDR);
}

#define ENTRY_OF(code, shstk, cheap) entry(code, sizeof(code) - 1, shstk, cheap)
#define CHEAP_AT(code)                                    \
	({                                                \
		bool cheap_;                              \
		int at_ = ENTRY_OF(code, false, &cheap_); \
		cheap_ ? at_ : -100 - at_;                \
	})
#define DEAR -100 /* at the entry itself */

TEST(probes_the_first_instruction_if_it_is_emulated)
{
	CHECK(CHEAP_AT("\x55\x48\x89\xe5\x5d\xc3") == 0); /* push %rbp */
	CHECK(CHEAP_AT("\x41\x57\xc3") == 0); /* push %r15 */
	CHECK(CHEAP_AT("\x90\xc3") == 0); /* nop */
	CHECK(CHEAP_AT("\xeb\x00\xc3") == 0); /* jmp */
}

TEST(knows_what_the_kernel_does_not_emulate)
{
	CHECK(CHEAP_AT("\x48\x83\xec\x18\xc3") == DEAR); /* sub $24,%rsp */
	CHECK(CHEAP_AT("\xc3") == DEAR); /* ret */
	CHECK(CHEAP_AT("\xf3\x0f\x1e\xfb\xc3") == DEAR); /* endbr32 */
	CHECK(CHEAP_AT("\x66\x90\xc3") == DEAR); /* a nop that some kernels refuse */
	CHECK(CHEAP_AT("\x0f\x1f\x44\x00\x00\xc3") == DEAR); /* a nop that only new kernels emulate */
	CHECK(CHEAP_AT("\xff\x30\xc3") == DEAR); /* push (%rax) */
	CHECK(CHEAP_AT("\xff\xe0") == DEAR); /* jmp *%rax */
}

TEST(skips_endbr_and_instructions_that_keep_the_arguments)
{
	CHECK(CHEAP_AT("\xf3\x0f\x1e\xfa\x55\xc3") == 4); /* push %rbp */
	CHECK(CHEAP_AT("\xf3\x0f\x1e\xfa\x41\x57\xc3") == 4); /* push %r15 */
	CHECK(CHEAP_AT("\x48\x85\xff\x74\x01\x90\xc3") == 3); /* test %rdi,%rdi; je */
	CHECK(CHEAP_AT("\x48\x8b\x05\x00\x00\x00\x00\x55\xc3") == 7); /* mov 0(%rip),%rax; push */
	CHECK(CHEAP_AT("\x31\xc0\x55\xc3") == 2); /* xor %eax,%eax; push */
}

TEST(stops_before_an_instruction_that_changes_state)
{
	CHECK(CHEAP_AT("\x31\xff\x55\xc3") == DEAR); /* xor %edi,%edi: the first argument */
	CHECK(CHEAP_AT("\x48\x83\xec\x08\x74\x00\xc3") == DEAR); /* sub $8,%rsp; je: the stack pointer */
	CHECK(CHEAP_AT("\x48\x89\xe5\x55\xc3") == 3); /* mov %rsp,%rbp keeps it */
	CHECK(CHEAP_AT("\xc6\x07\x01\x55\xc3") == DEAR); /* movb $1,(%rdi): memory that an argument points to */
	CHECK(CHEAP_AT("\x0f\x05\x55\xc3") == DEAR); /* syscall */
	CHECK(CHEAP_AT("\xa4\x55\xc3") == DEAR); /* movsb */
}

TEST(is_not_moved_to_a_jump_target)
{
	/* test %rdi,%rdi; 3: je 7; dec %rdi... jmp 3 would hit a probe at 3 twice */
	CHECK(CHEAP_AT("\x48\x85\xff\x74\x05\x48\xff\xcf\xeb\xf9\xc3") == DEAR);
	/* a jump back to the entry hits a moved probe as often as one at the entry */
	CHECK(CHEAP_AT("\x48\x85\xff\x74\x05\x48\xff\xcf\xeb\xf6\xc3") == 3);
}

TEST(does_not_emulate_a_call_under_a_shadow_stack)
{
	static const char code[] = "\xe8\x00\x00\x00\x00\xc3", behind[] = "\x31\xc0\xe8\x00\x00\x00\x00\xc3";
	bool cheap;

	CHECK(ENTRY_OF(code, false, &cheap) == 0 && cheap);
	CHECK(ENTRY_OF(code, true, &cheap) == 0 && !cheap);
	CHECK(ENTRY_OF(behind, false, &cheap) == 2 && cheap);
	CHECK(ENTRY_OF(behind, true, &cheap) == 0 && !cheap);
}

TEST(reads_no_further_than_the_code)
{
	CHECK(CHEAP_AT("\xf3") == DEAR);
	CHECK(CHEAP_AT("\xf3\x0f\x1e\xfa") == DEAR);
	CHECK(CHEAP_AT("\x0f") == DEAR);
}

/* --- ends --- */

static struct placement got;

static bool place(const char *code, size_t len, bool shadow_stack)
{
	if (!open_code(code, len, shadow_stack) || placer__function(placer, CODE_ADDR, len, &got))
		return false;
	close_code();
	return true;
}

#define PLACE(code) place(code, sizeof(code) - 1, false)

static bool exit_at(u32 i, u64 at, u8 cost, u32 above)
{
	const struct place_site *s = &got.sites[i];

	return i < got.n && s->kind == PLACE_EXIT && s->addr == CODE_ADDR + at && s->cost == cost &&
	       s->above == above && !s->by_frame_pointer;
}

/* push %rbx; call *%rax; test %eax,%eax; 5: je 8; nop; 8: pop %rbx; ret */
static const char one_jump[] = "\x53\xff\xd0\x85\xc0\x74\x02\x31\xc0\x5b\xc3";

TEST(finds_the_jump_that_every_exit_passes)
{
	REQUIRE(PLACE(one_jump));
	CHECK(got.exits && got.n == 2 && exit_at(1, 5, PLACE_EMULATED, 8));
	CHECK(!got.exits_why);
}

TEST(takes_returns_if_there_is_no_jump)
{
	/* push; call *%rax; pop; ret */
	REQUIRE(PLACE("\x53\xff\xd0\x5b\xc3"));
	CHECK(got.exits && got.n == 2 && exit_at(1, 4, PLACE_STEPPED, 0));
	CHECK_TEXT(got.exits_why, WHY_EXIT_STEPPED);
}

TEST(searches_after_the_last_call)
{
	/* push; test; 3: je 8; call *%rax; ret-path is one: pop; ret. The je lies before a call, so it is no end. */
	REQUIRE(PLACE("\x53\x85\xc0\x74\x02\xff\xd0\x5b\xc3"));
	CHECK(got.exits && got.n == 2 && exit_at(1, 8, PLACE_STEPPED, 0));
}

TEST(takes_a_tail_call_for_an_exit)
{
	/* push; call *%rax; pop; jmp far away */
	REQUIRE(PLACE("\x53\xff\xd0\x5b\xe9\x00\x10\x00\x00"));
	CHECK(got.exits && got.n == 2 && exit_at(1, 4, PLACE_EMULATED, 0));
}

TEST(never_passes_a_site_twice)
{
	/* push; call *%rax; 3: dec %eax; 5: jne 3; 7: nop; pop; ret: the loop's jump is passed often, the nop once */
	REQUIRE(PLACE("\x53\xff\xd0\xff\xc8\x75\xfc\x90\x5b\xc3"));
	CHECK(got.exits && got.n == 2 && exit_at(1, 7, PLACE_EMULATED, 8));
	/* without the nop only the return remains */
	REQUIRE(PLACE("\x53\xff\xd0\xff\xc8\x75\xfc\x5b\xc3"));
	CHECK(got.exits && got.n == 2 && exit_at(1, 8, PLACE_STEPPED, 0));
}

TEST(needs_a_site_on_each_path)
{
	/* push; call *%rax; test; 5: je 10; call *%rax; nop; pop; ret; 10: nop; pop; ret */
	REQUIRE(PLACE("\x53\xff\xd0\x85\xc0\x74\x05\xff\xd0\x90\x5b\xc3\x90\x5b\xc3"));
	CHECK(got.exits && got.n == 3);
	CHECK(exit_at(1, 9, PLACE_EMULATED, 8) || exit_at(2, 9, PLACE_EMULATED, 8));
	CHECK(exit_at(1, 12, PLACE_EMULATED, 8) || exit_at(2, 12, PLACE_EMULATED, 8));
}

TEST(tracks_the_stack_by_the_frame_pointer)
{
	/* push %rbp; mov %rsp,%rbp; sub %rax,%rsp; call *%rcx; nop; leave; ret */
	REQUIRE(PLACE("\x55\x48\x89\xe5\x48\x29\xc4\xff\xd1\x90\xc9\xc3"));
	REQUIRE(got.exits && got.n == 2);
	CHECK(got.sites[1].addr == CODE_ADDR + 9 && got.sites[1].by_frame_pointer && got.sites[1].above == 8);
}

TEST(refuses_unknown_code)
{
	/* push; jmp *%rax: with a frame, so not to another function */
	REQUIRE(PLACE("\x53\xff\xe0"));
	CHECK(!got.exits && got.n == 1);
	CHECK_TEXT(got.exits_why, WHY_INDIRECT);
	/* push; je into the middle of the next instruction */
	REQUIRE(PLACE("\x53\x74\x01\xb8\x90\x90\x90\xc3\xc3"));
	CHECK_TEXT(got.exits_why, WHY_OVERLAP);
	/* push; nop: no end */
	REQUIRE(PLACE("\x53\x90"));
	CHECK_TEXT(got.exits_why, WHY_PAST_END);
	/* ret: the entry is the end */
	REQUIRE(PLACE("\xc3"));
	CHECK_TEXT(got.exits_why, WHY_SAME_PLACE);
}

TEST(reads_jump_tables)
{
	/*
	 * 0: push %rbx; 1: call *%rax; 3: cmp $1,%ecx; 6: ja 24; 8: lea 32(%rip),%rdx (table at 47);
	 * 15: movslq (%rdx,%rcx,4),%rax; 19: add %rdx,%rax; 22: jmp *%rax; 24: nop; 25: pop; 26: ret;
	 * 27: nop; 28: pop; 29: ret; 30: jmp 24; .. 47: table { 27 - 47, 30 - 47 }
	 */
	static const char code[] = "\x53\xff\xd0\x83\xf9\x01\x77\x10\x48\x8d\x15\x20\x00\x00\x00\x48\x63\x04\x8a"
				   "\x48\x01\xd0\xff\xe0\x90\x5b\xc3\x90\x5b\xc3\xeb\xf8\xcc\xcc\xcc\xcc\xcc\xcc"
				   "\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xec\xff\xff\xff\xef\xff\xff\xff";
	char broken[sizeof(code)];

	REQUIRE(PLACE(code));
	/* one site before the jump table covers all three paths */
	CHECK(exit_at(1, 6, PLACE_EMULATED, 8) && got.n == 2);
	/* a table with an entry outside the function is invalid */
	memcpy(broken, code, sizeof(code));
	broken[50] = 0;
	REQUIRE(place(broken, sizeof(code) - 1, false));
	CHECK_TEXT(got.exits_why, WHY_INDIRECT);
}

/* --- names --- */

TEST(knows_callees_by_name)
{
	CHECK(callee__by_name("free") == CALLEE_HARMLESS);
	CHECK(callee__by_name("freeaddrinfo") == CALLEE_UNKNOWN);
	CHECK(callee__by_name("_ZdlPvm") == CALLEE_HARMLESS);
	CHECK(callee__by_name("_ZN3c106SymInt8release_Ev.isra.0") == CALLEE_HARMLESS);
	CHECK(callee__by_name(
		      "_ZN3c1013intrusive_ptrINS_13GeneratorImplENS_6detail34intrusive_target_default_null_typeI"
		      "S1_EEE15reset_not_null_EPS1_") == CALLEE_HARMLESS);
	CHECK(callee__by_name("_Unwind_Resume") == CALLEE_UNWINDS);
	CHECK(callee__by_name("_ZSt20__throw_length_errorPKc") == CALLEE_UNWINDS);
	CHECK(callee__by_name("__stack_chk_fail") == CALLEE_DIES);
	CHECK(callee__by_name("printf") == CALLEE_UNKNOWN);
	CHECK(callee__by_name("") == CALLEE_UNKNOWN);
}

/* --- this program's own functions, whatever the compiler made of them --- */

int place_test_switch(int x, int (*fn)(int));
__attribute__((noipa)) int place_test_switch(int x, int (*fn)(int))
{
	switch (x) {
	case 0:
		return fn(1);
	case 1:
		return fn(2) + 1;
	case 2:
		return 7;
	case 3:
		return fn(4) * fn(5);
	case 4:
		return x * 3;
	case 5:
		return fn(9);
	default:
		return fn(x) - 1;
	}
}

static struct placement of_self(const char *name, struct placer *p, struct elf *self)
{
	struct placement pl = {};
	struct elf_symbol sym;

	if (CHECK(!elf__find_symbol(self, name, &sym)))
		CHECK(!placer__function(p, sym.addr, sym.size, &pl));
	return pl;
}

TEST(places_compiled_functions)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct placement pl;
	struct placer *p;
	struct elf *self;

	REQUIRE(fd >= 0 && !elf__open(&self, fd));
	p = placer__new(self, false);
	REQUIRE(p);
	pl = of_self("place_test_switch", p, self);
	CHECK(pl.exits && pl.n >= 2);
	placer__free(p);
	elf__close(self);
	close(fd);
}

TEST_MAIN()
